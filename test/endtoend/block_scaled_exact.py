"""Block-scaled products to the bit, in plain numpy: one fused, truncated sum an instruction.

Written from the published description of the arithmetic, with floating point that is exact here
(integers below 2^53 times powers of two). Subnormal results and special values are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .block_scaled_oracle import DTYPES
from .block_scaled_text import F4, F6A, F6B, F8A, F8B, UE4M3, UE8M0

Array = np.ndarray
LEAST = {F4: 0, F6A: 0, F6B: -2, F8A: -6, F8B: -14, UE4M3: -6, UE8M0: -127}
"""Exponent of the smallest normal number."""
NONE = -100000.0
"""The exponent of nothing."""


def exponents(values: Array, of: str) -> Array:
    """Encoded exponents, those of subnormals being the smallest normal's; NONE for zeros."""
    found = np.frexp(values)[1].astype(np.float64) - 1
    return np.where(values == 0, NONE, np.maximum(found, LEAST[of]))


def cut(values: Array, unit: Array) -> Array:
    """Multiples of 2^unit, toward zero, as integers."""
    return np.trunc(np.ldexp(values, -unit.astype(np.int64)))


def to_f32(integers: Array, unit: Array) -> Array:
    """integers * 2^unit as f32, toward zero."""
    exact = np.ldexp(integers, unit.astype(np.int64))
    nearest = exact.astype(np.float32)
    assert not ((exact != 0) & (np.abs(exact) < 2.0**-126)).any()
    return np.where(
        np.abs(nearest.astype(np.float64)) > np.abs(exact),
        np.nextafter(nearest, np.float32(0)),
        nearest,
    )


@dataclass(frozen=True)
class Formats:
    """Element and scale types; `k` of one instruction follows from the kind."""

    a: str = F4
    b: str = F4
    scale: str = UE4M3
    block: int = 16

    @property
    def packed(self) -> bool:
        """Whether the fp4 kinds multiply it."""
        return self.a == F4 and self.b == F4

    @property
    def k(self) -> int:
        """K of an instruction."""
        return 64 if self.packed else 32


def instruction(d: Array, a: Array, sa: Array, b: Array, sb: Array, of: Formats) -> Array:
    """D + (A * SA)(B * SB)^T: d [M, N] f32, a [M, K], sa [M, S], b [N, K], sb [N, S] float64."""
    block = of.block
    product = a[:, None, :] * b[None, :, :]
    top = exponents(a, of.a)[:, None, :] + exponents(b, of.b)[None, :, :]
    scale = (sa[:, None, :] * sb[None, :, :]).repeat(block, -1)
    scale_top = exponents(sa, of.scale)[:, None, :] + exponents(sb, of.scale)[None, :, :]
    scale_top = scale_top.repeat(block, -1)
    there = (product != 0) & (scale != 0)
    product = np.where(there, product * scale, 0.0)
    largest = np.where(there, top + scale_top, NONE)
    pair = np.where(there, scale_top, NONE).max(-1)
    old = d.astype(np.float64)
    c = np.where(old == 0, NONE, np.maximum(exponents(old, UE8M0), -126))
    total = (
        _fp4(old, c, product, largest, pair, of) if of.packed else _wide(old, c, product, largest)
    )
    nothing = ~there.any(-1)
    return np.where(nothing, d + np.float32(0), total)


def _wide(old: Array, c: Array, product: Array, largest: Array) -> Array:
    """Kind mxf8f6f4: every product and D cut at 25 bits below the largest exponent."""
    unit = np.maximum(largest.max(-1), c) - 25
    unit = np.where(unit < NONE / 2, 0, unit)
    return to_f32(cut(old, unit) + cut(product, unit[..., None]).sum(-1), unit)


def _fp4(old: Array, c: Array, product: Array, largest: Array, pair: Array, of: Formats) -> Array:
    """Kinds mxf4 and mxf4nvf4: exact sums of groups are cut."""
    m, n, k = product.shape
    top = largest.max(-1)
    leads = c >= top
    window = np.maximum(np.maximum(top, c) - 39, pair - 35)
    unit = np.where(leads, c - 35, window)
    unit = np.where(np.abs(unit) > 10000, 0, unit)
    sixteen = product.reshape(m, n, k // 16, 16).sum(-1)
    own = unit[..., None]
    if of.scale == UE8M0:
        group_top = largest.reshape(m, n, k // 16, 16).max(-1)
        coarse = (c[..., None] >= group_top) & (old != 0)[..., None] & (group_top > NONE / 2)
        own = np.where(coarse & ~leads[..., None], np.maximum(own, c[..., None] - 35), own)
    own = np.broadcast_to(own, sixteen.shape)
    groups = np.ldexp(cut(sixteen, own), (own - unit[..., None]).astype(np.int64)).sum(-1)
    if of.scale == UE4M3:
        four = cut(product.reshape(m, n, k // 4, 4).sum(-1), unit[..., None]).sum(-1)
        groups = np.where(leads, groups, four)
    return to_f32(cut(old, unit) + groups, unit)


def partial(a: Array, sa: Array, b: Array, sb: Array, of: Formats) -> Array:
    """The sum over all of k, instruction after instruction, f32 [M, N]; K of float64."""
    d = np.zeros((len(a), len(b)), np.float32)
    scales = of.k // of.block
    for i in range(a.shape[1] // of.k):
        at, of_scales = slice(i * of.k, (i + 1) * of.k), slice(i * scales, (i + 1) * scales)
        d = instruction(d, a[:, at], sa[:, of_scales], b[:, at], sb[:, of_scales], of)
    return d


def cuts(tiles: int, units: int, ctas: int) -> list[list[tuple[int, int]]]:
    """Of each tile the ranges of stages whose partial results are added up, in order.

    CTA c begins at the fraction c * tiles / ctas of all tiles, in whole stages, at least one stage
    into a tile that it does not begin with.
    """
    starts = set()
    for c in range(ctas):
        tile, rest = divmod(c * tiles, ctas)
        starts.add(tile * units + (max(1, rest * units // ctas) if rest else 0))
    found = []
    for tile in range(tiles):
        first, end = tile * units, (tile + 1) * units
        edges = sorted({first, end} | {s for s in starts if first < s < end})
        found.append([(a - first, b - first) for a, b in pairwise(edges)])
    return found


def gemv(
    a: Array,
    sa: Array,
    b: Array,
    sb: Array,
    of: Formats,
    *,
    ctas: int,
    stage: int,
    alpha: float | None = None,
    out: str = "f32",
) -> Array:
    """The product as `ctas` CTAs compute it in stages of `stage` k: float64 [L, M, K] and
    [L, N, K], to [L, M, N]."""
    batch, m, k = a.shape
    tiles_m = -(-m // 128)
    units = -(-k // stage)
    parts = cuts(tiles_m * batch, units, ctas)
    result = np.zeros((batch, m, b.shape[1]), np.float32)
    for tile, ranges in enumerate(parts):
        at, rows = tile // tiles_m, slice(tile % tiles_m * 128, tile % tiles_m * 128 + 128)
        total = np.float32(0)
        for begin, end in ranges:
            ks = slice(begin * stage, end * stage)
            ss = slice(begin * stage // of.block, end * stage // of.block)
            piece = partial(a[at, rows, ks], sa[at, rows, ss], b[at, :, ks], sb[at, :, ss], of)
            total = piece if len(ranges) == 1 else total + piece
        result[at, rows] = total
    if alpha is not None:
        result = result * np.float32(alpha)
    return result.astype(DTYPES[out])
