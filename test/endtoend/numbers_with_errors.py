"""Arrays of float64 with a bound of the error that a kernel's f32 arithmetic may make beside them.

Where every step is exact the bound is 0, and a kernel has to have the same bits. What a step may
add follows docs/explanation/gemm.md: an operation of f32 rounds to nearest, a sum of products
truncates, exp, tanh and erf have the errors of the page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

Array = np.ndarray[Any, Any]
DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i8": np.int8,
    "i32": np.int32,
}
ROUNDING = {"f32": (24, -149), "f16": (11, -25), "bf16": (8, -134), "tf32": (10, -137),
            "f8E4M3FN": (4, -10), "f8E5M2": (3, -17)}  # fmt: skip
"""Of a type: bits of half a unit, relative, and the logarithm of the least half unit. An operand
of tf32 may be truncated."""


class OutOfRange(Exception):
    """A number that a type does not have, or of which too little is known."""


@dataclass(frozen=True)
class Number:
    """Values, and how far a kernel's may be from them."""

    value: Array
    error: Array

    @staticmethod
    def exact(value: Any) -> Number:
        """Numbers without an error."""
        value = np.asarray(value, np.float64)
        return Number(value, np.zeros_like(value))

    def tells(self) -> bool:
        """Whether the bound is small beside the values."""
        return bool(self.error.max() <= np.abs(self.value).max() / 4)

    def map(self, change: Callable[[Array], Array]) -> Number:
        """Elements moved: `change` is applied to values and errors alike."""
        return Number(change(self.value), change(self.error))

    def rounded(self, element: str) -> Number:
        """Rounded to nearest: as bits where there is no error."""
        if element not in DTYPES:  # tf32
            low = np.asarray(self.value, np.float32).view(np.uint32) & 0x1FFF
            known = (self.error == 0) & (low == 0) & (self.value == self.value.astype(np.float32))
            narrow = self.value
        else:
            with np.errstate(over="ignore"):
                narrow = self.value.astype(DTYPES[element]).astype(np.float64)
            known = self.error == 0
        if not np.isfinite(narrow).all():
            raise OutOfRange(element)
        bits, least = ROUNDING[element]
        more = self.error + (np.abs(self.value) + self.error) * 2.0**-bits + 2.0**least
        return Number(np.where(known, narrow, self.value), np.where(known, 0, more))

    def computed(self) -> Number:
        """The result of an operation of f32: what f32 does not have gets an error."""
        with np.errstate(over="ignore"):
            same = self.value == self.value.astype(np.float32)
        more = self.error + (np.abs(self.value) + self.error) * 2.0**-23 + 2.0**-126
        return Number(self.value, np.where(same & (self.error == 0), 0, more))

    def __add__(self, other: Number) -> Number:
        return Number(self.value + other.value, self.error + other.error).computed()

    def __sub__(self, other: Number) -> Number:
        return Number(self.value - other.value, self.error + other.error).computed()

    def __mul__(self, other: Number) -> Number:
        error = np.abs(self.value) * other.error + np.abs(other.value) * self.error
        return Number(self.value * other.value, error + self.error * other.error).computed()

    def __truediv__(self, other: Number) -> Number:
        """Quotient by positive numbers."""
        least = other.value - other.error
        if not (least > 0).all():
            raise OutOfRange("a divisor that may be 0")
        error = (self.error + np.abs(self.value / other.value) * other.error) / least
        return Number(self.value / other.value, error).computed()

    def maximum(self, other: Number) -> Number:
        """Maximum of two numbers, without rounding."""
        return Number(np.maximum(self.value, other.value), np.maximum(self.error, other.error))

    def exp(self) -> Number:
        """Exponential by ``ex2.approx``."""
        value = np.exp(self.value)
        own = value * (2.0**-20 + 2.0**-22 * np.abs(self.value)) + 2.0**-126
        return Number(value, (value + own) * np.expm1(self.error) + own).computed()

    def tanh(self) -> Number:
        """tanh, whose slope is at most 1."""
        return Number(np.tanh(self.value), self.error + 2.0**-20).computed()

    def rsqrt(self) -> Number:
        """Reciprocal root of positive numbers, by ``rsqrt.approx``."""
        least = self.value - self.error
        if not (least > 0).all():
            raise OutOfRange("a number that may be 0")
        value = self.value**-0.5
        return Number(value, value * 2.0**-21 + self.error * least**-1.5 / 2).computed()

    def silu(self) -> Number:
        """``x / (1 + exp(-x))``: its slope is 1.1 at most; exp beyond f32 makes it 0."""
        with np.errstate(over="ignore"):
            value = self.value / (1 + np.exp(-self.value))
        own = np.abs(value) * (2.0**-19 + 2.0**-21 * np.abs(self.value)) + 2.0**-100
        return Number(value, 1.1 * self.error + own)

    def erf(self) -> Number:
        """erf, whose slope is at most 2 / sqrt(pi)."""
        return Number(scipy.special.erf(self.value), 1.13 * self.error + 2.0**-20).computed()

    def sum(self) -> Number:
        """Over the last dimension, in any order."""
        return contracted(self, Number.exact(np.ones(self.value.shape[-1])), "...k,k->...", 2**24)

    def max(self) -> Number:
        """Over the last dimension."""
        return Number(self.value.max(-1), self.error.max(-1))


def contracted(a: Number, b: Number, spec: str, most: int = 2**24) -> Number:
    """Sums of products as `numpy.einsum` writes them, in any order of f32.

    They are exact where all terms are multiples of one unit, and their magnitudes sum up to no more
    than `most` of it.
    """
    value = np.einsum(spec, a.value, b.value, optimize=True)
    magnitude = np.einsum(spec, np.abs(a.value), np.abs(b.value), optimize=True)
    error = np.einsum(spec, np.abs(a.value) + a.error, b.error, optimize=True)
    error = error + np.einsum(spec, a.error, np.abs(b.value), optimize=True)
    terms = a.value.size * b.value.size / max(value.size, 1)
    known = not error.any() and bool((magnitude <= most * _unit(a.value) * _unit(b.value)).all())
    loss = (magnitude + error) * 2.0**-22 * np.sqrt(terms) + 2.0**-120
    return Number(value, np.zeros_like(value) if known else error + loss)


def _unit(values: Array) -> float:
    """The largest power of two, from 1 to 2^-40, that all values are multiples of; else 0."""
    units = (2.0**-n for n in range(41))
    return next((unit for unit in units if (values % unit == 0).all()), 0.0)
