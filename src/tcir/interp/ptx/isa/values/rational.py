"""f64 arithmetic by exact fractions. It is slow, and is used for operations that are rare in these
kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

Excess = Callable[..., Fraction]
"""By how much a value, the first argument, is too large for an operation on the others."""


def fma64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Computes a · b + c of f64 arrays, rounded once to nearest even."""
    out = np.asarray(a * b + c)
    # A product that overflows float64 is finite beside an infinite c.
    out = np.where(np.isfinite(a) & np.isfinite(b) & np.isinf(c), c, out)
    for lane in np.flatnonzero(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)):
        exact = Fraction(float(a[lane])) * Fraction(float(b[lane])) + Fraction(float(c[lane]))
        if exact:
            try:
                out[lane] = exact.numerator / exact.denominator  # Python rounds this correctly
            except OverflowError:
                out[lane] = math.inf if exact > 0 else -math.inf
        elif out[lane] != 0:
            out[lane] = 0.0
    return out


def directed64(nearest: np.ndarray, excess: Excess, mode: str, *operands: np.ndarray) -> np.ndarray:
    """Corrects results that were rounded to nearest to the rounding `mode` (rz, rm, rp), by a step
    to the neighbouring number where needed.
    """
    out = nearest.copy()
    usable = ~np.isnan(nearest)
    for operand in operands:
        usable &= np.isfinite(operand)
    for lane in np.flatnonzero(usable):
        value = float(nearest[lane])
        overflow = math.isinf(value)
        try:
            over = excess(
                Fraction(0 if overflow else value), *(Fraction(float(o[lane])) for o in operands)
            )
        except ZeroDivisionError:
            continue  # infinity is exact
        if overflow:
            over = Fraction(1 if value > 0 else -1)
        if over > 0 and (mode == "rm" or mode == "rz" and value > 0):
            out[lane] = math.nextafter(value, -math.inf)
        elif over < 0 and (mode == "rp" or mode == "rz" and value < 0):
            out[lane] = math.nextafter(value, math.inf)
    return out


def sum_excess(v: Fraction, a: Fraction, b: Fraction) -> Fraction:
    return v - (a + b)


def product_excess(v: Fraction, a: Fraction, b: Fraction) -> Fraction:
    return v - a * b


def fused_excess(v: Fraction, a: Fraction, b: Fraction, c: Fraction) -> Fraction:
    return v - (a * b + c)


def quotient_excess(v: Fraction, a: Fraction, b: Fraction) -> Fraction:
    return v - a / b


def root_excess(v: Fraction, a: Fraction) -> Fraction:
    return v * v - a
