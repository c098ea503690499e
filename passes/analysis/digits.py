"""Indices as mixed-radix digits of an operand element's row and k."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

ROW, COLUMN = "row", "column"
"""Dimensions that digits are of."""


@dataclass(frozen=True)
class Digit:
    """``(dim // step) mod extent``; without a dimension, the number `step` itself."""

    dim: str
    step: int
    extent: int


Number: TypeAlias = "tuple[Digit, ...]"
"""Digits, the most significant first: an index below the product of their extents."""


class NoDigitsError(Exception):
    """Raised for an index that cannot be written in digits."""


def number(digits: Iterable[Digit]) -> Number:
    """A number made of digits; adjacent ones that are parts of one digit are joined."""
    found: list[Digit] = []
    for each in digits:
        last = found[-1] if found else None
        if each.extent == 1:
            continue
        if last is not None and last.dim == each.dim and _continues(last, each):
            step = each.step + last.step * each.extent if not each.dim else each.step
            found[-1] = Digit(each.dim, step, last.extent * each.extent)
        else:
            found.append(each)
    return tuple(found)


def _continues(high: Digit, low: Digit) -> bool:
    return not low.dim or high.step == low.step * low.extent


def joined(indices: Sequence[Number]) -> Number:
    """The index of several dimensions collapsed into one, from their indices."""
    return number(digit for each in indices for digit in each)


def split(index: Number, extents: Sequence[int]) -> list[Number]:
    """The indices of the dimensions of `extents` that were collapsed into one, from its index."""
    rest = list(index)
    found: list[Number] = []
    for place in reversed(range(len(extents))):
        taken: list[Digit] = []
        while (left := extents[place] // prod(each.extent for each in taken)) > 1:
            digit = rest.pop()
            if digit.extent > left:
                high, digit = _halves(digit, left)
                rest.append(high)
            if left % digit.extent:
                raise NoDigitsError
            taken.insert(0, digit)
        found.insert(0, number(taken))
    return found


def _halves(digit: Digit, extent: int) -> tuple[Digit, Digit]:
    """Splits a digit into two, the lower of which has `extent`."""
    if digit.extent % extent:
        raise NoDigitsError
    whole = digit.extent // extent
    if not digit.dim:
        return Digit("", digit.step // extent, whole), Digit("", digit.step % extent, extent)
    return Digit(digit.dim, digit.step * extent, whole), Digit(digit.dim, digit.step, extent)


def known(index: Number) -> int | None:
    """The index as a constant, if it is the same for all elements."""
    if not index:
        return 0
    (first, *others) = index
    return first.step if not first.dim and not others else None
