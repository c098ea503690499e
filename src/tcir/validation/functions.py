"""Errors of functions such as exp. One part comes from their lowering and from numpy, the rest from
the errors of their operands.

The lowerings are in `passes/emit/functions/`; the errors of approximate instructions are those in
PTX ISA 9.7.3. ``sqrt.rn`` and roundings to whole numbers are exact in the kernel and in numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tcir.interp.tensor.math import FUNCTIONS
from tcir.interp.types import Array

Own: TypeAlias = Callable[[Array, Array, Array], Array]
"""The most that a function may be off, from its value, its argument's magnitude and exponent."""


def _log(absolute: float) -> Own:
    # lg2.approx: 2^-22 of the result, or of 1; ln(2), its product, and numpy's own log.
    return lambda value, *_: absolute + 2.0**-21 * np.abs(value)


def _circular(part: float) -> Own:
    return lambda value, x, _: np.where(x < 2.0**50, np.abs(value) * part, np.inf)


def _power(value: Array, x: Array, exponent: Array) -> Array:
    # Products: half a unit each. Else lg2.approx and its product with the exponent are off by
    # 2^-21 of it, which the exponential multiplies the result by; the root is exact.
    scaled = np.abs(exponent) * np.maximum(np.abs(np.log2(np.maximum(x, 2.0**-149))), 1)
    factors = np.where(exponent == np.trunc(exponent), np.abs(exponent) / 2, scaled)
    own = np.abs(value) * (2.0**-21 + 2.0**-21 * np.where(np.isfinite(x), factors, 0)) + 2.0**-126
    return np.where(x == 0, 0.0, own)  # powers of zeros are exact, their signs too


OWN: dict[str, Own] = {
    # ex2.approx: 2^-22 of the result; its argument x log2(e) is rounded twice, and numpy's own exp
    # is off by under two units.
    "math.exp": lambda value, x, _: np.abs(value) * (2.0**-20 + 2.0**-22 * x) + 2.0**-126,
    "math.exp2": lambda value, *_: np.abs(value) * 2.0**-21 + 2.0**-126,
    "math.log": _log(2.0**-22),
    "math.log2": _log(2.0**-22),
    # 1 + x is rounded, by 2^-24 of it.
    "math.log1p": _log(2.0**-21),
    # 1 - 2 / (1 + exp(2x)), a few units of 1; below 1/4 a series, which keeps 0.
    "math.tanh": lambda value, *_: np.minimum(2.0**-20, 2.0**-18 * np.abs(value)),
    # ex2.approx of a polynomial: 2^-22 of up to 1, its fit 2^-20.58, rounded in f32.
    "math.erf": lambda value, *_: np.full(np.shape(value), 2.0**-20),
    # As log2, and a product.
    "math.log10": _log(2.0**-22),
    # Below 1/4 a series in fused multiply-adds, above it an exponential less 1.
    "math.expm1": lambda value, x, _: (
        np.where(
            x < 0.25, np.abs(value) * 2.0**-21, (np.abs(value) + 1) * (2.0**-20 + 2.0**-22 * x)
        )
        + 2.0**-126
    ),
    # Half an exponential and its inverse; below 1/2 sinh is a series.
    "math.sinh": lambda value, x, _: np.abs(value) * (2.0**-19 + 2.0**-21 * x) + 2.0**-126,
    "math.cosh": lambda value, x, _: np.abs(value) * (2.0**-20 + 2.0**-22 * x) + 2.0**-126,
    # Polynomials of an angle that is rounded once; from 2^50 on they are NaN.
    "math.sin": _circular(2.0**-22),
    "math.cos": _circular(2.0**-22),
    "math.tan": _circular(2.0**-20),
    # A polynomial, a quotient and a sum; of asin and acos the quotient is of rounded numbers.
    "math.atan": lambda value, *_: np.abs(value) * 2.0**-21,
    "math.asin": lambda value, *_: np.abs(value) * 2.0**-20,
    "math.acos": lambda value, *_: np.abs(value) * 2.0**-20,
    # rsqrt.approx: 2^-22.9 of the result; numpy's root and quotient half a unit each.
    "math.rsqrt": lambda value, *_: np.abs(value) * 2.0**-21,
    "math.powf": _power,
    "math.fpowi": _power,
}
"""By op; others are exact."""
MONOTONE = (
    "math.acos", "math.asin", "math.atan", "math.ceil", "math.erf", "math.exp", "math.exp2",
    "math.expm1", "math.floor", "math.log", "math.log10", "math.log1p", "math.log2",
    "math.roundeven", "math.rsqrt", "math.sinh", "math.sqrt", "math.tanh", "math.trunc",
)  # fmt: skip
"""Functions that are farthest off at the ends of where their argument may be."""
EVEN = ("math.cosh", "math.fpowi", "math.powf")
"""Functions that may be farthest off at 0 as well."""
CIRCULAR = ("math.cos", "math.sin", "math.tan")
"""Functions that may be so between; sin and cos are off by no more than their argument."""


def farthest(name: str, x: Array, error: Array, exponent: Array) -> tuple[Array, Array]:
    """Value of a function at x before rounding, and the largest difference between this value and
    the values at arguments within `error` of x. The difference is infinite if it has no finite
    bound.
    """
    operands = (exponent,) if name in ("math.powf", "math.fpowi") else ()
    function = FUNCTIONS[name]
    middle = function(x, *operands)

    def distance(at: Array) -> Array:
        value = function(at, *operands)
        same = (value == middle) | (np.isnan(value) & np.isnan(middle))
        return np.where(same, 0.0, np.abs(value - middle))

    if name in CIRCULAR[:2]:
        return middle, np.where(np.isfinite(middle), np.minimum(error, 2.0), 0.0)
    distances = [distance(x - error), distance(x + error)]
    if name in CIRCULAR:
        branches = [np.floor((x + each) / np.pi + 1 / 2) for each in (-error, error)]
        distances.append(np.where(branches[0] != branches[1], np.inf, 0.0))
    if name in EVEN:
        through = (x - error < 0) & (x + error > 0)
        distances.append(np.where(through, distance(np.zeros_like(x)), 0))
    most: Array = np.maximum.reduce(distances)
    return middle, np.where(np.isnan(most), np.inf, most)
