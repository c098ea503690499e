"""Convolution and matrix product by other people's code: scipy and numpy, in float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from scipy.signal import correlate

from .linalg_text import Conv, Matmul

DTYPES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}
Array = np.ndarray[Any, Any]


def integers(shape: tuple[int, ...], element: str, seed: int) -> Array:
    """Non-zero integers in -4..4 (never 0), different everywhere by chance."""
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 5, shape) * generator.choice([-1, 1], shape)
    return values.astype(np.float64).astype(DTYPES[element])


def convolution(case: Conv, x: Array, w: Array) -> Array:
    """scipy's correlation, channel by channel, rounded once to the output type."""
    x64 = np.pad(x.astype(np.float64), ((0, 0), case.pads[:2], case.pads[2:], (0, 0)))
    w64 = w.astype(np.float64)
    if case.filter == "fhwc":
        w64 = w64.transpose(1, 2, 3, 0)
    out = np.empty(case.shapes[2])
    for image in range(case.n):
        for k in range(case.k):
            # "valid" over (h, w, c): one value along c, the sum over the channels
            method = "direct" if x64[image].size * w64[..., k].size < 10**7 else "fft"
            value = correlate(x64[image], w64[..., k], mode="valid", method=method)[..., 0]
            out[image, :, :, k] = np.rint(value) if method == "fft" else value
    return out.astype(np.float32).astype(DTYPES[case.out])


def product(case: Matmul, a: Array, b: Array) -> Array:
    """numpy's matmul in float64, rounded once to f32 and once to the output type."""
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    if case.a_layout == "km":
        a64 = np.swapaxes(a64, -1, -2)
    if case.b_layout == "nk":
        b64 = np.swapaxes(b64, -1, -2)
    return (a64 @ b64).astype(np.float32).astype(DTYPES[case.out])
