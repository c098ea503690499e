"""A and B exchanged where rows are few: epilogues go along, and what is left behind is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tcir

from .breaking import Edit, pick, run_broken, set_attribute
from .epilogue_text import TRUNCATE, Fused
from .gemm_cases import Dense
from .test_gemm import run

BODY = """
    %e = arith.extf %r : f16 to f32
    %u = arith.addf %s, %columns : f32
    %v = arith.mulf %u, %rows : f32
    %t = arith.addf %v, %e : f32
"""
INPUTS = {"columns": ("f32", "n"), "rows": ("f32", "m"), "r": ("f16", "mn")}
DECODE = Fused(BODY + TRUNCATE, INPUTS, m=7, n=136, k=40)
SQUARE = replace(DECODE, m=40, n=40, k=40)


def test_bias_scale_and_residual() -> None:
    report = tcir.validate(DECODE.linalg(), "gemm", orders=2, seed=3)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


@pytest.mark.parametrize("swap", ["auto", "never"])
def test_results_of_a_byte_are_stored_one_by_one(swap: str) -> None:
    """By columns, and by rows of 17."""
    body = """
    %u = arith.addf %s, %b : f32
    %t = arith.truncf %u : f32 to f8E4M3FN
    linalg.yield %t : f8E4M3FN
    """
    case = Fused(body, {"b": ("f32", "n")}, out="f8E4M3FN", m=8, n=17, k=72)
    if swap == "auto":
        case = replace(case, n=136)
    report = tcir.validate(case.linalg(), "gemm", swap=swap)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)


def test_bytes() -> None:
    """Each element is stored once, and 32 lanes make a run of 64 bytes: nothing is padded."""
    kernel = tcir.compile(Dense(7, 200, 48, out="f16").text, "gemm", validate=True, orders=1)
    stored = {line.counters.get("global_store") for line in kernel.report.passes}
    assert stored - {None, 0} == {7 * 200 * 2}
    assert "st.global.b16" in kernel.ptx and "st.global.v" not in kernel.ptx


def test_exchanged() -> None:
    run(Dense(7, 200, 48, "i8", "mk", "nk"), 1)


def _transposed(name: str) -> Edit:
    """Rows of a tile go where columns went, and columns where rows did."""

    def edit(module: Any) -> None:
        op = pick(module, name)
        dims = [op.attributes.get(each, None) for each in ("row_dim", "column_dim")]
        for each, dim in zip(("column_dim", "row_dim"), dims, strict=True):
            if dim is not None:
                op.attributes[each] = dim
            elif each in op.attributes:
                del op.attributes[each]

    return edit


def _forget_layout(module: Any) -> None:
    del pick(module, "tc.matmul").attributes["out_layout"]


SEEN = ("difference", "hazard: output-never-written")

BREAKS: dict[str, tuple[str, Edit]] = {
    "result not exchanged": ("swap-operands", _forget_layout),
    "layout of A left behind": ("swap-operands", set_attribute("tc.matmul", "a_layout", '"mk"')),
    "bias left behind": ("tile-gemm", _transposed("tc.load_rows")),
    "tiles not transposed": ("tile-gemm", _transposed("tc.store_rows")),
    "tiles not transposed, roles": ("assign-roles", _transposed("tc.store_rows")),
}


@pytest.mark.parametrize(
    ("at", "edit"),
    [pytest.param(*each, id=what) for what, each in BREAKS.items()],
)
def test_break(at: str, edit: Edit) -> None:
    pipeline = tcir.named_pipeline("gemm", swap="always", n_tile=48)
    caught = run_broken(SQUARE.linalg(), pipeline, at, edit, orders=1)
    assert caught.at == at and caught.by in SEEN, caught.text
