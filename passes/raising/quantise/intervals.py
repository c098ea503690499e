"""Interval arithmetic on numbers. The bounds are computed by the tensor-level interpreter at the
ends of intervals.

The result of an op that is monotone in each operand lies between its values at the corners of the
operands' intervals. If an op is not monotone, or might give a NaN, its result is unknown unless all
intervals are single numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import TypeAlias

import numpy as np

from tcir._mlir import arith, ir
from tcir.dialect.upstream import by_name
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, constant, is_float
from tcir.passes.analysis.element_graph import NotRaised, Number


@dataclass(frozen=True)
class Interval:
    """Ends of intervals, where -0 is less than +0, and whether all numbers are known to lie between
    the ends."""

    low: Array
    high: Array
    known: Array

    @staticmethod
    def point(number: Array) -> Interval:
        """Intervals that contain a single number each."""
        return Interval(number, number, np.ones(np.shape(number), np.bool_))

    @property
    def single(self) -> Array:
        """Mask of the intervals that contain a single number or a NaN only."""
        return self.known & (bits_of(self.low) == bits_of(self.high))

    @property
    def one_sign(self) -> Array:
        """Mask of the intervals whose ends have the same sign."""
        return np.asarray(_negative(self.low) == _negative(self.high))

    @property
    def nan(self) -> Array:
        """Mask of the intervals with a NaN as an end."""
        return np.asarray(np.isnan(_wide(self.low)) | np.isnan(_wide(self.high)))


def bounds(number: Number, variables: Mapping[str, Interval]) -> Interval:
    """Bounds of a number whose variables lie in the given intervals; `NotRaised` for an op without
    a rule."""
    found: dict[Number, Interval] = {}

    def of(each: Number) -> Interval:
        if each not in found:
            found[each] = _bounds(each, [of(operand) for operand in each.operands], variables)
        return found[each]

    with np.errstate(all="ignore"):
        return of(number)


def bits_of(array: Array) -> Array:
    """Views numbers as the unsigned integers that have the same bits."""
    array = np.asarray(array)
    return array.view(np.uint8) if array.dtype == np.bool_ else array.view(f"u{array.itemsize}")


def _bounds(
    number: Number, operands: Sequence[Interval], variables: Mapping[str, Interval]
) -> Interval:
    op = number.op
    if op is None:
        return variables[number.name]
    if op.name == "arith.constant":
        return Interval.point(_constant(op))
    if op.name == "arith.select":
        return _select(*operands)
    if "roundingmode" in op.attributes:
        raise NotRaised(
            op, f"expected rounding to nearest even, got {op.attributes['roundingmode']}"
        )
    if op.name not in RULES:
        raise NotRaised(op, f"expected ops with known bounds, got {op.name}")
    ends = [(x.low,) if x.low is x.high else (x.low, x.high) for x in operands]
    corners = [
        np.asarray(evaluate[op.name](Interpreter(), op.opview, *corner)[0])
        for corner in product(*ends)
    ]
    low, high = reduce(_smaller, corners), reduce(_larger, corners)
    result = Interval(low, high, np.ones(np.shape(low), np.bool_))
    # A NaN at a corner is one everywhere if it is that of a single operand.
    given = ~_all(~(operand.nan & operand.single) for operand in operands)
    numbers = _all(~np.isnan(_wide(corner)) for corner in corners)
    known = RULES[op.name](op, operands, result) & (given | numbers)
    known = known & _all(operand.known for operand in operands)
    return Interval(low, high, np.asarray(known | _all(operand.single for operand in operands)))


def _constant(op: ir.Operation) -> Array:
    attribute, kind = op.attributes["value"], op.results[0].type
    if isinstance(kind, ir.ShapedType):
        if not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
            raise NotRaised(op, f"expected a constant of one number, got one of {kind}")
        kind, attribute = kind.element_type, attribute.get_splat_value()
    return np.asarray(constant(attribute, kind))


def _select(condition: Interval, a: Interval, b: Interval) -> Interval:
    """The selected operand, or the union of both where the condition is unknown."""
    taken = [condition.known & condition.low, condition.known & ~condition.high]

    def either(x: Array, y: Array, both: Array) -> Array:
        return np.where(taken[0], x, np.where(taken[1], y, both))

    return Interval(
        either(a.low, b.low, _smaller(a.low, b.low)),
        either(a.high, b.high, _larger(a.high, b.high)),
        either(a.known, b.known, condition.known & a.known & b.known & ~a.nan & ~b.nan),
    )


def _smaller(a: Array, b: Array) -> Array:
    x, y = _wide(a), _wide(b)
    return np.where((x < y) | ((x == y) & _negative(a)), a, b)


def _larger(a: Array, b: Array) -> Array:
    x, y = _wide(a), _wide(b)
    return np.where((x > y) | ((x == y) & ~_negative(a)), a, b)


def _wide(array: Array) -> Array:
    """Converts numbers to f64, which preserves their order; 64-bit numbers are returned as they
    are."""
    array = np.asarray(array)
    return array if array.dtype.itemsize == 8 else array.astype(np.float64)


def _negative(array: Array) -> Array:
    array = np.asarray(array)
    return np.asarray(np.signbit(array) if is_float(array.dtype) else array < 0)


def _all(masks: Iterable[Array]) -> Array:
    found = np.asarray(True)
    for mask in masks:
        found = np.asarray(found & mask)
    return found


# --- where an op is monotone in each operand ---------------------------------------------------

Rule: TypeAlias = Callable[[ir.Operation, Sequence[Interval], Interval], Array]


def _everywhere(_: ir.Operation, __: Sequence[Interval], result: Interval) -> Array:
    return np.ones(np.shape(result.low), np.bool_)


def _at_points(_: ir.Operation, __: Sequence[Interval], result: Interval) -> Array:
    return np.zeros(np.shape(result.low), np.bool_)


def _one_sign(_: ir.Operation, operands: Sequence[Interval], __: Interval) -> Array:
    """abs, products, quotients, bits of floats: monotone where no operand's interval contains both
    signs."""
    return _all(operand.one_sign for operand in operands)


def _not_negative(_: ir.Operation, operands: Sequence[Interval], __: Interval) -> Array:
    """Monotone where no operand is negative, so that signed and unsigned numbers are the same."""
    return _all(~_negative(operand.low) for operand in operands)


def _logarithm(op: ir.Operation, operands: Sequence[Interval], result: Interval) -> Array:
    """Monotone in f64 only: there the logarithms of different f32 numbers differ by more than
    numpy's error."""
    wide = _not_negative(op, operands, result)
    return wide & (result.low.dtype == np.float64)


def _compared(op: ir.Operation, operands: Sequence[Interval], result: Interval) -> Array:
    """Comparisons of order are monotone; the result of an equality is known for disjoint
    intervals."""
    a, b = operands
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    if predicate in (EQUALITIES if op.name == "arith.cmpf" else (0, 1)):
        return np.asarray((_wide(a.high) < _wide(b.low)) | (_wide(b.high) < _wide(a.low)))
    if op.name == "arith.cmpi" and predicate >= FIRST_UNSIGNED:
        return _not_negative(op, operands, result)
    return _all(x.single | ~x.nan for x in operands)


EQUALITIES, FIRST_UNSIGNED = (1, 6, 8, 13), 6
"""Predicates of cmpf that test equality (oeq, one, ueq, une); of cmpi the first unsigned."""


EXACT: dict[str, Callable[[Array, Array], Array]] = by_name(
    {
        arith.AddIOp: np.add,
        arith.SubIOp: np.subtract,
        arith.MulIOp: np.multiply,
        arith.ShLIOp: lambda a, b: a * np.exp2(b),
    }
)


def _without_wrapping(op: ir.Operation, operands: Sequence[Interval], result: Interval) -> Array:
    """Monotone where integer arithmetic cannot overflow, judged in f64 at the ends of the
    intervals."""
    exact = EXACT[op.name]
    most = float(np.iinfo(result.low.dtype).max)
    wide = [(x.low.astype(np.float64), x.high.astype(np.float64)) for x in operands]
    return _all(np.abs(exact(*corner)) < most for corner in product(*wide))


def _narrowed(_: ir.Operation, operands: Sequence[Interval], result: Interval) -> Array:
    (given,) = operands
    return np.asarray((given.low == result.low) & (given.high == result.high))


def _masked(_: ir.Operation, operands: Sequence[Interval], result: Interval) -> Array:
    """``x & mask``, of bits that differ between the ends all but the lowest kept, or none."""
    a, b = operands
    x, mask = (a, b) if np.all(b.single) else (b, a)
    width: Array = np.asarray(x.low ^ x.high)
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < 8 * width.itemsize:
            width = width | (width >> shift)
    lost = width & ~mask.low
    return np.asarray(
        mask.single & ~_negative(x.low) & ~_negative(x.high) & (lost & (lost + 1) == 0)
    )


RULES: dict[str, Rule] = by_name({
    **dict.fromkeys(
        (
            arith.AddFOp, arith.SubFOp, arith.MaximumFOp, arith.MinimumFOp, arith.MaxNumFOp,
            arith.MinNumFOp, arith.NegFOp, arith.ExtFOp, arith.TruncFOp, arith.ExtSIOp,
            arith.SIToFPOp, arith.MaxSIOp, arith.MinSIOp, arith.ShRSIOp, "math.floor", "math.ceil",
        ),
        _everywhere,
    ),
    **dict.fromkeys((arith.MulFOp, arith.DivFOp, arith.BitcastOp, "math.absf"), _one_sign),
    **dict.fromkeys((arith.CmpFOp, arith.CmpIOp), _compared),
    **dict.fromkeys((arith.AddIOp, arith.SubIOp, arith.MulIOp, arith.ShLIOp), _without_wrapping),
    **dict.fromkeys(
        (arith.ShRUIOp, arith.ExtUIOp, arith.UIToFPOp, arith.MaxUIOp, arith.MinUIOp), _not_negative
    ),
    "math.log2": _logarithm,
    **dict.fromkeys(
        (arith.OrIOp, arith.XOrIOp, arith.FPToSIOp, "math.exp2", "math.powf"), _at_points
    ),
    arith.TruncIOp: _narrowed,
    arith.AndIOp: _masked,
})  # fmt: skip
"""By op: mask of the intervals on which it is monotone, so its corners bound the result."""
