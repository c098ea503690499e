"""Sums of ``tcgen05.mma`` whose result float32 arithmetic gives exactly, for several instructions
and CTAs at once.

Let the elements of A be multiples of 2^s, those of B multiples of 2^t, and those of D-in multiples
of u = 2^(s + t). Let ``|D-in|`` and K · max ``|a|`` · max ``|b|`` each be at most 2^23 u. Then
every partial sum is a multiple of u with at most 24 bits, and float32 represents it exactly.
Therefore neither the order of the additions nor the split into instructions matters, and no result
is rounded.

If in addition no term's raw exponent exceeds s + t by more than the window of the fused sum, no
term is truncated (`fused`). Then D equals the float32 sum of the terms in any order.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from tcir.machine.jit import fma_jit, jit
from tcir.machine.numerics.formats import FLOATS, NO_EXPONENT, decode
from tcir.machine.numerics.fused import FusedParams
from tcir.machine.numerics.types import ProductTypes

Codes = NDArray[np.unsignedinteger]
Values = NDArray[np.float32]

STEP = 4
"""Rows, and elements of K, that one step of the inner loop processes."""
LEAST, MOST = -126, 100
"""Range of the exponent of u in which the sums are neither subnormal nor infinite."""
ROUNDED, UNKNOWN = -1 << 20, 1 << 20
"""Instead of that exponent: a term may have to be rounded; A or B is zero, infinite or NaN."""


def add_exactly(
    a: Codes,
    b: Codes,
    words: NDArray[np.uint32],
    lanes: NDArray[np.int64],
    column: int,
    types: ProductTypes,
    params: FusedParams,
    adds: bool,
) -> bool:
    """D = A · Bᵀ (+ D) for codes A [CTAs, M, K] and B [CTAs or 1, N, K], with an f32 D in tensor
    memory.

    words: tensor memory [CTAs, lanes, columns]; row m of D is in ``lanes[m]``, and its columns
        begin at `column`. Returns False, and changes nothing, if a term might be rounded or
        truncated.
    """
    rows, depth = a.shape[1:]
    if not _promising(a[:1, :1], b[:1, :1], depth, types, params):
        return False
    av, bv = _values(a, types.a_type), _values(b, types.b_type)
    if av is None or bv is None or rows % STEP or depth % STEP or not words.flags.c_contiguous:
        return False
    if types.negate_a != types.negate_b:
        av = -av
    d = words.view(np.float32)
    return bool(_add_exactly(av, bv, d, lanes, column, adds, _limits(types, params)))


def _limits(types: ProductTypes, params: FusedParams) -> tuple[int, int, int, int]:
    """Raw exponents of subnormals of A and B, window, raw exponent of zeros."""
    return (
        FLOATS[types.a_type].smallest_exponent,
        FLOATS[types.b_type].smallest_exponent,
        params.window,
        NO_EXPONENT if params.zero_exponent is None else params.zero_exponent,
    )


def _promising(a: Codes, b: Codes, depth: int, types: ProductTypes, params: FusedParams) -> bool:
    """Whether the sums may be exact, by some rows of A and B: more rows only widen the ranges."""
    av, bv = _values(a, types.a_type), _values(b, types.b_type)
    if av is None or bv is None:
        return False
    return _unit(av, bv, depth, _limits(types, params)) != ROUNDED


def exact_products(
    a: Codes, b: Codes, d: NDArray[np.uint32] | None, types: ProductTypes, params: FusedParams
) -> NDArray[np.uint32] | None:
    """Computes D = A · Bᵀ (+ D) for codes A [..., M, K], B [..., N, K] and D [..., M, N], where K
    may be the K of any number of instructions. Returns None if a term might be rounded or
    truncated, or if D is not f32.
    """
    if types.d_type != "f32":
        return None
    shape = (*a.shape[:-1], b.shape[-2])
    words = np.zeros(shape, np.uint32) if d is None else d.astype(np.uint32, order="C")
    each = words.reshape(-1, *shape[-2:])
    left, right = a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:])
    rows = np.arange(shape[-2])
    done = add_exactly(left, right, each, rows, 0, types, params, d is not None)
    return words if done else None


@cache
def _table(name: str) -> Values:
    codes = np.arange(1 << FLOATS[name].bits, dtype=np.int64)
    return decode(codes, name)[0].astype(np.float32)


def _values(codes: Codes, name: str) -> Values | None:
    """Returns the values of the codes; None: the format's codes do not fill their words."""
    codes = np.ascontiguousarray(codes)
    bits = FLOATS[name].bits
    if 8 * codes.itemsize != bits:
        return None
    if name == "f16":
        with np.errstate(invalid="ignore"):  # of a NaN
            return codes.view(np.float16).astype(np.float32)
    if bits == 32:
        return (codes & np.uint32(-1 << FLOATS[name].ignored & 0xFFFFFFFF)).view(np.float32)
    return _table(name).take(codes)


@jit
def _extent(values: NDArray[np.float32], smallest: int) -> tuple[float, int, int]:
    """Returns the largest magnitude, an upper bound of the raw exponents, and the exponent of the
    lowest bit set.

    A largest magnitude of 0 means that all values are zero, or one is infinite or NaN.
    """
    bits = values.reshape(-1).view(np.int32)
    most, least = np.int32(0), np.int32(1 << 20)
    for n in range(bits.size):
        magnitude = bits[n] & np.int32(0x7FFFFFFF)
        most = max(most, magnitude)
        whole = magnitude & np.int32(0x7FFFFF) | np.int32(0x800000)
        bit = np.float32(whole & -whole).view(np.int32) >> np.int32(23)
        lowest = max(magnitude >> np.int32(23), np.int32(1)) + bit
        least = min(least, lowest if magnitude else np.int32(1 << 20))
    if most == 0 or most >= 0x7F800000:
        return 0.0, 0, 0
    largest = np.float64(np.int32(most).view(np.float32))
    return largest, int(max(int(most >> 23) - 127, smallest)), int(least) - 277


@jit
def _unit(
    a: NDArray[np.float32], b: NDArray[np.float32], depth: int, limits: tuple[int, int, int, int]
) -> int:
    """Exponent of u, or `ROUNDED` or `UNKNOWN`. limits: see `_limits`."""
    largest_a, top_a, lowest_a = _extent(a, limits[0])
    largest_b, top_b, lowest_b = _extent(b, limits[1])
    if largest_a == 0.0 or largest_b == 0.0:
        return UNKNOWN
    lowest = lowest_a + lowest_b
    top = max(max(top_a + top_b, lowest + 24), max(limits[3], LEAST))
    if lowest < LEAST or top - limits[2] > lowest:
        return ROUNDED
    return ROUNDED if depth * largest_a * largest_b > 2.0 ** (lowest + 23) else lowest


@jit
def _whole(
    d: NDArray[np.float32], lanes: NDArray[np.int64], column: int, columns: int, steps: float
) -> bool:
    """Whether D's elements are multiples of 1 / steps, and at most 2^23 of these steps in
    magnitude."""
    bad = 0
    for c in range(d.shape[0]):
        for lane in lanes:
            row = d[c, lane, column : column + columns]
            for n in range(columns):
                scaled = np.float64(row[n]) * steps
                bad += not (np.trunc(scaled) == scaled and abs(scaled) <= 2.0**23)
    return bad == 0


@fma_jit
def _add(
    a: NDArray[np.float32],
    factors: NDArray[np.float32],
    d: NDArray[np.float32],
    lanes: NDArray[np.int64],
    column: int,
) -> None:
    """Adds a [M, K] times factors [K, N] to D of one CTA."""
    columns = factors.shape[1]
    for m in range(0, len(a), STEP):
        r0 = d[lanes[m], column : column + columns]
        r1 = d[lanes[m + 1], column : column + columns]
        r2 = d[lanes[m + 2], column : column + columns]
        r3 = d[lanes[m + 3], column : column + columns]
        a0, a1, a2, a3 = a[m], a[m + 1], a[m + 2], a[m + 3]
        for k in range(0, len(factors), STEP):
            p0, p1, p2, p3 = a0[k], a0[k + 1], a0[k + 2], a0[k + 3]
            q0, q1, q2, q3 = a1[k], a1[k + 1], a1[k + 2], a1[k + 3]
            s0, s1, s2, s3 = a2[k], a2[k + 1], a2[k + 2], a2[k + 3]
            t0, t1, t2, t3 = a3[k], a3[k + 1], a3[k + 2], a3[k + 3]
            f0, f1, f2, f3 = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
            for n in range(columns):
                w, x, y, z = f0[n], f1[n], f2[n], f3[n]
                r0[n] += p0 * w + p1 * x + p2 * y + p3 * z
                r1[n] += q0 * w + q1 * x + q2 * y + q3 * z
                r2[n] += s0 * w + s1 * x + s2 * y + s3 * z
                r3[n] += t0 * w + t1 * x + t2 * y + t3 * z


@jit
def _add_exactly(
    a: NDArray[np.float32],
    b: NDArray[np.float32],
    d: NDArray[np.float32],
    lanes: NDArray[np.int64],
    column: int,
    adds: bool,
    limits: tuple[int, int, int, int],
) -> bool:
    """Computes `add_exactly` on values. limits: see `_limits`."""
    depth, columns = a.shape[2], b.shape[1]
    lowest = _unit(a, b, depth, limits)
    if not LEAST <= lowest <= MOST:
        return False
    if adds and not _whole(d, lanes, column, columns, 2.0**-lowest):
        return False
    factors = np.empty((depth, columns), np.float32)
    for c in range(len(a)):
        if c < len(b):
            for n in range(columns):
                for k in range(depth):
                    factors[k, n] = b[c, n, k]
        for lane in lanes:
            row = d[c, lane, column : column + columns]
            for n in range(columns):  # a zero is +0
                row[n] = row[n] + np.float32(0.0) if adds else np.float32(0.0)
        _add(a[c], factors, d[c], lanes, column)
    return True
