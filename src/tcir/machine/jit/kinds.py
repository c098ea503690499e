"""Types of arguments, as far as they decide which native code a call runs."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

C_CONTIGUOUS, ALIGNED = 0x1, 0x100
"""Flags of numpy."""

LONG = ctypes.c_int64
NUMBERS = {"bool": ctypes.c_int8, "int": LONG, "float": ctypes.c_double}
RESULTS: dict[str, Any] = {**NUMBERS, "None": ctypes.c_void_p}
"""Types of results by annotation."""


Key = tuple[str] | tuple[str, int] | tuple[str, int, int]
"""The fields of a `ArgumentKind`."""


class ArgumentKind(NamedTuple):
    """Type of one argument of a compiled function.

    type: type of a number, or the letter of an array's numpy dtype
    dimensions: number of dimensions of an array; -n for a tuple of n integers; None for a number
    flags: C_CONTIGUOUS and ALIGNED of an array
    """

    type: str
    dimensions: int | None = None
    flags: int = 0

    @property
    def flat(self) -> list[Any]:
        """Types of the C values that pass the argument: an array is passed as the address of its
        Python object.
        """
        if self.dimensions is None:
            return [NUMBERS[self.type]]
        return [LONG] * -self.dimensions if self.dimensions < 0 else [ctypes.c_void_p]


def flatten(arg: object, values: list[int | float]) -> Key:
    """Appends to a list the C values that pass `arg`."""
    if isinstance(arg, np.ndarray):
        values.append(id(arg))
        return arg.dtype.char, arg.ndim, arg.flags.num & (C_CONTIGUOUS | ALIGNED)
    if isinstance(arg, tuple):
        values += arg
        return "int", -len(arg)
    number = arg.item() if isinstance(arg, np.generic) else arg
    if not isinstance(number, int | float):
        raise TypeError(f"native code takes arrays, numbers and tuples of integers, got {arg!r}")
    values.append(number)
    return (type(number).__name__,)
