"""Proves that a program's codes of block-quantised values equal the codes of
``tc.quantise_blocks``, or finds a difference.

The scale is a function of the block's largest magnitude (amax), and an element is a function of its
value and of amax. ``tc.quantise_blocks`` is a step function in each of these numbers. So intervals
are halved until the program and ``tc.quantise_blocks`` each give a single, equal code on each
interval (`intervals`), or until they differ at a single number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from tcir._mlir import ir
from tcir.dialect.ops.quantise import LARGEST_SCALE, ROUNDINGS, QuantisedFormat
from tcir.formats import to_blocked
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tensor.quantise import elements_of, scales_of
from tcir.interp.types import Array, DType, dtype_of
from tcir.passes.analysis.element_graph import AMAX, VALUE, NotRaised, Number
from tcir.passes.raising.quantise.intervals import Interval, bits_of, bounds

LARGEST, INFINITY = 0x7F7FFFFF, 0x7F800000
NANS = (0x7F800001, 0x7FC00000, 0x7FFFFFFF)
MOST_PIECES = 1 << 20
"""Most intervals at a time; beyond that the proof is given up."""


@dataclass(frozen=True)
class MagnitudePieces:
    """Intervals of a value's magnitude and of amax, by the bits of their ends, and the value's
    sign."""

    low: Array
    high: Array
    amax_low: Array
    amax_high: Array
    negative: Array

    @staticmethod
    def of(*columns: Array, negative: Array | None = None) -> MagnitudePieces:
        """Builds pieces from bits. negative: whether the value is negative"""
        if negative is None:
            negative = np.zeros(len(columns[0]), np.bool_)
        low, high, amax_low, amax_high = (np.asarray(each, np.uint32) for each in columns)
        return MagnitudePieces(low, high, amax_low, amax_high, negative)

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, which: Array) -> MagnitudePieces:
        return MagnitudePieces(*(array[which] for array in vars(self).values()))

    def __add__(self, other: MagnitudePieces) -> MagnitudePieces:
        both = zip(vars(self).values(), vars(other).values())
        return MagnitudePieces(*(np.concatenate(each) for each in both))

    @property
    def possible(self) -> Array:
        """Mask of the pieces that can occur: the value is at most amax, or amax is infinite or
        NaN."""
        return np.asarray((self.low <= self.amax_high) | (self.amax_high >= INFINITY))

    @property
    def corners(self) -> list[MagnitudePieces]:
        """The four corners of each piece."""
        return [
            MagnitudePieces(value, value, amax, amax, self.negative)
            for value in (self.low, self.high)
            for amax in (self.amax_low, self.amax_high)
        ]

    def halves(self) -> MagnitudePieces:
        """Divides each piece into two, at the middle of its interval of values."""
        middle = self.low + (self.high - self.low) // 2
        first = replace(self, high=middle)
        second = replace(self, low=middle + np.uint32(1))
        return first + second[self.low < self.high]

    def halves_by_amax(self) -> MagnitudePieces:
        """Divides each piece into two, at the middle of its interval of amax."""
        middle = self.amax_low + (self.amax_high - self.amax_low) // 2
        return replace(self, amax_high=middle) + replace(self, amax_low=middle + np.uint32(1))

    @property
    def values(self) -> tuple[Array, Array]:
        """The smallest and the largest value of each piece."""
        sign = self.negative.astype(np.uint32) << 31
        ends = [(each | sign).view(np.float32) for each in (self.low, self.high)]
        order = np.where(self.negative, ends[::-1], ends)
        return order[0], order[1]

    @property
    def amax(self) -> tuple[Array, Array]:
        """The smallest and the largest amax of each piece."""
        return self.amax_low.view(np.float32), self.amax_high.view(np.float32)

    def bounds(self, number: Number) -> Interval:
        """Bounds, in each piece, of a number that is computed from value and amax."""
        known = np.ones(len(self), np.bool_)
        return bounds(
            number, {AMAX: Interval(*self.amax, known), VALUE: Interval(*self.values, known)}
        )


@dataclass(frozen=True)
class WrongCode:
    """A wrong code: the code of `value` in a block whose largest magnitude is `amax`.

    got: the code that the program gives; None if the code could be neither proven nor refuted
    """

    amax: float
    value: float
    got: int | None
    want: int

    def of_scale(self, form: QuantisedFormat, kind: DType) -> str:
        """Describes the difference of a scale, for the error message."""
        ue4m3 = kind.name == "float8_e4m3fn"
        least = 2.0**-10 if ue4m3 else 2.0**-127
        if not isfinite(self.amax):
            why = "a block with a NaN or an infinity has the scale NaN"
        elif self.amax == 0:
            why = "a block of zeros has the scale code 0"
        elif self.amax / (form.largest if ue4m3 else 2.0**form.exponent) <= least:
            why = f"at least {'2^-9 if amax is not 0' if ue4m3 else '2^-127'}"
        elif ue4m3:
            why = f"amax / 6 to nearest even, at most {LARGEST_SCALE:g}"
        else:
            why = (
                f"2^(floor(log2 amax) - {form.exponent}), the exponent of its bits (log2 in f32 "
                "is rounded up to it just below a power of two)"
            )
        where = f"where amax, the largest magnitude of the block, is {np.float32(self.amax)}"
        return f"expected the scale of {form.name}: {why}; got {self._codes(kind)} {where}"

    def of_element(self, form: QuantisedFormat, kind: DType) -> str:
        """Describes the difference of an element, for the error message."""
        if not isfinite(self.amax):
            why = "codes are 0 where the scale is NaN"
        elif self.value == 0:
            why = "zeros keep their sign"
        else:
            why = (
                "y / scale, the scale as stored (arith.extf of the truncated one), rounded once to "
                "nearest even, and saturated"
            )
        where = f"where y is {np.float32(self.value)} and amax {np.float32(self.amax)}"
        return f"expected elements of {form.name}: {why}; got {self._codes(kind)} {where}"

    def _codes(self, kind: DType) -> str:
        want = _code(self.want, kind)
        if self.got is None:
            return f"what is not shown to be {want}"
        return f"{_code(self.got, kind)} instead of {want}"


def _code(bits: int, kind: DType) -> str:
    number = np.array([bits], np.uint8).view(kind).astype(np.float32)[0]
    return f"{bits:#04x} ({number:g})"


def proven(
    codes: tuple[ir.Value, Number], scales: tuple[ir.Value, Number], form: QuantisedFormat
) -> QuantisedFormat:
    """The format with which the program's results are equal bit for bit. `elements` and `scales`
    are tensors, each with the computation of one of its numbers. Raises `NotRaised` with the first
    difference."""
    kinds = dtype_of(codes[0].type), dtype_of(scales[0].type)
    roundings = ROUNDINGS if kinds[1].name == "float8_e8m0fnu" else ROUNDINGS[:1]
    forms = [replace(form, rounding=rounding) for rounding in roundings]
    wrong = {each: scale_difference(scales[1], each, kinds[1]) for each in forms}
    found = [each for each, difference in wrong.items() if difference is None]
    if not found:
        first = wrong[forms[0]]
        assert first is not None
        raise NotRaised(scales[0].owner.operation, first.of_scale(forms[0], kinds[1]))
    difference = element_difference(codes[1], found[0], kinds)
    if difference is not None:
        raise NotRaised(codes[0].owner.operation, difference.of_element(found[0], kinds[0]))
    return found[0]


def scale_difference(number: Number, form: QuantisedFormat, kind: DType) -> WrongCode | None:
    """First difference between a scale and the scale that ``tc.quantise_blocks`` computes; None if
    there is none."""

    def want(points: MagnitudePieces) -> Array:
        return bits_of(scales_of(points.amax[0], form, kind))

    first, last = _steps(form, kind)
    special = np.array([0, INFINITY, *NANS])
    inside = last - first > 1
    low = np.concatenate([first, last, special, first[inside] + 1])
    high = np.concatenate([first, last, special, last[inside] - 1])
    nothing = np.zeros(len(low))
    return _difference(number, want, MagnitudePieces.of(nothing, nothing, low, high))


def element_difference(
    number: Number, form: QuantisedFormat, kinds: tuple[DType, DType]
) -> WrongCode | None:
    """First difference between an element and the element that ``tc.quantise_blocks`` computes;
    None if there is none."""

    def want(points: MagnitudePieces) -> Array:
        with np.errstate(all="ignore"):
            scales = scales_of(points.amax[0], form, kinds[1])
            return bits_of(elements_of(points.values[0][:, None], scales, form, kinds[0]))[:, 0]

    ordinary = _difference(number, want, _finite(form, kinds))
    return ordinary or _difference(number, want, _special())


def _difference(
    number: Number, want: Callable[[MagnitudePieces], Array], pieces: MagnitudePieces
) -> WrongCode | None:
    """Where `number` is not the code wanted, which does not fall as magnitudes rise.

    What is not one code on a piece, and both codes wanted at its ends, is halved: by amax if it is
    one code for the least amax.
    """
    while len(pieces := pieces[pieces.possible]):
        got, (least, *_, most) = pieces.bounds(number), pieces.corners
        codes = np.broadcast_to(bits_of(got.low), len(pieces))
        rest = pieces[~(got.single & (codes == want(least)) & (codes == want(most)))]
        for points in rest.corners:
            if found := _wrong(number, want, points[points.possible]):
                return found
        if len(rest) > MOST_PIECES:
            _, value = rest.values
            open_ = int(want(rest.corners[-1])[0])
            return WrongCode(float(rest.amax[1][0]), float(value[0]), None, open_)
        narrow = replace(rest, amax_high=rest.amax_low).bounds(number).single
        by_amax = (rest.amax_low < rest.amax_high) & (narrow | (rest.low == rest.high))
        pieces = rest[~by_amax].halves() + rest[by_amax].halves_by_amax()
    return None


def _wrong(
    number: Number, want: Callable[[MagnitudePieces], Array], points: MagnitudePieces
) -> WrongCode | None:
    """The first of single values and maxima that `number` differs at."""
    codes = np.broadcast_to(bits_of(points.bounds(number).low), len(points))
    wanted = want(points)
    for at in np.flatnonzero(codes != wanted)[:1]:
        amax, value = points.amax[0][at], points.values[0][at]
        return WrongCode(float(amax), float(value), int(codes[at]), int(wanted[at]))
    return None


def _steps(form: QuantisedFormat, kind: DType) -> tuple[Array, Array]:
    """The first and the last amax of every scale, in bits, of blocks that are not zero."""

    def code(bits: Array) -> Array:
        return bits_of(scales_of(bits.view(np.float32), form, kind)).astype(np.int64)

    most = int(code(np.array([LARGEST], np.uint32))[0])
    wanted = np.arange(most + 1)
    low, high = np.ones(most + 1, np.int64), np.full(most + 1, LARGEST, np.int64)
    while (low < high).any():  # the least amax with this code or a larger one
        middle = (low + high) // 2
        reached = code(middle.astype(np.uint32)) >= wanted
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    last = np.append(low[1:] - 1, LARGEST)
    used = last >= low
    return low[used], last[used]


def _finite(form: QuantisedFormat, kinds: tuple[DType, DType]) -> MagnitudePieces:
    """Values up to amax for each scale, cut next to the steps of the elements."""
    first, last = _steps(form, kinds[1])
    scales = scales_of(first.astype(np.uint32).view(np.float32), form, kinds[1])
    codes = np.arange(1 << (form.bits - 1), dtype=np.uint8).view(kinds[0]).astype(np.float64)
    codes = codes[np.isfinite(codes)]
    ties = (codes[1:] + codes[:-1]) / 2 * scales.astype(np.float64)[:, None]
    ties = np.minimum(ties, np.finfo(np.float32).max).astype(np.float32)
    near = ties.view(np.uint32).astype(np.int64)[..., None] + np.arange(-1, 3)
    ends = np.stack([np.zeros_like(last), last + 1], axis=-1)
    cuts = np.concatenate([near.reshape(len(last), -1), ends], axis=1)
    cuts = np.sort(np.clip(cuts, 0, last[:, None] + 1), axis=1)
    low, high = cuts[:, :-1], cuts[:, 1:] - 1
    which = high >= low
    amax = [np.broadcast_to(a[:, None], low.shape)[which] for a in (first, last)]
    columns = [np.tile(a, 2) for a in (low[which], high[which], *amax)]
    return MagnitudePieces.of(*columns, negative=np.repeat([False, True], which.sum()))


def _special() -> MagnitudePieces:
    """Blocks of zeros, and blocks that contain infinities or NaN."""
    rows = [(0, 0, 0, 0)]
    for amax in (INFINITY, *NANS):
        values = [(0, LARGEST), (INFINITY, INFINITY), *((n, n) for n in NANS if amax != INFINITY)]
        rows += [(low, high, amax, amax) for low, high in values]
    columns = [np.tile(column, 2) for column in np.array(rows).T]
    return MagnitudePieces.of(*columns, negative=np.repeat([False, True], len(rows)))


# --- around them -------------------------------------------------------------------------------


def check_start(op: ir.Operation, start: Number) -> None:
    """Raises `NotRaised` for a maximum whose initial value is larger than 0."""
    least = float(bounds(start, {}).low)
    if not least <= 0:
        raise NotRaised(
            op,
            f"expected a maximum that starts from 0 or less, got {least:g}: a block of smaller "
            "values has a smaller scale",
        )


def check_blocked(row_major: ir.Value, scales: ir.Value, moves: Sequence[ir.Operation]) -> None:
    """Raises `NotRaised` unless the layout changes `moves` bring scales to blocks of 128 x 4,
    padded with zeros.

    The moves are executed on the positions of the scales, byte by byte.
    """
    kind = dtype_of(scales.type)
    shape = tuple(row_major.type.shape)
    numbers = np.arange(1, int(np.prod(shape)) + 1).reshape(shape)
    for shift in range(0, int(numbers.max()).bit_length(), 8):
        plane = (numbers >> shift).astype(np.uint8)
        got = bits_of(_moved(moves, row_major, plane.view(kind)))
        want = np.asarray(to_blocked(plane))
        if got.size != want.size or (got.ravel() != want.ravel()).any():
            raise NotRaised(
                moves[-1],
                "expected scales of 128 rows x 4 in a block, scale s of row r at "
                "r % 32 * 16 + r % 128 / 32 * 4 + s % 4, zeros around them, got another order",
            )


def _moved(moves: Sequence[ir.Operation], source: ir.Value, given: Array) -> Array:
    level = Interpreter()
    values = {source: given}
    for each in moves[0].block:
        op = each.operation
        if op in moves or op.name in ("arith.constant", "tensor.empty"):
            level.values = values
            operands = [values[operand] for operand in op.operands]
            (values[op.results[0]],) = evaluate[op.name](level, op.opview, *operands)
    return values[moves[-1].results[0]]
