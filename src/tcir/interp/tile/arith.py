"""Rules of `arith`, `math` and `vector`. Indices are Python ints, all other values are numpy's."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from tcir._mlir import ir
from tcir.interp.tensor import arith as tensor_arith
from tcir.interp.tensor import math as tensor_math
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.values import RegisterTile
from tcir.interp.types import Array, constant, dtype_of, shape_of


def _width(type_: ir.Type) -> int | None:
    """Bits of a scalar integer (index: 64); None for anything else."""
    if isinstance(type_, ir.IndexType):
        return 64
    return ir.IntegerType(type_).width if isinstance(type_, ir.IntegerType) else None


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_SIGNED: dict[str, Callable[[int, int], int]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "maxsi": max,
    "minsi": min,
    "divsi": _truncated,
    "remsi": lambda a, b: a - b * _truncated(a, b),
    "floordivsi": operator.floordiv,
    "ceildivsi": lambda a, b: -(-a // b),
    "shli": operator.lshift,
    "shrsi": operator.rshift,
}
_DIVISIONS = {"divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui", "ceildivui"}
_SHIFTS = {"shli", "shrsi", "shrui"}
_UNSIGNED: dict[str, Callable[[int, int], int]] = {
    "divui": operator.floordiv,
    "remui": operator.mod,
    "ceildivui": lambda a, b: -(-a // b),
    "maxui": max,
    "minui": min,
    "shrui": operator.rshift,
}
_TESTS: tuple[tuple[Callable[[int, int], bool], bool], ...] = (
    (operator.eq, False), (operator.ne, False),
    (operator.lt, False), (operator.le, False), (operator.gt, False), (operator.ge, False),
    (operator.lt, True), (operator.le, True), (operator.gt, True), (operator.ge, True),
)  # fmt: skip
"""Predicate number of `arith.cmpi` -> the test, and whether it is unsigned."""


def _wrapped(value: int, width: int) -> int:
    if width == 1:
        return value & 1
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _integer_binary(compiler: Compiler, op: ir.OpView, width: int) -> Step:
    name = op.operation.name.partition(".")[2]
    compute = _wrapping(compiler, op, name, width)
    if name not in _DIVISIONS | _SHIFTS:
        return compute
    a, b = compiler.operands(op)
    site = compiler.site(op)

    def checked(frame: Frame) -> None:
        first, second = frame.values[a], frame.values[b]
        if name in _DIVISIONS and second == 0:
            raise frame.cta_run.error(*_by_zero(first), site)
        if name in _SHIFTS and not 0 <= second < width:
            raise frame.cta_run.error(*_too_far(second, width), site)
        compute(frame)

    return checked


def _by_zero(dividend: object) -> tuple[str, str]:
    return "division-by-zero", f"expected a divisor other than 0, got {dividend} by 0"


def _too_far(shift: object, width: int) -> tuple[str, str]:
    return "bad-shift", f"expected a shift by 0 to {width - 1} bits, got {shift}"


def _integer_vector(compiler: Compiler, op: ir.OpView) -> Step:
    """Applies an integer op to vectors; one element with undefined behaviour makes the program
    undefined."""
    name = op.operation.name.partition(".")[2]
    compute = _by_numpy(compiler, op)
    if name not in _DIVISIONS | _SHIFTS:
        return compute
    a, b = compiler.operands(op)
    site = compiler.site(op)

    def checked(frame: Frame) -> None:
        first, second = (
            v.data if isinstance(v, RegisterTile) else v for v in (frame.values[a], frame.values[b])
        )
        width = 8 * second.dtype.itemsize
        if name in _DIVISIONS and (zero := second == 0).any():
            raise frame.cta_run.error(*_by_zero(first[zero][0]), site)
        if name in _SHIFTS and (bad := (second < 0) | (second >= width)).any():
            raise frame.cta_run.error(*_too_far(second[bad][0], width), site)
        compute(frame)

    return checked


def _wrapping(compiler: Compiler, op: ir.OpView, name: str, width: int) -> Step:
    a, b = compiler.operands(op)
    result = compiler.result(op)
    mask = (1 << width) - 1
    if name in _SIGNED:
        compute = _SIGNED[name]

        def signed(frame: Frame) -> None:
            v = frame.values
            v[result] = _wrapped(compute(v[a], v[b]), width)

        return signed
    compute = _UNSIGNED[name]

    def unsigned(frame: Frame) -> None:
        v = frame.values
        v[result] = _wrapped(compute(v[a] & mask, v[b] & mask), width)

    return unsigned


def _compare(compiler: Compiler, op: ir.OpView, width: int) -> Step:
    a, b = compiler.operands(op)
    result = compiler.result(op)
    test, is_unsigned = _TESTS[ir.IntegerAttr(op.operation.attributes["predicate"]).value]
    mask = (1 << width) - 1

    def compare(frame: Frame) -> None:
        x, y = frame.values[a], frame.values[b]
        if is_unsigned:
            x, y = x & mask, y & mask
        frame.values[result] = int(test(x, y))

    return compare


def _cast(compiler: Compiler, op: ir.OpView, source: int, target: int) -> Step:
    (a,) = compiler.operands(op)
    result = compiler.result(op)
    mask = (1 << source) - 1
    extend = op.operation.name in ("arith.extui", "arith.index_castui")

    def cast(frame: Frame) -> None:
        value = frame.values[a]
        frame.values[result] = _wrapped(value & mask if extend else _wrapped(value, source), target)

    def cast_bit(frame: Frame) -> None:  # a signed i1: true is -1
        value = frame.values[a]
        frame.values[result] = _wrapped(value if extend else -value, target)

    return cast_bit if source == 1 else cast


def _by_numpy(compiler: Compiler, op: ir.OpView) -> Step:
    """Applies the tensor level's rule to the data of a register tile: floats and vectors."""
    operands = compiler.operands(op)
    result = compiler.result(op)
    compute, interpreter, site = evaluate[op.operation.name], Interpreter(), compiler.site(op)

    def elementwise(frame: Frame) -> None:
        given = [frame.values[o] for o in operands]
        tiles = [g for g in given if isinstance(g, RegisterTile)]
        for tile in tiles:
            frame.cta_run.consume(frame, tile, site)
        (value,) = compute(
            interpreter, op, *(g.data if isinstance(g, RegisterTile) else g for g in given)
        )
        if tiles:
            source = max(tiles, key=lambda tile: tile.quarter)
            frame.values[result] = RegisterTile(value, source.quarter, source.column)
        else:
            frame.values[result] = value

    return elementwise


@execute(*(f"arith.{name}" for name in (*_SIGNED, *_UNSIGNED)))
def arith_integer(compiler: Compiler, op: ir.OpView) -> Step:
    width = _width(op.operation.results[0].type)
    return _integer_vector(compiler, op) if width is None else _integer_binary(compiler, op, width)


@execute("arith.cmpi")
def arith_cmpi(compiler: Compiler, op: ir.OpView) -> Step:
    width = _width(op.operation.operands[0].type)
    return _by_numpy(compiler, op) if width is None else _compare(compiler, op, width)


@execute("arith.index_cast", "arith.index_castui", "arith.extsi", "arith.extui", "arith.trunci")
def arith_cast(compiler: Compiler, op: ir.OpView) -> Step:
    source = _width(op.operation.operands[0].type)
    target = _width(op.operation.results[0].type)
    if source is None or target is None:
        return _by_numpy(compiler, op)
    return _cast(compiler, op, source, target)


@execute(
    *tensor_arith.FLOAT,
    *tensor_math.FUNCTIONS,
    "math.fma",
    "arith.extf",
    "arith.truncf",
    "arith.negf",
    "arith.cmpf",
    "arith.bitcast",
    "arith.fptosi",
    "arith.fptoui",
    "arith.sitofp",
    "arith.uitofp",
)
def arith_float(compiler: Compiler, op: ir.OpView) -> Step:
    return _by_numpy(compiler, op)


@execute("arith.constant")
def arith_constant(compiler: Compiler, op: ir.OpView) -> Step:
    result, type_ = compiler.result(op), op.operation.results[0].type
    value = constant(op.operation.attributes["value"], type_)
    fixed: RegisterTile | Array | int = value
    if isinstance(type_, ir.VectorType):
        fixed = RegisterTile(value, quarter=-1)
    elif _width(type_) is not None:
        fixed = int(value)

    def set_constant(frame: Frame) -> None:  # in every loop: worth a closure of its own
        frame.values[result] = fixed

    return set_constant


@execute("arith.select")
def arith_select(compiler: Compiler, op: ir.OpView) -> Step:
    if isinstance(op.operation.operands[0].type, ir.ShapedType):
        return _by_numpy(compiler, op)
    condition, a, b = compiler.operands(op)
    result = compiler.result(op)

    def select(frame: Frame) -> None:
        v = frame.values
        v[result] = v[a] if v[condition] else v[b]

    return select


@execute("vector.broadcast")
def vector_broadcast(compiler: Compiler, op: ir.OpView) -> Step:
    (source,), result = compiler.operands(op), compiler.result(op)
    shape = shape_of(op.operation.results[0].type)
    site = compiler.site(op)

    def broadcast(frame: Frame) -> None:
        value = frame.values[source]
        if isinstance(value, RegisterTile):
            frame.cta_run.consume(frame, value, site)
            data, quarter = np.broadcast_to(value.data, shape), value.quarter
        else:
            data, quarter = np.full(shape, value), -1
        frame.values[result] = RegisterTile(data, quarter)

    return broadcast


@execute("vector.bitcast")
def vector_bitcast(compiler: Compiler, op: ir.OpView) -> Step:
    (source,), result = compiler.operands(op), compiler.result(op)
    dtype, site = dtype_of(op.operation.results[0].type), compiler.site(op)

    def cast(frame: Frame) -> None:
        tile: RegisterTile = frame.values[source]
        frame.cta_run.consume(frame, tile, site)
        data = np.ascontiguousarray(tile.data).view(dtype)
        frame.values[result] = RegisterTile(data, tile.quarter, tile.column)

    return cast


@execute("vector.interleave")
def vector_interleave(compiler: Compiler, op: ir.OpView) -> Step:
    operands, result = compiler.operands(op), compiler.result(op)
    site = compiler.site(op)

    def mix(frame: Frame) -> None:
        even, odd = (frame.values[operand] for operand in operands)
        for tile in (even, odd):
            frame.cta_run.consume(frame, tile, site)
        data = np.stack([even.data, odd.data], -1).reshape(len(even.data), -1)
        frame.values[result] = RegisterTile(data, max(even.quarter, odd.quarter))

    return mix


@execute("vector.deinterleave")
def vector_deinterleave(compiler: Compiler, op: ir.OpView) -> Step:
    (source,), site = compiler.operands(op), compiler.site(op)
    results = compiler.slots_of(op.operation.results)

    def sort(frame: Frame) -> None:
        tile: RegisterTile = frame.values[source]
        frame.cta_run.consume(frame, tile, site)
        for first, result in enumerate(results):
            frame.values[result] = RegisterTile(tile.data[:, first::2], tile.quarter, tile.column)

    return sort
