"""Fused multiply-add of f64 through exact fractions: slow, for what is rare in these kernels."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np


def fma64(a: Any, b: Any, c: Any) -> Any:
    """a · b + c of f64 arrays, rounded once to nearest even."""
    out = np.asarray(a * b + c)
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
