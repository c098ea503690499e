"""Copies ops with other operands."""

from __future__ import annotations

from collections.abc import Callable

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.walk import walk

Mapping = dict[ir.Value, ir.Value]


def clone(op: ir.OpView, mapping: Mapping) -> ir.OpView:
    """Copies `op` to the insertion point and replaces operands by `mapping`, also in nested ops.

    The results of `op` are added to `mapping`.
    """
    new = op.operation.clone()
    for inner in walk(new.opview):
        for number, operand in enumerate(inner.operation.operands):
            if operand in mapping:
                inner.operation.operands[number] = mapping[operand]
    for old, result in zip(op.operation.results, new.results, strict=True):
        mapping[old] = result
    return new.opview


def hold_constants(op: ir.OpView) -> None:
    """Copies constants that a body reads from outside its op into the body, because upstream's
    passes move them out. A constant tensor stays outside, as an operand of ``tc.element``."""
    for block in op.regions[0].blocks:
        known: Mapping = {}
        for inner in list(block):
            for number, operand in enumerate(inner.operation.operands):
                made = operand.owner if isinstance(operand, ir.OpResult) else None
                if made is None or made.name != "arith.constant" or made.parent == op.operation:
                    continue
                if isinstance(operand.type, ir.ShapedType):
                    continue
                if operand not in known:
                    with ir.InsertionPoint.at_block_begin(block):
                        clone(made.opview, known)
                inner.operation.operands[number] = known[operand]


def clone_epilogue(
    after: tc.EpilogueOp,
    sums: ir.Value,
    out: ir.RankedTensorType,
    element: Callable[[tc.ElementOp], tc.ElementOp],
) -> ir.Value:
    """Clones the epilogue `after` onto `sums`, which may have other dimensions. element: builds the
    reads of other tensors"""
    made = tc.EpilogueOp(sums, out)
    source = after.body.blocks[0]
    kinds = [each.type for each in source.arguments]
    body = made.body.blocks.append(*kinds, arg_locs=[after.location] * len(kinds))
    known = dict(zip(source.arguments, body.arguments, strict=True))
    with ir.InsertionPoint(body):
        for each in source.operations:
            with each.location:
                if isinstance(each, tc.ElementOp):
                    known[each.value] = element(each).value
                else:
                    clone(each, known)
    return made.out
