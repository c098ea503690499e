"""Tensors that are views of the memory of other tensors: an offset and strides instead of a copy.

The index of a dimension consists of digits, most significant first; each digit has a size and a
stride. Collapsing two dimensions joins their digits, and expanding a dimension divides them. So the
reshape of a transpose is a view whenever strides can describe it.
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
    """A tensor whose elements are in the memory of another, contiguous tensor.

    base: the contiguous tensor; offset: index of the first element in it; dims: digits of each
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
        """Reshapes the view to other extents; None if its digits cannot be divided as the extents
        require."""
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
        """Slices the view: it keeps every ``step``-th index of each dimension from its offset on.
        None if a dimension with several digits would keep only a part."""
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
    """Describes a tensor that is contiguous in memory as a view of itself."""
    shape = list(value.type.shape)
    strides = list(accumulate((1, *reversed(shape[1:])), mul))[::-1] if shape else []
    dims = tuple(((n, step),) if n > 1 else () for n, step in zip(shape, strides, strict=True))
    return Strided(value, 0, dims)


def strided(value: ir.Value, is_memory: Callable[[ir.Value], bool] | None = None) -> Strided:
    """Describes a tensor that reshapes, transposes and slices make from another tensor as a view of
    that tensor's memory.

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
    """The operand of the reshape, transpose or slice that makes `value`; None if another op makes
    it."""
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
    """The ops that make `value` as a view of `base`, the last op first, and the empty tensors that
    the transposes write."""
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
