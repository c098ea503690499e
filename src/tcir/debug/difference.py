"""The first element that differs from expected results, and the write that caused it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tcir.run import LaunchError, Uninitialized


@dataclass(frozen=True)
class FirstDifference:
    """A stop right after the last write to the first element that differs from the expected result.

    expected: correct contents of an array argument
    argument: number of the argument, from 0; None: the only argument of that shape and type
    within:   allowed absolute difference; 0: values must be equal, and NaN equals any NaN
    """

    expected: np.ndarray = field(repr=False)
    argument: int | None = None
    within: float = 0.0

    def output(self, args: list[object]) -> tuple[int, np.ndarray]:
        """Number and array of the argument to compare."""
        arrays = {n: array_of(a) for n, a in enumerate(args)}
        alike = [
            n
            for n, a in arrays.items()
            if a is not None and a.shape == self.expected.shape and a.dtype == self.expected.dtype
        ]
        what = f"{self.expected.dtype.name}{list(self.expected.shape)}"
        number = self.argument
        if number is None:
            if len(alike) != 1:
                raise LaunchError(
                    f"first-difference: expected one array argument of type {what}, got "
                    f"{len(alike)}; name its number: first-difference=N=EXPECTED.npy"
                )
            number = alike[0]
        elif number not in alike:
            raise LaunchError(f"first-difference: argument {number} is not an array of type {what}")
        array = arrays[number]
        assert array is not None
        return number, array

    def find(self, got: np.ndarray) -> tuple[int, ...] | None:
        """Index of the first wrong element; None if all are right."""
        a, b = self.expected, got
        wrong = ~((a == b) | (a != a) & (b != b))
        if self.within:
            with np.errstate(invalid="ignore"):
                wrong &= ~(np.abs(a.astype(np.float64) - b.astype(np.float64)) <= self.within)
        if not wrong.any():
            return None
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


def array_of(arg: object) -> np.ndarray | None:
    """Array of an argument of a run; None if the argument has no array."""
    if isinstance(arg, Uninitialized):
        return arg.array
    if isinstance(arg, np.ndarray):
        return arg
    return getattr(arg, "array", None)
