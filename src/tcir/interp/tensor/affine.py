"""Rules of `affine`: indices, loops, loads and stores; also evaluates affine expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from tcir._mlir import ir
from tcir.dialect.attributes import integers
from tcir.errors import IncompleteError
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tensor.tensor import inside
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
    """Evaluates an expression at the values of its dimensions and symbols."""
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


def _values(op: ir.OpView, operands: Sequence[Array], name: str = "map") -> list[Index]:
    """Returns the results of the map in attribute `name` of `op`."""
    map_ = op.operation.attributes[name].value
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


def _indices(op: ir.OpView, operands: Sequence[Array]) -> list[Array]:
    return [np.asarray(each, np.int64) for each in _values(op, operands)]


@evaluate("affine.load")
def affine_load(_: Interpreter, op: ir.OpView, buffer: Array, *operands: Array) -> Sequence[Array]:
    return [buffer[inside(op, buffer, _indices(op, operands))]]


@evaluate("affine.store")
def affine_store(
    _: Interpreter, op: ir.OpView, value: Array, buffer: Array, *operands: Array
) -> Sequence[Array]:
    buffer[inside(op, buffer, _indices(op, operands))] = value
    return ()


@evaluate("affine.yield")
def affine_yield(_: Interpreter, __: ir.OpView, *operands: Array) -> Sequence[Array]:
    return operands


@evaluate("affine.for")
def affine_for(interpreter: Interpreter, op: ir.OpView, *operands: Array) -> Sequence[Array]:
    low, high, _ = integers(op, "operandSegmentSizes")
    first = max(map(int, _values(op, operands[:low], "lowerBoundMap")))
    end = min(map(int, _values(op, operands[low : low + high], "upperBoundMap")))
    step = ir.IntegerAttr(op.operation.attributes["step"]).value
    values: Sequence[Array] = operands[low + high :]
    for number in range(first, end, step):
        values = interpreter.region(op, [np.asarray(number, np.int64)[()], *values])
    return values
