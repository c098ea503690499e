"""GEMM whose results TMA stores: every level equal, tails clipped, and what breaks the staging."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.passmanager.pipeline import as_pipeline

from .breaking import Edit, PtxCheck, change_operand, erase, pick, run_broken, set_attribute
from .epilogue_text import TRUNCATE, Fused
from .gemm_cases import Dense
from .linalg_text import Matmul

OPTIONS = {"store": "tma", "swap": "never"}
BIAS = Fused(
    "%t = arith.addf %s, %bias : f32" + TRUNCATE, inputs={"bias": ("f32", "n")}, m=40, n=48, k=24
)
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "tails of rows and columns": (Matmul(150, 72, 24).text(), {"n_tile": 48}),
    "f16": (Matmul(40, 72, 24, out="f16").text(), {"n_tile": 64}),
    "bf16, a batch": (Matmul(33, 24, 16, batch=2, element="bf16", out="bf16").text(), {}),
    "i32": (Dense(40, 32, 32, "i8", "mk", "nk").text, {}),
    "a fused epilogue": (BIAS.linalg(), {}),
    "several tiles of a CTA": (
        Matmul(140, 40, 24).text(),
        {"n_tile": 16, "persistent": True, "ctas": 2},
    ),
    "tiles of a warp in turn": (Matmul(40, 104, 24).text(), {"n_tile": 112, "store_stages": 2}),
    "three in turn, over several tiles of a CTA": (
        Matmul(140, 80, 24).text(),
        {"n_tile": 48, "store_stages": 3, "persistent": True, "ctas": 1},
    ),
    "tiles taken over": (
        Matmul(64, 40, 24).text(),
        {"n_tile": 16, "persistent": True, "scheduler": "clc"},
    ),
    "a dependent launch": (Matmul(64, 40, 24).text(), {"programmatic": True}),
}


@pytest.mark.parametrize("name", CASES)
def test_every_level(name: str, orders: int) -> None:
    text, options = CASES[name]
    kernel = tcir.compile(
        text, "gemm", validate=True, orders=min(orders, 4), seed=3, **OPTIONS, **options
    )
    report = kernel.report
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [f for line in report.passes for f in line.findings]
    assert "st.global" not in kernel.ptx and ".global.shared::cta" in kernel.ptx


def test_bytes_outside_the_output_are_not_stored() -> None:
    report = tcir.validate(Matmul(150, 72, 24).text(), "gemm", orders=1, n_tile=48, **OPTIONS)
    line = next(line for line in report.passes if line.name == "tile-gemm")
    assert line.counters["shared_to_global"] == 150 * 72 * 4 and not line.remarks


def test_rows_that_no_tensor_map_has() -> None:
    with pytest.raises(tcir.PassError, match="store=tma, got 17 x 4 = 68"):
        tcir.compile(Matmul(40, 17, 24, b_layout="nk").text(), "gemm", **OPTIONS)


def test_results_stored_by_columns() -> None:
    with pytest.raises(tcir.PassError, match="take swap=never or store=direct"):
        tcir.compile(Matmul(8, 256, 24).text(), "gemm", store="tma", swap="always")


def test_an_unknown_store() -> None:
    with pytest.raises(tcir.InputError, match="one of direct, tma, got bulk"):
        as_pipeline("gemm", store="bulk")


# --- breaks ------------------------------------------------------------------------------------

PROGRAM = Matmul(72, 64, 24).text()
TILE, PLACE, ROLES = "tile-gemm", "place-barriers", "assign-roles"
STORE, SHARED, SLOT = "tc.tma_store", "tc.store_shared", "tc.slot"


def _next(old: Any) -> Any:
    return arith.addi(old, arith.constant(old.type, 32))


def _zero(old: Any) -> Any:
    return arith.constant(old.type, 0)


def _wait_behind(module: Any) -> None:
    """The tile is written to again before TMA has read it."""
    pick(module, "tc.bulk_wait").move_after(pick(module, "tc.bulk_wait").parent)


def _first_turn(module: Any) -> None:
    """Always the first tile of the warp."""
    number = pick(module, SLOT, -1).operands[1].owner
    number.operands[1] = _zero_at(number)


def _zero_at(op: Any) -> Any:
    with ir.InsertionPoint(op), op.location:
        return _zero(op.operands[1])


NOTICED = ("hazard", "difference")
BREAKS: dict[str, tuple[str, Edit, tuple[str, ...]]] = {
    "no fence before the store": (
        ROLES,
        lambda m: pick(m, "tc.fence", kind='"proxy.async"').erase(),
        ("hazard: missing-proxy-fence",),
    ),
    "no wait before the tile is written again": (ROLES, _wait_behind, ("hazard: race",)),
    "no group": (ROLES, erase("tc.bulk_commit"), ("refused", "hazard", "illegal")),
    "all warps in one tile": (ROLES, change_operand(SLOT, 1, _zero, -1), NOTICED),
    "the store one box further right": (TILE, change_operand(STORE, 1, _next), NOTICED),
    "columns of another piece": (TILE, change_operand(SHARED, 3, _zero), NOTICED),
}


@cache
def _pipeline(until: str, **options: Any) -> tcir.Pipeline:
    whole = as_pipeline("gemm", **{"n_tile": 64, **OPTIONS, **options})
    return tcir.Pipeline(whole.passes[: whole.index(until) + 1])


@pytest.mark.parametrize("what", BREAKS)
def test_break(what: str) -> None:
    at, edit, by = BREAKS[what]
    caught = run_broken(PROGRAM, _pipeline(at), at, edit, orders=4)
    assert caught, "nothing noticed the break"
    assert caught.at == at, caught.text
    assert caught.by.startswith(by), caught.text


TURNS = {"store_stages": 2, "n_tile": 128}
TURN_BREAKS: dict[str, tuple[str, Edit, tuple[str, ...]]] = {
    "one store too many under way": (
        ROLES, set_attribute("tc.bulk_wait", "pending", "2 : i64"), ("hazard: race",),
    ),
    "always the first tile": (ROLES, _first_turn, ("hazard: race",)),
    "the end does not wait for the last store": (
        ROLES, set_attribute("tc.bulk_wait", "pending", "1 : i64", -1), ("warning: never-awaited",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", TURN_BREAKS)
def test_break_of_tiles_in_turn(what: str) -> None:
    at, edit, by = TURN_BREAKS[what]
    program = Matmul(72, 128, 24).text()
    caught = run_broken(program, _pipeline(at, **TURNS), at, edit, orders=4)
    assert caught, "nothing noticed the break"
    assert caught.at == at, caught.text
    assert caught.by.startswith(by), caught.text


def test_unbroken() -> None:
    caught = run_broken(PROGRAM, _pipeline(ROLES), ROLES, lambda _: None, orders=4)
    assert not caught, caught.text


def test_the_ptx_without_the_barrier_of_the_warp() -> None:
    """Lanes write the tile, one of them stores it: bar.warp.sync orders them (PTX ISA 9.7.13.2)."""
    kernel = tcir.compile(PROGRAM, "gemm", **OPTIONS)
    check = PtxCheck(PROGRAM, kernel)
    assert not check.run(kernel.ptx, orders=1)
    caught = check.run(check.edit(r"bar\.warp\.sync[^;]*;", "", 1), orders=2)
    assert caught.by == "hazard: race", caught.text
