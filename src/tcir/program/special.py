"""Special values among exact inputs: NaN, infinities, overflow, subnormals, zeros of both signs.

They are placed where few results depend on them, and where no result depends on the order of a sum:

- rows of A and columns of B with a NaN, with one or two infinities, or with a NaN among their
  scales. A single infinity is the last element along the sum, which exposes padding that repeats
  the last element instead of 0;
- rows and columns that are zeros of both signs except for one element. Each of their results is one
  product, which is exact however far it is from all other products: the smallest subnormals of f32,
  or beyond f32 if the formats reach that far;
- rows and columns of zeros of both signs. Their sums are +0, or the number to which they are added,
  which may be any number;
- in an operand over which windows move (convolutions), single elements;
- in the other operand of a convolution, elements at taps that are never in the padding. At other
  taps it depends on the schedule whether padding is multiplied, so that 0 times infinity is NaN
  (docs/explanation/convolution.md, "0 · inf").

At most one row in `SHARE` is special. Nearly all results depend on columns that share scales (block
quantisation), on a vector, and on sides with fewer than `ROWS` rows: their NaN and infinities have
executions of their own (`alone`). Signalling NaNs and NaNs with a payload are left out: the result
of a tensor core for a payload is not documented, and with tf32 the payload loses its low bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from tcir.interp.types import is_integer
from tcir.program.codes import ends_of
from tcir.program.factors import ROWS, Contraction, Factor
from tcir.program.spans import F32_TOP, info_of

Array = np.ndarray[Any, Any]
Loops: TypeAlias = dict[int, int]
"""Loop -> its value."""
Place: TypeAlias = tuple[Loops, float]
"""Place of an element by the values of loops, and its magnitude."""
SHARE = 8
"""One row or column in this many may be special; the first and the last are not."""
WINDOWS = 48
"""One pixel in this many of a convolution's input may have a special element."""
TRIES = 64
"""Number of places tried for the only non-zero element of a row."""
FAR = 1 << 10
"""A number above any difference of exponents."""
_OF_A_FORMAT = ("inf", "NaN", "NaN scale")
"""Special values that a side must have in its own format."""
_SMALL = ("subnormals", "smallest scale")
"""Special values far below all others."""
_OF_SCALES = ("smallest scale", "largest scale")
"""Special values at the finite ends of block scales."""
_TIMES_ZERO = ("inf", "NaN", "inf - inf")
"""Special values whose products with zeros of padding are NaN."""
_ONE_PRODUCT = ("subnormals", "overflow", *_OF_SCALES)
"""Special values of rows with one non-zero product, far from all others."""
SELDOM = 16
"""One in this many elements of the input to which products are added is infinite or NaN."""
F32_LOW = -149
"""Exponent of the smallest subnormal of f32."""


@dataclass(frozen=True)
class Special:
    """A special row or column of one factor, or a special element of it.

    what: "NaN", "inf", "inf - inf", "overflow", "subnormals", "zeros", "NaN scale",
          "smallest scale" or "largest scale"
    axis: dimension of the rows; None for a vector, and for single elements of an operand over which
          windows move
    contraction: number of the contraction in a program of several
    """

    side: int
    what: str
    axis: int | None
    contraction: int = 0


def special_values(contraction: Contraction, among: Sequence[str] = ()) -> list[Special]:
    """Returns the special values that fit the shapes and formats of a contraction. among: the
    special values that are allowed; default: all
    """
    pair = contraction.pairs[0]
    found = []
    for side, factor in enumerate(pair):
        if is_integer(factor.dtype):
            continue
        kinds = [kind for kind in _kinds(contraction, factor) if not among or kind in among]
        if None in factor.dims:
            sizes = zip(factor.shape, factor.dims, strict=True)
            room = math.prod(n for n, index in sizes if index is None) // WINDOWS
            kinds = [kind for kind in kinds if kind in ("NaN", "inf")]
            found += [Special(side, kind, None) for kind in kinds[:room]]
        elif (axis := _spared(contraction, side)) is not None:
            # The sides take turns: with room for few, B's are others than A's.
            kinds = _allowed(contraction, factor, axis, kinds)
            half = len(kinds) // 2 if side and pair[0].argument >= 0 else 0
            turned = kinds[half:] + kinds[:half]
            room = factor.shape[axis] // SHARE
            found += [Special(side, kind, axis) for kind in turned[:room]]
    return found


def _allowed(
    contraction: Contraction, factor: Factor, axis: int | None, kinds: Sequence[str]
) -> list[str]:
    """Returns the special values that stay predictable with the padding and the addends of the
    products."""
    if meets_padding(contraction, factor):
        kinds = [kind for kind in kinds if kind not in _TIMES_ZERO]
    start = contraction.start
    if start is not None and axis is not None and not _is_start_of(start, factor, axis):
        kinds = [kind for kind in kinds if kind not in _ONE_PRODUCT]
    return list(kinds)


def _left_over(contraction: Contraction) -> Iterator[list[Special]]:
    """Yields, for further executions, the ends of formats that had no room among the rows and
    columns; an execution has those of both sides."""
    pair, shown = contraction.pairs[0], special_values(contraction)
    left: list[list[Special]] = []
    for side, factor in enumerate(pair):
        axis = None if is_integer(factor.dtype) else _spared(contraction, side)
        if axis is None or None in factor.dims:
            continue
        has = {special.what for special in shown if special.side == side}
        has |= {"inf"} if "inf - inf" in has else set()
        kinds = [kind for kind in _kinds(contraction, factor) if kind not in has]
        kinds = _allowed(contraction, factor, axis, _ends_among(kinds))
        room = factor.shape[axis] // SHARE
        left += [
            [Special(side, kind, axis) for kind in kinds[n : n + room]]
            for n in range(0, len(kinds), room)
        ]
    sides = [[each for each in left if each[0].side == side] for side in (0, 1)]
    yield from (a + b for a, b in zip_longest(*sides, fillvalue=[]))


def _ends_among(kinds: Sequence[str]) -> list[str]:
    """Returns the special values that a side must have in its own format."""
    return [kind for kind in kinds if kind in (*_OF_A_FORMAT, *_OF_SCALES)]


def alone(contraction: Contraction) -> list[list[Special]]:
    """Returns the special values of further executions, one list for each: see the module's
    docstring.

    Values at the ends of a factor's format are in rows of that factor; all other values are in rows
    of the other factor, if it has rows.
    """
    pair = contraction.pairs[0]
    executions = list(_left_over(contraction))
    shown = [_spared(contraction, side) is not None or None in pair[side].dims for side in (0, 1)]
    for side, factor in enumerate(pair):
        if shown[side] or is_integer(factor.dtype):
            continue
        axis = contraction.own_axis(pair, side, least=2)
        kinds = list(_kinds(contraction, factor))
        kinds = [k for k in _ends_among(kinds) if axis is not None or k not in _OF_SCALES]
        if not any(shown) and side == 0:
            kinds = ["subnormals", "overflow", *kinds]
        kinds = _allowed(contraction, factor, axis, kinds)
        room = 1 if axis is None else factor.shape[axis]
        specials = [Special(side, kind, axis) for kind in kinds]
        executions += [specials[n : n + room] for n in range(0, len(specials), room)]
    return executions


def _spared(contraction: Contraction, side: int) -> int | None:
    """Returns the dimension of a side along which some rows, or columns, can be special; None:
    there is none."""
    if side and contraction.blocks:
        return None
    return contraction.own_axis(contraction.pairs[0], side)


def meets_padding(contraction: Contraction, factor: Factor) -> bool:
    """Whether every element of a filter is multiplied by padding in some window."""
    return not all(contraction.taps.get(index[0], [0]) for index in factor.dims if index)


def _kinds(contraction: Contraction, factor: Factor) -> Iterator[str]:
    infinite = bool(np.isinf(np.array(np.inf).astype(factor.dtype)))
    yield "subnormals"
    if infinite:
        yield "inf"
    yield "overflow"
    if infinite or factor.dtype == ml_dtypes.float8_e4m3fn:
        yield "NaN"
    yield "zeros"
    if infinite:
        yield "inf - inf"
    if len(contraction.pairs) > 1:
        yield "NaN scale"
        yield from _OF_SCALES


class Placing:
    """Puts special values into the drawn factors of a contraction.

    drawn: the factors by number of the input
    top:   exponent of the first power of two that no sum may reach
    """

    def __init__(
        self,
        contraction: Contraction,
        drawn: dict[int, Array],
        generator: np.random.Generator,
        top: int = F32_TOP,
    ) -> None:
        self._contraction = contraction
        self._drawn = drawn
        self._finite = dict(drawn)
        self._generator = generator
        self._top = top
        self._rows: list[tuple[Special, int]] = []
        self._small: list[tuple[int, Loops]] = []
        """Side and place of each only non-zero element of a row that is near the smallest."""

    def all(self, specials: Sequence[Special]) -> None:
        """Places each special value in a row (or column) of its own."""
        used = {f.argument for f in self._contraction.factors} & self._drawn.keys()
        for number in used if specials else ():
            self._drawn[number] = self._drawn[number].copy()
        for side, factor in enumerate(self._pair):
            mine = [special for special in specials if special.side == side]
            if None in factor.dims:
                for special in mine:
                    self._place_element(special)
            elif mine:
                size = 1 if mine[0].axis is None else factor.shape[mine[0].axis]
                spare = int(size >= ROWS)  # neither the first nor the last
                free = self._generator.permutation(np.arange(spare, size - spare))
                for special, row in zip(mine, free):
                    self._place(special, int(row))
                    self._rows.append((special, int(row)))

    def start(self, start: Factor) -> None:
        """Puts special values into the input to which the products are added.

        Values at the ends of its format are put where all products are zeros, and zeros where one
        product is far from all others; there are also some infinities and NaNs.
        """
        values = self._drawn.get(start.argument)
        if values is None:  # whole numbers
            return
        ends = ends_of(values.dtype)
        for special, row in sorted(self._rows, key=lambda each: each[0].what in _ONE_PRODUCT):
            factor = self._pair[special.side]
            at = _at(start, _own(factor, special, row))
            if special.what in _ONE_PRODUCT:
                values[at] = 0
            elif special.what == "zeros" and _is_start_of(start, factor, special.axis):
                values[at] = self._generator.choice(ends, values[at].shape)
        places = self._generator.choice(values.size, values.size // SELDOM, replace=False)
        values.reshape(-1)[places] = np.resize(ends[~np.isfinite(ends)], len(places))

    @property
    def _pair(self) -> tuple[Factor, Factor]:
        return self._contraction.pairs[0]

    def _signed(self, value: float) -> float:
        return float(np.copysign(value, self._generator.choice([-1, 1])))

    def _place_element(self, special: Special) -> None:
        factor = self._pair[special.side]
        at = self._generator.integers(factor.shape)
        if special.what == "inf" and (shared := self._contraction.shared_axes(self._pair)):
            at[shared[special.side]] = -1
        self._drawn[factor.argument][tuple(at)] = self._signed(float(special.what))

    def _place(self, special: Special, row: int) -> None:
        factor = self._pair[special.side]
        loops = self._loops(factor) | _own(factor, special, row)
        if special.what == "inf":
            loops |= self._last(factor, special)
        values = self._drawn[factor.argument]
        at = _at(factor, loops)
        match special.what:
            case "NaN" | "inf":
                values[at] = self._signed(float(special.what))
            case "inf - inf":
                values[at] = np.inf
                values[_at(factor, self._loops(factor) | _own(factor, special, row))] = -np.inf
            case "NaN scale":
                scale = self._scale_of(factor, special)
                if scale is not None:
                    self._drawn[scale.argument][_at(scale, loops)] = np.nan
            case _:
                axis = special.axis
                where = () if axis is None else (slice(None),) * axis + (row,)
                zeros = np.zeros(values[where].shape)
                values[where] = np.copysign(zeros, self._generator.choice([-1, 1], zeros.shape))
                if special.what != "zeros" and (place := self._alone(special, factor, row)):
                    loops, magnitude = place
                    values[_at(factor, loops)] = self._signed(magnitude)

    def _loops(self, factor: Factor) -> Loops:
        """Draws a value for each reduction loop that indexes `factor`."""
        return {
            index[0]: int(self._generator.integers(*self._span(index[0], n))) * index[1]
            for n, index in zip(factor.shape, factor.dims, strict=True)
            if index is not None and index[0] not in self._contraction.parallel
        }

    def _span(self, loop: int, extent: int) -> tuple[int, int]:
        """Returns the first value of a loop that is never in the padding, and the one after the
        last."""
        inside = self._contraction.taps.get(loop) or range(extent)
        return inside.start, inside.stop

    def _last(self, factor: Factor, special: Special) -> Loops:
        """Returns the last value of the reduction loop that both factors share."""
        shared = self._contraction.shared_axes(self._pair)
        axis = shared[special.side] if shared else 0
        index = factor.dims[axis]
        return {index[0]: (factor.shape[axis] - 1) * index[1]} if shared and index else {}

    def _scale_of(self, factor: Factor, special: Special) -> Factor | None:
        """Returns the scale of this side, identified by the loop over its rows; the scale of a
        vector is the other one."""
        for pair in self._contraction.pairs[1:]:
            own, other = (self._contraction.own_loops(self._pair, side) for side in (0, 1))
            if special.side:
                own, other = other, own
            loops = [{index[0] for index in scale.dims if index} for scale in pair]
            if own or other:
                return next(
                    scale
                    for scale, has in zip(pair, loops, strict=True)
                    if (own & has if own else not other & has)
                )
            return pair[special.side]
        return None

    def _alone(self, special: Special, factor: Factor, row: int) -> Place | None:
        """Chooses the place and magnitude of the only non-zero element of a row, and sets its
        scale.

        None if it is small and would always be multiplied by a small one of the other side: a
        product that f32 cannot represent is a zero of either sign.
        """
        own = self._scale_of(factor, special)
        if special.what in _OF_SCALES:
            return self._with_scale(special, factor, own, row) if own is not None else None
        small = special.what == "subnormals"
        low, high = _exponents(factor.dtype)
        ends = _exponents(own.dtype) if own is not None else (0, 0)
        end = ends[0] if small else ends[1]
        if not (sums := self._places(special, factor)):
            return None
        places = [place | _own(factor, special, row) for place in sums]
        wanted = np.array([self._wanted(factor, own, loops, small) for loops in places])
        away = wanted - end - low if small else high + end - wanted
        # Best is the sum at f32's end with the element and the scale near theirs. Else it is the
        # sum alone for subnormals, and the scale alone for overflow.
        short, far = (FAR**2, FAR) if special.what == "subnormals" else (FAR, FAR**2)
        cost = np.where(away < 0, short - away, np.where(away > high - low, far + away, away))
        best = int(np.argmin(cost))
        loops, exponent = places[best], int(wanted[best])
        if small:
            self._small.append((special.side, sums[best]))
        if own is not None:
            scale = int(np.clip(exponent - np.clip(exponent - end, low, high), *ends))
            self._drawn[own.argument][_at(own, loops)] = 2.0**scale
            exponent -= scale
        if exponent > high and factor.dtype != np.float32:
            return loops, float(info_of(factor.dtype).max)
        return loops, 2.0 ** int(np.clip(exponent, low, high))

    def _places(self, special: Special, factor: Factor) -> list[Loops]:
        """Returns possible places of the only non-zero element; for a small one, not where the
        other side also has a small one."""
        places = [self._loops(factor) for _ in range(TRIES)]
        if special.what not in _SMALL:
            return places
        others = [place for side, place in self._small if side != special.side]
        return [place for place in places if place not in others]

    def _with_scale(self, special: Special, factor: Factor, own: Factor, row: int) -> Place | None:
        """Chooses the only non-zero element of a row whose scale is at an end of its format, so
        that the results are nearest to 1, which any type can represent."""
        if not (sums := self._places(special, factor)):
            return None
        least = special.what in _SMALL
        end = _exponents(own.dtype)[0 if least else 1]
        low, high = _exponents(factor.dtype)
        places = [place | _own(factor, special, row) for place in sums]
        wanted = np.array([self._wanted(factor, own, loops, None) for loops in places]) - end
        best = int(np.argmin(np.abs(wanted - np.clip(wanted, low, high))))
        if least:
            self._small.append((special.side, sums[best]))
        value = 2.0**end if least else float(info_of(own.dtype).max)
        self._drawn[own.argument][_at(own, places[best])] = value
        return places[best], 2.0 ** int(np.clip(wanted[best], low, high))

    def _wanted(self, factor: Factor, own: Factor | None, loops: Loops, small: bool | None) -> int:
        """Returns the exponent of an element times its scale for which the lowest bit (`small`) or
        the largest of its products is at the end of f32; small None: for which the median product
        is 1."""
        others = [f for f in self._contraction.factors if f not in (factor, own)]
        facing = [np.abs(self._finite[f.argument][_at(f, loops)].astype(float)) for f in others]
        facing = [values[values > 0] for values in facing]
        if small is None:
            return -sum(int(np.median(_top(v))) for v in facing if v.size)
        if small:
            return F32_LOW - sum(int(_quantum(v).min()) for v in facing if v.size)
        return self._top + 1 - sum(int(_top(v).max()) for v in facing if v.size)


def _is_start_of(start: Factor, factor: Factor, axis: int | None) -> bool:
    """Whether the products of each row of `factor` are added to separate elements of `start`."""
    return axis is not None and factor.dims[axis] in start.dims


def _own(factor: Factor, special: Special, row: int) -> Loops:
    if special.axis is None:
        return {}
    index = factor.dims[special.axis]
    assert index is not None
    return {index[0]: row}


def _at(factor: Factor, loops: Loops) -> tuple[int | slice, ...]:
    """Returns the index of an operand's elements at these values of loops, with all elements along
    the other dimensions."""
    return tuple(
        loops[index[0]] // index[1] if index is not None and index[0] in loops else slice(None)
        for index in factor.dims
    )


def _exponents(dtype: np.dtype[Any]) -> tuple[int, int]:
    """Returns the exponents of a type's smallest and largest power of two; f32 counts as tf32."""
    if dtype == ml_dtypes.float8_e8m0fnu:
        return -127, 127
    low = -136 if dtype == np.float32 else int(np.log2(float(info_of(dtype).smallest_subnormal)))
    return low, int(np.log2(float(info_of(dtype).max)))


def _quantum(values: Array) -> Array:
    """Returns the exponent of the lowest set bit of each value."""
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    return exponent - 53 + np.log2((whole & -whole).astype(float)).astype(int)


def _top(values: Array) -> Array:
    """Returns the exponent of the first power of two above each value."""
    return np.frexp(values)[1]
