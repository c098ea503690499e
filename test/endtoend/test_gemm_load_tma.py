"""GEMM whose epilogue reads matrices that TMA loads: every level equal, and breaks of the ring."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import tcir
from tcir._mlir import arith
from tcir.passmanager.pipeline import as_pipeline

from .breaking import Edit, change_operand, pick, run_broken, set_attribute
from .epilogue_text import TRUNCATE, Fused

OPTIONS = {"store": "tma", "swap": "never"}
ADD = "%t = arith.addf %s, %r : f32"
FULL = "linalg.yield %t : f32"


def residual(element: str = "f32", out: str = "f32", **sizes: int) -> str:
    """The sum plus a matrix of `element`, as `out`."""
    wide = "" if element == "f32" else f"%w_ = arith.extf %r : {element} to f32\n"
    add = ADD.replace("%r", "%w_") if wide else ADD
    end = FULL if out == "f32" else f"%h = arith.truncf %t : f32 to {out}\nlinalg.yield %h : {out}"
    sizes = {"m": 140, "n": 72, "k": 24} | sizes
    dims = "bmn" if sizes.get("batch") else "mn"
    return Fused(f"{wide}{add}\n{end}", {"r": (element, dims)}, out, **sizes).linalg()


TWO = Fused(
    """%scaled = arith.mulf %beta, %c0 : f32
    %p = arith.addf %s, %scaled : f32
    %q = arith.addf %p, %bias : f32
    %more = arith.extf %r : f16 to f32
    %t = arith.addf %q, %more : f32"""
    + TRUNCATE,
    {"beta": ("f32", ""), "c0": ("f32", "mn"), "bias": ("f32", "n"), "r": ("f16", "mn")},
    m=40,
    n=72,
    k=24,
).linalg()
SHARED = Fused(f"{ADD}\n{FULL}", {"r": ("f32", "mn")}, "f32", m=33, n=24, k=16, batch=2).linalg()
START = Fused("%t = arith.mulf %s, %s : f32" + TRUNCATE, m=40, n=48, k=24, start=True).linalg()
INTEGERS = Fused(
    "%t = arith.addi %s, %r : i32\nlinalg.yield %t : i32", {"r": ("i32", "mn")}, "i32",
    m=40, n=32, k=32, element="i8", sums="i32",
).linalg()  # fmt: skip
SEVERAL = {"persistent": True, "ctas": 2}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "tails of rows and columns": (residual(), {"n_tile": 48}),
    "a wider matrix, in two boxes": (residual("f32", "f16"), {"n_tile": 64}),
    "a narrower matrix": (residual("bf16"), {"n_tile": 64}),
    "a batch": (residual(batch=2, m=33), {}),
    "one matrix for a batch": (SHARED, {}),
    "two matrices, a vector and a number": (TWO, {}),
    "an accumulator from outside": (START, {}),
    "i32": (INTEGERS, {}),
    "three spans, several tiles of a CTA": (
        residual(m=140, n=80),
        {"n_tile": 96, "store_stages": 3, "persistent": True, "ctas": 1},
    ),
    "narrow tiles, several of a CTA": (residual(n=40, out="f16"), {"n_tile": 16, **SEVERAL}),
    "tiles taken over": (
        residual(m=64, n=40),
        {"n_tile": 16, "persistent": True, "scheduler": "clc"},
    ),
    "a dependent launch": (residual(m=40), {"programmatic": True}),
    "pairs of CTAs": (residual(m=200), {"cta_group": 2, "n_tile": 64}),
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
    assert ".reqntid 224," in kernel.ptx  # seven warps, one loads for the epilogue
    columns = 4 if "vector" in name else 0  # 16 of them in f32, 16 bytes at a time
    assert kernel.ptx.count("ld.global.v") == columns


def test_rows_that_no_tensor_map_has() -> None:
    """The output's rows are multiples of 16 bytes, those of the f16 matrix are not."""
    report = tcir.validate(residual("f16", "f32", n=36, m=40), "gemm", orders=1, **OPTIONS)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


# --- breaks ------------------------------------------------------------------------------------

PROGRAM = residual(m=72, n=128)
TILE, PLACE, ROLES = "tile-gemm", "place-barriers", "assign-roles"
LOAD, SHARED_LOAD, SLOT = "tc.tma_load", "tc.load_shared", "tc.slot"


def _zero(old: Any) -> Any:
    return arith.constant(old.type, 0)


def _next(old: Any) -> Any:
    return arith.addi(old, arith.constant(old.type, 32))


def _role(module: Any, kind: str) -> Any:
    return pick(module, "tc.role", kind=f'"{kind}"')


def _inside(kind: str, name: str, index: int = 0) -> Edit:
    """Erases an op of a role."""

    def edit(module: Any) -> None:
        role = _role(module, kind)
        found = [op for op in _walk(role) if op.name == name]
        found[index].erase()

    return edit


def _walk(op: Any) -> Any:
    for region in op.regions:
        for block in region:
            for inner in block:
                yield inner.operation
                yield from _walk(inner.operation)


def _arrive_first(module: Any) -> None:
    """The slot is given back before it is read."""
    arrive = [op for op in _walk(_role(module, "epilogue")) if op.name == "tc.mbarrier_arrive"][-1]
    load = pick(module, SHARED_LOAD)
    arrive.move_before(load.parent)


NOTICED = ("hazard", "difference")
BREAKS: dict[str, tuple[str, Edit, tuple[str, ...]]] = {
    "the epilogue reads before the matrix is there": (
        ROLES, _inside("epilogue", "tc.mbarrier_wait", 1), ("hazard: race",),
    ),
    "the loader does not wait until a slot is empty": (
        ROLES, _inside("epilogue_load", "tc.mbarrier_wait"),
        ("hazard: race", "deadlock"),
    ),
    "a slot given back before it is read": (ROLES, _arrive_first, ("hazard: race",)),
    "nobody gives a slot back": (ROLES, _inside("epilogue", "tc.mbarrier_arrive", -1),
                                 ("deadlock",)),
    "a slot is empty after 32 arrivals": (
        PLACE, set_attribute("tc.mbarrier_init", "arrivals", "32 : i64", 3), ("deadlock",),
    ),
    "half of the bytes expected": (
        PLACE, set_attribute("tc.mbarrier_expect_tx", "nbytes", "8192 : i64", 1),
        ("deadlock",),
    ),
    "rows of the first warp": (TILE, change_operand(SHARED_LOAD, 1, _zero), ("difference",)),
    "columns of another piece": (TILE, change_operand(SHARED_LOAD, 2, _zero), ("difference",)),
    "the matrix 32 columns further right": (TILE, change_operand(LOAD, 1, _next, -1),
                                            ("difference",)),
    "always the first slot": (ROLES, change_operand(SLOT, 1, _zero, -3), NOTICED),
}  # fmt: skip


@cache
def _pipeline(until: str) -> tcir.Pipeline:
    whole = as_pipeline("gemm", n_tile=128, **OPTIONS)
    return tcir.Pipeline(whole.passes[: whole.index(until) + 1])


@pytest.mark.parametrize("what", BREAKS)
def test_break(what: str) -> None:
    at, edit, by = BREAKS[what]
    caught = run_broken(PROGRAM, _pipeline(at), at, edit, orders=4)
    assert caught, "nothing noticed the break"
    assert caught.at == at, caught.text
    assert caught.by.startswith(by), caught.text


def test_unbroken() -> None:
    caught = run_broken(PROGRAM, _pipeline(ROLES), ROLES, lambda _: None, orders=4)
    assert not caught, caught.text
