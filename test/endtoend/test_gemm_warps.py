"""GEMM with numbers of warps a role: every level equal, legal and illegal ones."""

from __future__ import annotations

from typing import Any

import pytest

import tcir

from .epilogue_text import Fused
from .linalg_text import Matmul

SUMS = Matmul(140, 72, 24).text()
RESIDUAL = Fused(
    "%t = arith.addf %s, %r : f32\nlinalg.yield %t : f32",
    {"r": ("f32", "mn")},
    "f32",
    m=40,
    n=48,
    k=24,
).linalg()
CASES: dict[str, tuple[str, dict[str, Any], int, str]] = {
    "8 for the epilogue": (SUMS, {"epilogue_warps": 8, "n_tile": 80}, 384, "inc 208 dec 80"),
    "12 for the epilogue, several tiles of a CTA": (
        SUMS,
        {"epilogue_warps": 12, "n_tile": 48, "persistent": True, "ctas": 1}, 512, "inc 152 dec 56",
    ),
    "8 for the epilogue, exchanged operands, 32 columns at a time": (
        Matmul(8, 140, 24).text(),
        {"epilogue_warps": 8, "epilogue_tile": "128x32", "swap": "always", "n_tile": 64}, 384,
        "inc 208 dec 80",
    ),
    "a pair of CTAs, 8 each": (
        SUMS, {"epilogue_warps": 8, "cta_group": 2, "n_tile": 32}, 384, "inc 208 dec 80",
    ),
    "one that loads, threads read": (
        RESIDUAL, {"producer_warps": 1, "store": "tma", "swap": "never"}, 192, "",
    ),
    "two that load": (
        RESIDUAL, {"producer_warps": 2, "store": "tma", "swap": "never"}, 224, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_level(name: str, orders: int) -> None:
    text, options, threads, shares = CASES[name]
    kernel = tcir.compile(text, "gemm", validate=True, orders=min(orders, 4), seed=5, **options)
    report = kernel.report
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [f for line in report.passes for f in line.findings]
    assert f".reqntid {threads}" in kernel.ptx
    for word in zip(shares.split()[::2], shares.split()[1::2]):
        assert "setmaxnreg.{}.sync.aligned.u32 \t{}".format(*word).replace("\t", "") in (
            kernel.ptx.replace("\t", "")
        )


def test_warpgroups_that_multiply() -> None:
    text = Matmul(128, 32, 24).text()
    kernel = tcir.compile(text, "gemm", target="sm_90a", consumer_warps=8, producer_warps=1)
    assert ".reqntid 288" in kernel.ptx
    for options in ({"consumer_warps": 1}, {"producer_warps": 2}, {"epilogue_warps": 4}):
        with pytest.raises(tcir.PassError, match="for sm_90a, got"):
            tcir.compile(text, "gemm", target="sm_90a", **options)


def test_a_map_and_numbers() -> None:
    named = SUMS.replace("f32> {", 'f32> attributes {tc.warp_map = "tcgen05"} {', 1)
    with pytest.raises(tcir.PassError, match=r"tc\.warp_map on the function or numbers of warps"):
        tcir.compile(named, "gemm", epilogue_warps=8)
