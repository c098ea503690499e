"""GEMM of clusters whose CTAs load for each other: every level equal, and what can go wrong.

A break is seen at the pass it is in.
"""

from __future__ import annotations

from typing import Any

import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.program.inputs import make_inputs, poison

from .block_scaled_text import BlockScaled
from .breaking import Break, change_operand, pick, set_attribute
from .gemm_cases import CLUSTERS, Dense
from .pair_edits import UNORDERED, of_cta, without
from .test_gemm import run

PROGRAM = Dense(300, 72, 200, "f16", "mk", "nk")
"""Two clusters of two tiles of rows, the last CTA without rows; four k steps in two slots."""
OPTIONS = {"cluster": "2x1", "n_tile": 80, "stages": 2}
SCALED = BlockScaled(m=130, n=200, k=512)
"""NVFP4 in tiles of 128 x 128 x 256, two along each dimension."""

TILE, PLACE, PLAN, ROLES = "tile-gemm", "place-barriers", "plan-memory", "assign-roles"
TO_NVVM = "convert-tc-to-nvvm"
COMMIT, EXPECT, LOAD, INIT, PART = (
    "tc.commit", "tc.mbarrier_expect_tx", "tc.tma_load", "tc.mbarrier_init", "tc.smem_part",
)  # fmt: skip
NVVM_LOAD, NVVM_COMMIT = "nvvm.cp.async.bulk.tensor.shared.cluster.global", "nvvm.tcgen05.commit"
B = 1
"""Which load."""


@pytest.mark.parametrize("case", CLUSTERS, ids=str)
def test_every_level(case: Dense, orders: int) -> None:
    run(case, orders)


@pytest.mark.parametrize("cluster", ["2x1", "1x2", "2x2"])
def test_every_order(cluster: str) -> None:
    options = OPTIONS | {"cluster": cluster}
    report = tcir.validate(PROGRAM.text, "gemm", orders=6, seed=2, **options)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]


@pytest.mark.parametrize("cluster", ["2x1", "1x2", "2x2"])
def test_scaled(cluster: str) -> None:
    report = tcir.validate(SCALED.linalg(), "gemm", orders=2, seed=2, cluster=cluster, stages=1)
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]


@pytest.mark.parametrize("target", ["sm_100a", "sm_90a"])
@pytest.mark.parametrize(("layout", "cluster"), [("kn", "2x1"), ("nk", "4x1")])
def test_tiles_wider_than_the_output(layout: str, cluster: str, target: str) -> None:
    """Parts of B are whole swizzle patterns: of 16 columns for each CTA, or of 8."""
    case = Dense(150, 9, 40, b=layout)
    kernel = tcir.compile(case.text, "gemm", target=target, cluster=cluster, swap="never")
    a, b = make_inputs(kernel.signature.inputs, 7, "integers")
    (out,) = (poison(spec) for spec in kernel.signature.outputs)
    outcome = kernel(a, b, out)
    assert out.tobytes() == case.product(a, b).tobytes() and not outcome.findings, str(outcome)
    assert ".multicast::cluster" in kernel.ptx


# --- breaks ------------------------------------------------------------------------------------


def _other(number: Any) -> Any:
    return arith.subi(arith.constant(number.type, 1), number)


def _first(number: Any) -> Any:
    return arith.constant(number.type, 0)


def _cta_0(mask: Any) -> Any:
    return arith.constant(mask.type, 1)


def _same_half(module: Any) -> None:
    """Both CTAs load the first half of B's columns, each to where its own half belongs."""
    row = pick(module, LOAD, B).operands[2].owner.operands[1].owner
    with ir.InsertionPoint(row), row.location:
        row.operands[0] = arith.constant(row.operands[0].type, 0)


BREAKS = [
    Break("both CTAs load the first half of B", TILE, _same_half, ("difference",)),
    Break("halves of B swapped", TILE, change_operand(PART, 1, _other), ("difference",)),
    Break("a half loaded twice, the other never", TILE, change_operand(PART, 1, _first),
          ("difference", *UNORDERED)),
    Break("a half stays with the CTA that loads it", TILE,
          set_attribute(LOAD, "cta_mask", "array<i64: 1, 2>", B), ("difference", *UNORDERED)),
    Break("a half goes to the other CTA only", TILE,
          set_attribute(LOAD, "cta_mask", "array<i64: 2, 1>", B), ("difference", *UNORDERED)),
    Break("mask of CTA 0 only", TILE, set_attribute(LOAD, "cta_mask", "1 : i64", B),
          ("difference", *UNORDERED)),
    Break("bytes of the CTA's own loads only", PLACE,
          set_attribute(EXPECT, "nbytes", "21504 : i64"), UNORDERED),
    Break("empty after one arrival", PLACE, set_attribute(INIT, "arrivals", "1 : i64", 1),
          UNORDERED),
    Break("empty after three arrivals", PLACE, set_attribute(INIT, "arrivals", "3 : i64", 1),
          ("deadlock",)),
    Break("commit reaches its own CTA only", PLACE, without(COMMIT, "cta_mask"), ("deadlock",)),
    Break("commit reaches CTA 0 only", PLACE, set_attribute(COMMIT, "cta_mask", "1 : i64"),
          UNORDERED),
    Break("half is not multicast once barriers count on it", PLACE, without(LOAD, "cta_mask", B),
          ("deadlock",)),
    Break("no cluster barrier behind the set-up", PLACE, of_cta(0), UNORDERED),
    Break("no cluster barrier at the end", PLACE, of_cta(1), UNORDERED),
    Break("no cluster barrier at the end, with roles", ROLES, of_cta(1), UNORDERED),
    Break("the mask of a load is CTA 0's", TO_NVVM, change_operand(NVVM_LOAD, 5, _cta_0, B),
          UNORDERED),
    Break("the mask of a commit is CTA 0's", TO_NVVM, change_operand(NVVM_COMMIT, 1, _cta_0),
          UNORDERED),
]  # fmt: skip


@pytest.mark.parametrize(
    "each",
    [pytest.param(b, id=b.what) for b in BREAKS],
)
def test_break(each: Break) -> None:
    each.check(PROGRAM.text, tcir.named_pipeline("gemm", **OPTIONS), orders=2)
