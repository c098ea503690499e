"""GEMM whose tiles of B read one tile of A from the collector: every level equal, and breaks."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import tcir
from tcir.passmanager.pipeline import as_pipeline

from .block_scaled_text import UE8M0, BlockScaled
from .breaking import Edit, PtxCheck, erase, pick, run_broken, set_attribute
from .gemm_cases import Dense
from .linalg_text import Matmul

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "two tiles": (Matmul(40, 40, 72).text(), {"n_tile": 32, "n_tiles": 2, "swap": "never"}),
    "three, the last outside": (
        Matmul(130, 72, 24).text(), {"n_tile": 48, "n_tiles": 3, "swap": "never"},
    ),
    "four of i8, exchanged": (
        Dense(8, 200, 40, "i8").text, {"n_tile": 16, "n_tiles": 4, "swap": "always"},
    ),
    "fp8 in turn": (
        Dense(140, 200, 160, "f8E4M3FN", "mk", "nk").text,
        {"n_tile": 32, "n_tiles": 2, "persistent": True, "ctas": 1, "swap": "never"},
    ),
    "pairs": (
        Matmul(140, 140, 40).text(), {"n_tile": 64, "n_tiles": 2, "cta_group": 2},
    ),
    "a cluster": (
        Matmul(140, 140, 40).text(), {"n_tile": 32, "n_tiles": 2, "cluster": "2x1"},
    ),
    "block-scaled, the second tile inside a block": (
        BlockScaled(m=40, n=168, k=192).linalg(), {"n_tile": 96, "n_tiles": 2},
    ),
    "block-scaled pairs in turn": (
        BlockScaled(m=140, n=264, k=64, scale=UE8M0, block=32).linalg(),
        {"n_tile": 64, "n_tiles": 2, "cta_group": 2, "persistent": True, "ctas": 2},
    ),
    "block-scaled, a cluster": (
        BlockScaled(m=140, n=72, k=64).linalg(), {"n_tile": 32, "n_tiles": 2, "cluster": "2x1"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_level(name: str, orders: int) -> None:
    text, options = CASES[name]
    kernel = tcir.compile(
        text, "gemm", validate=True, orders=min(orders, 4), seed=7, collector=True, **options
    )
    report = kernel.report
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [f for line in report.passes for f in line.findings]
    fills, last = (kernel.ptx.count(f".collector::a::{use}") for use in ("fill", "lastuse"))
    assert fills == last > 0
    assert kernel.ptx.count(".collector::a::use") == fills * (options["n_tiles"] - 2)


# --- breaks ------------------------------------------------------------------------------------

PROGRAM = Matmul(40, 96, 64).text()
OPTIONS: dict[str, Any] = {"n_tile": 32, "n_tiles": 3, "collector": True, "swap": "never"}
AT = "tile-gemm"
BREAKS: dict[str, tuple[Edit, str]] = {
    "no fill": (erase("tc.mma", 0), "collector-not-filled"),
    "discarded before its use": (
        set_attribute("tc.mma", "collector", '"discard"'),
        "collector-not-filled",
    ),
    "given up before its use": (
        set_attribute("tc.mma", "collector", '"lastuse"', 1),
        "collector-not-filled",
    ),
    "another slice of A": (set_attribute("tc.mma", "a_slice", "1 : i64", 1), "collector-mismatch"),
}


@cache
def _pipeline() -> tcir.Pipeline:
    whole = as_pipeline("gemm", **OPTIONS)
    return tcir.Pipeline(whole.passes[: whole.index(AT) + 1])


@pytest.mark.parametrize("what", BREAKS)
def test_break(what: str) -> None:
    edit, finding = BREAKS[what]
    caught = run_broken(PROGRAM, _pipeline(), AT, edit, orders=1)
    assert caught.at == AT, caught.text
    assert finding in caught.text or finding in caught.by, caught.text


SCALED = BlockScaled(m=40, n=256, k=64).linalg()


def _scales_of_the_first(module: Any) -> None:
    """The second tile of B is multiplied by the scales of the first."""
    first, second = pick(module, "tc.mma_block_scale", 0), pick(module, "tc.mma_block_scale", 1)
    second.operands[4] = first.operands[4]


def _loaded_from_the_first(module: Any) -> None:
    """The scales of the second tile of B are those of the first tile's columns."""
    load = pick(module, "tc.tma_load", 5)
    load.operands[3] = pick(module, "tc.tma_load", 3).operands[3]


SCALED_BREAKS: dict[str, tuple[Edit, str]] = {
    "no fill": (erase("tc.mma_block_scale", 0), "collector-not-filled"),
    "scales of the first tile": (_scales_of_the_first, "difference"),
    "scales of the first tile's columns": (_loaded_from_the_first, "difference"),
}


@pytest.mark.parametrize("what", SCALED_BREAKS)
def test_break_of_scales(what: str) -> None:
    edit, finding = SCALED_BREAKS[what]
    whole = as_pipeline("gemm", n_tile=128, n_tiles=2, collector=True)
    pipeline = tcir.Pipeline(whole.passes[: whole.index(AT) + 1])
    caught = run_broken(SCALED, pipeline, AT, edit, orders=1)
    assert caught.at == AT, caught.text
    assert finding in caught.text or finding in caught.by, caught.text


def test_unbroken() -> None:
    caught = run_broken(PROGRAM, _pipeline(), AT, lambda _: None, orders=1)
    assert not caught, caught.text


def test_the_ptx_with_a_use_that_nothing_filled() -> None:
    kernel = tcir.compile(PROGRAM, "gemm", **OPTIONS)
    check = PtxCheck(PROGRAM, kernel)
    assert not check.run(kernel.ptx, orders=1)
    text = check.edit(r"\.collector::a::fill", "")
    assert check.run(text, orders=1).by == "hazard: collector-not-filled"


def test_the_option_of_a_target_without_collectors() -> None:
    with pytest.raises(tcir.PassError, match="expected n-tiles=1 for sm_90a, got 2"):
        tcir.compile(PROGRAM, "gemm", target="sm_90a", n_tiles=2)
