"""Error bounds on the results of elementwise ops, derived from the errors of the operands.

Infinities and NaNs are classes of values. If arithmetic decides the class of a result, the result
must have exactly this class. The class is undecided if an operand is itself undecided ("open"), if
a number within the error of an operand rounds to an infinity, or if a zero within that error has
the other sign. Such results are open as well: they may have any value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import TypeAlias

import ml_dtypes
import numpy as np

from tcir._mlir import arith
from tcir.dialect.upstream import by_name
from tcir.interp.tensor.math import FUNCTIONS
from tcir.interp.types import Array, DType
from tcir.validation.functions import CIRCULAR, EVEN, MONOTONE, OWN, farthest

Slope: TypeAlias = "Array | float"
_F64 = 2.0**-50
"""Relative error of arithmetic in f64 here, with room to spare."""


@dataclass(frozen=True)
class Known:
    """Numbers with their largest errors and their mean square errors.

    The error of a value that is certainly infinite or NaN is 0. The error of an open value, which
    may be anything, is infinite.

    floor: a lower bound of the numbers, where it is tighter than the one from the error
    """

    value: Array
    error: Array
    square: Array
    floor: Array | None = None

    @staticmethod
    def exact(value: Array) -> Known:
        """Returns numbers without errors, which must be equal at every level."""
        zeros = np.zeros(np.shape(value))
        return Known(value, zeros, zeros)

    def like(self, change: Callable[[Array], Array]) -> Known:
        """Returns the numbers and their errors after `change`, which only rearranges elements."""
        floor = None if self.floor is None else change(self.floor)
        return Known(change(self.value), change(self.error), change(self.square), floor)

    @cached_property
    def wide(self) -> Array:
        """The numbers in float64."""
        return np.asarray(self.value, np.float64)

    @property
    def size(self) -> Array:
        """Upper bounds of the magnitudes."""
        return np.abs(self.wide) + self.error

    @property
    def least(self) -> Array:
        """Lower bounds of the numbers."""
        least = self.wide - self.error
        return least if self.floor is None else np.fmax(self.floor, least)

    @cached_property
    def open(self) -> Array:
        """Mask of the values that may be anything."""
        return np.isinf(self.error)

    @cached_property
    def nan(self) -> Array:
        """Mask of the values that are certainly NaN."""
        return np.isnan(self.wide) & ~self.open

    @cached_property
    def signless(self) -> Array:
        """Mask of the values that may be zero or whose sign is not certain."""
        return (self.error > 0) & (np.abs(self.wide) <= self.error) & ~(self.least > 0)

    def opened(self, where: Array | bool) -> Known:
        """Returns the numbers with an infinite error at `where`. Elsewhere, infinities and NaNs
        have the error 0, so that they must match.
        """
        finite = np.isfinite(self.wide)
        error, square = (np.where(finite, each, 0.0) for each in (self.error, self.square))
        return Known(self.value, np.where(where, np.inf, error), np.where(where, np.inf, square))

    def finite(self) -> Known:
        """Returns the numbers with exact zeros in place of values that are open, infinite or
        NaN.
        """
        kept = np.isfinite(self.wide) & ~self.open
        if kept.all():
            return self
        zero = np.zeros((), np.asarray(self.value).dtype)
        return Known(
            *(
                np.where(kept, a, z)
                for a, z in ((self.value, zero), (self.error, 0.0), (self.square, 0.0))
            )
        )


def overflow(dtype: DType) -> float:
    """Least magnitude that rounds to infinity, or to the number that the type has instead of
    infinity.
    """
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    largest = float(info.max)
    return largest + float(np.ldexp(float(info.eps), int(np.frexp(largest)[1]) - 2))


def _any(masks: Sequence[Array]) -> Array:
    return reduce(np.logical_or, masks)


def _unit(dtype: DType, size: Array, error: Array) -> Array:
    """A unit in the last place of numbers up to ``size + error``; 0 where there is no error."""
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    largest = np.minimum(size + error, float(info.max))
    unit = np.maximum(largest * float(info.eps), float(info.smallest_subnormal))
    return np.where(error > 0, unit, 0.0)


def _smallest(value: Array) -> float:
    """The smallest number of a type."""
    info = ml_dtypes.finfo(np.asarray(value).dtype)  # type: ignore[no-untyped-call]
    return float(info.smallest_subnormal)


def _rounded_ends(value: Array, real: Array, error: Array) -> Array:
    """How far a result may be off that was within `error` of `real` before it was rounded: rounding
    keeps the order of numbers, so it is between the ends, rounded."""
    if not np.any(error > 0):
        return error
    wide, reach = value.astype(np.float64), error * (1 + _F64) + np.abs(real) * _F64
    with np.errstate(all="ignore"):
        ends = [(real + side * reach).astype(value.dtype).astype(np.float64) for side in (-1, 1)]
        distance = np.maximum.reduce([np.abs(end - wide) for end in ends])
    signless = (distance == 0) & (np.abs(real) <= reach)  # zeros of both signs
    distance = np.where(signless, _smallest(value), distance)
    return np.where(error > 0, np.where(np.isfinite(distance), distance, 0.0), 0.0)


def _smooth(
    value: Array,
    real: Array,
    pairs: Sequence[tuple[Known, Slope]],
    own: Slope | None = None,
    unsure: Array | bool = False,
) -> Known:
    """From operands with the slopes of the op there, and what the op itself is off.

    real:   the result before it is rounded
    own:    None of one that is rounded to the nearest
    unsure: where not even the class is known, besides what is open or near the largest number
    """
    value = np.asarray(value)
    error = np.zeros(value.shape) + (0.0 if own is None else own)
    square = np.square(error)
    for known, slope in pairs:
        moved = (known.error > 0) & ~known.open & np.isfinite(slope)
        error = error + np.where(moved, slope * known.error, 0.0)
        square = square + np.where(moved, np.square(slope) * known.square, 0.0)
    real = np.asarray(real, np.float64)
    size = np.abs(real)
    limit = overflow(value.dtype)  # of what is rounded, which is off by `error`
    certain = (size + error < limit) | (size - error >= limit) | np.isnan(size) | (error == 0)
    unit = _unit(value.dtype, size, error)
    square = square + unit * np.sqrt(square)
    narrow = own is None and value.dtype != np.float64
    error = _rounded_ends(value, real, error) if narrow else error + unit
    open_ = _any([unsure | ~certain, *(known.open for known, _ in pairs)])
    return Known(value, error, square).opened(open_ & ~_any([known.nan for known, _ in pairs]))


def _add(value: Array, a: Known, b: Known) -> Known:
    known = _smooth(value, a.wide + b.wide, [(a, 1.0), (b, 1.0)])
    if a.floor is None and b.floor is None:
        return known
    return replace(known, floor=_rounded_down(a.least + b.least, value))


def _rounded_down(least: Array, value: Array) -> Array:
    """Below numbers rounded to the type of `value`; nothing is known unless they are positive."""
    unit = float(ml_dtypes.finfo(np.asarray(value).dtype).eps)  # type: ignore[no-untyped-call]
    return np.where(least > 0, least * (1 - unit), -np.inf)


def _sub(value: Array, a: Known, b: Known) -> Known:
    return _smooth(value, a.wide - b.wide, [(a, 1.0), (b, 1.0)])


def _times_zero(a: Known, b: Known) -> Array:
    """Mask of products of infinity and a factor that may be 0."""
    return (np.isinf(a.wide) & b.signless) | (np.isinf(b.wide) & a.signless)


def _of_either_sign(known: Known, *operands: Known) -> Known:
    """Widens the error of zeros whose operands may have either sign."""
    either = (known.value == 0) & _any([each.signless for each in operands])
    return replace(
        known, error=np.where(either, np.fmax(known.error, _smallest(known.value)), known.error)
    )


def _mul(value: Array, a: Known, b: Known) -> Known:
    pairs = [(a, b.size), (b, np.abs(a.wide))]
    known = _smooth(value, a.wide * b.wide, pairs, unsure=_times_zero(a, b))
    return _of_either_sign(known, a, b)


def _fma(value: Array, a: Known, b: Known, c: Known) -> Known:
    pairs: list[tuple[Known, Slope]] = [(a, b.size), (b, np.abs(a.wide)), (c, 1.0)]
    return _smooth(value, a.wide * b.wide + c.wide, pairs, unsure=_times_zero(a, b))


def _div(value: Array, a: Known, b: Known) -> Known:
    slope: Array = 1 / np.fmax(np.abs(b.wide) - np.where(b.open, 0.0, b.error), b.least)
    real = a.wide / b.wide
    unsure = b.signless | (a.signless & (b.wide == 0))
    known = _smooth(value, real, [(a, slope), (b, np.abs(real) * slope)], unsure=unsure)
    return _of_either_sign(known, a, b)


def _round(value: Array, a: Known) -> Known:
    return _smooth(value, a.wide, [(a, 1.0)])


def _closest(value: Array, *operands: Known) -> Known:
    """Result that is one of the operands, where NaN operands may be skipped: the largest error of
    any."""
    error = np.maximum.reduce(np.broadcast_arrays(*(k.error for k in operands)))
    square = np.maximum.reduce(np.broadcast_arrays(*(k.square for k in operands)))
    return Known(value, error, square).opened(np.isinf(error))


def _most(value: Array, *operands: Known) -> Known:
    """One of the operands; NaN if one is."""
    known = _closest(value, *operands)
    return known.opened(known.open & ~_any([k.nan for k in operands]))


def _compare(value: Array, a: Known, b: Known) -> Known:
    error = a.error + b.error
    near = (np.abs(a.wide - b.wide) <= error) & (error > 0)
    open_ = (near | a.open | b.open) & ~a.nan & ~b.nan
    return Known(value, open_.astype(np.float64), open_.astype(np.float64))


def _select(value: Array, condition: Known, a: Known, b: Known) -> Known:
    chosen = [
        np.where(condition.value, x, y) for x, y in ((a.error, b.error), (a.square, b.square))
    ]
    distance = np.where(a.wide == b.wide, 0.0, np.abs(a.wide - b.wide))
    either = distance + np.maximum(a.error, b.error)
    open_ = condition.error > 0
    square = np.where(open_, np.minimum(either**2, a.square + b.square + distance**2), chosen[1])
    error = np.where(open_, either, chosen[0])
    known = Known(value, error, square)
    both = a.nan & b.nan
    return known.opened(np.where(open_, ~np.isfinite(error) & ~both, np.isinf(error)))


def _same(value: Array, a: Known) -> Known:
    return Known(value, a.error, a.square)


def _fill(value: Array, number: Known, *_: Known) -> Known:
    shape = np.shape(value)
    return Known(value, *(np.broadcast_to(e, shape) for e in (number.error, number.square)))


def _function(name: str) -> Callable[..., Known]:
    def rule(value: Array, x: Known, *exponent: Known) -> Known:
        power = exponent[0].wide if exponent else np.ones(())
        real, distance = farthest(name, x.wide, np.where(x.open, 0.0, x.error), power)
        own = OWN[name](real, x.size, power) if name in OWN else np.zeros(np.shape(real))
        beyond = np.isfinite(real) & np.isposinf(own)
        own = np.where(np.isfinite(real) & np.isfinite(own), own, 0.0)
        slope = distance / np.where(x.error > 0, x.error, 1)
        unsure = beyond | ((x.error > 0) & ~np.isfinite(distance))
        known = _smooth(value, real, [(x, slope)], own, unsure)
        if name in ("math.exp", "math.exp2"):
            with np.errstate(invalid="ignore"):
                lowest = FUNCTIONS[name](np.where(x.open, -np.inf, x.least)) - own
            known = replace(known, floor=_rounded_down(lowest, value))
        return known.opened(known.open | exponent[0].open) if exponent else known

    return rule


RULES: dict[str, Callable[..., Known]] = by_name(
    {
        arith.AddFOp: _add,
        arith.SubFOp: _sub,
        arith.MulFOp: _mul,
        arith.DivFOp: _div,
        "math.fma": _fma,
        **dict.fromkeys((arith.TruncFOp, arith.SIToFPOp), _round),
        **dict.fromkeys((arith.ExtFOp, arith.NegFOp, "math.absf"), _same),
        **dict.fromkeys((arith.MaximumFOp, arith.MinimumFOp), _most),
        **dict.fromkeys((arith.MaxNumFOp, arith.MinNumFOp), _closest),
        **dict.fromkeys((arith.CmpFOp, arith.CmpIOp), _compare),
        arith.SelectOp: _select,
        **{name: _function(name) for name in (*MONOTONE, *EVEN, *CIRCULAR)},
        "linalg.fill": _fill,
    }
)
"""The rules of ops whose operands may be off, or that are off themselves."""
