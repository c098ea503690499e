"""Rules of `math`: numpy's functions in the type of the operand (in float32 for f16, bf16 and
f8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array


def power(x: Array, exponent: Array) -> Array:
    """Computes powers as in C. numpy takes the square root for the exponent 0.5, which gives
    another result for -inf and -0.
    """
    root = np.where(np.isneginf(x), -x, np.abs(np.sqrt(x)))
    return np.where(exponent == 0.5, root, np.power(x, exponent)).astype(np.asarray(x).dtype)


def in_f64(function: Callable[..., Array]) -> Callable[..., Array]:
    """Returns a function that computes `function` in float64, so that its result is rounded once;
    the results of numpy's f32 functions are off by units in the last place.
    """
    return lambda *operands: function(*(np.asarray(each, np.float64) for each in operands))


WIDE_BYTES = 4
"""Largest size in bytes of numbers whose products are exact in float64."""
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "math.absf": np.abs,
    "math.acos": in_f64(np.arccos),
    "math.asin": in_f64(np.arcsin),
    "math.atan": in_f64(np.arctan),
    "math.atan2": in_f64(np.arctan2),
    "math.ceil": np.ceil,
    "math.cos": in_f64(np.cos),
    "math.cosh": in_f64(np.cosh),
    "math.erf": np.vectorize(math.erf, otypes=[np.float64]),
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.expm1": in_f64(np.expm1),
    "math.floor": np.floor,
    "math.log": np.log,
    "math.log10": in_f64(np.log10),
    "math.log1p": np.log1p,
    "math.log2": np.log2,
    "math.fpowi": power,
    "math.powf": power,
    "math.roundeven": np.rint,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.sin": in_f64(np.sin),
    "math.sinh": in_f64(np.sinh),
    "math.sqrt": np.sqrt,
    "math.tan": in_f64(np.tan),
    "math.tanh": np.tanh,
    "math.trunc": np.trunc,
}


def function(name: str, *operands: Array) -> Array:
    """Applies a function of `FUNCTIONS` and rounds to the first operand's type."""
    dtype = np.asarray(operands[0]).dtype
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    with np.errstate(all="ignore"):
        return convert(FUNCTIONS[name](*(np.asarray(o, wide) for o in operands)), dtype)


@evaluate(*FUNCTIONS)
def math_function(_: Interpreter, op: ir.OpView, *operands: Array) -> Sequence[Array]:
    return [function(op.operation.name, *operands)]


def fma(a: Array, b: Array, c: Array) -> Array:
    """Computes ``a * b + c`` rounded once to the type of `a`. The product of factors of up to 32
    bits is exact in float64, and the sum is rounded to odd there, so the final rounding is correct.
    """
    dtype = np.asarray(a).dtype
    with np.errstate(all="ignore"):
        x = np.asarray(a, np.float64) * np.asarray(b, np.float64)
        y = np.asarray(c, np.float64)
        total = x + y
        seen = total - x
        error = (x - (total - seen)) + (y - seen)
        even = total.view(np.int64) % 2 == 0
        nudged = np.nextafter(total, np.copysign(np.inf, error))
        odd = np.where(np.isfinite(error) & (error != 0) & even, nudged, total)
    return convert(odd, dtype)


@evaluate("math.fma")
def math_fma(_: Interpreter, __: ir.OpView, a: Array, b: Array, c: Array) -> Sequence[Array]:
    dtype = np.asarray(a).dtype
    if dtype.itemsize > WIDE_BYTES:
        raise IncompleteError(f"math.fma of {dtype}: its exact product has no rule")
    return [fma(a, b, c)]
