"""Indices of tensors through reshapes, as digits of loop numbers.

A digit is ``loop div step mod size``; an index is a list of digits, the most significant first. The
index of a collapsed dimension consists of the digits of the original dimensions, and the head of
keys that query heads share consists of the upper digits of the query head.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias


@dataclass(frozen=True)
class LoopDigit:
    """``loop div step mod size``."""

    loop: object
    step: int
    size: int


Index: TypeAlias = "tuple[LoopDigit, ...]"
"""The digits of a number; none: 0."""


class UnevenError(Exception):
    """Raised for a dimension that digits cannot divide."""


def whole(loop: object, size: int) -> Index:
    """Returns the number of a loop as an index."""
    return (LoopDigit(loop, 1, size),) if size != 1 else ()


def join(indices: Iterable[Index]) -> Index:
    """Concatenates the digits of several indices to one index, the most significant first."""
    found: list[LoopDigit] = []
    for digit in (each for index in indices for each in index):
        last = found[-1] if found else None
        if last and last.loop == digit.loop and last.step == digit.step * digit.size:
            found[-1] = LoopDigit(digit.loop, digit.step, last.size * digit.size)
        else:
            found.append(digit)
    return tuple(found)


def split(index: Index, sizes: Sequence[int]) -> list[Index]:
    """Divides an index into indices of these sizes; raises `UnevenError` if digits do not fit."""
    rest = list(index)
    found: list[Index] = []
    for size in reversed(sizes):
        part: list[LoopDigit] = []
        while size > 1:
            if not rest:
                raise UnevenError
            digit = rest.pop()
            if size % digit.size:
                if digit.size % size:
                    raise UnevenError
                rest.append(LoopDigit(digit.loop, digit.step * size, digit.size // size))
                digit = LoopDigit(digit.loop, digit.step, size)
            part.insert(0, digit)
            size //= digit.size
        found.insert(0, tuple(part))
    if rest:
        raise UnevenError
    return found


def size_of(index: Index) -> int:
    """Returns the number of values of an index."""
    return prod(digit.size for digit in index)
