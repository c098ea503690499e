"""Floats as bits and as float64 values: exact decoding, correct rounding in one step, NaN results.

Sums and products are computed in float64, where an inexact result gets an odd last bit ("round to
odd"). Rounding this result to the narrower type is then correct in every mode, because it has the
effect of one rounding. The NaN of f32 and of the narrower types is one canonical pattern. An f64
instruction passes the operand's NaN on, made quiet, as an H200 does (docs/explanation/hopper.md).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.kernels.traced import are_lanes, intrinsic, rounded_to_odd
from tcir.interp.ptx.syntax import Type
from tcir.machine.jit import jit

UNSIGNED: dict[str, type[np.unsignedinteger]] = {
    "f64": np.uint64,
    "f32": np.uint32,
    "f16": np.uint16,
    "bf16": np.uint16,
}
CANONICAL = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF, "f64": 0xFFF8000000000000}
SIGN = {"f64": 1 << 63, "f32": 1 << 31, "f16": 1 << 15, "bf16": 1 << 15}
MIN_NORMAL = {"f64": 2.0**-1022, "f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}
_QUIET = np.uint64(1 << 51)


def element(kind: Type) -> str:
    """Name of the element of a packed type: f16 for f16x2."""
    return kind.name.removesuffix("x2")


def decode_float(bits: np.ndarray, name: str) -> np.ndarray:
    """Converts bit patterns of f64, f32, f16 or bf16 to float64 values, which is exact."""
    if name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    dtype = {"f64": np.float64, "f32": np.float32, "f16": np.float16}[name]
    return bits.view(dtype).astype(np.float64)


def _directed(rounded: np.ndarray, exact: np.ndarray, mode: str) -> np.ndarray:
    """Moves `rounded` (to nearest) by one step where the mode requires the other neighbour."""
    value = rounded.astype(np.float64)
    kind = rounded.dtype.type
    if mode == "rz":
        return np.where(np.abs(value) > np.abs(exact), np.nextafter(rounded, kind(0)), rounded)
    if mode == "rm":
        return np.where(value > exact, np.nextafter(rounded, kind(-np.inf)), rounded)
    if mode == "rp":
        return np.where(value < exact, np.nextafter(rounded, kind(np.inf)), rounded)
    return rounded


def encode_float(exact: np.ndarray, name: str, mode: str = "rn") -> np.ndarray:
    """Converts float64 values to bit patterns, rounded once. The mode rna rounds to nearest with
    ties away from zero. NaN becomes the canonical NaN.
    """
    if name == "f64":
        out = exact.view(np.uint64)
    elif name == "bf16":
        odd = rounded_to_odd(exact).view(np.uint32)
        half = {
            "rn": 0x7FFF + (odd >> 16 & 1),
            "rna": np.uint32(0x8000),
            "rz": np.uint32(0),
            "rm": np.where(odd >> 31, 0xFFFF, 0),
            "rp": np.where(odd >> 31, 0, 0xFFFF),
        }[mode]
        infinite = np.isinf(exact)
        out = (np.where(infinite, odd, odd + half) >> 16).astype(np.uint16)
    else:
        dtype = np.float32 if name == "f32" else np.float16
        rounded = exact.astype(dtype)
        if mode == "rna":
            away = np.nextafter(rounded, np.copysign(dtype(np.inf), exact).astype(dtype))
            tie = (away.astype(np.float64) + rounded.astype(np.float64)) / 2 == exact
            rounded = np.where(
                tie & (np.abs(rounded.astype(np.float64)) < np.abs(exact)), away, rounded
            )
        elif mode != "rn":
            rounded = _directed(rounded, exact, mode).astype(dtype)
        out = rounded.view(UNSIGNED[name])
    return np.where(np.isnan(exact), CANONICAL[name], out).astype(UNSIGNED[name])


def pass_on_nan(bits: np.ndarray, *operands: np.ndarray) -> np.ndarray:
    """Results of f64 as uint64, in which the NaN of the last NaN operand, made quiet, is filled
    in.
    """
    for operand in operands:
        bits = np.where(np.isnan(operand.view(np.float64)), operand | _QUIET, bits)
    return bits


def settled(values: np.ndarray, name: str, *operands: np.ndarray) -> np.ndarray:
    """Results in float32 or float64 with the NaN that the hardware gives: the canonical NaN in f32,
    and in f64 the NaN of an operand, if one is a NaN.
    """
    unsigned = UNSIGNED[name]
    bits = np.where(np.isnan(values), unsigned(CANONICAL[name]), values.view(unsigned))
    if name == "f64":
        bits = pass_on_nan(bits, *(one.view(unsigned) for one in operands))
    return bits.view(values.dtype)


def fused(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Computes a · b + c of float32, rounded once: the product of two 24-bit significands is exact
    in float64, and the sum is rounded to odd there.
    """
    if are_lanes(a):
        return intrinsic("fma", a, b, c)
    wide = np.float64
    return add_odd(a.astype(wide) * b.astype(wide), c.astype(wide)).astype(np.float32)


def add_odd(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Computes a + b in float64, rounded to odd: an inexact sum is moved to its neighbour with an
    odd last bit. The 2Sum algorithm gives the exact error of the sum.
    """
    if are_lanes(a, b):
        total = a + b
        part = total - a
        rest, code = (a - (total - part)) + (b - part), total.view(np.int64)
        moves = (rest != 0) & (code & 1 == 0) & np.isfinite(total) & np.isfinite(rest)
        step = np.where((rest > 0) == (total > 0), 1, -1)
        return np.where(moves, code + step, code).view(np.float64)
    total = np.asarray(np.add(a, b, order="C"))
    a, b = (np.ascontiguousarray(np.broadcast_to(x, total.shape)) for x in (a, b))
    _make_odd(a.reshape(-1), b.reshape(-1), total.reshape(-1))
    return total


@jit
def _make_odd(
    terms: NDArray[np.float64], others: NDArray[np.float64], totals: NDArray[np.float64]
) -> None:
    """`add_odd` of many: numpy would go through the numbers ten times."""
    codes = totals.view(np.int64)
    for n in range(totals.size):
        a, b, total = terms[n], others[n], totals[n]
        part = total - a
        rest = (a - (total - part)) + (b - part)
        # An even total of zero means that the rest is zero too.
        if rest != 0 and codes[n] & 1 == 0 and np.isfinite(total) and np.isfinite(rest):
            codes[n] += 1 if (rest > 0) == (total > 0) else -1


def exp2(a: np.ndarray) -> np.ndarray:
    """Computes 2^a of float64 by the C library, because compiled code calls the same function:
    numpy's own function may differ in the last bit.
    """
    return _each(_exp2, "exp2", a)


def log2(a: np.ndarray) -> np.ndarray:
    """Computes the binary logarithm of float64 by the C library, for the same reason as `exp2`."""
    return _each(_log2, "log2", a)


def _each(numbers: Callable[..., None], lanes: str, a: np.ndarray) -> np.ndarray:
    if are_lanes(a):
        return intrinsic(lanes, a)
    found = np.array(a, np.float64, order="C")
    numbers(found.reshape(-1))
    return found


@jit
def _exp2(numbers: NDArray[np.float64]) -> None:
    for n in range(numbers.size):
        numbers[n] = np.exp2(numbers[n])


@jit
def _log2(numbers: NDArray[np.float64]) -> None:
    for n in range(numbers.size):
        numbers[n] = np.log2(numbers[n])


def odd_quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Computes a / b of f32 values in float64, rounded to odd at 29 bits, which suffices for every
    rounding mode of f32.
    """
    nearest = a / b
    cut = (nearest.view(np.int64) & ~np.int64((1 << 24) - 1)).view(np.float64)
    back = np.abs(cut * b)  # 29 + 24 bits: exact
    return _sticky(nearest, cut, back, np.abs(a))


def odd_root(a: np.ndarray) -> np.ndarray:
    """Computes √a of f32 values in float64, rounded to odd at 26 bits."""
    nearest = np.sqrt(a)
    cut = (nearest.view(np.int64) & ~np.int64((1 << 27) - 1)).view(np.float64)
    return _sticky(nearest, cut, cut * cut, a)


def _sticky(
    nearest: np.ndarray, cut: np.ndarray, back: np.ndarray, wanted: np.ndarray
) -> np.ndarray:
    """`cut`, moved by one unit where its square or product misses `wanted`."""
    bits = cut.view(np.int64)
    moved = np.where(back < wanted, bits + 1, np.where(back > wanted, bits - 1, bits))
    usable = np.isfinite(nearest) & (nearest != 0)
    return np.where(usable, moved, nearest.view(np.int64)).view(np.float64)


def flush(x: np.ndarray, name: str) -> np.ndarray:
    """Replaces subnormals by zeros of the same sign (.ftz)."""
    return np.where(np.abs(x) < MIN_NORMAL[name], np.copysign(0.0, x), x)


def saturated(exact: np.ndarray) -> np.ndarray:
    """Clamps values to [0, 1] (.sat); NaN and -0 become +0."""
    return np.where(np.isnan(exact), 0.0, np.clip(exact, 0.0, 1.0) + 0.0)


def rectified(exact: np.ndarray) -> np.ndarray:
    """Replaces negative values and -0 by +0 (.relu); NaN stays."""
    return np.where(exact <= 0, 0.0, exact)


def minmax_bits(
    a: np.ndarray, b: np.ndarray, name: str, largest: bool, propagate: bool
) -> np.ndarray:
    """Computes IEEE 754 minimumNumber or maximumNumber on bit patterns. propagate: the result is
    NaN if an operand is NaN
    """
    unsigned = UNSIGNED[name]
    va, vb = decode_float(a, name), decode_float(b, name)
    first = va > vb if largest else va < vb
    # Equal values differ at most in the sign of zero: -0 counts as less than +0.
    equal = a & b if largest else a | b
    out = np.where(va == vb, equal, np.where(first, a, b))
    out = np.where(np.isnan(va), b, np.where(np.isnan(vb), a, out))
    both = np.isnan(va) & np.isnan(vb)
    if name == "f64":
        return np.where(both, b | _QUIET, out)
    nan = (np.isnan(va) | np.isnan(vb)) if propagate else both
    return np.where(nan, unsigned(CANONICAL[name]), out).astype(unsigned)
