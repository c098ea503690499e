"""Tensor maps of the heads of an attention, which are a whole tensor in memory or part of a larger
tensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.limits import TMA_INNER_BOX_MULTIPLE, TMA_RANK, TMA_STRIDE
from tcir.passes.analysis.strided import Strided, strided
from tcir.passes.emit import index
from tcir.passes.emit.index import Index

VALUES = "dn"
"""Dimensions of values that may be innermost in memory: elements of a head, or keys."""


def row_of(layout: str) -> str:
    """The letter of the rows in a layout: m for queries, n for keys."""
    return next(letter for letter in layout if letter in "mn")


@dataclass(frozen=True)
class MapDim:
    """A dimension of a tensor map: one digit of the index of a dimension of the heads.

    letter: letter of the heads' dimension
    below: product of the sizes of the less significant digits; None if this digit is the only one
    size, stride: size and stride of the digit, in elements
    start: coordinate at which the heads begin
    """

    letter: str
    below: int | None
    size: int
    stride: int
    start: int = 0

    def coordinate(self, number: Index) -> Index:
        """The coordinate of this digit for an index `number` of the heads' dimension."""
        if self.below is not None:
            number = index.rem(index.div(number, self.below), self.size)
        return index.add(number, self.start)


def map_dims(heads: Strided, layout: str) -> list[MapDim]:
    """Dimensions, innermost first, of a tensor map of heads; `layout` names the heads'
    dimensions."""
    found: list[MapDim] = []
    next_ = 1
    for letter, digits in zip(reversed(layout), reversed(heads.dims), strict=True):
        below = 1
        for size, stride in reversed(digits or ((1, next_),)):
            found.append(MapDim(letter, below if len(digits) > 1 else None, size, stride))
            below, next_ = below * size, max(next_, size * stride)
    found.sort(key=lambda each: each.stride)
    rest = heads.offset
    for place, each in reversed(list(enumerate(found))):
        found[place] = replace(each, start=rest // each.stride)
        rest %= each.stride
    return found


def no_map(heads: Strided, layout: str, inner: str = "d") -> str:
    """Reason why no tensor map can describe the heads where they are in memory; "" if a tensor map
    can.

    inner: letters of the dimensions that may be innermost (stride 1)
    """
    dims, bytes_ = map_dims(heads, layout), tc.element_bytes(heads.base.type.element_type)
    letters = [each.letter for each in dims]
    row = row_of(layout)
    alone = ("d", row, "h") if heads.shape[layout.index(row)] == 1 else ("d", row)
    if any(letters.count(letter) > 1 for letter in alone):  # heads of one row may become rows
        return (
            "the rows of a head, or its elements, are at several different strides, and a "
            "tensor map has one stride for each dimension"
        )
    if len(dims) not in TMA_RANK["tiled"]:
        return f"a tensor map has {TMA_RANK['tiled']} dimensions, and the heads need {len(dims)}"
    if dims[0].letter not in inner or dims[0].stride != 1:
        return "the elements of a head are not adjacent in memory"
    if dims[0].start * bytes_ % TMA_INNER_BOX_MULTIPLE:
        return (
            f"a TMA box begins at a multiple of {TMA_INNER_BOX_MULTIPLE} bytes, but the heads "
            f"begin at element {dims[0].start} of a row"
        )
    if bad := [n for each in dims[1:] if (n := each.stride * bytes_) not in TMA_STRIDE]:
        return (
            f"the strides of a tensor map must be {TMA_STRIDE} bytes, and one of these is "
            f"{bad[0]} bytes"
        )
    return ""


def views_of(
    op: ir.OpView, is_memory: Callable[[ir.Value], bool] | None = None
) -> dict[ir.Value, Strided]:
    """Views of other tensors that are the queries, keys and values of an attention and that its
    kernel reads in place; none for gradients.

    is_memory: whether a tensor has its own memory, at which views end
    """
    if not isinstance(op, tc.AttentionOp):
        return {}
    kv = string(op, "kv_layout")
    of = [(op.q, string(op, "q_layout"), "d"), (op.k, kv, "d"), (op.v, kv, VALUES)]
    if isinstance(op, tc.BlockScaledAttentionOp):  # bytes, whose map is that of a whole tensor
        of = of[2:]
    found = ((each, strided(each, is_memory), *rest) for each, *rest in of)
    return {e: view for e, view, *rest in found if view.base != e and not no_map(view, *rest)}
