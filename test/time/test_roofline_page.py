"""docs/reference/roofline.md: fresh, and its numbers worked out again without the code that writes
it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcir.tools.dev.roofline_page import main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "roofline.md").read_text()
A = 7168 * 16384 // 2
SCALES = 7168 * 16384 // 16
VECTOR = 16384 // 2 + 16384 // 16
RESULT = 7168 * 2
MIB = 1 << 20


def test_the_page_is_fresh() -> None:
    assert main(["--check"]) == 0, "run python -m tcir.tools.dev.roofline_page"


def test_bandwidth_alone_takes_8_6_microseconds() -> None:
    nbytes = A + SCALES + VECTOR + RESULT
    assert nbytes / 1e6 == pytest.approx(66.1, abs=0.05)
    assert nbytes / 7.67e6 == pytest.approx(8.62, abs=0.005)
    assert f"| {nbytes} | 3.55 |" in PAGE and "are 8.62 us: plain bandwidth" in PAGE
    assert nbytes / 1.8e6 == pytest.approx(36.7, abs=0.05) and "| 36.7 us, but" in PAGE
    assert "36.7 / 0.7 = 52 us" in PAGE and "| 4.2 times |" in PAGE
    for us, share in ((50, 17), (25, 34), (15, 57)):
        assert round(100 * 8.62 / us) == share and f"{us} us is {share} % of the bandwidth" in PAGE


def test_the_padded_product_is_issued_in_less_time_than_hbm_takes() -> None:
    """56 tiles of 128 rows, 256 instructions each, over 148 SMs at 1.85 GHz."""
    for columns, cycles, us in ((8, 34, "1.8"), (16, 36, "1.9")):
        assert -(-(128 + columns) * 32 // 128) == cycles
        assert f"{56 * 256 * cycles / 148 / 1850:.1f}" == us
    assert "1.8 us to issue at N = 8 and 1.9 at N = 16" in PAGE


def test_2048_cubed_is_below_the_ridge() -> None:
    flops = 2 * 2048**3
    plain = (2 + 2 + 16 + 8) * MIB
    assert plain // MIB == 28 and flops / 28e6 == pytest.approx(614, abs=0.5)
    nbytes = plain + 2 * 2048 * 2048 // 16
    assert nbytes / 1e6 == pytest.approx(29.9, abs=0.05)
    assert flops / nbytes == pytest.approx(575, abs=0.5)
    ridge = 32768 * 148 * 1.85e9 / 7.67e12
    assert ridge == pytest.approx(1170, abs=0.5) and flops / nbytes < ridge
    assert "29.9 MB and 575 FLOP/B" in PAGE and "ridge is at 1170 FLOP/B: memory-bound" in PAGE
    assert "| 8.4 PFLOP/s; with the 148 SMs of a B200 at 1.85 GHz 8.97 |" in PAGE
    assert "575 FLOP a byte" in (DOCS / "design-notes" / "gemm.md").read_text()


def test_the_line_is_that_of_the_readme() -> None:
    (line,) = (each for each in PAGE.splitlines() if each.startswith("roofline, modelled"))
    assert line in (DOCS.parent / "README.md").read_text().splitlines()
