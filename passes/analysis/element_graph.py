"""Traces the arith and math ops that compute an element of a tensor back to elements of other
tensors.

It passes through ``linalg`` ops without reductions, ops on whole tensors, and reshapes that split
the columns into blocks or join them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tcir._mlir import ir, linalg
from tcir.passes.analysis.contraction import value

COLUMN = -1
"""The index of a column: that of its block, times its size, plus that within the block."""
Dims: TypeAlias = "tuple[int | None, ...]"
"""Index of each dimension of a tensor: rows from 0, then the block and the place in it, or
`COLUMN`; None: 0."""
AMAX, VALUE = "amax", "value"
"""The variables of block quantisation: the largest magnitude of a block, and a value of it."""


class NotRaised(Exception):
    """Raised with the reason when an op prevents a match."""

    def __init__(self, op: ir.Operation, words: str) -> None:
        super().__init__(words)
        self.op, self.words = op, words


@dataclass(frozen=True, eq=False)
class Number:
    """A number: the result of an op on other numbers or, if there is no op, the variable `name`."""

    op: ir.Operation | None
    operands: tuple[Number, ...] = ()
    name: str = ""


@dataclass
class ElementGraph:
    """The elements of tensors, as functions of variables.

    rank:   rank of the tensor once its columns are divided into blocks; the last two indices are
            the block and the place in the block
    blocks: number of blocks of a row, and number of values in a block
    leaf:   returns the variable that stands for an element, or None if the element is computed
    """

    rank: int
    blocks: tuple[int, int]
    leaf: Callable[[ir.Value, Dims], Number | None]
    known: dict[tuple[ir.Value, Dims], Number] = field(default_factory=dict)

    def of(self, tensor: ir.Value, dims: Dims) -> Number:
        """The element of `tensor` at the indices `dims`; raises `NotRaised` if an op prevents the
        match."""
        if (tensor, dims) not in self.known:
            self.known[tensor, dims] = self._new(tensor, dims)
        return self.known[tensor, dims]

    def start(self, tensor: ir.Value) -> Number:
        """The number with which a tensor is filled, if it is filled with one."""
        return self.of(tensor, (None,) * tensor.type.rank)

    def _new(self, tensor: ir.Value, dims: Dims) -> Number:
        if found := self.leaf(tensor, dims):
            return found
        if isinstance(tensor, ir.BlockArgument):
            place = tensor.owner.owner.operation
            words = (
                "expected elements and scales that depend only on the values to quantise, got "
                f"one that also reads {tensor.type}"
            )
            raise NotRaised(
                place,
                f"{words}; multiply or add that tensor before the values are divided into blocks",
            )
        op = tensor.owner.operation
        if op.name == "linalg.fill":
            return self.of(op.operands[0], ())
        if op.name == "tensor.expand_shape":
            return self.of(op.operands[0], self._joined(op, dims))
        if op.name == "tensor.collapse_shape":
            return self.of(op.operands[0], self._split(op, dims))
        if op.name.startswith("linalg.") and linalg.get_indexing_maps(op) is not None:
            return self._structured(op, dims)
        if op.name.startswith(("arith.", "math.")):
            return Number(op, tuple(self.of(each, dims) for each in op.operands))
        raise NotRaised(
            op, f"expected arith and math ops to compute the elements and scales, got {op.name}"
        )

    def _structured(self, op: ir.Operation, dims: Dims) -> Number:
        maps = [value(each) for each in linalg.get_indexing_maps(op)]
        loops = [e.position for e in maps[-1].results if isinstance(e, ir.AffineDimExpr)]
        if len(op.results) != 1 or sorted(loops) != list(range(maps[-1].n_dims)):
            raise NotRaised(
                op,
                f"expected an op with one result and no reduction, got {op.name} with the "
                f"result map {maps[-1]}",
            )
        places = dict(zip(loops, dims, strict=True))
        block = op.regions[0].blocks[0]
        inner: dict[ir.Value, Number] = {}
        for argument, operand, read in zip(block.arguments, op.operands, maps):
            if list(argument.uses):
                at = [_index(op, e, places) for e in read.results]
                inner[argument] = self.of(operand, tuple(at))
        *ops, last = block.operations
        for each in ops:
            if not each.operation.name.startswith(("arith.", "math.")):
                raise NotRaised(
                    op, f"expected arith and math ops in the body, got {each.operation.name}"
                )
            operands = [inner[o] if o in inner else self.of(o, ()) for o in each.operands]
            inner[each.operation.results[0]] = Number(each.operation, tuple(operands))
        (yielded,) = last.operation.operands
        return inner[yielded] if yielded in inner else self.of(yielded, ())

    def _joined(self, op: ir.Operation, dims: Dims) -> Dims:
        """Indices before a ``tensor.expand_shape``."""
        found: list[int | None] = []
        for group in _groups(op):
            inside = [dims[d] for d in group if dims[d] is not None]
            if len(inside) < 2:
                found.append(inside[0] if inside else None)
            elif inside == [self.rank - 2, self.rank - 1]:
                found.append(COLUMN)
            else:
                raise self._reshape(op)
        return tuple(found)

    def _split(self, op: ir.Operation, dims: Dims) -> Dims:
        """Indices before a ``tensor.collapse_shape``."""
        shape = op.operands[0].type.shape
        found: list[int | None] = []
        for index, group in zip(dims, _groups(op), strict=True):
            extents = [shape[d] for d in group]
            if index == COLUMN and tuple(extents) == self.blocks:
                found += [self.rank - 2, self.rank - 1]
                continue
            longest = max(extents, default=1)
            if sum(n > 1 for n in extents) > 1:
                raise self._reshape(op)
            first = extents.index(longest) if extents else 0
            found += [index if n == first else None for n in range(len(group))]
        return tuple(found)

    def _reshape(self, op: ir.Operation) -> NotRaised:
        source, result = op.operands[0].type, op.results[0].type
        return NotRaised(
            op,
            f"expected a reshape of columns into {self.blocks[0]} blocks of {self.blocks[1]}, or "
            f"the reverse, got {source} to {result}",
        )


def _groups(op: ir.Operation) -> Sequence[Sequence[int]]:
    return [[int(ir.IntegerAttr(d).value) for d in g] for g in op.attributes["reassociation"]]


def _index(op: ir.Operation, read: ir.AffineExpr, places: dict[int, int | None]) -> int | None:
    if isinstance(read, ir.AffineDimExpr):
        return places[read.position]
    if isinstance(read, ir.AffineConstantExpr) and read.value == 0:
        return None
    raise NotRaised(
        op, f"expected each index to be a single loop dimension, got {read} of {op.name}"
    )
