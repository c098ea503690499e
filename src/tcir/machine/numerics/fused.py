"""Arithmetic of one ``tcgen05.mma``: each element of D is one fused sum.

For the kinds f16, tf32 and f8f6f4, with each number written as mantissa · 2^x (x is its raw
exponent):

1. A non-zero product has the raw exponent x_a + x_b (not normalised); D-in has x_c.
2. q = (the largest of these raw exponents) - ``window``.
3. Each exact product, and D-in, is truncated toward zero to a multiple of 2^q.
4. The truncated terms are summed exactly. The sum is truncated toward zero to f32 (subnormals are
   kept, and a sum beyond the largest number becomes infinity), or rounded once to nearest even for
   an f16 D. A zero sum is +0.

A NaN, inf · 0, or infinities of both signs give 0x7FFFFFFF (0x7FFF for f16). Kind i8 is exact,
modulo 2^32 or saturated once.

NVIDIA documents none of this; public bit-level studies of the B200 tensor core found it (arXiv
2511.10909, arXiv 2512.07004, the sf-tensor/tcgen05 hardware comparison).

Implementation: float64 represents exactly a product of two numbers of these formats, also
multiplied by a power of two, and a sum of truncated terms stays far below 2^53. Therefore float64
arithmetic with one ``trunc`` per product gives exactly the result of the integer computation, with
NaN and infinity by IEEE rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.jit import jit
from tcir.machine.numerics.formats import (
    NO_EXPONENT,
    decode,
    float_format,
    integers,
    lowest_bit,
)
from tcir.machine.numerics.types import ProductTypes
from tcir.machine.refusal import ElementTypeError

NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF}
"""The canonical NaN of each D type."""


@dataclass(frozen=True)
class FusedParams:
    """Constants of the fused sum that no NVIDIA document states."""

    window: int = 25
    """Bits kept below the largest raw exponent. 25 on B200: arXiv 2511.10909, arXiv 2512.07004,
    sf-tensor/tcgen05 agree. At most 40: beyond that the float64 sums here would not be exact."""
    zero_exponent: int | None = None
    """Raw exponent of a zero product or a zero D-in when the maximum is taken. None: zeros have
    none (sf-tensor/tcgen05). -126 and -133 (-21 for an f16 D) in versions of microsoft/MMA-Sim,
    -133 and -21 in arXiv 2512.07004. Matters only if all terms are near the bottom of D's range."""

    def __post_init__(self) -> None:
        if not 1 <= self.window <= 40:
            raise ElementTypeError(
                "window", self.window, "1..40", "wider sums are not exact in float64"
            )


DEFAULT = FusedParams()

STEP = 4
"""Elements of K that one step of the inner loops processes."""

# Below the smallest normal number of D, its code counts steps of the smallest subnormal.
F16_NORMAL, F16_STEPS = 2.0**-14, 2.0**24
F32_NORMAL, F32_STEPS = 2.0**-126, 2.0**149


@jit
def _raise_top(
    xa: NDArray[np.int32],
    xb: NDArray[np.int32],
    select: NDArray[np.int32],
    zero: int,
    top: NDArray[np.int32],
) -> None:
    """Raises the largest raw exponents to those of one row's products."""
    columns, depth = len(top), len(xa)
    whole = depth // STEP * STEP
    for k in range(0, whole, STEP):
        x0, x1, x2, x3 = xa[k], xa[k + 1], xa[k + 2], xa[k + 3]
        y0, y1, y2, y3 = xb[select[k]], xb[select[k + 1]], xb[select[k + 2]], xb[select[k + 3]]
        for n in range(columns):  # as int32, which sums of numba are not
            first = max(np.int32(x0 + y0[n]), np.int32(x1 + y1[n]))
            second = max(np.int32(x2 + y2[n]), np.int32(x3 + y3[n]))
            top[n] = max(top[n], max(first, second))
    for k in range(whole, depth):
        for n in range(columns):
            top[n] = max(top[n], np.int32(xa[k] + xb[select[k], n]))
    if zero > -2048:
        for k in range(depth):
            for n in range(columns):
                if xa[k] + xb[select[k], n] < -2048:
                    top[n] = max(top[n], zero)


@jit
def _add_truncated(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    select: NDArray[np.int32],
    scale: NDArray[np.float64],
    total: NDArray[np.float64],
) -> None:
    """Adds the scaled and truncated products of one row; the sums are exact in any order."""
    columns, depth = len(total), len(a)
    whole = depth // STEP * STEP
    for k in range(0, whole, STEP):
        v0, v1, v2, v3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        b0, b1, b2, b3 = b[select[k]], b[select[k + 1]], b[select[k + 2]], b[select[k + 3]]
        for n in range(columns):
            unit = scale[n]
            first = np.trunc(v0 * b0[n] * unit) + np.trunc(v1 * b1[n] * unit)
            total[n] += first + (np.trunc(v2 * b2[n] * unit) + np.trunc(v3 * b3[n] * unit))
    for k in range(whole, depth):
        for n in range(columns):
            total[n] += np.trunc(a[k] * b[select[k], n] * scale[n])


@jit
def fused_sums(
    a: NDArray[np.float64],
    xa: NDArray[np.int32],
    b: NDArray[np.float64],
    xb: NDArray[np.int32],
    select: NDArray[np.int32],
    d: NDArray[np.float32],
    smallest: int,
    shift: int,
    window: int,
    zero: int,
    out: NDArray[np.float64],
) -> None:
    """Computes steps 1 to 3 and the exact sum of step 4, not yet rounded.

    a, xa, select are [M, K]; b, xb are [K', N]. Term (m, k) is a[m, k] · b[select[m, k], n]. d, [M,
    N] or empty, counts as d · 2^-shift; `smallest` is the raw exponent of its subnormals.
    """
    rows, columns = len(a), b.shape[1]
    d_bits = d.view(np.int32)
    d_scale = 2.0 ** (-shift)
    top = np.empty(columns, np.int32)
    scale_bits = np.empty(columns, np.int64)
    scale = scale_bits.view(np.float64)
    for m in range(rows):
        total = out[m]
        if d.shape[0] > 0:
            for n in range(columns):
                field = (d_bits[m, n] >> 23) & 0xFF
                # An infinite D-in decides the result, whatever the window: exclude zeros only.
                x = max(field - 127, smallest) - shift
                top[n] = x if d_bits[m, n] & 0x7FFFFFFF else zero
                total[n] = np.float64(d[m, n]) * d_scale
        else:
            for n in range(columns):
                top[n] = zero
                total[n] = 0.0
        _raise_top(xa[m], xb, select[m], zero, top)
        for n in range(columns):
            # No finite term: any finite scale will do, as the sum is zero, infinity or NaN.
            q = np.int64(top[n]) - window if top[n] > -2048 else np.int64(0)
            scale_bits[n] = (1023 - q) << 52
            total[n] = np.trunc(total[n] * scale[n])
        _add_truncated(a[m], b, select[m], scale, total)
        for n in range(columns):
            total[n] /= scale[n]


@jit
def _fused_sums_each(
    a: NDArray[np.float64],
    xa: NDArray[np.int32],
    b: NDArray[np.float64],
    xb: NDArray[np.int32],
    select: NDArray[np.int32],
    d: NDArray[np.float32],
    smallest: int,
    shift: int,
    window: int,
    zero: int,
    out: NDArray[np.float64],
) -> None:
    """Computes `fused_sums` for every product of the first axis."""
    for n in range(a.shape[0]):
        fused_sums(a[n], xa[n], b[n], xb[n], select, d[n], smallest, shift, window, zero, out[n])


@jit
def _add_products(
    a: NDArray[np.float64], b: NDArray[np.float64], total: NDArray[np.float64]
) -> None:
    """Adds a [products, M, K] times b [products, K, N] to the totals [products, M, N].

    Replaces a BLAS library, whose threads cost more than they save for such small matrices.
    """
    products, rows, depth = a.shape
    columns = b.shape[2]
    for p in range(products):
        for m in range(rows):
            row = total[p, m]
            for k in range(depth):
                v = a[p, m, k]
                factors = b[p, k]
                for n in range(columns):
                    row[n] += v * factors[n]


@jit
def _whole_steps(d: NDArray[np.float32], steps: float, most: float) -> bool:
    """Whether every number is a multiple of 1 / steps, and at most that many of them."""
    flat = d.reshape(-1)
    bad = 0
    for n in range(flat.size):
        scaled = np.float64(flat[n]) * steps
        bad += not (np.trunc(scaled) == scaled and abs(scaled) <= most)
    return bad == 0


@jit
def round_f32(total: NDArray[np.float64], out: NDArray[np.uint32]) -> None:
    """Writes sums to `out` as f32 codes, truncated toward zero; a zero sum becomes +0."""
    bits = total.view(np.int64)
    for m in range(total.shape[0]):
        for n in range(total.shape[1]):
            value = total[m, n]
            sign = np.uint32(0x80000000) if bits[m, n] < 0 else np.uint32(0)
            if value != value:
                out[m, n] = np.uint32(0x7FFFFFFF)
            elif value == 0.0:
                out[m, n] = np.uint32(0)
            elif abs(value) < F32_NORMAL:
                steps = np.uint32(abs(value) * F32_STEPS)
                out[m, n] = sign | steps if steps else np.uint32(0)
            else:
                code = ((bits[m, n] & 0x7FFFFFFFFFFFFFFF) >> 29) - ((1023 - 127) << 23)
                out[m, n] = sign | np.uint32(min(code, 0x7F800000))


@jit
def _round_f16(total: NDArray[np.float64], out: NDArray[np.uint32]) -> None:
    """Writes f16 codes to `out`, rounded to nearest even; a zero is +0."""
    bits = total.view(np.int64)
    for m in range(total.shape[0]):
        for n in range(total.shape[1]):
            value = total[m, n]
            sign = np.uint32(0x8000) if bits[m, n] < 0 else np.uint32(0)
            if value != value:
                out[m, n] = np.uint32(0x7FFF)
            elif abs(value) < F16_NORMAL:
                # Rounded up to 2^-14, the code is that of the smallest normal: no special case.
                steps = np.uint32(np.rint(abs(value) * F16_STEPS))
                out[m, n] = sign | steps if steps else np.uint32(0)
            else:
                magnitude = bits[m, n] & 0x7FFFFFFFFFFFFFFF
                odd = (magnitude >> 42) & 1
                code = ((magnitude + 0x1FFFFFFFFFF + odd) >> 42) - ((1023 - 15) << 10)
                out[m, n] = sign | np.uint32(min(code, 0x7C00))


def rounded(total: NDArray[np.float64], d_type: str) -> NDArray[np.uint32]:
    """Codes of exact sums: truncated for f32, rounded to nearest even for f16. NaN and zero have
    their canonical codes.
    """
    out = np.empty(total.shape, np.uint32)
    (_round_f16 if d_type == "f16" else round_f32)(total, out)
    return out


def check_shapes(
    a: NDArray[Any],
    b: NDArray[Any],
    d: NDArray[Any] | None,
    select: NDArray[np.int32] | None = None,
) -> None:
    """Checks the shapes A [M, K], B [N, K], D [M, N] (sparse: A, `select` [M, K/2])."""
    shapes = f"A {a.shape}, B {b.shape}, D {None if d is None else d.shape}"
    terms = 1 if select is None else 2
    if a.ndim not in (2, 3) or b.ndim != a.ndim or terms * a.shape[-1] != b.shape[-1]:
        wanted = "A [M, K], B [N, K]" if select is None else "A [M, K/2], B [N, K]"
        raise ElementTypeError("operand shapes", shapes, wanted, "D = A · Bᵀ + D")
    if select is not None and select.shape != a.shape:
        raise ElementTypeError(
            "selection", select.shape, "[M, K/2], as A", "one k per stored element"
        )
    if d is not None and d.shape != (*a.shape[:-1], b.shape[-2]):
        raise ElementTypeError("operand shapes", shapes, "D [M, N]", "D = A · Bᵀ + D")


def _check_d_type(d_type: str) -> None:
    if d_type not in NAN:
        raise ElementTypeError(
            "D type", d_type, "f32 or f16", "PTX ISA 9.7.16.10, instruction table"
        )


def d_as_f32(d: NDArray[np.uint32] | None, d_type: str) -> NDArray[np.float32]:
    """Values of D-in; an empty array if the instruction does not add D."""
    if d is None:
        return np.empty((0, 0), np.float32)
    if d_type == "f16":
        return d.astype(np.uint16).view(np.float16).astype(np.float32)
    return contiguous(d, np.uint32).view(np.float32)


def scaled_d(d: NDArray[np.uint32], d_type: str, shift: int) -> NDArray[np.uint32]:
    """Codes of D · 2^-shift, rounded as results are."""
    return rounded(d_as_f32(d, d_type).astype(np.float64) * 2.0**-shift, d_type)


@cache
def all_terms(m: int, k: int) -> NDArray[np.int32]:
    """Positions of the k of each term of a dense instruction, int32 [m, k]: term k of every row is
    at position k.
    """
    select = np.ascontiguousarray(np.broadcast_to(np.arange(k, dtype=np.int32), (m, k)))
    select.flags.writeable = False
    return select


def contiguous(array: NDArray[Any], dtype: Any = None) -> NDArray[Any]:
    """Returns a C-contiguous writeable array, so that the compiled loops need to be compiled for
    one array type only.
    """
    flags = array.flags
    if flags.c_contiguous and flags.writeable and dtype in (None, array.dtype):
        return array
    return np.require(array, dtype, ["C", "W"])


def fused_sum(
    a: tuple[NDArray[np.float64], NDArray[np.int32]],
    b: tuple[NDArray[np.float64], NDArray[np.int32]],
    d: NDArray[np.uint32] | None,
    *,
    d_type: str,
    select: NDArray[np.int32] | None = None,
    scale_input_d: int = 0,
    params: FusedParams = DEFAULT,
    lowest: int | None = None,
) -> NDArray[np.uint32]:
    """Codes of D for operands given as pairs (values, raw exponents): a [M, K], b [N, K'].

    Several products at once have a leading axis: a [products, M, K], b [products, N, K'], d
    [products, M, N]. lowest: an exponent such that all products of finite operands are multiples of
    2^lowest; None if not known.
    """
    (av, ax), (bv, bx) = a, b
    before = d_as_f32(d, d_type)
    if lowest is not None and select is None and not scale_input_d:
        top = int(ax.max(initial=NO_EXPONENT)) + int(bx.max(initial=NO_EXPONENT))
        if params.zero_exponent is not None:
            top = max(top, params.zero_exponent)
        if before.size:
            top = max(top, float_format(d_type).smallest_exponent)
        exact = _exact_sums(av, bv, before, top, lowest, params.window)
        if exact is not None:
            return rounded_all(exact, d_type)
    out = np.empty((*av.shape[:-1], bv.shape[-2]), np.float64)
    several = av.ndim == 3
    if several and not before.size:
        before = np.empty((len(av), 0, 0), np.float32)
    (_fused_sums_each if several else fused_sums)(
        contiguous(av),
        contiguous(ax),
        contiguous(bv.swapaxes(-1, -2)),
        contiguous(bx.swapaxes(-1, -2)),
        contiguous(all_terms(*av.shape[-2:]) if select is None else select, np.int32),
        before,
        float_format(d_type).smallest_exponent,
        scale_input_d,
        params.window,
        NO_EXPONENT if params.zero_exponent is None else params.zero_exponent,
        out,
    )
    return rounded_all(out, d_type)


def rounded_all(total: NDArray[np.float64], d_type: str) -> NDArray[np.uint32]:
    """Applies `rounded` to one product or to several."""
    return rounded(total.reshape(-1, total.shape[-1]), d_type).reshape(total.shape)


def _exact_sums(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    d: NDArray[np.float32],
    top: int,
    lowest: int,
    window: int,
) -> NDArray[np.float64] | None:
    """Returns the sums if no term is truncated; None: some may be.

    No product has a raw exponent above `top`, and all are multiples of 2^lowest. If 2^lowest is at
    least 2^(top - window), and D-in is a multiple of 2^lowest and below 2^(lowest + window), no
    term is truncated, and the sum, below 2^53 steps of 2^lowest, is exact in any order.
    """
    if not -400 < lowest < 400 or top - window > lowest or a.shape[-1] > 1 << 16:
        return None
    if d.size and not _whole_steps(contiguous(d), 2.0**-lowest, 2.0**window):
        return None
    several = a.ndim == 3
    first, second = (x if several else x[None] for x in (a, b.swapaxes(-1, -2)))
    total = np.zeros((*first.shape[:2], second.shape[2]))
    if d.size:
        total += d
    _add_products(contiguous(first), contiguous(second), total)
    return total if several else total[0]


def fused_mma(
    a: NDArray[Any],
    b: NDArray[Any],
    d: NDArray[np.uint32] | None,
    types: ProductTypes,
    *,
    select: NDArray[np.int32] | None = None,
    scale_input_d: int = 0,
    params: FusedParams = DEFAULT,
) -> NDArray[np.uint32]:
    """D = A · Bᵀ + D of one instruction, bit-exact under the model of this module.

    `a` codes [M, K], `b` codes [N, K] (unsigned integers), `d` codes uint32 [M, N], or None for
    enable-input-d = false. An f16 D is in the low half of its word (PTX ISA 9.7.16.10.4.1); the
    high half is ignored on input and zero on output. `scale_input_d` = s multiplies D-in by 2^-s
    first. How the hardware rounds this product is unknown; here it is exact, and the truncation to
    the window comes later.

    Sparse: `a` holds the stored elements [M, K/2], and `select` int32 [M, K/2] the k of each stored
    element (`sparse_positions`). Elements of B that no row selects are ignored, even if they are
    NaN.

    Dense operands may have a leading axis of products.
    """
    check_shapes(a, b, d, select)
    _check_d_type(types.d_type)
    av, ax = decode(a, types.a_type)
    if types.negate_a != types.negate_b:
        av = -av
    bits = lowest_bit(a, types.a_type), lowest_bit(b, types.b_type)
    return fused_sum(
        (av, ax),
        decode(b, types.b_type),
        d,
        d_type=types.d_type,
        select=select,
        scale_input_d=scale_input_d,
        params=params,
        lowest=None if None in bits else sum(bit for bit in bits if bit is not None),
    )


def fast_mma(
    a: NDArray[Any],
    b: NDArray[Any],
    d: NDArray[np.uint32] | None,
    types: ProductTypes,
    *,
    select: NDArray[np.int32] | None = None,
    scale_input_d: int = 0,
) -> NDArray[np.uint32]:
    """Computes `fused_mma` as an IEEE float32 matmul: fast, but NOT bit-exact.

    The order of the summation and the rounding are those of the BLAS library. The result equals
    that of `fused_mma` if all partial sums are exact in f32 (small integers).
    """
    check_shapes(a, b, d, select)
    _check_d_type(types.d_type)
    av = expanded(decode(a, types.a_type)[0], select)
    return fast_sum(
        -av if types.negate_a != types.negate_b else av,
        decode(b, types.b_type)[0],
        d,
        d_type=types.d_type,
        scale_input_d=scale_input_d,
    )


def fast_sum(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    d: NDArray[np.uint32] | None,
    *,
    d_type: str,
    scale_input_d: int = 0,
) -> NDArray[np.uint32]:
    """Codes of A · Bᵀ + D in float32, for operand values a [M, K], b [N, K]."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = a.astype(np.float32) @ b.astype(np.float32).T
        if d is not None:
            total += d_as_f32(d, d_type) * np.float32(2.0**-scale_input_d)
        total += np.float32(0)  # -0 becomes +0
        if d_type == "f16":
            out = total.astype(np.float16).view(np.uint16).astype(np.uint32)
        else:
            out = total.view(np.uint32).copy()
    out[np.isnan(total)] = NAN[d_type]
    return out


def expanded(a: NDArray[Any], select: NDArray[np.int32] | None) -> NDArray[Any]:
    """Returns A with zeros for the elements that are not stored: [M, K/2] -> [M, K]. A dense A is
    returned unchanged.
    """
    if select is None:
        return a
    out = np.zeros((a.shape[0], 2 * a.shape[1]), a.dtype)
    np.put_along_axis(out, select.astype(np.int64), a, axis=1)
    return out


def integer_mma(
    a: NDArray[Any],
    b: NDArray[Any],
    d: NDArray[np.uint32] | None,
    *,
    a_type: str,
    b_type: str,
    select: NDArray[np.int32] | None = None,
    saturate: bool = False,
) -> NDArray[np.uint32]:
    """Kind i8: D = A · Bᵀ + D in s32. The sum is exact modulo 2^32; with `saturate`, it is exact
    and then saturated once.

    `a` [M, K] and `b` [N, K] are codes of "s8" or "u8"; `d` is s32 codes (uint32 [M, N]) or None.
    """
    check_shapes(a, b, d, select)
    # 32 products of at most 2^16 add up below 2^24, so float32 is exact up to K = 256.
    av, bv = expanded(integers(a, a_type), select), integers(b, b_type)
    exact: Any = np.float32 if b.shape[1] <= 256 else np.float64
    total = (av.astype(exact) @ bv.astype(exact).T).astype(np.int64)
    if d is not None:
        total += d.view(np.int32) if d.flags.c_contiguous else d.astype(np.uint32).view(np.int32)
    if saturate:
        total = np.clip(total, -(1 << 31), (1 << 31) - 1)
    return total.astype(np.uint32)
