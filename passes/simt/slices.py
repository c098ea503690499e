"""Places of elements in slices, by constants: which element of a tensor one of a slice is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tcir._mlir import ir
from tcir.passes.build import simt
from tcir.passes.build.diagnostics import match_failure

Index: TypeAlias = "tuple[ir.Value, ...]"
"""An i32 for each dimension of a tensor."""


def in_slice(op: ir.Operation, at: Index) -> Index:
    """The indices in the tensor that `tensor.extract_slice` reads, of one in the slice."""
    return tuple(
        simt.add(simt.mul(index, stride), offset)
        for index, offset, stride in zip(at, *_constants(op, 1, len(at)), strict=True)
    )


def in_inserted(op: ir.Operation, at: Index) -> tuple[ir.Value, Index]:
    """Of indices in the result of `tensor.insert_slice`: whether the slice has the element, and its
    indices there, which are inside in any case."""
    inside, places = simt.constant(1, 1), list[ir.Value]()
    shape = op.operands[0].type.shape
    for index, offset, stride, extent in zip(
        at, *_constants(op, 2, len(shape)), shape, strict=True
    ):
        place = simt.sub(index, offset) if offset else index  # below 0: a large number
        if stride > 1:
            inside = simt.both_bits(inside, simt.equal(simt.rest(place, stride), 0))
            place = simt.divide(place, stride)
        inside = simt.both_bits(inside, simt.less(place, extent))
        places.append(simt.smaller(place, extent - 1))
    return inside, tuple(places)


def _constants(op: ir.Operation, tensors: int, rank: int) -> tuple[Sequence[int], Sequence[int]]:
    """Offsets and strides.

    tensors: operands besides offsets, sizes and strides; rank: of the slice
    """
    offsets, strides = (
        list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
        for name in ("offsets", "strides")
    )
    if len(op.operands) != tensors or len(offsets) != rank:
        raise match_failure(
            op.opview,
            "expected a slice by constants that keeps every dimension, got another; drop "
            "dimensions with tensor.collapse_shape",
        )
    return offsets, strides
