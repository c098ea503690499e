"""Rules of `affine` on indices, and the value of an affine expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array

Index: TypeAlias = "Array | int"

_BINARY: dict[type[ir.AffineExpr], Callable[[Index, Index], Index]] = {
    ir.AffineAddExpr: lambda a, b: a + b,
    ir.AffineMulExpr: lambda a, b: a * b,
    ir.AffineModExpr: lambda a, b: a % b,
    ir.AffineFloorDivExpr: lambda a, b: a // b,
    ir.AffineCeilDivExpr: lambda a, b: -(-a // b),
}


def affine_value(
    expression: ir.AffineExpr, dims: Mapping[int, Index], symbols: Sequence[Index] = ()
) -> Index:
    """An expression's value, with the values of its dimensions and symbols."""
    if isinstance(expression, ir.AffineDimExpr):
        return dims[expression.position]
    if isinstance(expression, ir.AffineSymbolExpr):
        return symbols[expression.position]
    if isinstance(expression, ir.AffineConstantExpr):
        return int(expression.value)
    for kind, compute in _BINARY.items():
        if isinstance(expression, kind):
            left, right = expression.lhs, expression.rhs
            return compute(affine_value(left, dims, symbols), affine_value(right, dims, symbols))
    raise IncompleteError(f"affine map: no rule for {expression}")


def _values(op: ir.OpView, operands: Sequence[Array]) -> list[Index]:
    map_ = op.operation.attributes["map"].value
    dims, symbols = operands[: map_.n_dims], operands[map_.n_dims :]
    return [affine_value(each, dict(enumerate(dims)), symbols) for each in map_.results]


@evaluate("affine.apply")
def affine_apply(_: Interpreter, op: ir.OpView, *operands: Array) -> Sequence[Array]:
    return [np.asarray(_values(op, operands)[0], np.int64)[()]]


@evaluate("affine.min")
def affine_min(_: Interpreter, op: ir.OpView, *operands: Array) -> Sequence[Array]:
    return [np.asarray(min(_values(op, operands)), np.int64)[()]]


@evaluate("affine.max")
def affine_max(_: Interpreter, op: ir.OpView, *operands: Array) -> Sequence[Array]:
    return [np.asarray(max(_values(op, operands)), np.int64)[()]]
