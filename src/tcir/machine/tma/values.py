"""Arithmetic of TMA: tf32 rounding, fill values, reductions, packing of 6-bit elements.

PTX defines the operations for each type (9.7.9.27.1.3, cp.reduce.async.bulk.tensor). It leaves open
the patterns of NaN, subnormals and signed zeros; these are as observed on an H200.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tcir.machine.refusal import TensorMapError
from tcir.machine.tma.map_fields import MapFields

_NAN = b"\xf7\x7f"
"""Fill pattern of each 16 bits out of bounds, for a map with NaN fill."""

_INTEGERS = ("u32", "s32", "u64", "s64")
_HALVES = ("f16", "bf16")
_SINGLES = ("f32", "f32_ftz", "tf32", "tf32_ftz")

REDUCTIONS: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", *_HALVES, *_SINGLES, "f64"),
    "min": (*_INTEGERS, *_HALVES),
    "max": (*_INTEGERS, *_HALVES),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("u32", "s32", "u64"),
    "or": ("u32", "s32", "u64"),
    "xor": ("u32", "s32", "u64"),
}
"""Operation -> legal element types of the map; any other is an illegal instruction."""

_DTYPES: dict[str, Any] = {
    "u32": np.uint32,
    "s32": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f64": np.float64,
    **dict.fromkeys(_SINGLES, np.float32),
}


def fill(fields: MapFields) -> int:
    """The fill value of an out-of-bounds word."""
    if fields.oob_fill == "zero":
        return 0
    return int.from_bytes(_NAN * (fields.piece_bytes // 2), "little")


def loaded(fields: MapFields, values: NDArray[Any]) -> NDArray[Any]:
    """Returns the words of global memory in the form in which they arrive in shared memory.

    Elements of a tf32 tensor are rounded to 10 fraction bits, ties to even; NaN becomes 0x7fffe000.
    Other types are copied bit for bit, including subnormals of f32_ftz.
    """
    if not fields.dtype.startswith("tf32") or fields.interleaved:
        return values
    bits = values.astype(np.uint64)
    rounded = (bits + 0xFFF + (bits >> np.uint64(13) & np.uint64(1))) & np.uint64(0xFFFFE000)
    nan = (bits & np.uint64(0x7FFFFFFF)) > 0x7F800000
    return np.where(nan, 0x7FFFE000, rounded).astype(values.dtype)


def check_reduction(operation: str, fields: MapFields) -> None:
    """Raises TensorMapError unless the reduction is defined for the element type."""
    allowed = REDUCTIONS[operation]
    if fields.dtype not in allowed or fields.interleaved:
        raise TensorMapError(
            f"element type of a reduction ({operation})",
            fields.dtype,
            "one of " + ", ".join(allowed),
            "PTX ISA 9.7.9.27.1.3; not interleaved",
        )


def reduced(operation: str, fields: MapFields, old: NDArray[Any], new: NDArray[Any]) -> Any:
    """Returns words of global memory after a reduction with words of shared memory."""
    dtype = np.dtype(_DTYPES[fields.dtype])
    a, b = old.view(dtype), new.view(dtype)
    with np.errstate(all="ignore"):
        if fields.dtype in _HALVES or fields.dtype in _SINGLES:
            result = _reduced_float(operation, fields.dtype, a, b)
        else:
            result = _reduced_integer(operation, a, b)
    return result.astype(dtype).view(old.dtype)


def _reduced_integer(operation: str, a: Any, b: Any) -> Any:
    """Integer reductions, and f64 add."""
    match operation:
        case "add":
            return a + b
        case "min":
            return np.minimum(a, b)
        case "max":
            return np.maximum(a, b)
        case "inc":
            return np.where(a >= b, 0, a + 1)
        case "dec":
            return np.where((a == 0) | (a > b), b, a - 1)
        case "and":
            return a & b
        case "or":
            return a | b
    return a ^ b


def _reduced_float(operation: str, name: str, a: Any, b: Any) -> Any:
    """Float reductions, computed in f32: min and max are exact, f16 and bf16 sums round once; NaN
    is canonical."""
    x, y = a.astype(np.float32), b.astype(np.float32)
    if name.endswith("_ftz"):
        x, y = _flushed(x), _flushed(y)
    if operation == "add":
        total = _flushed(x + y) if name.endswith("_ftz") else x + y
        rounded = total.astype(a.dtype)
        unordered = np.isnan(total)
    else:
        # A number wins over NaN, and -0 < +0.
        below = (x < y) | ((x == y) & np.signbit(x)) | np.isnan(y)
        above = (x > y) | ((x == y) & ~np.signbit(x)) | np.isnan(y)
        rounded = np.where(below if operation == "min" else above, a, b)
        unordered = np.isnan(x) & np.isnan(y)
    size = a.dtype.itemsize
    canonical = np.array([(1 << 8 * size - 1) - 1], f"u{size}").view(a.dtype)[0]
    return np.where(unordered, canonical, rounded)


def _flushed(x: Any) -> Any:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


def packed_low_bits(padded: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Packs uint8 [n, 16], whose values are in the low six bits of each byte, into uint8 [n, 12],
    from bit 0 on.
    """
    six = (padded & 63).astype(np.uint32).reshape(len(padded), 4, 4)
    word = six[..., 0] | six[..., 1] << 6 | six[..., 2] << 12 | six[..., 3] << 18
    return word[..., None].view(np.uint8)[..., :3].reshape(len(padded), 12)
