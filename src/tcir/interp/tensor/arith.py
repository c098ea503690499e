"""Rules of `arith`, elementwise over operands of any shape.

Floats round to nearest even after every op. Signless integers wrap. The same functions execute ops
on scalars, tensors and vectors, here and at the tile level.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, constant, dtype_of

NARROW = {np.dtype(ml_dtypes.int2): 0x3, np.dtype(ml_dtypes.int4): 0xF}
"""Integer types of less than a byte, which most numpy functions do not accept -> mask of their
bits."""
LARGEST = {
    np.dtype(ml_dtypes.float4_e2m1fn): 6.0,
    np.dtype(ml_dtypes.float6_e2m3fn): 7.5,
    np.dtype(ml_dtypes.float6_e3m2fn): 28.0,
}
"""Format without NaN -> its largest value, to which ``cvt`` converts NaN (PTX ISA 9.7.9.21)."""


def unsigned(x: Array) -> Array:
    """Views signed integers as unsigned ones with the same bits."""
    x = np.asarray(x)
    if x.dtype in NARROW:
        return x.view(np.uint8) & np.uint8(NARROW[x.dtype])
    return x if x.dtype == np.bool_ else x.view(x.dtype.str.replace("i", "u"))


def whole(x: Array) -> Array:
    """Converts integers of less than a byte to int8, and returns other numbers as they are."""
    x = np.asarray(x)
    return x.astype(np.int8) if x.dtype in NARROW else x


def as_signed(x: Array, dtype: np.dtype[Any]) -> Array:
    """Returns the low bits of the integers `x` in the type `dtype` (signless in MLIR, signed in
    numpy).
    """
    x = np.asarray(x)
    if dtype in NARROW:
        x = x.astype(np.int8, casting="unsafe")
    return x.astype(dtype, casting="unsafe")


def truncated_division(a: Array, b: Array) -> Array:
    """Quotient rounded toward zero."""
    quotient = np.floor_divide(a, b)
    return quotient + ((np.remainder(a, b) != 0) & ((a < 0) != (b < 0)))


def convert(x: Array, dtype: np.dtype[Any]) -> Array:
    """Converts floats to another float type, rounded once to nearest even; NaN and infinities stay.

    ml_dtypes converts float64 by way of float32, which could round twice. So float64 is first
    rounded to odd in float32 here, after which the second rounding gives the correct result.
    """
    x = np.asarray(x)
    with np.errstate(over="ignore", invalid="ignore"):
        if x.dtype == np.float64 and dtype.itemsize < 4 and dtype != np.float16:
            x = _round_to_odd(x)
        if dtype in LARGEST:
            x = np.where(np.isnan(x), np.float32(LARGEST[dtype]), x.astype(np.float32))
        return x.astype(dtype)


def saturated(x: Array, dtype: np.dtype[Any]) -> Array:
    """Converts like `convert`, but saturates to the largest finite number
    (``cvt.rn.satfinite``)."""
    most = np.asarray(x).dtype.type(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    return convert(np.clip(x, -most, most), dtype)


def _round_to_odd(x: Array) -> Array:
    nearest = x.astype(np.float32)
    inexact = np.isfinite(nearest) & (nearest.astype(np.float64) != x)
    away = inexact & (np.abs(nearest.astype(np.float64)) > np.abs(x))
    bits = nearest.view(np.uint32) - away.astype(np.uint32)  # truncated toward zero
    return (bits | inexact.astype(np.uint32)).view(np.float32)


Binary = Callable[[Array, Array], Array]


def _signed_zeros(pick: Binary, sign: int) -> Binary:
    """Returns `pick`, a maximum (sign 1) or minimum (-1), with -0 below +0, as in arith and PTX.

    arith.maximumf, arith.minimumf; PTX ISA, max and min: "+0.0 > -0.0". numpy takes either.
    """

    def picked(a: Array, b: Array) -> Array:
        zeros = np.asarray((np.asarray(a) == 0) & (np.asarray(b) == 0))
        chosen = pick(a, b)
        if not zeros.any():
            return chosen
        both = np.add(a, b) if sign > 0 else np.negative(np.add(np.negative(a), np.negative(b)))
        return np.where(zeros, both, chosen).astype(np.asarray(a).dtype)

    return picked


FLOAT: dict[str, Binary] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maximumf": _signed_zeros(np.maximum, 1),
    "arith.minimumf": _signed_zeros(np.minimum, -1),
    "arith.maxnumf": _signed_zeros(np.fmax, 1),
    "arith.minnumf": _signed_zeros(np.fmin, -1),
}

INTEGER: dict[str, Binary] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": lambda a, b: np.maximum(unsigned(a), unsigned(b)),
    "arith.minui": lambda a, b: np.minimum(unsigned(a), unsigned(b)),
    "arith.divsi": truncated_division,
    "arith.remsi": np.fmod,
    "arith.floordivsi": np.floor_divide,
    "arith.ceildivsi": lambda a, b: -np.floor_divide(-a, b),
    "arith.divui": lambda a, b: np.floor_divide(unsigned(a), unsigned(b)),
    "arith.remui": lambda a, b: np.remainder(unsigned(a), unsigned(b)),
    "arith.ceildivui": lambda a, b: (
        np.floor_divide(unsigned(a), unsigned(b)) + (np.remainder(unsigned(a), unsigned(b)) != 0)
    ),
    "arith.shli": lambda a, b: np.left_shift(a, b),
    "arith.shrsi": lambda a, b: np.right_shift(a, b),
    "arith.shrui": lambda a, b: np.right_shift(unsigned(a), unsigned(b)),
}

_I = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_TESTS: dict[str, Binary] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_F = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


def compare_integers(predicate: int, a: Array, b: Array) -> Array:
    """Evaluates `arith.cmpi`."""
    name = _I[predicate]
    a, b = whole(a), whole(b)
    if name in ("eq", "ne"):
        return _TESTS[name](a, b)
    if name[0] == "u":
        a, b = unsigned(a), unsigned(b)
    elif np.asarray(a).dtype == np.bool_:  # a signed i1: true is -1
        a, b = -np.asarray(a).astype(np.int8), -np.asarray(b).astype(np.int8)
    return _TESTS[name[1:]](a, b)


def compare_floats(predicate: int, a: Array, b: Array) -> Array:
    """Evaluates `arith.cmpf`: ordered tests are false on NaN, unordered ones true."""
    name = _F[predicate]
    unordered = np.isnan(a) | np.isnan(b)
    if name in ("false", "true"):
        return np.full(np.shape(unordered), name == "true")
    if name == "ord":
        return ~unordered
    if name == "uno":
        return unordered
    with np.errstate(invalid="ignore"):
        test = _TESTS[name[1:]](a, b)
    return (test & ~unordered) if name[0] == "o" else (test | unordered)


def _binary(op: ir.OpView, *operands: Array) -> Array:
    name = op.operation.name
    with np.errstate(all="ignore"):
        if name in FLOAT:
            return FLOAT[name](*operands)
        dtype = np.asarray(operands[0]).dtype
        if name.endswith("ui"):  # before a sign is in front of the number
            operands = tuple(map(unsigned, operands))
        return as_signed(INTEGER[name](*map(whole, operands)), dtype)


@evaluate(*FLOAT, *INTEGER)
def arith_binary(_: Interpreter, op: ir.OpView, *operands: Array) -> Sequence[Array]:
    return [_binary(op, *operands)]


@evaluate("arith.constant")
def arith_constant(_: Interpreter, op: ir.OpView) -> Sequence[Array]:
    return [constant(op.attributes["value"], op.operation.results[0].type)]


@evaluate("arith.negf")
def arith_negf(_: Interpreter, __: ir.OpView, x: Array) -> Sequence[Array]:
    return [np.negative(x)]


@evaluate("arith.cmpi")
def arith_cmpi(_: Interpreter, op: ir.OpView, a: Array, b: Array) -> Sequence[Array]:
    return [compare_integers(ir.IntegerAttr(op.attributes["predicate"]).value, a, b)]


@evaluate("arith.cmpf")
def arith_cmpf(_: Interpreter, op: ir.OpView, a: Array, b: Array) -> Sequence[Array]:
    return [compare_floats(ir.IntegerAttr(op.attributes["predicate"]).value, a, b)]


@evaluate("arith.select")
def arith_select(
    _: Interpreter, __: ir.OpView, condition: Array, a: Array, b: Array
) -> Sequence[Array]:
    return [np.asarray(np.where(condition, a, b), np.asarray(a).dtype)]


@evaluate("arith.extf", "arith.truncf")
def arith_float_to_float(_: Interpreter, op: ir.OpView, x: Array) -> Sequence[Array]:
    return [convert(x, dtype_of(op.operation.results[0].type))]


@evaluate("arith.scaling_extf")
def arith_scaling_extf(_: Interpreter, op: ir.OpView, x: Array, scale: Array) -> Sequence[Array]:
    """Multiplies by a scale that is a power of two. The op rounds any other scale to a power of
    two; for such a scale, raises IncompleteError.
    """
    if scale.dtype.name != "float8_e8m0fnu":
        raise IncompleteError(f"arith.scaling_extf by {scale.dtype}: expected f8E8M0FNU scales")
    dtype = dtype_of(op.operation.results[0].type)
    with np.errstate(over="ignore", invalid="ignore"):
        return [convert(np.asarray(x).astype(np.float64) * scale.astype(np.float64), dtype)]


@evaluate("arith.extsi", "arith.trunci", "arith.index_cast", "arith.sitofp")
def arith_signed_cast(_: Interpreter, op: ir.OpView, x: Array) -> Sequence[Array]:
    x, dtype = whole(x), dtype_of(op.operation.results[0].type)
    if x.dtype == np.bool_:
        x = -x.view(np.int8)  # a signed i1: true is -1
    if dtype == np.bool_:
        x = x & 1
    return [as_signed(x, dtype) if dtype in NARROW else x.astype(dtype)]


@evaluate("arith.extui", "arith.index_castui", "arith.uitofp")
def arith_unsigned_cast(_: Interpreter, op: ir.OpView, x: Array) -> Sequence[Array]:
    return [unsigned(x).astype(dtype_of(op.operation.results[0].type))]


@evaluate("arith.fptosi", "arith.fptoui")
def arith_float_to_integer(_: Interpreter, op: ir.OpView, x: Array) -> Sequence[Array]:
    """Converts floats to integers, rounded toward zero. Values out of range are poison in MLIR.
    Here they get the result of ``cvt.rzi`` to 32 or 64 bits: the nearest integer in range, and for
    NaN either 0 or the value with only the top bit set (PTX ISA 9.7.9.21).
    """
    dtype, source = dtype_of(op.operation.results[0].type), np.asarray(x).dtype
    sign = "i" if op.operation.name == "arith.fptosi" else "u"
    info = np.iinfo(f"{sign}{max(dtype.itemsize, 4)}")
    wide = np.asarray(x, np.float64)
    top = source.itemsize == 8 or info.bits == 64
    not_a_number = info.min or (info.max >> 1) + 1 if top else 0
    high, low, nan = wide >= float(info.max), wide <= float(info.min), np.isnan(wide)
    inside = np.trunc(np.where(high | low | nan, 0, wide)).astype(info.dtype)
    picked = np.select([nan, high, low], [not_a_number, info.max, info.min], inside)
    return [as_signed(picked.astype(info.dtype), dtype)]


@evaluate("arith.bitcast")
def arith_bitcast(_: Interpreter, op: ir.OpView, x: Array) -> Sequence[Array]:
    return [np.asarray(x).view(dtype_of(op.operation.results[0].type))]
