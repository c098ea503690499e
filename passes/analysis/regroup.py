"""Results of contractions that have a dimension for each group of the program's dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TypeAlias

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passes.analysis.wrappers import Tail
from tcir.passes.emit.clone import clone_epilogue
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.reshape import reshape

Groups: TypeAlias = "Sequence[Sequence[int]]"
"""Dimensions of the program's result that form each dimension of the contraction, in order."""


def replace_result(tail: Tail, made: ir.Value, groups: Groups) -> None:
    """Replaces the result of a contraction by the result of `made`, whose dimensions are the given
    groups, and adapts the ops after the contraction."""
    if made.type == tail.result.type:
        tail.result.replace_all_uses_with(made)
        return
    after = tail.kept[0].opview if tail.kept else None
    if not isinstance(after, tc.EpilogueOp):
        tail.result.replace_all_uses_with(reshape(made, tail.result.type.shape))
        return
    with ir.InsertionPoint(after), after.location:
        fused = _epilogue(after, groups, made)
        after.out.replace_all_uses_with(reshape(fused, after.out.type.shape))


def _epilogue(after: tc.EpilogueOp, groups: Groups, sums: ir.Value) -> ir.Value:
    """`after` on the sums of the product."""
    old = list(after.out.type.shape)
    shape = [prod(old[d] for d in group) for group in groups]
    out = ir.RankedTensorType.get(shape, after.out.type.element_type)
    reads = [_read(each, groups) for each in after.elements]
    tensors = [reshape(each.tensor, sizes) for each, (sizes, _) in zip(after.elements, reads)]
    new = iter(zip(tensors, reads, strict=True))

    def element(each: tc.ElementOp) -> tc.ElementOp:
        tensor, (_, dims) = next(new)
        return tc.ElementOp(tensor, _map(dims, len(shape)), each.value.type)

    return clone_epilogue(after, sums, out, element)


def _read(element: tc.ElementOp, groups: Groups) -> tuple[list[int], list[int]]:
    """The shape in which a tensor is read, and the group that indexes each of its dimensions."""
    shape = element.tensor.type.shape
    dims = [d for d, n in zip(element.dims, shape, strict=True) if d is not None and n != 1]
    read = groups_of(dims, groups)
    if read is None:
        raise match_failure(
            element,
            "expected a tensor indexed by all dimensions of each group of the result's "
            f"dimensions, or by none of that group, got dimensions {dims} for groups "
            f"{[list(g) for g in groups]} (in a matrix product each group becomes one index, of a "
            "row or of a column); broadcast the tensor to all dimensions of the group",
        )
    sizes = [prod(shape[element.dims.index(dim)] for dim in groups[number]) for number in read]
    return sizes, read


def groups_of(dims: Sequence[int], groups: Groups) -> list[int] | None:
    """Numbers of the consecutive groups that together make up `dims`; None if no groups do."""
    read = list[int]()
    while dims:
        number = next((n for n, group in enumerate(groups) if group[:1] == (dims[0],)), None)
        if number is None or tuple(dims[: len(groups[number])]) != groups[number]:
            return None
        read.append(number)
        dims = dims[len(groups[number]) :]
    return read


def _map(dims: Sequence[int], rank: int) -> ir.Attribute:
    results = [ir.AffineDimExpr.get(d) for d in dims]
    return ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, results))
