"""Maps elements of slices with constant offsets to elements of the tensors from which the slices
are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

from tcir._mlir import ir
from tcir.passes.emit import simt
from tcir.passes.emit.diagnostics import match_failure

Index: TypeAlias = "tuple[ir.Value, ...]"
"""An i32 for each dimension of a tensor."""
Shift: TypeAlias = "Callable[[ir.Value, int, int], ir.Value]"
"""An index plus a number, at most the last of an extent (`tcir.passes.simt.elements`)."""


def in_slice(op: ir.Operation, at: Index, shift: Shift) -> Index:
    """Maps indices in a slice to indices in the tensor that `tensor.extract_slice` reads."""
    offsets, sizes, strides = _constants(op, 1)
    indices = dict(zip(_kept(sizes, op.results[0].type.shape), at, strict=True))
    shape = op.operands[0].type.shape
    places = list[ir.Value]()
    for dim, (offset, stride) in enumerate(zip(offsets, strides, strict=True)):
        if dim not in indices:
            places.append(simt.constant(offset))
        elif stride > 1:
            places.append(simt.add(simt.mul(indices[dim], stride), offset))
        elif sizes[dim] == shape[dim]:
            places.append(indices[dim])
        else:
            places.append(shift(indices[dim], offset, shape[dim]))
    return tuple(places)


def in_inserted(op: ir.Operation, at: Index, shift: Shift) -> tuple[ir.Value, Index]:
    """Maps indices in the result of `tensor.insert_slice`: returns whether the element comes from
    the inserted slice, and indices in the slice that are always in bounds."""
    inside, places = simt.constant(1, 1), list[ir.Value]()
    offsets, sizes, strides = _constants(op, 2)
    for index, offset, size, stride in zip(at, offsets, sizes, strides, strict=True):
        place = simt.sub(index, offset) if offset else index  # below 0: a large number
        if stride > 1:
            inside = simt.both_bits(inside, simt.equal(simt.rest(place, stride), 0))
            place = simt.divide(place, stride)
        inside = simt.both_bits(inside, simt.less(place, size))
        places.append(simt.smaller(place, size - 1) if stride > 1 else shift(index, -offset, size))
    return inside, tuple(places[dim] for dim in _kept(sizes, op.operands[0].type.shape))


def covers(op: ir.Operation) -> bool:
    """Whether a chain of `tensor.insert_slice` ops writes every element of a `tensor.empty` by
    disjoint slices. Each op must be the only user of the previous one."""
    written = 0
    while True:
        _, sizes, _ = _constants(op, 2)
        written += prod(sizes)
        uses = list(op.results[0].uses)
        if (
            len(uses) != 1
            or uses[0].owner.name != "tensor.insert_slice"
            or uses[0].operand_number != 1
        ):
            return written >= prod(op.results[0].type.shape)
        op = uses[0].owner.operation


def _kept(sizes: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Dimensions of a slice that remain in a tensor of lower rank; the others have size 1."""
    kept: list[int] = []
    for dim, size in enumerate(sizes):
        if len(kept) < len(shape) and size == shape[len(kept)]:
            kept.append(dim)
    return kept


def _constants(op: ir.Operation, tensors: int) -> list[list[int]]:
    """Offsets, sizes and strides of a slice. tensors: number of its operands if these are
    constants"""
    if len(op.operands) != tensors:
        raise match_failure(
            op.opview,
            "expected a slice by constants, got one by numbers known at run time (a thread "
            "computes its place from its index alone); make offsets, sizes and strides constants, "
            "or read by tensor.extract in a linalg.generic",
        )
    return [
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
        for name in ("offsets", "sizes", "strides")
    ]
