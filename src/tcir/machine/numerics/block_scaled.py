"""Arithmetic of the block-scaled kinds of ``tcgen05.mma``: mxf8f6f4, mxf4 and mxf4nvf4.

Kind mxf8f6f4 is the fused sum of `fused`, with each product multiplied by its two scales; the raw
exponents of the scales are added to the raw exponent of the product.

The fp4 kinds (mxf4, mxf4nvf4) sum groups of products exactly before any truncation. Let R be the
largest raw exponent of a non-zero scaled product, S the largest raw exponent of the pairs of scales
of non-zero products, and x_c the raw exponent of a non-zero D-in. Then:

1. If there is no non-zero product, D is unchanged (a zero becomes +0).
2. If x_c >= R, let q = x_c - 35. D-in and the sum of each 16 products are truncated to multiples of
   2^q.
3. Otherwise let q = max(R - 39, x_c - 39, S - 35). D-in is truncated to a multiple of 2^q. The
   products depend on the type of the scales:
   a. With ue4m3 scales, the sum of each 4 products is truncated to a multiple of 2^q.
   b. With ue8m0 scales, the sum of each 16 products is truncated to a multiple of 2^q, or of
      2^(x_c - 35) if x_c is not below the largest raw exponent of the group itself. If the result
      is a subnormal f32, it is recomputed without the groups whose scales have a raw exponent below
      S and whose magnitude is below 2^-174 (or below 2^q if that is larger).
4. The exact sum of these terms is truncated to f32.

Truncation is toward zero. The rules and constants are those with which sf-tensor/tcgen05 matched a
B200 bit for bit. microsoft/MMA-Sim (arXiv 2511.10909) has a simpler rule, called `rule="scales"`
here: groups of 16, and q = max(S', x_c) - 35 with zeros at the raw exponent -139. The two rules
rarely give different results, see docs/explanation/numerics.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.jit import jit
from tcir.machine.numerics.formats import NO_EXPONENT, check_codes, decode, decode_scale
from tcir.machine.numerics.fused import (
    DEFAULT,
    FusedParams,
    all_terms,
    check_shapes,
    contiguous,
    d_as_f32,
    expanded,
    fast_sum,
    fused_sum,
    rounded_all,
)
from tcir.machine.numerics.types import ScaledTypes
from tcir.machine.refusal import ElementTypeError

FP4_KINDS = ("mxf4", "mxf4nvf4")


@dataclass(frozen=True)
class Fp4Params:
    """Constants of the fp4 sums; from sf-tensor/tcgen05 unless another source is given."""

    product_window: int = 39
    """Bits below the largest raw exponent of a scaled product (and of D-in) in case 3."""
    scale_window: int = 35
    """Bits below the largest raw exponent of a pair of scales in case 3; the one window of
    `rule="scales"`."""
    d_window: int = 35
    """Bits below D-in's raw exponent where that is the largest."""
    ue4m3_group: int = 4
    """Products summed exactly before truncation, scales ue4m3, case 3."""
    subnormal_floor: int | None = -174
    """Exponent below which case 3b drops groups of smaller scale from a subnormal result."""
    rule: str = "products"
    """"products" (above) or "scales" (MMA-Sim)."""
    zero_exponent: int = -139
    """Raw exponent of a group of zeros and of a zero D-in under `rule="scales"`."""
    fused: FusedParams = DEFAULT
    """Constants of the mxf8f6f4 sums."""

    def __post_init__(self) -> None:
        if self.rule not in ("products", "scales"):
            raise ElementTypeError(
                "rule", self.rule, "products or scales", "no other model is known"
            )
        if self.ue4m3_group not in (1, 2, 4, 8, 16):
            raise ElementTypeError(
                "ue4m3_group", self.ue4m3_group, "1, 2, 4, 8 or 16", "divisors of 16"
            )


DEFAULT_FP4 = Fp4Params()

POW2 = np.ldexp(1.0, np.arange(-1022, 1024))
"""2^e at index e + 1022."""

_e2m1 = decode(np.arange(16), "e2m1")
E2M1, E2M1_EXPONENTS = _e2m1[0].astype(np.float32), _e2m1[1].copy()
"""E2M1 values and raw exponents, by code."""


@jit
def _columns(
    b: NDArray[np.uint8], sign: float, at: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Returns the columns of B, codes [N, K], that are not all zeros: values times sign, and raw
    exponents.

    at: index of each column; all-zero columns (all but one in a GEMV) share the index after the
    last.
    """
    columns, positions = b.shape
    count = 0
    for n in range(columns):
        live = False
        for s in range(positions):
            live |= E2M1[b[n, s]] != 0
        at[n] = count if live else columns
        count += live
    values = np.empty((positions, count), np.float32)
    exponents = np.empty((positions, count), np.int32)
    for n in range(columns):
        at[n] = min(at[n], count)
        if at[n] < count:
            for s in range(positions):
                values[s, at[n]] = sign * E2M1[b[n, s]]
                exponents[s, at[n]] = E2M1_EXPONENTS[b[n, s]]
    return values, exponents


@jit
def _fp4_sums(
    a: NDArray[np.uint8],
    b: NDArray[np.uint8],
    sign: float,
    select: NDArray[np.int32],
    scale_a: NDArray[np.float64],
    scale_xa: NDArray[np.int32],
    scale_b: NDArray[np.float64],
    scale_xb: NDArray[np.int32],
    d: NDArray[np.float32],
    merge: int,
    fine: int,
    product_window: int,
    scale_window: int,
    d_window: int,
    subnormal_floor: int,
    by_group: bool,
    zero: int,
    out: NDArray[np.float64],
) -> None:
    """Exact sums before rounding.

    Codes a, select [M, K] and b [N, K']; sign: sign of all products. Scales [M, G] and [N, G]: one
    per `merge` positions of K'. `fine` divides `merge`. by_group: case 3b, otherwise 3a.
    subnormal_floor, zero: NO_EXPONENT means none; a `zero` means rule="scales".
    """
    rows, depth = a.shape
    columns, positions = b.shape
    groups = scale_a.shape[1]
    ratio = merge // fine
    at = np.empty(columns, np.int64)
    right, xb = _columns(b, sign, at)
    count = right.shape[1]
    part_of, group_of = np.arange(positions) // fine, np.arange(positions) // merge
    sums = np.empty((groups * ratio, count + 1), np.float32)
    tops = np.empty((groups, count + 1), np.int32)
    none = np.int64(-2048)
    d_bits = d.view(np.int32)
    terms, x_pair = np.empty(groups, np.float64), np.empty(groups, np.int64)
    for m in range(rows):
        sums[:] = np.float32(0)
        tops[:] = NO_EXPONENT
        for k in range(depth):
            s = select[m, k]
            v, x = E2M1[a[m, k]], E2M1_EXPONENTS[a[m, k]]
            sum_row, top_row = sums[part_of[s]], tops[group_of[s]]
            for j in range(count):
                sum_row[j] += v * right[s, j]
                top_row[j] = max(top_row[j], x + xb[s, j])
        for n in range(columns):
            j = at[n]
            c, xc = 0.0, np.int64(NO_EXPONENT)
            if d.shape[0] > 0:
                c = np.float64(d[m, n])
                if c != 0.0:
                    xc = max(np.int64((d_bits[m, n] >> 23) & 0xFF) - 127, np.int64(-126))
            special = c
            largest, pair = np.int64(NO_EXPONENT), np.int64(NO_EXPONENT)
            for g in range(groups):
                scale = scale_a[m, g] * scale_b[n, g]
                special += scale - scale
                x_pair[g] = NO_EXPONENT
                if tops[g, j] > none and scale != 0.0:
                    x_pair[g] = np.int64(scale_xa[m, g]) + scale_xb[n, g]
                    pair = max(pair, x_pair[g])
                    largest = max(largest, tops[g, j] + x_pair[g])
            if special - special != 0.0:
                out[m, n] = special
                continue
            if largest < none and zero < none:
                out[m, n] = c
                continue
            if zero > none:
                q = max(pair, xc)
                for g in range(groups):
                    if x_pair[g] < none:
                        q = max(q, np.int64(zero))
                if xc < none:
                    q = max(q, np.int64(zero))
                q -= scale_window
            elif xc >= largest:
                q = xc - d_window
            else:
                q = max(max(largest, xc) - product_window, pair - scale_window)
            unit = POW2[1022 - q]
            total = np.trunc(c * unit)
            if zero < none and xc < largest and not by_group:
                for g in range(groups):
                    scale = scale_a[m, g] * scale_b[n, g] * unit
                    for f in range(g * ratio, (g + 1) * ratio):
                        total += np.trunc(sums[f, j] * scale)
                out[m, n] = total * POW2[1022 + q]
                continue
            for g in range(groups):
                group = 0.0
                for f in range(g * ratio, (g + 1) * ratio):
                    group += sums[f, j]
                group *= scale_a[m, g] * scale_b[n, g]
                own = q
                if zero < none and x_pair[g] > none and xc >= tops[g, j] + x_pair[g]:
                    own = max(q, xc - d_window)
                terms[g] = np.trunc(group * POW2[1022 - own]) * POW2[1022 + own - q]
                total += terms[g]
            value = total * POW2[1022 + q]
            cut = zero < none and xc < largest and subnormal_floor > none
            if cut and 2.0**-149 <= abs(value) < 2.0**-126:
                least = max(1.0, POW2[1022 + subnormal_floor - q])
                total = np.trunc(c * unit)
                for g in range(groups):
                    if x_pair[g] >= pair or abs(terms[g]) >= least:
                        total += terms[g]
                value = total * POW2[1022 + q]
            out[m, n] = value


@jit
def _fp4_sums_each(
    a: NDArray[np.uint8],
    b: NDArray[np.uint8],
    sign: float,
    select: NDArray[np.int32],
    scale_a: NDArray[np.float64],
    scale_xa: NDArray[np.int32],
    scale_b: NDArray[np.float64],
    scale_xb: NDArray[np.int32],
    d: NDArray[np.float32],
    merge: int,
    fine: int,
    product_window: int,
    scale_window: int,
    d_window: int,
    subnormal_floor: int,
    by_group: bool,
    zero: int,
    out: NDArray[np.float64],
) -> None:
    """Computes `_fp4_sums` for every product of the first axis."""
    for n in range(a.shape[0]):
        _fp4_sums(
            a[n], b[n], sign, select, scale_a[n], scale_xa[n], scale_b[n],
            scale_xb[n], d[n], merge, fine, product_window, scale_window, d_window,
            subnormal_floor, by_group, zero, out[n],
        )  # fmt: skip


def _scales(
    codes: NDArray[np.uint8], name: str, positions: int, merge: int
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Values and raw exponents of scales, one per `merge` of `positions`: [..., rows, positions /
    merge]."""
    values, exponents = decode_scale(codes, name)
    repeat = positions // merge // codes.shape[-1]
    return np.repeat(values, repeat, axis=-1), np.repeat(exponents, repeat, axis=-1)


def _check_scales(
    a: NDArray[Any],
    b: NDArray[Any],
    scale_a: NDArray[np.uint8],
    scale_b: NDArray[np.uint8],
    kind: str,
    scale_type: str,
) -> None:
    counts = {"mxf8f6f4": (1,), "mxf4": (2,), "mxf4nvf4": (2, 4)}
    if kind not in counts:
        raise ElementTypeError("kind", kind, "mxf8f6f4, mxf4 or mxf4nvf4", "PTX ISA 9.7.16.10.7")
    if scale_type == "ue4m3" and (kind != "mxf4nvf4" or scale_a.shape[-1] != 4):
        raise ElementTypeError(
            "scale type", "ue4m3", "ue8m0", "ue4m3 is for mxf4nvf4 with scale_vec::4X only"
        )
    for name, scales, of in (("SFA", scale_a, a), ("SFB", scale_b, b)):
        shapes = [(*of.shape[:-1], count) for count in counts[kind]]
        if scales.shape not in shapes:
            allowed = " or ".join(map(str, shapes))
            raise ElementTypeError(
                f"kind {kind}: {name}", scales.shape, allowed, "one per row and block"
            )
    if scale_a.shape[-1] != scale_b.shape[-1]:
        raise ElementTypeError("SFB", scale_b.shape, f"{scale_a.shape[-1]} a row", "as many as SFA")


def block_scaled_mma(
    a: NDArray[Any],
    b: NDArray[Any],
    d: NDArray[np.uint32] | None,
    scales: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    types: ScaledTypes,
    *,
    select: NDArray[np.int32] | None = None,
    exact: bool = True,
    constants: Fp4Params = DEFAULT_FP4,
) -> NDArray[np.uint32]:
    """D = (A · SFA)(B · SFB)ᵀ + D of one instruction, as f32 codes, uint32 [M, N].

    `a` codes [M, K], `b` codes [N, K], `scales` of A [M, G] and of B [N, G]: each row has G scales,
    and each scale applies to K/G neighbouring elements. G = 1 for mxf8f6f4 (scale_vec::1X), 2 or 4
    for the fp4 kinds. `d` and `select` are those of `fused_mma`. With `exact` False the product is
    computed in plain float32 (`fast_mma`).

    With `exact`, dense operands and their scales may have a leading axis of products.
    """
    kind, scale_type = types.kind, types.scale_type
    scale_a, scale_b = scales
    check_shapes(a, b, d, select)
    _check_scales(a, b, scale_a, scale_b, kind, scale_type)
    if exact and kind in FP4_KINDS:
        return _fp4_mma(a, b, d, scales, types, select, constants)
    (av, ax), (bv, bx) = decode(a, types.a_type), decode(b, types.b_type)
    if types.negate_a != types.negate_b:
        av = -av
    if not exact:
        k = b.shape[-1]
        sa, _ = _scales(scale_a, scale_type, k, 1)
        sb, _ = _scales(scale_b, scale_type, k, 1)
        return fast_sum(expanded(av, select) * sa, bv * sb, d, d_type="f32")
    (sa, sxa), (sb, sxb) = decode_scale(scale_a, scale_type), decode_scale(scale_b, scale_type)
    return fused_sum(
        (av * sa, ax + sxa),
        (bv * sb, bx + sxb),
        d,
        d_type="f32",
        select=select,
        params=constants.fused,
    )


def _fp4_mma(
    a: NDArray[np.unsignedinteger],
    b: NDArray[np.unsignedinteger],
    d: NDArray[np.uint32] | None,
    scales: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    types: ScaledTypes,
    select: NDArray[np.int32] | None,
    constants: Fp4Params,
) -> NDArray[np.uint32]:
    """Exact `block_scaled_mma` for the fp4 kinds."""
    if (types.a_type, types.b_type) != ("e2m1", "e2m1"):
        raise ElementTypeError(
            f"kind {types.kind}: element types", (types.a_type, types.b_type), "e2m1", "fp4 kinds"
        )
    for codes in (a, b):
        check_codes(codes, "e2m1")
    # A sparse instruction has twice the K; 16 stored elements span twice as many positions.
    merge = 16 if select is None else 32
    (sa, sxa), (sb, sxb) = (_scales(s, types.scale_type, b.shape[-1], merge) for s in scales)
    simple = constants.rule == "scales"
    by_group = types.scale_type == "ue8m0"
    floor = constants.subnormal_floor
    before = d_as_f32(d, "f32")
    if d is None:
        before = np.empty((*a.shape[:-2], 0, 0), np.float32)
    out = np.empty((*a.shape[:-1], b.shape[-2]), np.float64)
    (_fp4_sums_each if a.ndim == 3 else _fp4_sums)(
        contiguous(a, np.uint8),
        contiguous(b, np.uint8),
        -1.0 if types.negate_a != types.negate_b else 1.0,
        contiguous(all_terms(*a.shape[-2:]) if select is None else select, np.int32),
        contiguous(sa),
        contiguous(sxa),
        contiguous(sb),
        contiguous(sxb),
        before,
        merge,
        merge if by_group or simple else constants.ue4m3_group,
        constants.product_window,
        constants.scale_window,
        constants.d_window,
        NO_EXPONENT if floor is None or not by_group else floor,
        by_group,
        constants.zero_exponent if simple else NO_EXPONENT,
        out,
    )
    return rounded_all(out, "f32")
