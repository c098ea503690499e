"""Determines how the loops of a contraction index its operands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tcir.dialect.indexing import Dims, Index, IndexedOperand, Indexing
from tcir.dialect.operation import traits_of
from tcir.dialect.upstream import MAXIMA
from tcir.formats import blocked_bytes, blocked_offset
from tcir.program.taps import Taps, taps_of_convolution, taps_of_maps

if TYPE_CHECKING:
    from tcir._mlir import ir

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class OperandAccess:
    """How the loops of a contraction index one operand.

    shape:  shape of the index space
    dims:   for each dimension of the index space: the loop expression that indexes it
    places: number of the operand's element at each index; None: the index space is that of the
            operand
    """

    shape: tuple[int, ...]
    dims: Dims
    places: Array | None = None


Accesses: TypeAlias = list[tuple["ir.Value", OperandAccess]]


@dataclass(frozen=True)
class SumOfProducts:
    """A sum of products, as an op computes it.

    factors:  the operands that are multiplied, and how the loops index them
    start:    the initial value of the accumulator, and how the loops index it
    parallel: the loops over elements of the result
    taps:     taps of a window that never read padding
    """

    factors: Accesses
    start: tuple[ir.Value, Dims] | None
    parallel: frozenset[int]
    taps: Taps = field(default_factory=dict)


_MAXIMUM = MAXIMA | {"linalg.yield", "math.absf"}
"""Ops allowed in a body that takes a maximum."""


def product_of(op: ir.Operation) -> SumOfProducts | None:
    """Returns the sum of products that an op computes, from its indexing maps or as an op of tc;
    None for any other op, and for one with empty operands."""
    from tcir._mlir import linalg

    if is_empty(op):
        return None
    if traits_of(op).arithmetic == "products":
        return _declared(op)
    maps = [m.value for m in linalg.get_indexing_maps(op) or ()]
    if len(op.results) != 1:
        return None
    if not maps or len(maps[-1].results) == maps[-1].n_dims or is_maximum(op):
        return None
    operands = list(zip(op.operands, maps[:-1]))
    if not all(hasattr(each.type, "shape") for each, _ in operands):
        return None  # numbers, such as zero points
    if len(operands) == 1:
        operands = _multiplied(*operands[0]) or operands
    sizes = _sizes([*operands, (op.operands[len(maps) - 1], maps[-1])])
    factors = [(value, _access(value.type.shape, each, sizes)) for value, each in operands]
    results = tuple(map(_index, maps[-1].results))
    loops = frozenset(i[0] for i in results if i is not None)
    taps = taps_of_maps(op, maps, sizes, loops)
    return SumOfProducts(factors, (op.operands[len(maps) - 1], results), loops, taps)


def is_empty(op: ir.Operation) -> bool:
    """Whether an op has an operand without elements."""
    return any(0 in getattr(each.type, "shape", ()) for each in op.operands)


def reduction_points(module: ir.Module) -> int:
    """Total number of loop iterations of those structured ops on tensors that have a reduction."""
    from tcir._mlir import linalg

    points = 0
    blocks = [b for function in module.body for region in function.regions for b in region]
    for op in (each.operation for block in blocks for each in block):
        maps = [m.value for m in linalg.get_indexing_maps(op) or ()]
        if maps and len(maps[-1].results) < maps[-1].n_dims:
            indexed = [(v, m) for v, m in zip(op.operands, maps) if len(m.results)]
            points += math.prod(_sizes(indexed).values())
    return points


def is_maximum(op: ir.Operation) -> bool:
    """Whether an op computes the largest element, or the largest magnitude, which is exact in any
    order.
    """
    names = {inner.operation.name for r in op.regions for b in r for inner in b}
    return "linalg.yield" in names and names & MAXIMA != set() and names <= _MAXIMUM


def _declared(op: ir.Operation) -> SumOfProducts:
    """Returns the sum of products that the class of an op declares."""
    indexing: Indexing = op.opview.indexing()
    factors = [(each.value, _declared_access(each)) for each in indexing.factors]
    taps = taps_of_convolution(op) if indexing.windows else {}
    return SumOfProducts(factors, None, indexing.parallel, taps)


def _declared_access(operand: IndexedOperand) -> OperandAccess:
    if operand.scales_of is None:
        return OperandAccess(tuple(operand.value.type.shape), operand.dims)
    places = _blocked(operand.scales_of, operand.batch)
    return OperandAccess(operand.scales_of, operand.dims, places)


def _blocked(shape: tuple[int, ...], batch: int) -> Array:
    """Returns the places of scales of this shape in the tensor core's 128x4 layout."""
    rows, scales = (*shape[batch:-1], 1)[0], shape[-1]
    places = blocked_offset(np.arange(rows)[:, None], np.arange(scales), scales)
    each = np.arange(math.prod(shape[:batch])) * blocked_bytes(rows, scales)
    return (each[:, None, None] + places).reshape(shape)


def _multiplied(value: ir.Value, index_map: ir.AffineMap) -> list[tuple[ir.Value, ir.AffineMap]]:
    """Returns the two operands whose elementwise product is `value`, with their index maps where
    `value` has `index_map`; empty if `value` is no such product."""
    from tcir._mlir import ir, linalg

    if isinstance(value, ir.BlockArgument):
        return []
    maps = [m.value for m in linalg.get_indexing_maps(value.owner) or ()]
    body = list(value.owner.regions[0].blocks[0]) if maps else []
    names = [each.operation.name for each in body]
    if len(maps) != 3 or names[:1] not in (["arith.mulf"], ["arith.muli"]) or len(names) != 2:
        return []
    loops = {e.position: each for e, each in zip(maps[2].results, index_map.results)}
    found = []
    for operand, each in zip(value.owner.operands, maps[:2]):
        if not all(isinstance(e, ir.AffineDimExpr) for e in each.results):
            return []
        results = [loops[e.position] for e in each.results]
        found.append((operand, ir.AffineMap.get(index_map.n_dims, 0, results)))
    return found


def _sizes(operands: Sequence[tuple[ir.Value, ir.AffineMap]]) -> dict[int, int]:
    """Returns the trip counts of the loops that are the index of a dimension."""
    sizes: dict[int, int] = {}
    for value, index_map in operands:
        for size, expression in zip(value.type.shape, index_map.results, strict=True):
            index = _index(expression)
            if index is not None and index[1] == 1:
                sizes.setdefault(index[0], size)
    return sizes


def _access(
    shape: Sequence[int], index_map: ir.AffineMap, sizes: Mapping[int, int]
) -> OperandAccess:
    dims = tuple(map(_index, index_map.results))
    laid_out = _laid_out(shape, index_map, sizes) if None in dims else None
    return laid_out or OperandAccess(tuple(shape), dims)


def _index(expression: ir.AffineExpr) -> Index | None:
    from tcir._mlir import ir

    if isinstance(expression, ir.AffineDimExpr):
        return expression.position, 1
    if (
        isinstance(expression, ir.AffineFloorDivExpr)
        and isinstance(expression.lhs, ir.AffineDimExpr)
        and isinstance(expression.rhs, ir.AffineConstantExpr)
    ):
        return expression.lhs.position, expression.rhs.value
    return None


def _laid_out(
    shape: Sequence[int], index_map: ir.AffineMap, sizes: Mapping[int, int]
) -> OperandAccess | None:
    """Returns the access of a layout whose offset is a sum of functions of one loop each.

    None if the offset is no such sum, or if one element has several indices (windows).
    """
    from tcir._mlir import ir

    def divided(e: ir.AffineExpr) -> bool:
        if not isinstance(e, ir.AffineBinaryExpr):
            return False
        return not isinstance(e, ir.AffineAddExpr | ir.AffineMulExpr) or any(
            map(divided, (e.lhs, e.rhs))
        )

    loops = sorted(set().union(*map(_loops, index_map.results)))
    alone = all(map(_of_one_loop_each, index_map.results))
    if not alone or not any(map(divided, index_map.results)) or not sizes.keys() >= set(loops):
        return None
    strides = [math.prod(shape[n + 1 :]) for n in range(len(shape))]
    offsets, dims = [], []
    for loop in loops:
        values = np.arange(sizes[loop])
        each = (_value(e, loop, values) for e in index_map.results)
        offset = sum((s * v for s, v in zip(strides, each, strict=True)), np.zeros_like(values))
        changes = np.flatnonzero(np.diff(offset)) + 1
        step = int(changes[0]) if changes.size else len(values)
        if (changes % step).any():
            return None
        offsets.append(offset[::step])
        dims.append((loop, step))
    places = np.zeros((), np.int64)
    for offset in offsets:
        places = places[..., None] + offset - offset[0]
    places = places + offsets[0][0]  # what all loops at 0 give
    if places.size > math.prod(shape) or len(np.unique(places)) < places.size:
        return None
    return OperandAccess(places.shape, tuple(dims), places)


def _loops(expression: ir.AffineExpr) -> set[int]:
    from tcir._mlir import ir

    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position}
    if isinstance(expression, ir.AffineBinaryExpr):
        return _loops(expression.lhs) | _loops(expression.rhs)
    return set()


def _of_one_loop_each(expression: ir.AffineExpr) -> bool:
    """Whether an expression is a sum of functions of one loop each."""
    from tcir._mlir import ir

    if isinstance(expression, ir.AffineAddExpr):
        return _of_one_loop_each(expression.lhs) and _of_one_loop_each(expression.rhs)
    return len(_loops(expression)) <= 1


def _value(expression: ir.AffineExpr, loop: int, values: Array) -> Array:
    """Evaluates an expression at values of one loop, with all others 0."""
    from tcir._mlir import ir

    if isinstance(expression, ir.AffineDimExpr):
        return values if expression.position == loop else np.zeros_like(values)
    if isinstance(expression, ir.AffineConstantExpr):
        return np.full_like(values, expression.value)
    a, b = (_value(e, loop, values) for e in (expression.lhs, expression.rhs))
    if isinstance(expression, ir.AffineAddExpr):
        return a + b
    if isinstance(expression, ir.AffineMulExpr):
        return a * b
    if isinstance(expression, ir.AffineModExpr):
        return a % b
    return a // b if isinstance(expression, ir.AffineFloorDivExpr) else -(-a // b)
