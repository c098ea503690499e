"""Grouped GEMM with clusters, pairs, several accumulators, TMA stores, launch control and parts of
K: every level equal on random sizes, PTX equal to numpy on chosen ones, breaks seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tcir
from tcir._mlir import arith, ir
from tcir.program.inputs import make_inputs, poison

from .breaking import Edit, pick, set_attribute, walk
from .test_gemm_grouped import CONTIGUOUS, MASKED, OF_GROUP, TURNS, Grouped, plus
from .test_gemm_grouped_wgmma import single
from .test_matmul_warp_breaks import Break

B, H = "sm_100a", "sm_90a"


def rows(options: str, *sizes: int) -> Grouped:
    """Groups of bf16 in sequence."""
    given = sizes or (130, 0, 33)
    return Grouped(len(given), 200, 24, 72, "bf16", "nk", "bf16", sizes=given, options=options)


def masked(options: str, *sizes: int, k: int = 40) -> Grouped:
    """Groups with 140 rows each."""
    given = sizes or (140, 30)
    return Grouped(len(given), 140, 24, k, masked=True, sizes=given, options=options)


CASES = [
    (B, rows("epilogue-tile=128x32 n-tile=32")),
    (B, rows("cluster=1x2 n-tile=16")),
    (B, rows("cluster=2x2 n-tile=16 persistent=true ctas=4")),
    (B, masked("cluster=2x1 n-tile=32")),
    (B, rows("cta-group=2")),
    (B, masked("cta-group=2 n-tile=32 persistent=true ctas=2", 0, 140)),
    (B, rows("n-tiles=2 collector=true n-tile=16")),
    (B, masked("n-tiles=2 n-tile=16 persistent=true ctas=1", 129)),
    (B, rows("store=tma n-tile=16", 128, 64, 0, 5)),
    (B, masked("store=tma persistent=true ctas=1 n-tile=16 epilogue-tile=64x16 store-stages=1")),
    (B, rows("persistent=true scheduler=clc", 0, 0, 199)),
    (B, masked("persistent=true scheduler=clc n-tile=16", 0, 3)),
    (B, rows("persistent=true scheduler=clc cta-group=2 store=tma")),
    (H, rows("cluster=1x2 n-tile=16")),
    (H, masked("cluster=2x1 n-tile=32 persistent=true ctas=2")),
    (H, rows("store=tma n-tile=16", 128, 0, 1)),
    (H, masked("store=tma cluster=2x1 persistent=true ctas=2")),
    (B, rows("split-k=2")),
    (B, masked("split-k=3 n-tile=16 store=tma", k=136)),
    (B, masked("split-k=2 n-tile=16 persistent=true ctas=3", 0, 130, k=72)),
    (H, rows("split-k=2 n-tile=16 store=tma", 128, 0, 1)),
    (H, masked("split-k=2 cluster=2x1 n-tile=32", k=72)),
]


@pytest.mark.parametrize(("target", "case"), CASES, ids=str)
def test_case(target: str, case: Grouped) -> None:
    kernel = tcir.compile(case.text, case.pipeline, target=target, validate=True, orders=2, seed=3)
    lines = kernel.report.passes
    assert {line.verdict for line in lines} == {"reference", "equal"}, str(kernel.report)
    assert not [finding for line in lines for finding in line.findings]
    a, b, drawn = make_inputs(kernel.signature.inputs, 7, "integers")
    for sizes in (drawn, np.array(case.sizes, np.int32), np.zeros(case.groups, np.int32)):
        (out,) = (poison(spec) for spec in kernel.signature.outputs)
        want = case.product(a, b, sizes, out)
        outcome = kernel(a, b, sizes, out)
        assert out.tobytes() == want.tobytes() and not outcome.findings, (sizes, str(outcome))


BY_GROUP = single(OF_GROUP).replace("72xf8", "136xf8")
"""A scale and a bias of each group, two steps of K."""


@pytest.mark.parametrize(
    ("target", "text", "options"),
    [
        (B, CONTIGUOUS, {"store": "tma"}),  # the residual is loaded by TMA as well
        (B, OF_GROUP, {"cta_group": 2, "epilogue_tile": "128x32", "n_tile": 64}),
        (H, CONTIGUOUS, {"store": "tma"}),
        (B, CONTIGUOUS, {"split_k": 2}),
        (H, BY_GROUP, {"split_k": 2}),
        (B, single(MASKED), {"split_k": 2}),
    ],
    ids=[
        "residual by TMA",
        "of a group, a pair",
        "wgmma",
        "parts of K",
        "parts of K, of a group",
        "parts of K, masked",
    ],
)
def test_epilogue(target: str, text: str, options: dict[str, Any]) -> None:
    report = tcir.validate(
        text, tcir.named_pipeline("gemm", **options), target=target, orders=2, seed=3
    )
    assert {line.verdict for line in report.passes} == {"reference", "equal"}, str(report)
    assert not [finding for line in report.passes for finding in line.findings]


def operand_of(op: str, operand: int, index: int, other: int) -> Edit:
    """Gives an operation the operand of another one of its kind."""

    def edit(module: Any) -> None:
        pick(module, op, index).operands[operand] = pick(module, op, other).operands[operand]

    return edit


def chosen(index: int, operand: int) -> Edit:
    """Gives all users of a selection one of its values."""

    def edit(module: Any) -> None:
        select = pick(module, "arith.select", index)
        select.results[0].replace_all_uses_with(select.operands[operand])

    return edit


def further(op: str, operand: int, amount: int, index: int = 0) -> Edit:
    """An operand so much further."""
    return lambda module: plus(operand, amount)(pick(module, op, index))


def of_rank(rank: int) -> Edit:
    """Gives all CTAs of a cluster the same rank."""

    def edit(module: Any) -> None:
        found = list(walk(module, "tc.cta_rank"))
        assert found
        for op in found:
            with ir.InsertionPoint(op), op.location:
                constant = arith.constant(ir.IndexType.get(), rank)
            op.results[0].replace_all_uses_with(constant)

    return edit


def first_part(module: Any) -> None:
    """Every CTA loads the first part of a tile of A."""
    op = pick(module, "tc.smem_part")
    with ir.InsertionPoint(op), op.location:
        op.operands[1] = arith.constant(ir.IndexType.get(), 0)


def of_second(rows: int) -> Edit:
    """The second CTA's rows begin so many after the first one's."""

    def edit(module: Any) -> None:
        for op in walk(module, "arith.muli"):
            if getattr(op.operands[0].owner, "name", "") == "tc.cta_rank":
                with ir.InsertionPoint(op), op.location:
                    op.operands[1] = arith.constant(ir.IndexType.get(), rows)
                return
        raise AssertionError("no row of a rank")

    return edit


def stop(module: Any) -> None:
    """A CTA that takes another one over does none of its work."""
    for op in walk(module, "scf.yield"):
        if len(op.operands) == 3:
            with ir.InsertionPoint(op), op.location:
                op.operands[2] = arith.constant(ir.IntegerType.get_signless(1), 0)


def to_zero(op: str, operand: int, index: int = 0) -> Edit:
    """Sets an operand to zero."""

    def edit(module: Any) -> None:
        found = pick(module, op, index)
        kind = found.operands[operand].type
        zero = ir.IntegerAttr.get(ir.IndexType.get(), 0)
        if isinstance(kind, ir.VectorType):
            zero = ir.DenseElementsAttr.get_splat(kind, zero)
        with ir.InsertionPoint(found), found.location:
            found.operands[operand] = arith.ConstantOp(kind, zero).result

    return edit


def every_row(module: Any) -> None:
    """The launch that sums the parts up takes rows of no group as well."""
    inside = pick(module, "scf.if")  # the inner one
    with ir.InsertionPoint(inside), inside.location:
        inside.operands[0] = arith.constant(ir.IntegerType.get_signless(1), 1)


def part_again(module: Any) -> None:
    """The launch that sums the parts up adds the first one twice."""
    second = pick(module, "llvm.load", -1)
    second.operands[0] = pick(module, "llvm.load", -2).operands[0]


def of_first_group(module: Any) -> None:
    """The launch that sums the parts up reads what is of the first group."""
    group = pick(module, "scf.for").results[0]
    with ir.InsertionPoint.after(group.owner), group.owner.location:
        group.replace_all_uses_with(arith.constant(group.type, 0))


@dataclass(frozen=True)
class Broken:
    """A change after a pass."""

    case: Grouped
    edit: Edit
    target: str = B
    after: str = "tile-gemm"


CLUSTER, PAIR = rows("cluster=1x2 n-tile=16"), rows("cta-group=2")
TALL, BOXES = masked("cluster=2x1 n-tile=32"), rows("store=tma n-tile=32", 130, 40, 30)
PARTS, TURN = rows("split-k=2"), rows("split-k=2 persistent=true ctas=3 n-tile=16")
TWO, CLC = rows("n-tiles=2 n-tile=16"), rows("persistent=true scheduler=clc n-tile=16")
BROKEN = {
    "epilogue-tile: 16 columns further": Broken(
        rows("epilogue-tile=128x32 n-tile=32"), further("tc.store_lanes", 3, 16)
    ),
    "epilogue-tile: 16 columns of a loop of 32": Broken(
        masked("epilogue-tile=128x16 n-tile=32"), further("tc.tmem_ld", 2, 8)
    ),
    "cluster: all load the first part of A": Broken(CLUSTER, first_part),
    "cluster: all have the columns of the first": Broken(CLUSTER, of_rank(0)),
    "cluster of rows: tiles of 128 rows": Broken(
        TALL, set_attribute("tc.find_group", "tile_rows", "128 : i64")
    ),
    "cluster of rows: all have the rows of the second": Broken(TALL, of_rank(1)),
    "wgmma, cluster: all have the columns of the first": Broken(CLUSTER, of_rank(0), H),
    "wgmma, cluster of rows: the second's are 64 further": Broken(
        rows("cluster=2x1 n-tile=16 persistent=true ctas=2"), of_second(64), H
    ),
    "pair: rows of the second are 64 further": Broken(PAIR, of_second(64)),
    "pair: both have the rows of the second": Broken(PAIR, of_rank(1)),
    "n-tiles: columns of the first tile of B": Broken(TWO, operand_of("tc.tma_load", 2, 2, 1)),
    "n-tiles: stored at the columns of the first": Broken(
        TWO, further("tc.store_lanes", 3, -16, index=1)
    ),
    "store=tma: the last box of a group, too": Broken(BOXES, chosen(-1, 1)),
    "store=tma: no rows of the last box": Broken(BOXES, chosen(0, 1)),
    "wgmma, store=tma: the last box of a group, too": Broken(BOXES, chosen(0, 1), H),
    "wgmma, store=tma: no rows of the last box": Broken(BOXES, chosen(1, 1), H),
    "clc: a tile less": Broken(
        CLC, lambda module: TURNS["a tile less"].change(pick(module, "tc.count_tiles"))
    ),
    "clc: CTAs taken over do nothing": Broken(CLC, stop, after="cluster-launch-control"),
    "parts: A of the first": Broken(PARTS, to_zero("tc.tma_load", 1)),
    "parts: B of the first": Broken(PARTS, to_zero("tc.tma_load", 1, 1), H),
    "parts: all stored as the first": Broken(PARTS, to_zero("tc.store_lanes", 2)),
    "wgmma, parts: all stored as the first": Broken(
        PARTS, to_zero("tc.store_fragment_group", 3), H
    ),
    "parts, persistent: a tile less": Broken(
        TURN, lambda module: TURNS["a tile less"].change(pick(module, "tc.count_tiles"))
    ),
    "parts: rows of no group are summed": Broken(PARTS, every_row, after="convert-to-simt"),
    "parts: the first twice": Broken(PARTS, part_again, after="convert-to-simt"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_break(what: str) -> None:
    broken = BROKEN[what]
    passes = tcir.named_pipeline(broken.case.pipeline)
    broken_passes = passes.insert(Break("builtin.module", broken.edit), after=broken.after)
    report = tcir.validate(broken.case.text, broken_passes, target=broken.target, seed=3)
    failure = report.first_failure()
    assert failure is not None and failure.name == "break", str(report)


def test_break_of_a_sum_by_group() -> None:
    """A scale of the row's group is that of the first."""
    passes = tcir.named_pipeline("gemm", split_k=2)
    passes = passes.insert(Break("builtin.module", of_first_group), after="convert-to-simt")
    report = tcir.validate(BY_GROUP, passes, seed=3)
    failure = report.first_failure()
    assert failure is not None and failure.name == "break", str(report)


def test_an_epilogue_of_parts_is_rejected() -> None:
    parts = CONTIGUOUS.replace('b_layout = "kn"', 'b_layout = "kn", k_part = 64 : i64')
    parts = parts.replace("tensor<200x24x", "tensor<2x200x24x").replace("(t, n)", "(p, t, n)")
    parts = parts.replace("%r: tensor<2x", "%r: tensor<2x")
    with pytest.raises(tcir.PassError, match="take split-k=2"):
        tcir.compile(parts, "gemm")
