"""How far a tensor core's result may be from the reference, element by element.

A result with products p_1 … p_K is a chain of fused sums. Each step adds up to 16 products (one
K = 16 instruction of kind f16) and the accumulator at once: every term is truncated to 25 bits
below the largest exponent of the step, 2^emax, and the sum is truncated to f32. With S = sum of
|p_i|, 2^emax <= S and every partial sum is <= S, so one step errs by at most

    (16 + 1) * 2^-25 * S       the terms
    2^-23 * S                  the partial sum to f32

Steps without a nonzero product err by nothing: the accumulator alone fits its own window. Channels
come in multiples of 8 (TMA needs strides of 16 bytes), so a step holds at least 8 of the K products
and there are at most ceil(K / 8) steps. The reference may itself sum in f32, in any order, which
errs by at most K * 2^-24 * S. Last, both results are rounded to the output type, half a unit each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WINDOW = 25
TERMS_PER_STEP = 16
LEAST_PER_STEP = 8
# dtype name: (relative half unit in the last place, half of the smallest subnormal)
_ROUNDING = {
    "float32": (0.0, 0.0),
    "float16": (2.0**-11, 2.0**-25),
    "bfloat16": (2.0**-8, 2.0**-134),
}


def fused_sum_bound(
    magnitudes: np.ndarray[Any, Any],
    counts: np.ndarray[Any, Any],
    reference: np.ndarray[Any, Any],
) -> np.ndarray[Any, Any]:
    """Bound on |result - reference| per element, in float64.

    magnitudes: S, the sum of |a * b| of each output element
    counts:     K, the number of products of each output element
    reference:  the reference's result; its dtype is the output type (f32, f16 or bf16)
    """
    steps = np.ceil(counts.astype(np.float64) / LEAST_PER_STEP)
    sums = magnitudes.astype(np.float64)
    per_step = (TERMS_PER_STEP + 1) * 2.0**-WINDOW + 2.0**-23
    bound = sums * (steps * per_step + counts.astype(np.float64) * 2.0**-24)
    relative, absolute = _ROUNDING[reference.dtype.name]
    with np.errstate(invalid="ignore"):
        bound += 2 * (relative * (np.abs(reference.astype(np.float64)) + bound) + absolute)
    return bound


def upper(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`values`, themselves rounded sums, raised by what their own rounding may have taken off."""
    return values.astype(np.float64) * (1 + 2.0**-7)
