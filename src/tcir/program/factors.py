"""The factors of a program's contraction, read from its indexing maps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tcir.program.programs import find_program
from tcir.program.signature import Signature, numpy_type

if TYPE_CHECKING:
    from tcir._mlir import ir

# Ops that keep a sum of products exact as long as scalar factors are powers of two.
_EXACT = {
    "arith.addf", "arith.addi", "arith.constant", "arith.extf", "arith.extsi", "arith.extui",
    "arith.mulf", "arith.muli", "arith.scaling_extf", "arith.truncf", "func.return",
    "linalg.fill", "linalg.yield", "tc.pack_codes", "tensor.empty", "tensor.pad",
}  # fmt: skip
_SAME_DIMENSIONS = ("arith.extf", "tc.pack_codes", "tensor.pad")

Index = tuple[int, int]
"""``loop floordiv divisor``, the index of a dimension."""


@dataclass(frozen=True)
class Factor:
    """An input that is a factor of every product.

    argument: its number among the inputs
    dtype:    element type; of codes, the type they are packed to
    dims:     the index of each dimension; None unless it is a single loop
    scale:    whether it is a block scale, which has no sign
    """

    argument: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    dims: tuple[Index | None, ...]
    scale: bool


@dataclass(frozen=True)
class Contraction:
    """out[parallel loops] = the sum, over the other loops, of the product of all factors."""

    factors: tuple[Factor, ...]
    parallel: frozenset[int]

    @cached_property
    def products(self) -> int:
        """Number of products in a sum."""
        extents: dict[int, int] = {}
        for factor in self.factors:
            for n, index in zip(factor.shape, factor.dims, strict=True):
                if index is not None and index[0] not in self.parallel:
                    extents[index[0]] = max(n * index[1], extents.get(index[0], 1))
        return math.prod(extents.values())

    @property
    def pairs(self) -> list[tuple[Factor, Factor]]:
        """The two operands, and the two scales if there are any."""
        groups = ([f for f in self.factors if f.scale is scale] for scale in (False, True))
        return [(group[0], group[1]) for group in groups if group]

    def extents(self, results: int) -> tuple[int, int, int, int]:
        """Rows and columns of the product, how many there are, and the longest part of its sums.

        Rows are the loops of the first factor alone, columns those of the second. results: number
        of elements.
        """
        pair = a, b = self.pairs[0]
        sizes = [
            {i[0]: n for n, i in zip(f.shape, f.dims, strict=True) if i and i[0] in self.parallel}
            for f in pair
        ]
        columns = math.prod(n for loop, n in sizes[1].items() if loop not in sizes[0])
        both = math.prod(n for loop, n in sizes[1].items() if loop in sizes[0])
        axes = self.shared_axes((a, b))
        length = a.shape[axes[0]] if axes else self.products
        return results // (columns * both), columns, both, length

    def shared_axes(self, pair: tuple[Factor, Factor]) -> tuple[int, int] | None:
        """The longest dimension of each factor that is indexed by the same reduction loop."""
        a, b = pair
        shared = [
            (a.dims.index(i), b.dims.index(i))
            for i in set(a.dims) & set(b.dims)
            if i is not None and i[0] not in self.parallel
        ]
        shared = [(x, y) for x, y in shared if a.shape[x] == b.shape[y]]
        return max(shared, key=lambda axes: (a.shape[axes[0]], axes), default=None)

    def own_axis(self, pair: tuple[Factor, Factor], side: int) -> int | None:
        """The longest parallel dimension of one factor that the other does not have.

        None if there is none of at least 16 elements.
        """
        one, other = pair[side], pair[1 - side]
        loops = {index[0] for index in other.dims if index is not None}
        own = [
            (n, axis)
            for axis, (n, index) in enumerate(zip(one.shape, one.dims, strict=True))
            if n >= 16 and index is not None and index[1] == 1
            if index[0] in self.parallel and index[0] not in loops
        ]
        return max(own)[1] if own else None


def contraction_of(module: ir.Module, signature: Signature) -> Contraction | None:
    """The program as a contraction up to padding, casts and scalar factors; None: it is not."""
    from tcir._mlir import linalg

    if signature.level != "tensor":
        return None
    block = find_program(module, signature.name).op.operation.regions[0].blocks[0]
    found: list[tuple[ir.Operation, list[ir.AffineMap]]] = []
    for each in block:
        op = each.operation
        maps = [m.value for m in linalg.get_indexing_maps(op) or ()]
        exact = {inner.operation.name for r in op.regions for b in r for inner in b} <= _EXACT
        if not exact and op.name != "tensor.pad" or not maps and op.name not in _EXACT:
            return None
        if maps and len(maps[-1].results) < maps[-1].n_dims:
            found.append((op, maps))
    return _contraction(block, signature, *found[0]) if len(found) == 1 else None


def _contraction(
    block: ir.Block, signature: Signature, op: ir.Operation, maps: Sequence[ir.AffineMap]
) -> Contraction | None:
    from tcir.dialect.attributes import is_fill_only

    arguments = [a for a in block.arguments if not is_fill_only(a)]
    factors = []
    for value, index_map in zip(op.operands, maps[:-1]):
        source = _source(value)
        if source not in arguments:
            return None
        number, dtype = arguments.index(source), numpy_type(value.type.element_type)
        spec = signature.inputs[number]
        scale = dtype.name == "float8_e8m0fnu" or (spec.unsigned and dtype.kind not in "iu")
        if spec.shape:
            dims = tuple(_index(expression) for expression in index_map.results)
            factors.append(Factor(number, dtype, spec.shape, dims, scale))
    shaped = [number for number, spec in enumerate(signature.inputs) if spec.shape]
    if sorted(f.argument for f in factors) != shaped:
        return None  # an input that is no factor, or is two
    if [f.scale for f in factors].count(False) != 2 or len(factors) not in (2, 4):
        return None
    loops = frozenset(i[0] for i in map(_index, maps[-1].results) if i is not None)
    return Contraction(tuple(factors), loops)


def _source(value: ir.Value) -> ir.Value:
    """`value` before casts and padding."""
    from tcir._mlir import ir

    while isinstance(value.owner, ir.Operation | ir.OpView):
        if value.owner.operation.name not in _SAME_DIMENSIONS:
            break
        value = value.owner.operation.operands[0]
    return value


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
