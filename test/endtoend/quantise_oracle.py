"""An independent implementation of ``tc.quantise_blocks`` in NumPy: exact quotients, rounded once
by table."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
}
LARGEST_POWER = {"f4E2M1FN": 2, "f8E4M3FN": 8, "f8E5M2": 15}


def values_of(element: str) -> Array:
    """The finite numbers of a format that are not negative, by code."""
    codes = np.arange(8 if element == "f4E2M1FN" else 128, dtype=np.uint8)
    values = codes.view(DTYPES[element]).astype(np.float64)
    return values[np.isfinite(values)]


def nearest(x: Array, element: str) -> Array:
    """Codes of numbers: nearest, of two the even one, the largest for what is larger; with sign."""
    table = values_of(element)
    size = np.minimum(np.abs(x), table[-1])
    above = np.minimum(np.searchsorted(table, size), len(table) - 1)
    below = np.maximum(above - 1, 0)
    low, high = size - table[below], table[above] - size
    up = (high < low) | ((high == low) & (above % 2 == 0))
    sign = np.signbit(x).astype(np.uint8) << (3 if element == "f4E2M1FN" else 7)
    return np.where(up, above, below).astype(np.uint8) | sign


def scale_codes(amax: Array, element: str, scale: str, rounding: str = "floor") -> Array:
    """Scales for the largest magnitudes of blocks; rounding: of ue8m0, floor or rceil."""
    finite = np.isfinite(amax)
    size = np.where(finite, amax, 0).astype(np.float64)
    if scale == "f8E4M3FN":
        codes = nearest(size / 6, scale)
        codes = np.where((codes == 0) & (size > 0), 1, codes)
        return np.where(finite, codes, 0x7F).astype(np.uint8)
    power = np.floor(np.log2(np.where(size > 0, size, 1))).astype(int) - LARGEST_POWER[element]
    if rounding == "rceil":  # the least power of two by which the largest element does not saturate
        power += size > values_of(element)[-1] * np.ldexp(1.0, power)
    codes = np.where(size > 0, np.maximum(power + 127, 0), 0)
    return np.where(finite, codes, 0xFF).astype(np.uint8)


def quantised(
    x: Array, element: str, scale: str, norm: float = 1.0, rounding: str = "floor"
) -> tuple[Array, Array]:
    """Codes, one to a byte, and scale codes ``[rows, K / block]`` of f32 numbers."""
    block = 16 if scale == "f8E4M3FN" else 32
    with np.errstate(all="ignore"):
        y = (x * np.float32(norm)).astype(np.float32)
    blocks = y.reshape(len(y), -1, block).astype(np.float64)
    amax = np.abs(blocks).max(axis=-1)
    scales = scale_codes(amax, element, scale, rounding)
    step = scales.view(DTYPES[scale]).astype(np.float64)
    bad = ~np.isfinite(amax)
    step = np.where(bad | (step == 0), 1, step)[..., None]
    codes = nearest(np.where(bad[..., None], 0, blocks) / step, element)
    return codes.reshape(x.shape), scales


def blocked(scales: Array) -> Array:
    """Scales in blocks of 128 rows and 4: ``[rows / 128, scales / 4, 512]``, zeros around them."""
    rows, count = scales.shape
    down, across = -(-rows // 128), -(-count // 4)
    out = np.zeros((down, across, 512), np.uint8)
    for r in range(rows):
        for s in range(count):
            out[r // 128, s // 4, r % 32 * 16 + r % 128 // 32 * 4 + s % 4] = scales[r, s]
    return out


def block_values(codes: Array, scales: Array, element: str, scale: str) -> Array:
    """The numbers that codes and scale codes stand for, in float64."""
    wide = codes.view(DTYPES[element]).astype(np.float64)
    block = codes.shape[1] // scales.shape[1]
    return wide * np.repeat(scales.view(DTYPES[scale]).astype(np.float64), block, axis=1)
