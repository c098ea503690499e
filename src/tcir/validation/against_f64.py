"""Judges results by their errors against f64, in proportion to the errors of a reference.

A result without a worst-case bound, such as that of a deep network, counts as right as long as its
error against f64 is in proportion to the reference's own error against f64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import ml_dtypes
import numpy as np

from tcir.interp.types import Array
from tcir.validation.compare import Difference

FACTOR = 1.5
"""Allowed error against f64 as a multiple of the reference's own error; `ROUNDINGS` are added."""
REFERENCE = "the input program"
ROUNDINGS = {"float32": 128, "float64": 128}
"""Additional allowed error, by type, in roundings of the largest result; 1 for other types.
`linalg` leaves the order of sums open, and sequential sums of some thousand f32 numbers lose
several bits."""
SPREAD = 12**-0.5
"""Root mean square of many roundings, whose errors are evenly spread, over the largest distance."""


def is_floating(dtype: np.dtype) -> bool:
    """Whether the type is a floating-point type, of numpy or of ml_dtypes."""
    try:
        _rounding(dtype)
    except ValueError:
        return False
    return True


def more_roundings(dtype: np.dtype, roundings: Mapping[str, int] = ROUNDINGS) -> float:
    """Error that results of a type may have in addition to one rounding, as a fraction of the
    largest result.
    """
    more = roundings.get(dtype.name, 1) - 1
    return more * _rounding(dtype) if is_floating(dtype) else 0.0


def _rounding(dtype: np.dtype) -> float:
    """Relative distance of neighbouring numbers (epsilon). ValueError for integer types."""
    return float(ml_dtypes.finfo(dtype).eps)  # type: ignore[no-untyped-call]


def has_numbers(results: Sequence[Array]) -> bool:
    """Whether each floating-point result either has a finite element or has no elements."""
    floats = (each for each in results if each.size and is_floating(each.dtype))
    return all(np.isfinite(each.astype(np.float64)).any() for each in floats)


@dataclass(frozen=True)
class Compared:
    """Comparison of a result with the result of the reference.

    failure: description of the fault; "" if there is none
    ratio:   largest error divided by the allowed error
    rms:     root mean square of the errors divided by the allowed root mean square
    error:   largest error against f64, as a fraction of the largest result
    own:     the reference's largest error against f64, as a fraction of the largest result
    finite:  whether the reference has a finite element, or no elements
    """

    failure: str = ""
    ratio: float = 0.0
    error: float = 0.0
    own: float = 0.0
    finite: bool = True
    rms: float = 0.0

    @property
    def excess(self) -> float:
        """The larger of `ratio` and `rms`."""
        return max(self.ratio, self.rms)

    def __str__(self) -> str:
        return (
            f"error against f64 {self.error:.2e} of the largest, of {REFERENCE} {self.own:.2e}; "
            f"{self.ratio:.2f} of the error allowed, rms {self.rms:.2f}"
        )


def compare(
    mine: Array, theirs: Array, exact: Array, reference: str, more: float = 0.0
) -> Compared:
    """Compares a result (`mine`) with the reference's results in the program's own types (`theirs`)
    and in f64 (`exact`).

    more: additional allowed error, as a fraction of the largest result. The largest error of `mine`
    may be the sum of three terms: `FACTOR` times the largest error of `theirs`, one rounding of the
    largest result, and `more`. The root mean square of the errors has a similar limit
    """
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        words = [f"{list(each.shape)} of {each.dtype}" for each in (theirs, mine)]
        return Compared(f"expected {words[0]}, got {words[1]}", float("inf"))
    if not is_floating(theirs.dtype):
        sure = theirs == exact.astype(theirs.dtype)
        wrong = int(((mine != theirs) & sure).sum())
        failure = f"{wrong} of {mine.size} elements differ from {reference}'s" if wrong else ""
        return Compared(failure, float("inf") if wrong else 0.0)
    a, b, right = (each.astype(np.float64) for each in (mine, theirs, exact))
    finite = np.isfinite(b)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not (same[~finite].all() and np.isfinite(a[finite]).all()):
        return Compared(f"NaN and infinities are not where {reference} has them", float("inf"))
    if not finite.any():
        return Compared(finite=not finite.size)
    scale, mean = _sizes(right[finite])
    (error, mean_error), (own, mean_own) = (_sizes(each[finite] - right[finite]) for each in (a, b))
    rounding = _rounding(theirs.dtype)
    spread = SPREAD + (1 - SPREAD) / float(np.sqrt(finite.sum()))  # few may all be far off
    ratio = _ratio(error, FACTOR * own + (rounding + more) * scale)
    rms = _ratio(mean_error, FACTOR * mean_own + (rounding * spread + more) * mean)
    said = f"the largest error against f64 is {error:.2e} of {scale:.2e}, {reference}'s {own:.2e}"
    failure = said if ratio > 1 else ""
    return Compared(failure, ratio, error / (scale or 1.0), own / (scale or 1.0), rms=rms)


def _sizes(values: Array) -> tuple[float, float]:
    """The largest magnitude, and the root mean square."""
    return float(np.abs(values).max()), float(np.sqrt(np.mean(values**2)))


def _ratio(error: float, allowed: float) -> float:
    return error / allowed if allowed else (float("inf") if error else 0.0)


@dataclass(frozen=True)
class Precise:
    """Results of the input program for some inputs: in f64 (`right`), and in the program's own
    types.

    own: sets of results with the program's roundings: the program's own results, and those with
         factors cut to tf32, as tensor cores read them
    """

    right: Sequence[Array]
    own: Sequence[Sequence[Array]] = field(default_factory=list)

    def compared(self, got: Sequence[Array]) -> list[Compared]:
        """Compares each result with each set in `own`, and returns the comparison with the set that
        allows the largest error.
        """
        found = []
        for number, (mine, right) in enumerate(zip(got, self.right, strict=True)):
            more = more_roundings(mine.dtype)
            each = [compare(mine, own[number], right, REFERENCE, more) for own in self.own]
            found.append(min(each, key=lambda one: one.excess))
        return found

    def difference(self, number: int, got: Sequence[Array]) -> Difference:
        """The element of a result whose distance from the f64 result is largest. Its count is the
        number of elements that differ from the input program's result.
        """
        mine, theirs, right = got[number], self.own[0][number], self.right[number]
        a, b, exact = (each.astype(np.float64) for each in (mine, theirs, right))
        with np.errstate(invalid="ignore"):
            far = np.where(np.isfinite(a) & np.isfinite(b), np.abs(a - exact), np.inf)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        index = tuple(int(i) for i in np.unravel_index(np.argmax(np.where(same, 0, far)), a.shape))
        expected = f"{exact[index]:.6g} in f64, {theirs[index]} of {REFERENCE}"
        return Difference(number, index, expected, str(mine[index]), int((~same).sum()), same.size)
