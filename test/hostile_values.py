"""Values that mean harm, drawn from a seed, for the doors that are called from Python."""

from __future__ import annotations

import random
from typing import Any

import ml_dtypes
import numpy as np

Draw = random.Random
ELEMENTS: list[Any] = [
    np.float16, np.float32, np.float64, np.int8, np.uint8, np.int64, np.bool_, np.complex64, object,
    "U3", "S2", "V4", "datetime64[s]", ">f2", [("x", "f4")], ml_dtypes.bfloat16,
    ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn,
    ml_dtypes.float8_e4m3, ml_dtypes.int4,
]  # fmt: skip
SIZES = [0, 1, 1, 2, 3, 7, 16, 16, 17, 32, 64, 64]
NUMBERS: list[Any] = [
    -1, 0, 1, 2, 3, 2**31, 2**63, -(2**63), 10**30, 1.5, float("nan"), float("inf"), True, None,
    np.int64(2), np.float16(1), 1j,
]  # fmt: skip
OTHERS: list[Any] = [
    "", "x", "relu", "\0", "f16", "float16", "%x", '"', "a" * 5000, "\ud800", b"x", [], (), (1,),
    (1, 2), (1, 2, 3), ((0, 1), (1, 0)), ((1,), 2), [None], {}, {1: 2}, object(), int, len, ...,
    range(3), np.zeros(3), np.float64, "gemm", "gemm{n-tile=0}", "layers{", "no-such", "sm_90",
    "builtin.module(cse)", "sm_999",
]  # fmt: skip


def value(draw: Draw) -> Any:
    """No array, or an odd one."""
    return draw.choice([draw.choice(NUMBERS), draw.choice(OTHERS), array(draw)])


def array(draw: Draw) -> Any:
    """An array of any type, shape and layout, huge ones without their memory."""
    shape = [draw.choice(SIZES) for _ in range(draw.choice([0, 1, 2, 2, 2, 3, 4, 4, 5]))]
    made = np.zeros(shape, draw.choice(ELEMENTS))
    return relaid(made, draw)


def relaid(given: Any, draw: Draw) -> Any:
    """The array in another layout, of another class, with other numbers, or longer than memory."""
    match draw.randrange(12):
        case 0 if given.ndim:
            return given[::-1]
        case 1:
            return given.T
        case 2:
            return np.asfortranarray(given)
        case 3:
            given = given.copy()
            given.flags.writeable = False
            return given
        case 4 if given.ndim:
            return np.repeat(given, 2, axis=-1)[..., ::2]
        case 5:
            shape = [draw.choice([2**20, 2**31, 2**40]), *given.shape[1:]][: max(given.ndim, 1)]
            return np.broadcast_to(np.zeros((), given.dtype), shape)
        case 6 if given.ndim == 2 and given.dtype.kind == "f":
            return np.matrix(given)
        case 7:
            return np.ma.masked_array(given)
        case 8 if given.dtype.kind == "f":
            return np.full_like(given, draw.choice([np.nan, np.inf, -0.0]))
        case 9:
            return given[None]
        case 10:
            return given.tolist()
    return given
