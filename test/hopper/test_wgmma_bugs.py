"""Mistakes that shipped in kernels of wgmma: with the missing edge clean, without it a finding.

None showed in results or in compute-sanitizer where it was found:

- NVIDIA/Fuser 3561: a stage is given back without a wait for the wgmma that reads it; NVIDIA/Fuser
  3865: one warp gives it back for all four, each of which has waited for itself only (a warning:
  CUTLASS does so).
- tile-ai/tilelang 2634: threads store the operands of a sparse wgmma, and no proxy fence follows.
- MoonshotAI/FlashKDA 24: the same in front of a TMA store, and mbarriers that nobody fences after
  their initialisation (a warning, as shipping kernels rely on it; by the ISA an error).
- facebookexperimental/CUTracer 106, wrong on purpose: the wait for a stage comes after the wgmma,
  or not at all.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .mma_sync import HERE
from .wgmma_cases import place
from .wgmma_edits import PROXY, edited
from .wgmma_forms import FORMS, ptx
from .wgmma_sparse import sparse

STEPS = 4
TEXT = (HERE / "wgmma_ring.ptx").read_text()


def edge(name: str) -> str:
    """The line of the kernel that has it."""
    (line,) = [line for line in TEXT.splitlines() if line.endswith(f"// {name}")]
    return line


@cache
def operands() -> tuple[np.ndarray, np.ndarray]:
    """The stages as they lie in memory, and the product."""
    rng = np.random.default_rng(4)
    a = rng.integers(-4, 5, (STEPS, 64, 16)).astype(np.float16)
    b = rng.integers(-4, 5, (STEPS, 8, 16)).astype(np.float16)
    images = np.zeros((STEPS, 2304), np.uint8)
    place(images, 0, a.view(np.uint16), 16, False)
    place(images, 2048, b.view(np.uint16), 16, False)
    product = sum(x @ y.T for x, y in zip(a.astype(np.float32), b.astype(np.float32), strict=True))
    return images, product


def ring(text: str, ordering: str = "silicon") -> tuple[RunReport, bool]:
    """The report, and whether the product is right."""
    tiles, product = operands()
    out = np.zeros((64, 8), np.float32)
    report = run_ptx(
        text, entry="ring", grid=1, block=160, args=[tiles, out], hazards="report",
        ordering=ordering,
    )  # fmt: skip
    return report, bool(np.array_equal(out, product))


@pytest.mark.parametrize("ordering", ["silicon", "isa"])
def test_with_all_edges(ordering: str) -> None:
    report, right = ring(TEXT, ordering)
    assert report.ok and right, str(report)
    assert "error" not in str(report) and "warning" not in str(report)


LATER = "// behind the loop"
ONE_WARP = edge("empty").replace("@%p0", "setp.eq.u32 %p0, %r0, 0; @%p0")
MISTAKES = {
    "fuser_3561": ([(edge("wait"), ""), (LATER, edge("wait"))], "race"),
    "fuser_3865": ([(edge("empty"), ONE_WARP), ("[empty], 4", "[empty], 1"),
                    ("[empty+8], 4", "[empty+8], 1")], "waited-for-warpgroup"),
    "flashkda_24_store": ([(edge("proxy"), "")], "missing-proxy-fence"),
    "flashkda_24_init": ([(edge("init"), "")], "missing-init-fence"),
    "cutracer_106_late": ([(edge("full"), ""), (edge("wait"), edge("wait") + "\n" + edge("full"))],
                          "race"),
    "cutracer_106_gone": ([(edge("full"), "")], "race"),
}  # fmt: skip


UNPROMISED = ("missing-init-fence", "waited-for-warpgroup")
"""Warnings, as shipping kernels rely on what no document promises."""


@pytest.mark.parametrize("name", MISTAKES)
def test_without_one(name: str) -> None:
    edits, finding = MISTAKES[name]
    text = TEXT
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    report, _ = ring(text)
    assert finding in str(report) and report.ok == (finding in UNPROMISED), str(report)
    report, _ = ring(text, "isa")
    assert not report.ok and finding in str(report), str(report)


@pytest.mark.parametrize("name", ["n8_f32_f16_f16_sp0", "n8_f32_f16_f16_rs_sp0"])
def test_tilelang_2634(name: str) -> None:
    assert "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16" in ptx((name,))
    ok, report, right = edited(sparse(FORMS[name]), PROXY, PROXY)
    assert ok and right, report
    ok, report, _ = edited(sparse(FORMS[name]), PROXY, "bar.sync 0;")
    assert not ok and "missing-proxy-fence" in report, report
