"""Draws factors of a contraction for which the sums are chosen numbers.

One factor has several copies of a matrix that has a single non-zero element, a power of two, in
each column. At the positions of these copies, the other factor has the digits of the wanted
numbers: the first copy has the number truncated to the factor's format, and each further copy has
the truncated remainder. So a sum has a few products, without cancellation, and equals the wanted
number if the number's bits and the extents of the contraction allow that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tcir.interp.types import Array, ends_of_integers, is_integer
from tcir.program.boundary.ties import toward_zero
from tcir.program.factors import Contraction, Factor
from tcir.program.spans import EXACT_BITS, PROMOTED_BITS, info_of, span_of

PERIOD = 32
"""Number of columns after which numbers repeat."""
INT_SHIFT = 6
"""Exponent of the power of two by which integer digits are multiplied."""
SCALES = -14, 14
"""Range of exponents of block scales that are powers of two: enough for the digits of f16's largest
number and of its ties at 1."""
MINOR = 2.0**-3
"""Replaces 1 where several columns of a block have the same digits."""

Wanted = Callable[[int, int], Array]
"""Function of the numbers of rows and columns that returns the wanted numbers, [rows, columns]."""


@dataclass(frozen=True)
class _Sides:
    """The factor with the digits, the factor with the powers of two, and their dimensions.

    digits, ones: the factors; k: their dimensions along the sum, the second -1 if they share none
    (then all of `ones` is 1); columns: the dimension of `ones` over which numbers differ, or None;
    step: minimum number of elements between two copies
    """

    digits: Factor
    ones: Factor
    k: tuple[int, int]
    columns: int | None
    step: int

    @property
    def length(self) -> int:
        """Number of elements along the sum."""
        return self.digits.shape[self.k[0]]

    def period(self, most: int, copies: int) -> int:
        """Returns the number of columns after which the wanted numbers repeat. It is at most
        `most`, and small enough that a row has room for `copies` copies of each number.
        """
        if self.columns is None:
            return 1
        room = self.length // copies
        room = room if self.step == 1 else room // self.step * self.step
        most = min(most, self.ones.shape[self.columns])
        return max(1, min(most, 1 << max(room, 1).bit_length() - 1))


def factors_with_sums(
    contraction: Contraction, wanted: Wanted, block: int = 0
) -> dict[int, Array] | None:
    """Returns the factors, by number of the input; None if the contraction has no suitable
    dimension.

    wanted: the intended values of the sums
    block:  number of adjacent columns whose values must all differ; 0: no blocks
    """
    sides = _sides(contraction)
    if sides is None or any(f.argument < 0 for f in contraction.factors):
        return None
    probe = np.abs(wanted(_rows(contraction, sides.digits), block or PERIOD))
    exponents = _exponents(sides, probe, contraction)
    if sides.step == 1 and sides.length // len(exponents) < block:
        exponents = [0] * exponents.count(0)  # rather more columns than small numbers
    copies = len(exponents)
    if sides.step > 1:
        copies = min(copies, max(1, sides.length // max(block, sides.step)))
    period = sides.period(block or PERIOD, copies)
    stride = -(-period // sides.step) * sides.step
    exponents = exponents[: max(1, sides.length // stride)]
    drawn = {f.argument: np.ones(f.shape) for f in contraction.factors if f.scale}
    _fill_ones(drawn, contraction, sides, exponents, (stride, period, block))
    rest = wanted(_rows(contraction, sides.digits), period).astype(np.float64)
    if period == 1 and block:
        rest = wanted(-(-len(rest) // block), block).reshape(-1, 1)[: len(rest)]
    rest = _cut(rest, PROMOTED_BITS - 1 if contraction.promoted else EXACT_BITS)
    values = np.zeros(sides.digits.shape)
    fixed = _fixed(contraction, sides.digits, sides.k[0])
    shape = values[(*fixed[: sides.k[0]], 0, *fixed[sides.k[0] + 1 :])].shape
    for copy, exponent in enumerate(exponents):
        digit = toward_zero(rest * 2.0**-exponent, sides.digits.dtype)
        if contraction.promoted:  # products are aligned by exponents: a subnormal's is too large
            digit[np.abs(digit) < float(info_of(sides.digits.dtype).smallest_normal)] = 0
        rest = rest - digit * 2.0**exponent
        for place in range(period):
            at = (*fixed[: sides.k[0]], copy * stride + place, *fixed[sides.k[0] + 1 :])
            values[at] = digit[:, place].reshape(shape)
    drawn[sides.digits.argument] = values
    return {f.argument: drawn[f.argument].astype(f.dtype) for f in contraction.factors}


def _sides(contraction: Contraction) -> _Sides | None:
    """Chooses the side with the digits: the one with rows, the first if both have rows; None:
    neither fits."""
    pair = contraction.pairs[0]
    axes = contraction.shared_axes(pair)
    windows = [None in factor.dims for factor in pair]
    if axes is None:
        return _of_groups(contraction) if windows == [True, False] else None
    rows = [contraction.own_axis(pair, side, least=2) for side in (0, 1)]
    first = 1 if windows[0] or rows[0] is None else 0
    if windows[first]:
        return None
    columns = None if windows[1 - first] else rows[1 - first]
    step = 1
    if len(contraction.pairs) > 1:
        scale = contraction.pairs[1][1 - first]
        along = _along(contraction, scale)
        step = pair[1 - first].shape[axes[1 - first]] // scale.shape[along]
    return _Sides(pair[first], pair[1 - first], (axes[first], axes[1 - first]), columns, step)


def _of_groups(contraction: Contraction) -> _Sides | None:
    """Returns the sides of a grouped convolution, whose groups of channels have separate
    filters."""
    x, filters = contraction.pairs[0]
    if len(contraction.pairs) > 1:
        return None
    along = [
        (n, axis)
        for axis, (n, index) in enumerate(zip(filters.shape, filters.dims, strict=True))
        if index is not None and index[0] not in contraction.parallel
    ]
    return _Sides(filters, x, (max(along)[1], -1), None, 1) if along else None


def _along(contraction: Contraction, scale: Factor) -> int:
    """Returns the dimension of a scale along the sum."""
    return next(
        n for n, index in enumerate(scale.dims) if index and index[0] not in contraction.parallel
    )


def _rows(contraction: Contraction, digits: Factor) -> int:
    return math.prod(
        n
        for n, index in zip(digits.shape, digits.dims, strict=True)
        if index is None or index[0] in contraction.parallel
    )


def _fixed(contraction: Contraction, factor: Factor, k: int) -> list[int | slice]:
    """Returns an index of all rows, at one value of each reduction loop other than the shared one:
    a value that is never in the padding."""
    at: list[int | slice] = []
    for axis, index in enumerate(factor.dims):
        if index is None or index[0] in contraction.parallel or axis == k:
            at.append(slice(None))
        else:
            taps = contraction.taps.get(index[0]) or range(factor.shape[axis])
            at.append(taps[len(taps) // 2])
    return at


def _cut(values: Array, bits: int) -> Array:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.trunc(mantissa * 2.0**bits), exponent - bits)


def _bits(values: Array) -> int:
    """Returns the largest number of significant bits of any of the numbers."""
    mantissa = np.frexp(values[values != 0])[0]
    whole = (mantissa * 2.0**EXACT_BITS).astype(np.int64)
    lowest = (whole & -whole)[whole != 0]
    return EXACT_BITS - int(np.log2(lowest.min(initial=1 << EXACT_BITS - 1)))


def _exponents(sides: _Sides, wanted: Array, contraction: Contraction) -> list[int]:
    """Returns the exponents of the copies' powers of two, in descending order, as the digits are;
    wanted: magnitudes."""
    dtype = sides.digits.dtype
    most = float(wanted.max(initial=0)) or 1.0
    if is_integer(dtype):
        _, largest = ends_of_integers(dtype)
        count = math.ceil(most / (largest << INT_SHIFT)) if most > 2 * largest else 0
        return [INT_SHIFT] * count + [0, 0, 0]
    low, top, precision = _extent(sides.digits)
    if len(contraction.pairs) > 1 and top - low - precision < EXACT_BITS:
        scale = contraction.pairs[1][contraction.pairs[0].index(sides.ones)]
        power_of_two = scale.dtype == ml_dtypes.float8_e8m0fnu
        least, largest = SCALES if power_of_two else _extent(scale)[:2]
        first = min(math.frexp(most)[1] - top + 1, largest - 1)
        return list(range(first, least - 1, -precision))
    bits = _bits(wanted)
    count = -(-bits // precision)
    if sides.k[1] < 0:
        return [0] * count
    least, largest, _ = _extent(sides.ones)
    high = min(max(0, math.frexp(most)[1] - top), largest - 1)
    smallest = math.frexp(float(wanted[wanted > 0].min(initial=most)))[1] - bits
    deep = max(min(0, smallest - low), least)
    many = [high] * (count if high else 0) + [0] * count
    return many + [deep] * (count if deep else 0)


def _extent(factor: Factor) -> tuple[int, int, int]:
    """Returns the exponent of a format's smallest number, that of the first power of two above its
    largest, and the bits of its mantissa; f32 counts as tf32."""
    span = span_of(factor, 0)
    return span.low, span.top, span.precision


def _fill_ones(
    drawn: dict[int, Array],
    contraction: Contraction,
    sides: _Sides,
    exponents: list[int],
    periods: tuple[int, int, int],
) -> None:
    """Fills the side with the powers of two: in its elements, or in their scales."""
    stride, period, block = periods
    if sides.k[1] < 0:
        drawn[sides.ones.argument] = np.ones(sides.ones.shape)
        return
    ones = np.zeros(sides.ones.shape)
    scale = contraction.pairs[1][contraction.pairs[0].index(sides.ones)] if sides.step > 1 else None
    whole: list[int | slice | Array] = [slice(None)] * len(ones.shape)
    columns = np.arange(1 if sides.columns is None else sides.ones.shape[sides.columns])
    weight = np.ones(len(columns))
    if block > period > 1:  # each block has others that weigh more
        turn = columns // block % (block // period)
        weight[columns % block // period != turn] = MINOR
    for copy, exponent in enumerate(exponents):
        for place in range(period):
            at = whole.copy()
            at[sides.k[1]] = copy * stride + place
            mine = np.flatnonzero(columns % period == place)
            factor = 1.0 if scale is not None else 2.0**exponent
            if sides.columns is None:
                ones[tuple(at)] = factor
                continue
            for one in (1.0, MINOR):
                at[sides.columns] = mine[weight[mine] == one]
                ones[tuple(at)] = one * factor
        if scale is not None:
            across = [slice(None)] * len(scale.shape)
            first = copy * stride // sides.step
            across[_along(contraction, scale)] = slice(first, first + stride // sides.step)
            drawn[scale.argument][tuple(across)] = 2.0**exponent
    drawn[sides.ones.argument] = ones
