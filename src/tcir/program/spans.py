"""Draws values with a given width in bits and a given exponent in a number format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from tcir.interp.types import Array
from tcir.program.factors import Factor

EXACT_BITS = 24
"""Bits of an f32 significand; the fused sums of tensor cores keep at least as many, except wgmma's
of fp8."""
PROMOTED_BITS, PROMOTED_PRODUCTS = 14, 128
"""wgmma's fp8 sums have 14 bits, and are accumulated in f32 after this many products."""
F32_TOP, TF32_BITS = 128, 11


@dataclass(frozen=True)
class MagnitudeSpan:
    """Magnitudes that a format represents: multiples of 2^low, below 2^top and up to `largest`,
    with `precision` significant bits.

    A value is an integer below 2^w times a power of two. widths: the smallest w, and the smallest w
    with which all mantissas (and all numbers of e2m1) occur; 0 stands for the constant 1.
    """

    low: int
    top: int
    largest: float
    precision: int
    widths: tuple[int, int]


@dataclass(frozen=True)
class Quantum:
    """The power of two of which every product of a pair of factors is a multiple: 2^total, in row
    or column i times 2^own[i].

    own: exponents, by the loop over rows or columns
    """

    total: int
    own: dict[int, Array]

    @property
    def middle(self) -> int:
        """Exponent of the power of two for the middle of the rows and columns."""
        return self.total + sum(int(own.max()) for own in self.own.values()) // 2


def span_of(factor: Factor, elements: int) -> MagnitudeSpan:
    """Returns the span of a factor. Block scales are limited so that their products with elements
    below 2^elements stay in the range of f32.
    """
    if factor.dtype == ml_dtypes.float8_e8m0fnu:
        top = F32_TOP - elements
        return MagnitudeSpan(-127, top, 2.0 ** (top - 1), 1, (0, 0))
    if factor.dtype == np.float32:  # as tf32
        return MagnitudeSpan(
            -136, F32_TOP, float(np.finfo(np.float32).max), TF32_BITS, (1, TF32_BITS)
        )
    info = info_of(factor.dtype)
    low = round(float(np.log2(float(info.smallest_subnormal))))
    top, precision = int(np.log2(float(info.max))) + 1, info.nmant + 1
    return MagnitudeSpan(low, top, float(info.max), precision, (1, max(precision, 4)))


def draw_start(
    start: Factor,
    quanta: Sequence[Quantum],
    generator: np.random.Generator,
    bits: int = EXACT_BITS - 1,
) -> Array:
    """Draws an input to which products are added. Its numbers are below 2^bits times the product of
    `quanta`.

    A value that several rows or columns share is a multiple of the largest quantum of these.
    """
    exponent = np.asarray(sum(each.total for each in quanta))
    for loop, own in (item for each in quanta for item in each.own.items()):
        if (loop, 1) in start.dims:
            exponent = exponent + spread(start.dims.index((loop, 1)), own, start)
        else:
            exponent, bits = exponent + int(own.max()), bits - int(np.ptp(own))
    width = generator.integers(1, max(bits, 1), start.shape, endpoint=True)
    info = info_of(start.dtype)
    low, top = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max))
    span = MagnitudeSpan(int(low), int(top) + 1, float(info.max), info.nmant + 1, (1, bits))
    return _values(start, span, width, np.broadcast_to(exponent, start.shape), generator)


def spread(axis: int, values: Array, factor: Factor) -> Array:
    """Reshapes `values` along `axis` to broadcast over the other dimensions of `factor`."""
    shape = [1] * len(factor.shape)
    shape[axis] = len(values)
    return values.reshape(shape)


def draw(
    factor: Factor,
    span: MagnitudeSpan,
    width: Array,
    exponent: Array,
    generator: np.random.Generator,
) -> Array:
    """Draws a value of `width` bits times 2^exponent for each element."""
    if factor.dtype.itemsize > 1:
        width, exponent = (np.broadcast_to(x, factor.shape) for x in (width, exponent))
        return _values(factor, span, width, exponent, generator)
    # There are few codes and often many elements: draws from 256 values per width and exponent.
    low, count = int(exponent.min()), int(np.ptp(exponent)) + 1
    kinds = np.arange((int(width.max()) + 1) * count)[:, None].repeat(256, axis=1)
    table = _values(factor, span, kinds // count, low + kinds % count, generator)
    kind = (width * count + exponent - low).astype(np.int32) * 256
    chosen = generator.integers(0, 256, factor.shape, np.uint8)
    return table.reshape(-1)[kind + chosen]


def _values(
    factor: Factor,
    span: MagnitudeSpan,
    width: Array,
    exponent: Array,
    generator: np.random.Generator,
) -> Array:
    """Draws signed integers of `width` bits times 2^exponent, one in 16 of them zero."""
    whole = generator.integers(1, 1 << np.maximum(width, 1))
    too_long = np.maximum(np.frexp(whole.astype(np.float64))[1] - span.precision, 0)
    whole = whole >> too_long << too_long
    whole[(generator.random(whole.shape) < 1 / 16) & (width > 0)] = 0
    values = np.minimum(np.ldexp(whole.astype(np.float64), exponent), span.largest)
    if not factor.scale:
        values = np.where(generator.random(whole.shape) < 0.5, -values, values)
    return values.astype(factor.dtype)


def info_of(dtype: np.dtype[Any]) -> Any:
    """Returns the limits of a floating-point type."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
