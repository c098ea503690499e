"""Views an operand of a structured op through its indexing map, as an array with one axis for each
loop that the map uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.errors import IncompleteError, InputError
from tcir.interp.types import Array


@dataclass(frozen=True)
class AffineExpression:
    """An affine expression without division: ``constant + sum(coefficients[d] * loop d)``."""

    coefficients: dict[int, int]
    constant: int


def linear(expression: Any) -> AffineExpression:
    """Converts `expression`; IncompleteError for symbols, mod and division."""
    if isinstance(expression, ir.AffineDimExpr):
        return AffineExpression({expression.position: 1}, 0)
    if isinstance(expression, ir.AffineConstantExpr):
        return AffineExpression({}, expression.value)
    if isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        a, b = linear(expression.lhs), linear(expression.rhs)
        if isinstance(expression, ir.AffineAddExpr):
            dims = a.coefficients.keys() | b.coefficients.keys()
            total = {d: a.coefficients.get(d, 0) + b.coefficients.get(d, 0) for d in dims}
            return AffineExpression(total, a.constant + b.constant)
        if b.coefficients:
            a, b = b, a
        if not b.coefficients:
            scaled = {d: c * b.constant for d, c in a.coefficients.items()}
            return AffineExpression(scaled, a.constant * b.constant)
    raise IncompleteError(f"indexing map: {expression} is not a linear function of the loops")


def indexing(map_: Any) -> list[AffineExpression]:
    """Returns the results of an affine map as `AffineExpression`."""
    return [linear(e) for e in map_.results]


def loop_sizes(
    loops: int, maps: Sequence[list[AffineExpression]], shapes: Sequence[Sequence[int]]
) -> list[int]:
    """Returns the trip counts of the loops. For each loop, some operand must have a dimension whose
    index is that loop alone.
    """
    sizes: dict[int, int] = {}
    for results, shape in zip(maps, shapes, strict=True):
        for expression, size in zip(results, shape, strict=True):
            match list(expression.coefficients.items()):
                case [(dim, 1)] if expression.constant == 0:
                    if sizes.setdefault(dim, size) != size:
                        raise IncompleteError(
                            f"loop d{dim}: sizes {sizes[dim]} and {size} disagree"
                        )
    missing = [f"d{d}" for d in range(loops) if d not in sizes]
    if missing:
        raise IncompleteError(f"indexing maps give no trip count for loops {', '.join(missing)}")
    return [sizes[d] for d in range(loops)]


def view(
    array: Array, results: list[AffineExpression], sizes: Sequence[int], writeable: bool = False
) -> tuple[Array, list[int]]:
    """Returns a view of `array` with one axis for each loop that its map uses (in ascending order),
    and the numbers of these loops.
    """
    dims = sorted({d for e in results for d in e.coefficients})
    strides = dict.fromkeys(dims, 0)
    start: list[int] = []
    for axis, expression in enumerate(results):
        ends = [c * (sizes[d] - 1) for d, c in expression.coefficients.items()]
        low = expression.constant + sum(min(e, 0) for e in ends)
        high = expression.constant + sum(max(e, 0) for e in ends)
        if all(sizes[d] for d in dims) and not 0 <= low <= high < array.shape[axis]:
            raise InputError(
                f"indexing map reads {low}..{high} of a dimension of size {array.shape[axis]}"
            )
        start.append(expression.constant)
        for d, c in expression.coefficients.items():
            strides[d] += c * array.strides[axis]
    if not all(sizes[d] for d in dims):
        return np.empty([sizes[d] for d in dims], array.dtype), dims
    # Without indices numpy returns a copy, of a scalar.
    base = array[tuple(slice(s, None) for s in start)] if start else array
    raw = base.view(f"u{base.itemsize}")  # as_strided takes no float8_e5m2
    strided = np.lib.stride_tricks.as_strided(
        raw, [sizes[d] for d in dims], [strides[d] for d in dims], writeable=writeable
    )
    return strided.view(array.dtype), dims


def aligned(array: Array, dims: Sequence[int], order: Sequence[int]) -> Array:
    """Returns `array`, whose axes are the loops `dims`, with one axis for each loop in `order`; the
    axis of a loop that is not in `dims` has size 1.
    """
    transposed = array.transpose([dims.index(d) for d in order if d in dims])
    sizes = iter(transposed.shape)
    return transposed.reshape([next(sizes) if d in dims else 1 for d in order])
