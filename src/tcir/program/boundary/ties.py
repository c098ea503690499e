"""Numbers at which the result of a conversion to a number format changes: ties, ends of the range,
and neighbours of these.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tcir.interp.types import Array, DType, ends_of_integers, is_integer
from tcir.program.spans import info_of

_FEW_BITS = 8
"""For formats of at most this many bits, the tie between every two numbers is used; for others,
some ties."""
LARGE = 2.0**6
"""Largest ties: for sums whose products have digits without small exponents."""
HALVES = (0.5, 1.5, 2.5, 126.5, 127.5, 128.5, 254.5, 255.5, 256.5)
"""Ties of roundings to whole numbers: small ones, and at the ends of i8 and u8."""


def limits_of(dtype: DType) -> list[float]:
    """Returns numbers at which rounding to a float format changes, the most important first.

    They are:

    - the tie between the largest number and its would-be successor, from which on results overflow,
    - the tie between the smallest number and 0,
    - numbers a quarter of the last place around these two ties,
    - ties whose even neighbour is below and ties whose even neighbour is above, also between
      subnormals and at a power of two,
    - for formats of more than 8 bits: numbers just beside two of these ties, and ties at a larger
      power of two,
    - for formats of at most 8 bits: all ties.

    Each number has both signs.
    """
    info = info_of(dtype)
    largest, smallest, normal = (
        float(x) for x in (info.max, info.smallest_subnormal, info.smallest_normal)
    )
    place = 2.0 ** (np.floor(np.log2(largest)) - info.nmant)
    if largest > np.finfo(np.float32).max / 2:  # rounded up to infinity only
        over = [largest, largest + place / 2, largest + place / 4]
    else:
        over = [largest, *(largest + part * place for part in (0.25, 0.5, 0.75, 1))]
    unit = float(info.eps)
    found = [*over, *(part * smallest for part in (0.5, 0.75, 0.25, 1.5, 2.5))]
    found += [normal - smallest / 2, 1 + unit / 2, 1 + 1.5 * unit, 2 - unit / 2, 1 + 0.75 * unit]
    if info.bits > _FEW_BITS:  # so near a tie that rounding twice makes it one
        found += [1 + unit / 2 + unit / 256, 1 + 1.5 * unit - unit / 256]
        found += [LARGE * (1 + unit / 2), LARGE * (1 + 1.5 * unit)]
    else:
        numbers = magnitudes_of(dtype)
        found += list((numbers[1:] + numbers[:-1]) / 2)
    return both_signs(found)


def magnitudes_of(dtype: DType) -> Array:
    """Returns all finite numbers >= 0 of a format of at most 8 bits, ascending."""
    codes = np.arange(1 << info_of(dtype).bits, dtype=np.uint8).view(dtype)
    numbers = codes.astype(np.float64)
    return np.unique(numbers[np.isfinite(numbers) & (numbers >= 0)])


def both_signs(numbers: Iterable[float]) -> list[float]:
    """Returns each number with both signs, without duplicates."""
    return list(dict.fromkeys(signed for each in numbers for signed in (each, -each)))


def around(number: float, dtype: DType) -> list[float]:
    """Returns constants with which a number may be compared: the number itself, and nearer and
    farther neighbours in its type.

    Empty for 0, because all inputs have numbers around 0: both signs, zeros, subnormals.
    """
    if number == 0:
        return []
    if is_integer(dtype):
        return [number, number - 1, number + 1]
    near = np.nextafter(np.float32(number), np.array([-np.inf, np.inf], np.float32))
    step = abs(number) * 2.0**-8
    return [number, number - step, number + step, *map(float, near)]


def toward_zero(values: Array, dtype: DType) -> Array:
    """Truncates `values` to a format, with its largest number as the limit; f32 counts as tf32."""
    if is_integer(dtype):
        return np.clip(np.trunc(values), *ends_of_integers(dtype))
    if dtype == np.float32:
        mantissa, exponent = np.frexp(values)
        return np.ldexp(np.trunc(mantissa * 2.0**11), exponent - 11)
    info = info_of(dtype)
    size = np.minimum(np.abs(values), float(info.max))
    low = int(np.log2(float(info.smallest_subnormal)))
    place = np.maximum(np.frexp(size)[1] - 1 - info.nmant, low)
    return np.copysign(np.ldexp(np.floor(np.ldexp(size, -place)), place), values)
