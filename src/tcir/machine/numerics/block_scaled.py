"""Arithmetic of the block-scaled kinds of ``tcgen05.mma``: mxf8f6f4, mxf4 and mxf4nvf4.

Kind mxf8f6f4 is the fused sum of `fused` with each product multiplied by its two scales; the raw
exponents of the scales add to that of the product.

The fp4 kinds (mxf4, mxf4nvf4) sum groups of products exactly before any truncation. With R the
largest raw exponent of a non-zero scaled product, S the largest raw exponent of the pairs of scales
of non-zero products, and x_c that of a non-zero D-in:

1. no non-zero product: D is unchanged (a zero becomes +0);
2. x_c >= R: q = x_c - 35; D-in and the sum of each 16 products are truncated to multiples of 2^q;
3. else q = max(R - 39, x_c - 39, S - 35); D-in is truncated to 2^q, and
   a. scales ue4m3: so is the sum of each 4 products;
   b. scales ue8m0: so is the sum of each 16 products, or to 2^(x_c - 35) where x_c is not below the
      largest raw exponent of the group itself. If the result is a subnormal f32, it is recomputed
      without the groups whose scales have a raw exponent below S and whose magnitude is below
      2^-174 (or below 2^q if that is larger);
4. the exact sum of these is truncated to f32.

Truncation is toward zero. Rules and constants are those that sf-tensor/tcgen05 matched bit for bit
on a B200. microsoft/MMA-Sim (arXiv 2511.10909) has a simpler rule, here `rule="scales"`:
groups of 16, q = max(S', x_c) - 35 with zeros at the raw exponent -139. The two differ rarely, see
docs/numerics.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.jit import jit
from tcir.machine.numerics.formats import NO_EXPONENT, decode, decode_scale
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
from tcir.machine.refusal import FormatError

FP4_KINDS = ("mxf4", "mxf4nvf4")


@dataclass(frozen=True)
class Fp4Params:
    """Constants of the fp4 sums, from sf-tensor/tcgen05 unless noted."""

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
            raise FormatError("rule", self.rule, "products or scales", "no other model is known")
        if self.ue4m3_group not in (1, 2, 4, 8, 16):
            raise FormatError("ue4m3_group", self.ue4m3_group, "1, 2, 4, 8 or 16", "16 are merged")


DEFAULT_FP4 = Fp4Params()

POW2 = np.ldexp(1.0, np.arange(-1022, 1024))
"""2^e at index e + 1022."""


@jit
def _fp4_sums(
    a: NDArray[np.float32],
    xa: NDArray[np.int32],
    b: NDArray[np.float32],
    xb: NDArray[np.int32],
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

    a, xa, select [M, K]; b, xb [K', N]; scales [M, G] and [G, N]: one per `merge` positions of K'.
    `fine` divides `merge`. by_group: case 3b, otherwise 3a. subnormal_floor, zero: NO_EXPONENT
    means none; a `zero` means rule="scales".
    """
    rows, depth = a.shape
    columns = b.shape[1]
    groups = scale_a.shape[1]
    ratio = merge // fine
    sums = np.empty((groups * ratio, columns), np.float32)
    tops = np.empty((groups, columns), np.int32)
    none = np.int64(-2048)
    d_bits = d.view(np.int32)
    terms = np.empty(groups, np.float64)
    x_pair = np.empty(groups, np.int64)
    for m in range(rows):
        sums[:] = np.float32(0)
        tops[:] = NO_EXPONENT
        for k in range(depth):
            s = select[m, k]
            v = a[m, k]
            x = xa[m, k]
            sum_row, top_row = sums[s // fine], tops[s // merge]
            for n in range(columns):
                sum_row[n] += v * b[s, n]
                top_row[n] = max(top_row[n], x + xb[s, n])
        for n in range(columns):
            c = 0.0
            xc = np.int64(NO_EXPONENT)
            if d.shape[0] > 0:
                c = np.float64(d[m, n])
                if c != 0.0:
                    xc = max(np.int64((d_bits[m, n] >> 23) & 0xFF) - 127, np.int64(-126))
            special = c
            largest = np.int64(NO_EXPONENT)
            pair = np.int64(NO_EXPONENT)
            for g in range(groups):
                scale = scale_a[m, g] * scale_b[g, n]
                special += scale - scale
                x_pair[g] = NO_EXPONENT
                if tops[g, n] > none and scale != 0.0:
                    x_pair[g] = np.int64(scale_xa[m, g]) + scale_xb[g, n]
                    pair = max(pair, x_pair[g])
                    largest = max(largest, tops[g, n] + x_pair[g])
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
                    scale = scale_a[m, g] * scale_b[g, n] * unit
                    for f in range(g * ratio, (g + 1) * ratio):
                        total += np.trunc(sums[f, n] * scale)
                out[m, n] = total * POW2[1022 + q]
                continue
            for g in range(groups):
                group = 0.0
                for f in range(g * ratio, (g + 1) * ratio):
                    group += sums[f, n]
                group *= scale_a[m, g] * scale_b[g, n]
                own = q
                if zero < none and x_pair[g] > none and xc >= tops[g, n] + x_pair[g]:
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
    a: NDArray[np.float32],
    xa: NDArray[np.int32],
    b: NDArray[np.float32],
    xb: NDArray[np.int32],
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
    """`_fp4_sums` of every product of the first axis."""
    for n in range(a.shape[0]):
        _fp4_sums(
            a[n], xa[n], b[n], xb[n], select, scale_a[n], scale_xa[n], scale_b[n], scale_xb[n],
            d[n], merge, fine, product_window, scale_window, d_window, subnormal_floor, by_group,
            zero, out[n],
        )  # fmt: skip


def _scales(
    codes: NDArray[np.uint8], name: str, positions: int, merge: int
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Values and raw exponents, one per `merge` of `positions`: [..., rows, positions / merge]."""
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
        raise FormatError("kind", kind, "mxf8f6f4, mxf4 or mxf4nvf4", "PTX ISA 9.7.16.10.7")
    if scale_type == "ue4m3" and (kind != "mxf4nvf4" or scale_a.shape[-1] != 4):
        raise FormatError(
            "scale type", "ue4m3", "ue8m0", "ue4m3 is for mxf4nvf4 with scale_vec::4X only"
        )
    for name, scales, of in (("SFA", scale_a, a), ("SFB", scale_b, b)):
        shapes = [(*of.shape[:-1], count) for count in counts[kind]]
        if scales.shape not in shapes:
            allowed = " or ".join(map(str, shapes))
            raise FormatError(
                f"kind {kind}: {name}", scales.shape, allowed, "one per row and block"
            )
    if scale_a.shape[-1] != scale_b.shape[-1]:
        raise FormatError("SFB", scale_b.shape, f"{scale_a.shape[-1]} a row", "as many as SFA")


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
    """D = (A · SFA)(B · SFB)ᵀ + D of one instruction: f32 codes, uint32 [M, N].

    `a` codes [M, K], `b` codes [N, K], `scales` of A [M, G] and of B [N, G]: G scales per row, each
    for K/G neighbours; G = 1 for mxf8f6f4 (scale_vec::1X), 2 or 4 for the fp4 kinds. `d`, `select`
    as in `fused_mma`. `exact` False: plain float32 (`fast_mma`).

    Dense operands and their scales may have a leading axis of products, with `exact`.
    """
    kind, scale_type, fp4 = types.kind, types.scale_type, constants
    scale_a, scale_b = scales
    check_shapes(a, b, d, select)
    _check_scales(a, b, scale_a, scale_b, kind, scale_type)
    (av, ax), (bv, bx) = decode(a, types.a_type), decode(b, types.b_type)
    if types.negate_a != types.negate_b:
        av = -av
    k = b.shape[-1]
    if not exact:
        sa, _ = _scales(scale_a, scale_type, k, 1)
        sb, _ = _scales(scale_b, scale_type, k, 1)
        return fast_sum(expanded(av, select) * sa, bv * sb, d, d_type="f32")
    if kind not in FP4_KINDS:
        (sa, sxa), (sb, sxb) = decode_scale(scale_a, scale_type), decode_scale(scale_b, scale_type)
        return fused_sum(
            (av * sa, ax + sxa),
            (bv * sb, bx + sxb),
            d,
            d_type="f32",
            select=select,
            params=constants.fused,
        )
    if (types.a_type, types.b_type) != ("e2m1", "e2m1"):
        raise FormatError(
            f"kind {kind}: element types", (types.a_type, types.b_type), "e2m1", "fp4 kinds"
        )
    # A sparse instruction has twice the K; 16 stored elements span twice as many positions.
    merge = 16 if select is None else 32
    (sa, sxa), (sb, sxb) = (_scales(s, scale_type, k, merge) for s in (scale_a, scale_b))
    simple = fp4.rule == "scales"
    by_group = scale_type == "ue8m0"
    before = d_as_f32(d, "f32")
    if d is None:
        before = np.empty((*a.shape[:-2], 0, 0), np.float32)
    out = np.empty((*a.shape[:-1], b.shape[-2]), np.float64)
    values = (
        contiguous(av, np.float32),
        contiguous(ax),
        contiguous(bv.swapaxes(-1, -2), np.float32),
        contiguous(bx.swapaxes(-1, -2)),
        contiguous(all_terms(*a.shape[-2:]) if select is None else select, np.int32),
        contiguous(sa),
        contiguous(sxa),
        contiguous(sb.swapaxes(-1, -2)),
        contiguous(sxb.swapaxes(-1, -2)),
        before,
    )
    (_fp4_sums_each if a.ndim == 3 else _fp4_sums)(
        *values,
        merge,
        merge if by_group or simple else fp4.ue4m3_group,
        fp4.product_window,
        fp4.scale_window,
        fp4.d_window,
        NO_EXPONENT if fp4.subnormal_floor is None or not by_group else fp4.subnormal_floor,
        by_group,
        fp4.zero_exponent if simple else NO_EXPONENT,
        out,
    )
    return rounded_all(out, "f32")
