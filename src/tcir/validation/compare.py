"""Compares results, bit for bit or within a bound, and locates the first difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcir.interp.types import Array, is_float

Arrays = Sequence[Array]


@dataclass(frozen=True)
class Difference:
    """The first wrong element of a result, and the number of all its wrong elements."""

    output: int
    index: tuple[int, ...]
    expected: str
    got: str
    count: int
    total: int
    site: str = ""

    def __str__(self) -> str:
        place = f"output {self.output} at [{', '.join(map(str, self.index))}]"
        site = f" ({self.site})" if self.site else ""
        return (
            f"{self.count} of {self.total} elements; first: {place}{site}: "
            f"expected {self.expected}, got {self.got}"
        )


def bits(array: Array) -> Array:
    """The elements as unsigned integers of the same width."""
    contiguous = np.asarray(array, order="C")
    return contiguous.view(f"u{array.dtype.itemsize}")


def unequal(expected: Array, got: Array) -> Array:
    """Mask of the elements that differ in any bit, so that -0 differs from 0; two NaNs always count
    as equal.

    Neither linalg nor LLVM defines which NaN an operation returns (LLVM LangRef, "Behavior of
    Floating-Point NaN values"). For PTX instructions, `tcir.machine` defines it.
    """
    wrong: Array = bits(expected) != bits(got)
    if is_float(expected.dtype) and wrong.any():
        wrong &= ~(np.isnan(expected) & np.isnan(got))
    return wrong


def same_bits(expected: Arrays, got: Arrays) -> bool:
    """Whether all results agree bit for bit, where two NaNs count as equal (see `unequal`)."""
    return not any(unequal(a, b).any() for a, b in zip(expected, got, strict=True))


def first_difference(
    expected: Arrays, got: Arrays, bounds: Arrays | None = None
) -> Difference | None:
    """The first element whose bits differ or, if `bounds` is given, whose error exceeds its
    bound.
    """
    for number, (a, b) in enumerate(zip(expected, got, strict=True)):
        wrong = unequal(a, b)
        if bounds is not None:
            bound = bounds[number]  # 0: the same bits; a NaN in one of them is beyond any other
            wrong &= ~(((errors(a, b) <= bound) & (bound > 0)) | np.isinf(bound))
        if wrong.any():
            index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
            return Difference(
                number, index, str(a[index]), str(b[index]), int(wrong.sum()), wrong.size
            )
    return None


def errors(expected: Array, got: Array) -> Array:
    """Computes |got - expected| in float64; 0 for equal infinities and for two NaNs."""
    with np.errstate(invalid="ignore"):
        distance = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    return np.where(unequal(expected, got), distance, 0.0)


def largest_ratio(expected: Arrays, got: Arrays, bounds: Arrays) -> tuple[float, float]:
    """The largest error, and the largest ratio of an error to its bound, among elements with a
    finite bound.
    """
    error, ratio = 0.0, 0.0
    for a, b, bound in zip(expected, got, bounds, strict=True):
        distance = np.where(np.isinf(bound), 0.0, errors(a, b))
        if distance.size:
            error = max(error, float(distance.max()))
            with np.errstate(divide="ignore"):  # of what has to be exact
                part = np.divide(distance, bound, out=np.zeros_like(distance), where=distance > 0)
            ratio = max(ratio, float(part.max()))
    return error, ratio


def mean_squares(expected: Arrays, got: Arrays, squares: Arrays) -> list[float]:
    """For each result, the mean of error^2 / expected square. Elements whose expected square is
    infinite, and NaNs, are left out.
    """
    means = []
    for a, b, square in zip(expected, got, squares, strict=True):
        error = errors(a, b) ** 2
        finite = (square > 0) & ~np.isinf(square)
        part = np.divide(error, square, out=np.zeros_like(error), where=finite)
        part[np.isnan(square) & (error > 0)] = np.inf
        means.append(float(part.mean()) if part.size else 0.0)
    return means
