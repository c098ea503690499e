"""GEMM with `epilogue-tile`: every level equal, and breaks of tiles that several warps write."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import tcir
from tcir._mlir import arith
from tcir.passmanager.pipeline import as_pipeline

from .breaking import Edit, PtxCheck, change_operand, erase, run_broken
from .epilogue_text import TRUNCATE, Fused
from .linalg_text import Matmul

BIAS = Fused(
    "%t = arith.addf %s, %bias : f32" + TRUNCATE, inputs={"bias": ("f32", "n")}, m=40, n=64, k=24
)
RESIDUAL = Fused(
    "%t = arith.addf %s, %r : f32\nlinalg.yield %t : f32",
    {"r": ("f32", "mn")},
    "f32",
    m=140,
    n=80,
    k=24,
)
TMA = {"store": "tma", "swap": "never"}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "two warps share a tile": (
        Matmul(72, 64, 24).text(), {"n_tile": 64, "epilogue_tile": "64x64", **TMA},
    ),
    "four warps share a tile": (
        Matmul(150, 72, 24).text(), {"n_tile": 128, "epilogue_tile": "128x64", **TMA},
    ),
    "64 columns in registers": (
        Matmul(72, 64, 24).text(), {"n_tile": 64, "epilogue_tile": "128x64", "swap": "never"},
    ),
    "128 columns in registers, f16": (
        Matmul(20, 130, 24, out="f16").text(), {"n_tile": 128, "epilogue_tile": "128x128"},
    ),
    "64 columns in registers, exchanged operands": (
        Matmul(8, 200, 24).text(), {"n_tile": 64, "epilogue_tile": "128x64", "swap": "always"},
    ),
    "an epilogue, in registers": (
        BIAS.linalg(), {"n_tile": 64, "epilogue_tile": "128x32", "swap": "never"},
    ),
    "an epilogue, staged": (BIAS.linalg(), {"n_tile": 64, "epilogue_tile": "64x64", **TMA}),
    "a matrix read by TMA": (
        RESIDUAL.linalg(),
        {"n_tile": 96, "epilogue_tile": "64x48", "persistent": True, "ctas": 1, **TMA},
    ),
    "tiles in turn, several of a CTA, three boxes each": (
        Matmul(140, 80, 24).text(),
        {"n_tile": 96, "epilogue_tile": "64x96", "store_stages": 2, "persistent": True, "ctas": 1,
         **TMA},
    ),
    "a batch of bf16, all rows in one tile": (
        Matmul(33, 24, 16, batch=2, element="bf16", out="bf16").text(),
        {"n_tile": 32, "epilogue_tile": "128x16", **TMA},
    ),
    "a pair of CTAs": (
        Matmul(200, 64, 24, out="f16").text(),
        {"n_tile": 64, "epilogue_tile": "64x32", "cta_group": 2, **TMA},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_level(name: str, orders: int) -> None:
    text, options = CASES[name]
    kernel = tcir.compile(text, "gemm", validate=True, orders=min(orders, 4), seed=3, **options)
    report = kernel.report
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [f for line in report.passes for f in line.findings]
    assert ("st.global" in kernel.ptx) == (options.get("store") != "tma")


def test_a_thread_loads_so_many_columns() -> None:
    text = Matmul(72, 64, 24).text()
    kernel = tcir.compile(text, "gemm", n_tile=64, epilogue_tile="128x64", swap="never")
    assert "tcgen05.ld.sync.aligned.32x32b.x64" in kernel.ptx


def test_the_option_of_a_target_without_tensor_memory() -> None:
    with pytest.raises(tcir.PassError, match="expected epilogue-tile=auto for sm_90a, got 64x64"):
        tcir.compile(Matmul(72, 64, 24).text(), "gemm", target="sm_90a", epilogue_tile="64x64")


# --- breaks ------------------------------------------------------------------------------------

PROGRAM = Matmul(128, 128, 24).text()
"""Each pair of warps writes its tile twice."""
OPTIONS: dict[str, Any] = {"n_tile": 128, "epilogue_tile": "64x64", **TMA}
TILE, ROLES = "tile-gemm", "assign-roles"
BARRIER = "tc.warps_barrier"


def _zero(old: Any) -> Any:
    return arith.constant(old.type, 0)


BREAKS: dict[str, tuple[str, Edit, tuple[str, ...]]] = {
    "no barrier before the store": (ROLES, erase(BARRIER, -1), ("hazard: race",)),
    "no barrier before the tile is written again": (ROLES, erase(BARRIER), ("hazard: race",)),
    "both pairs of warps at one barrier": (
        ROLES, change_operand(BARRIER, 0, _zero, -1), ("hazard", "deadlock", "refused", "illegal"),
    ),
    "both warps write the same rows": (
        TILE, change_operand("tc.store_shared", 2, _zero), ("hazard", "difference"),
    ),
}  # fmt: skip


@cache
def _pipeline(until: str) -> tcir.Pipeline:
    whole = as_pipeline("gemm", **OPTIONS)
    return tcir.Pipeline(whole.passes[: whole.index(until) + 1])


@pytest.mark.parametrize("what", BREAKS)
def test_break(what: str) -> None:
    at, edit, by = BREAKS[what]
    caught = run_broken(PROGRAM, _pipeline(at), at, edit, orders=4)
    assert caught, "nothing noticed the break"
    assert caught.at == at, caught.text
    assert caught.by.startswith(by), caught.text


def test_the_ptx_without_the_barrier_of_two_warps() -> None:
    kernel = tcir.compile(PROGRAM, "gemm", **OPTIONS)
    check = PtxCheck(PROGRAM, kernel)
    assert not check.run(kernel.ptx, orders=1)
    text = check.edit(r"bar\.sync\s+%r\d+, 64;", "", 1)
    assert check.run(text, orders=2).by == "hazard: race"
