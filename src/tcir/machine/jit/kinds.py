"""What native code is told apart by: the kinds of its arguments."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

C_CONTIGUOUS, ALIGNED = 0x1, 0x100
"""Flags of numpy."""

LONG = ctypes.c_int64
NUMBERS = {"bool": ctypes.c_int8, "int": LONG, "float": ctypes.c_double}
RESULTS: dict[str, Any] = {**NUMBERS, "None": ctypes.c_void_p}
"""By annotation."""


class Kind(NamedTuple):
    """type: of a number, or the letter of a numpy dtype. dimensions: of an array; below 0: of a
    tuple of as many integers; None: of a number."""

    type: str
    dimensions: int | None = None
    flags: int = 0

    @property
    def flat(self) -> list[Any]:
        """What it is passed as."""
        if self.dimensions is None:
            return [NUMBERS[self.type]]
        if self.dimensions < 0:
            return [LONG] * -self.dimensions
        # memory's owner, array's owner, elements, bytes of one, data, shape, strides
        pointer = ctypes.c_void_p
        return [pointer, pointer, LONG, LONG, pointer, *[LONG] * (2 * self.dimensions)]


def flatten(arg: object, values: list[int | float | None]) -> Kind:
    """Appends what `arg` is passed as."""
    if isinstance(arg, np.ndarray):
        data = arg.__array_interface__["data"][0]
        values += (None, None, arg.size, arg.itemsize, data, *arg.shape, *arg.strides)
        return Kind(arg.dtype.char, arg.ndim, arg.flags.num & (C_CONTIGUOUS | ALIGNED))
    if isinstance(arg, tuple):
        values += arg
        return Kind("int", -len(arg))
    number = arg.item() if isinstance(arg, np.generic) else arg
    if not isinstance(number, int | float):
        raise TypeError(f"native code takes arrays, numbers and tuples of integers, got {arg!r}")
    values.append(number)
    return Kind(type(number).__name__)
