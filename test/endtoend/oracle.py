"""Convolution and matrix product by numpy, in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from .linalg_text import Conv, Matmul

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
    "i8": np.int8, "u8": np.int8, "i32": np.int32,
}  # fmt: skip
"""Types of the arrays; u8 is kept in int8, like in MLIR."""
Array = np.ndarray[Any, Any]


def integers(shape: tuple[int, ...], element: str, seed: int) -> Array:
    """Non-zero integers in -4..4 (never 0), different everywhere by chance."""
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 5, shape) * generator.choice([-1, 1], shape)
    if element in ("i8", "u8"):  # all of the range
        return generator.integers(-128, 128, shape).astype(np.int8)
    return values.astype(np.float64).astype(DTYPES[element])


def operands(case: Conv, seed: int = 1) -> tuple[Array, Array]:
    """Integers for the input and the filters."""
    x_shape, w_shape, _ = case.shapes
    x, w = case.elements
    return integers(x_shape, x, seed), integers(w_shape, w, seed + 1)


def _wide(case: Conv, x: Array, w: Array) -> tuple[Array, Array]:
    if case.out != "i32":
        return x.astype(np.float64), w.astype(np.float64)
    kinds = [np.uint8 if e == "u8" else np.int8 for e in case.elements]
    return x.view(kinds[0]).astype(np.int64), w.view(kinds[1]).astype(np.int64)


def convolution(case: Conv, x: Array, w: Array) -> Array:
    """numpy's sliding windows times the filter, rounded once to f32 and once to the output type."""
    top, bottom, left, right = case.pads
    x, taps = _wide(case, x, w)
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    (sh, sw), (dh, dw) = case.strides, case.dilations
    window = ((case.r - 1) * dh + 1, (case.s - 1) * dw + 1)
    windows = np.lib.stride_tricks.sliding_window_view(padded, window, axis=(1, 2))
    windows = windows[:, ::sh, ::sw, :, ::dh, ::dw]
    taps = taps.transpose(3, 1, 2, 0) if case.filter == "fhwc" else taps.transpose(2, 0, 1, 3)
    out = np.tensordot(windows, taps, axes=3)  # n p q (c r s) . (c r s) k
    if case.out == "i32":
        return out.astype(np.int32)
    return out.astype(np.float32).astype(DTYPES[case.out])


def product(case: Matmul, a: Array, b: Array) -> Array:
    """numpy's matmul in float64, rounded once to f32 and once to the output type."""
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    if case.a_layout == "km":
        a64 = np.swapaxes(a64, -1, -2)
    if case.b_layout == "nk":
        b64 = np.swapaxes(b64, -1, -2)
    return (a64 @ b64).astype(np.float32).astype(DTYPES[case.out])
