"""Draws inputs of programs without sums: half of the elements are arbitrary codes of the format,
the other half are near 1.

Elementwise arithmetic rounds each result independently, so the bits of a result do not depend on
how the arithmetic is implemented. The inputs may be anything: NaN (without a payload), infinities,
subnormals, zeros of both signs, all integers.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from tcir.interp import OutputSpec
from tcir.interp.types import Array, ends_of_integers, is_integer
from tcir.program.memory_image import PACKED_BITS

ENDS = 1 / 8
"""Share of elements at an end of the format: zeros, infinities, NaN, the largest, the smallest."""


def any_codes(spec: OutputSpec, generator: np.random.Generator) -> Array:
    """Draws an array of arbitrary codes, of any type except bool."""
    dtype, shape = spec.dtype, spec.shape
    if is_integer(dtype):
        return any_integers(dtype, shape, generator)
    bits = PACKED_BITS.get(dtype, 8 * dtype.itemsize)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    codes = generator.integers(0, (1 << bits) - 1, shape, unsigned, endpoint=True)
    values = codes.view(dtype)
    if dtype == ml_dtypes.float8_e8m0fnu:
        return values
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = np.where(np.isnan(values), np.array(np.nan).astype(dtype), values)
    near = generator.standard_normal(shape) * 2.0 ** generator.integers(-2, 2, shape)
    values = np.where(generator.random(shape) < 0.5, values, near.astype(dtype))
    at_an_end = generator.random(shape) < ENDS
    values = np.where(at_an_end, generator.choice(ends_of(dtype), shape), values)
    return np.abs(values) if spec.unsigned else values


def any_integers(
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    generator: np.random.Generator,
    least: int | None = None,
) -> Array:
    """Draws an array of an integer type, with numbers up to the largest of the type. least:
    smallest number, by default that of the type
    """
    low, high = ends_of_integers(dtype)
    drawn = np.dtype(np.int8) if dtype in PACKED_BITS else dtype
    low = low if least is None else least
    return generator.integers(low, high, shape, drawn, endpoint=True).astype(dtype)


def ends_of(dtype: np.dtype[Any]) -> Array:
    """Returns values at the ends of a float format, with both signs."""
    limits = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    ends = [0.0, np.inf, np.nan]
    ends += [float(end) for end in (limits.max, limits.tiny, limits.smallest_subnormal)]
    return np.array([*ends, *(-end for end in ends)]).astype(dtype)
