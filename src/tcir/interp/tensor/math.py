"""Rules of `math`: numpy's functions in the operand's type (f16, bf16, f8 in float32)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.cos": np.cos,
    "math.erf": np.vectorize(math.erf, otypes=[np.float64]),
    "math.exp": np.exp,
    "math.exp2": np.exp2,
    "math.floor": np.floor,
    "math.log": np.log,
    "math.log1p": np.log1p,
    "math.log2": np.log2,
    "math.powf": np.power,
    "math.rsqrt": lambda x: 1 / np.sqrt(x),
    "math.sin": np.sin,
    "math.sqrt": np.sqrt,
    "math.tanh": np.tanh,
}


@evaluate(*FUNCTIONS)
def math_function(_: Interpreter, op: ir.OpView, *operands: Array) -> Sequence[Array]:
    dtype = np.asarray(operands[0]).dtype
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)
    with np.errstate(all="ignore"):
        result = FUNCTIONS[op.operation.name](*(np.asarray(o, wide) for o in operands))
    return [convert(result, dtype)]


@evaluate("math.fma")
def math_fma(_: Interpreter, __: ir.OpView, a: Array, b: Array, c: Array) -> Sequence[Array]:
    # Exact product in float64; for f32 the sum may round twice, in the last bit of rare cases.
    dtype = np.asarray(a).dtype
    wide = np.asarray(a, np.float64) * np.asarray(b, np.float64) + np.asarray(c, np.float64)
    return [convert(wide, dtype)]
