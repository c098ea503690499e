"""Tensors in the memory of other tensors: an offset and strides instead of a copy.

The index of a dimension consists of digits, most significant first; each digit has a size and a
stride. Collapsing two dimensions joins their digits and expanding one divides them, so that the
reshape of a transpose has strides if any exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from math import prod
from operator import mul
from typing import TypeAlias

from tcir._mlir import ir, tensor
from tcir.dialect.attributes import integers
from tcir.dialect.upstream import RESHAPES
from tcir.passes.analysis.moves import move_of

Digits: TypeAlias = "tuple[tuple[int, int], ...]"
"""Size and stride, in elements, of each digit of an index; none: the index is 0."""


@dataclass(frozen=True)
class Strided:
    """Elements of a tensor in the memory of another tensor, which is contiguous.

    base: the other tensor; offset: index of the first element in it; dims: digits of each
        dimension's index
    """

    base: ir.Value
    offset: int
    dims: tuple[Digits, ...]

    @property
    def shape(self) -> list[int]:
        """Extents of the dimensions."""
        return [prod(size for size, _ in each) for each in self.dims]

    def reshaped(self, shape: Sequence[int]) -> Strided | None:
        """Reshapes the view to other extents; None if the digits cannot be divided accordingly."""
        rest = list(chain.from_iterable(self.dims))
        dims: list[Digits] = []
        for extent in reversed(shape):
            own: list[tuple[int, int]] = []
            while extent > 1:
                size, stride = rest.pop()
                if extent % size:
                    if size % extent:
                        return None
                    rest.append((size // extent, stride * extent))
                    size = extent
                own.append((size, stride))
                extent //= size
            dims.append(_joined(reversed(own)))
        return Strided(self.base, self.offset, tuple(reversed(dims)))

    def sliced(
        self, offsets: Sequence[int], sizes: Sequence[int], steps: Sequence[int]
    ) -> Strided | None:
        """Slices the view to every ``step``-th index of each dimension; None for a part of a
        dimension with several digits."""
        offset, dims = self.offset, list[Digits]()
        for digits, first, size, step in zip(self.dims, offsets, sizes, steps, strict=True):
            if size == prod(each for each, _ in digits):
                dims.append(digits)
                continue
            if len(digits) != 1:
                return None
            offset += first * digits[0][1]
            dims.append(((size, digits[0][1] * step),) if size > 1 else ())
        return Strided(self.base, offset, tuple(dims))


def whole(value: ir.Value) -> Strided:
    """Describes a tensor that is contiguous memory, not a view."""
    shape = list(value.type.shape)
    strides = list(accumulate((1, *reversed(shape[1:])), mul))[::-1] if shape else []
    dims = tuple(((n, step),) if n > 1 else () for n, step in zip(shape, strides, strict=True))
    return Strided(value, 0, dims)


def strided(value: ir.Value, is_memory: Callable[[ir.Value], bool] | None = None) -> Strided:
    """Describes a tensor that is a view (reshapes, transposes, slices) by the memory of the viewed
    tensor.

    is_memory: whether a tensor has memory of its own, and views end at it
    """
    source = viewed(value)
    if source is None or (is_memory is not None and is_memory(value)):
        return whole(value)
    inner, op = strided(source, is_memory), value.owner
    found: Strided | None
    if isinstance(op.opview, RESHAPES):
        found = inner.reshaped(value.type.shape)
    elif isinstance(op.opview, tensor.ExtractSliceOp):
        kept = (integers(op.opview, f"static_{name}") for name in ("offsets", "sizes", "strides"))
        found = inner.sliced(*kept)
        found = found and found.reshaped(value.type.shape)
    else:
        move = move_of(value)
        assert move is not None
        places = [move.dims.index(d) for d in range(len(move.shape))]
        found = Strided(inner.base, inner.offset, tuple(inner.dims[place] for place in places))
    return found or whole(value)


def viewed(value: ir.Value) -> ir.Value | None:
    """The operand of a reshape, a transpose or a slice; None for the result of another op."""
    if isinstance(value, ir.BlockArgument):
        return None
    op = value.owner.opview
    if isinstance(op, tensor.ExtractSliceOp):
        return op.source if len(op.operands) == 1 else None
    if isinstance(op, RESHAPES):
        return op.src
    move = move_of(value)
    return move.source if move is not None and move.is_permutation else None


def view_ops(value: ir.Value, base: ir.Value) -> Iterator[ir.Operation]:
    """The ops that make a view of `base`, the last first, with the empty results of transposes."""
    while value != base:
        source = viewed(value)
        assert source is not None
        yield value.owner.operation
        yield from (each.owner.operation for each in value.owner.operands if each != source)
        value = source


def _joined(digits: Iterator[tuple[int, int]]) -> Digits:
    """Merges neighbouring digits that together are one digit."""
    found: list[tuple[int, int]] = []
    for size, stride in digits:
        if found and found[-1][1] == size * stride:
            size *= found.pop()[0]
        found.append((size, stride))
    return tuple(found)
