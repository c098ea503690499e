"""Structured ops, named or generic, that only move elements or repeat them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from tcir._mlir import arith, ir, linalg, tensor
from tcir.dialect.upstream import names

WIDENING = names(arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp)
Dims: TypeAlias = "tuple[int | None, ...]"


@dataclass(frozen=True)
class Move:
    """A transpose or a broadcast of `source`.

    dims:  for each dimension of the source, the result dimension that indexes it; None: the index
           is 0
    shape: shape of the result
    """

    source: ir.Value
    dims: Dims
    shape: tuple[int, ...]

    @property
    def is_permutation(self) -> bool:
        """Whether each dimension of the source is exactly one dimension of the result, and the
        result has no other dimensions."""
        dims = list(range(len(self.shape)))
        return None not in self.dims and sorted(self.dims) == dims  # type: ignore[type-var]

    @property
    def is_view(self) -> bool:
        """Whether the result has the source's elements in the same order in memory: only dimensions
        of extent 1 move, appear or vanish."""
        shape = self.source.type.shape
        moved = [d for d, size in zip(self.dims, shape, strict=True) if size != 1]
        return (
            None not in moved
            and moved == sorted(set(moved))  # type: ignore[type-var]
            and prod(shape) == prod(self.shape)
        )


def move_of(value: ir.Value) -> Move | None:
    """The transpose or broadcast that makes `value`; None if `value` is made by another op."""
    found = parallel(value)
    if found is None:
        return None
    op, maps = found
    block = op.regions[0].blocks[0]
    (yielded,) = list(block)[-1].operation.operands
    if len(maps) != 2 or len(list(block)) != 1 or yielded != block.arguments[0]:
        return None
    loops = {e.position: n for n, e in enumerate(maps[1].results)}
    dims: list[int | None] = []
    for each in maps[0].results:
        if isinstance(each, ir.AffineDimExpr):
            dims.append(loops[each.position])
        elif isinstance(each, ir.AffineConstantExpr) and each.value == 0:
            dims.append(None)
        else:
            return None
    return Move(op.operands[0], tuple(dims), tuple(value.type.shape)) if dims else None


def is_widening(value: ir.Value) -> bool:
    """Whether `value` has the elements of one tensor, in the same order, in a wider type."""
    if not isinstance(value, ir.BlockArgument) and value.owner.name in WIDENING:
        return True
    found = parallel(value)
    if found is None:
        return False
    op, maps = found
    block = op.regions[0].blocks[0]
    body = [each.operation for each in block]
    return (
        len(maps) == 2
        and maps[0] == maps[1]
        and len(body) == 2
        and body[0].name in WIDENING
        and body[0].operands[0] == block.arguments[0]
    )


def filling(value: ir.Value) -> ir.Value | None:
    """The number with which a ``linalg.fill``, or its generic form, fills `value`; None if `value`
    is made by another op."""
    found = parallel(value)
    if found is None:
        return None
    op, maps = found
    block = op.regions[0].blocks[0]
    if len(list(block)) != 1:
        return None
    (number,) = list(block)[-1].operation.operands
    if not isinstance(number, ir.BlockArgument) or number.owner != block:
        return number
    filled: ir.Value = op.operands[0]
    scalar = not isinstance(filled.type, ir.ShapedType)
    return filled if len(maps) == 2 and number == block.arguments[0] and scalar else None


def parallel(value: ir.Value) -> tuple[ir.Operation, list[ir.AffineMap]] | None:
    """The op that defines `value`, and its indexing maps, if it has one result and no reduction
    loop."""
    if isinstance(value, ir.BlockArgument) or not value.owner.name.startswith("linalg."):
        return None
    attributes = linalg.get_indexing_maps(value.owner)
    if attributes is None or len(value.owner.results) != 1:
        return None
    maps = [ir.AffineMapAttr(each).value for each in attributes]
    return (value.owner, maps) if maps[-1].is_permutation else None


def transpose(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """Builds ``linalg.transpose``, so that dimension d of the result is dimension
    ``permutation[d]`` of `value`."""
    kind = value.type
    shape = [kind.shape[d] for d in permutation]
    empty = tensor.EmptyOp(shape, kind.element_type).result
    op = ir.Operation.create(
        "linalg.transpose",
        results=[empty.type],
        operands=[value, empty],
        attributes={"permutation": ir.DenseI64ArrayAttr.get(permutation)},
        regions=1,
    )
    body = op.regions[0].blocks.append(kind.element_type, kind.element_type)
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=[body.arguments[0]])
    return op.result


def inverse(permutation: Sequence[int]) -> list[int]:
    """The permutation that undoes another."""
    return sorted(range(len(permutation)), key=permutation.__getitem__)
