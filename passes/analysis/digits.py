"""Indices of tensors as mixed-radix digits of loops, or of an operand element's row and k.

For example, the index of a collapsed dimension consists of the digits of the original dimensions.
If several query heads share a head of keys, the index of that head consists of the upper digits of
the index of the query head.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

ROW, COLUMN = "row", "column"
"""Dimensions of an operand that digits are of."""


@dataclass(frozen=True)
class Digit:
    """A mixed-radix digit of an index: ``(dim // step) mod extent`` of a loop or dimension `dim`;
    if `dim` is None, the constant `step`."""

    dim: object
    step: int
    extent: int


Number: TypeAlias = "tuple[Digit, ...]"
"""Digits, the most significant first: an index below the product of their extents; none: 0."""


class NoDigitsError(Exception):
    """Raised for an index that cannot be written in digits."""


def whole(dim: object, extent: int) -> Number:
    """Returns the index that runs over a whole loop or dimension `dim` of this extent."""
    return number([Digit(dim, 1, extent)])


def constant(value: int, extent: int) -> Number:
    """Writes the constant `value`, which is less than `extent`, as an index."""
    return number([Digit(None, value, extent)])


def number(digits: Iterable[Digit]) -> Number:
    """Writes a number as a sequence of digits. Adjacent digits that are parts of one larger digit
    are joined."""
    found: list[Digit] = []
    for each in digits:
        last = found[-1] if found else None
        if each.extent == 1:
            continue
        if last is not None and last.dim == each.dim and _continues(last, each):
            step = each.step + last.step * each.extent if each.dim is None else each.step
            found[-1] = Digit(each.dim, step, last.extent * each.extent)
        else:
            found.append(each)
    return tuple(found)


def _continues(high: Digit, low: Digit) -> bool:
    return low.dim is None or high.step == low.step * low.extent


def joined(indices: Iterable[Number]) -> Number:
    """Joins the indices of several dimensions into the index of the dimension to which they are
    collapsed."""
    return number(digit for each in indices for digit in each)


def split(index: Number, extents: Sequence[int]) -> list[Number]:
    """Splits the index of a collapsed dimension into indices of the original dimensions, of sizes
    `extents`. Raises `NoDigitsError` if its digits do not fit them."""
    rest = list(index)
    found: list[Number] = []
    for extent in reversed(extents):
        taken: list[Digit] = []
        left = extent
        while left > 1:
            if not rest:
                raise NoDigitsError
            digit = rest.pop()
            if digit.extent > left:
                high, digit = _halves(digit, left)
                rest.append(high)
            if left % digit.extent:
                raise NoDigitsError
            taken.insert(0, digit)
            left //= digit.extent
        found.insert(0, number(taken))
    if rest:
        raise NoDigitsError
    return found


def _halves(digit: Digit, extent: int) -> tuple[Digit, Digit]:
    """Splits a digit into two, the lower of which has `extent`."""
    if digit.extent % extent:
        raise NoDigitsError
    most = digit.extent // extent
    if digit.dim is None:
        return Digit(None, digit.step // extent, most), Digit(None, digit.step % extent, extent)
    return Digit(digit.dim, digit.step * extent, most), Digit(digit.dim, digit.step, extent)


def size_of(index: Number) -> int:
    """Number of values that an index takes."""
    return prod(digit.extent for digit in index)


def known(index: Number) -> int | None:
    """The value of an index if it is a constant, the same for all elements; None otherwise."""
    if not index:
        return 0
    (first, *others) = index
    return first.step if first.dim is None and not others else None
