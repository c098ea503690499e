"""Bounds on the difference between a tensor core's result and the reference, per element.

A result with products p_1 … p_K is a chain of fused sums. Each step adds up to 16 products (one
K = 16 instruction of kind f16) and the accumulator at once: every term is truncated to 25 bits
below the largest exponent of the step, 2^emax, and the sum is truncated to f32. With S = sum of
|p_i|, 2^emax <= S and every partial sum is <= S, so one step errs by at most

    (16 + 1) * 2^-25 * S       the terms
    2^-23 * S                  the partial sum to f32

Steps without a nonzero product are exact: the accumulator alone fits its own window. Channels
come in multiples of 8 (TMA needs strides of 16 bytes), so a step holds at least 8 of the K products
and there are at most ceil(K / 8) steps. A block-scaled instruction adds 32 or 64 products in a
step: fewer, larger steps, whose bounds add up to less. The reference may itself sum in f32, in any
order, which errs by at most K * 2^-24 * S. Last, both results are rounded to the output type, half
a unit each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tcir.target import TARGETS

WINDOW = 25
AMPERE_WINDOW = 24
TERMS_PER_STEP = 16
LEAST_PER_STEP = 8
# dtype name: (relative half unit in the last place, half of the smallest subnormal)
_ROUNDING = {
    "float32": (0.0, 0.0),
    "float16": (2.0**-11, 2.0**-25),
    "bfloat16": (2.0**-8, 2.0**-134),
}


@dataclass(frozen=True)
class Sums:
    """How a tensor core sums: bits kept below the largest exponent, products of one fused sum, the
    least of them that are not zero fill, and how much of a product's size is lost in its factors.
    """

    window: int = WINDOW
    terms: int = TERMS_PER_STEP
    least: int = LEAST_PER_STEP
    factors: float = 0.0


def sums_of(dtype: str, target: str) -> Sums:
    """How operands of `dtype` are summed on a target of our pipelines.

    mma.sync of sm_80 keeps 24 bits and adds 16 bytes of a row at once, of sm_90 25 bits and 32
    (`tcir.machine.numerics.warp_mma`); tf32 drops 13 of 23 bits of each factor, which is under
    2^-10 of it.
    Rows may be any number of elements, so only the last step has zero fill.
    """
    if dtype in ("float16", "bfloat16") and TARGETS[target].tcgen05:
        return Sums()
    window = WINDOW if TARGETS[target].fp8 else AMPERE_WINDOW
    if dtype == "float32":
        return Sums(window, 8, 4, 2 * 2.0**-10 + 2.0**-20)
    return Sums(window, 32 if dtype.startswith("float8") else TERMS_PER_STEP, LEAST_PER_STEP)


def fused_sum_bound(
    magnitudes: np.ndarray[Any, Any],
    counts: np.ndarray[Any, Any],
    reference: np.ndarray[Any, Any],
    how: Sums = Sums(),
) -> np.ndarray[Any, Any]:
    """Bound on |result - reference| per element, in float64.

    magnitudes: S, the sum of |a * b| of each output element
    counts:     K, the number of products of each output element
    reference:  the reference's result; its dtype is the output type (f32, f16 or bf16)
    """
    steps = np.ceil(counts.astype(np.float64) / how.least)
    sums = magnitudes.astype(np.float64)
    per_step = (how.terms + 1) * 2.0**-how.window + 2.0**-23
    bound = sums * (steps * per_step + counts.astype(np.float64) * 2.0**-24 + how.factors)
    relative, absolute = _ROUNDING[reference.dtype.name]
    with np.errstate(invalid="ignore"):
        bound += 2 * (relative * (np.abs(reference.astype(np.float64)) + bound) + absolute)
    return bound


def upper(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`values`, themselves rounded sums, increased by the most their rounding may have removed."""
    return values.astype(np.float64) * (1 + 2.0**-7)
