"""Bounds on the difference between a tensor core's result and the reference, per element.

A result with products p_1 … p_K is a chain of fused sums. Each step of the chain adds up to 16
products (one K = 16 instruction of kind f16) and the accumulator at once. Every term is truncated
to 25 bits below the largest exponent of the step, 2^emax, and the sum is truncated to f32. The
exponent of a product is the sum of its factors' encoded exponents. A subnormal factor has the
exponent of the smallest normal number (docs/explanation/numerics.md): 2^-24 in f16 counts as 2^-14.

Let S be the sum of |p_i|, and R the same sum with each non-zero factor replaced by at least the
smallest normal number of its type (`encoded`). Then 2^emax <= R, every partial sum is <= S <= R,
and one step errs by at most

    (16 + 1) * 2^-25 * R       the terms
    2^-23 * R                  the partial sum to f32

Without subnormal factors, R = S.

The number of steps: a step without a nonzero product is exact, because the accumulator alone fits
its own window. Channels come in multiples of 8 (TMA needs strides of 16 bytes), so a step contains
at least 8 of the K products, and there are at most ceil(K / 8) steps that err. A block-scaled
instruction adds 32 or 64 products in a step; such steps are fewer and larger, and their bounds add
up to less. Sums of fp8 in wgmma keep 13 bits, both of the terms and of the sum. Kernels therefore
add up sums of 128 products in f32, so that only the steps within one such partial sum form a chain.
Each partial sum errs in proportion to its own S, so all of them together err like a single one in
proportion to the S of the whole sum.

The reference may itself sum in f32, in any order, which errs by at most K * 2^-24 * S. Finally,
both results are rounded to the output type, which adds half a unit each.

This worst case grows with K times the products, but the errors of a whole array do not. Let Q be
the square root of the sum of p_i^2. The accumulator is about Q, and the truncations of a step are
about 2^-24 Q for the sum and 2^-26 Q for each term, times R / S where factors are subnormal. Errors
of partial sums that are added up in f32 may have either sign. `expected_squares` is the mean square
error that this gives for an element. The mean of error^2 / expected square over an array must not
exceed `squares_limit`. Rounding to a narrow type gives the same result in the kernel and in the
reference unless a tie lies between their sums, which has the probability error / unit. Truncation
instead of rounding is wrong by a unit in half of the elements, which this mean exposes and the
worst case does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tcir.interp.types import Array, DType, is_float
from tcir.target import TARGETS

WINDOW = 25
AMPERE_WINDOW = 24
FP8_WINDOW, FP8_STEPS = 13, 4
"""Numerics of wgmma on fp8: bits kept, and instructions of a partial sum, 128 bytes of K."""
TF32_LEAST = 2.0**-136
"""The smallest number of tf32: below it a factor is lost."""
TERMS_PER_STEP = 16
LEAST_PER_STEP = 8
ROUNDING = {
    "float32": (0.0, 0.0),
    "float16": (2.0**-11, 2.0**-25),
    "bfloat16": (2.0**-8, 2.0**-134),
    "float8_e4m3fn": (2.0**-4, 2.0**-10),
    "float8_e5m2": (2.0**-3, 2.0**-17),
    # Of what is quantised in blocks the error is bounded as a whole (`tcir.validation.quantised`).
    "float4_e2m1fn": (0.0, 0.0),
    "float8_e8m0fnu": (0.0, 0.0),
}
"""By dtype: the relative half unit in the last place, and half of the smallest subnormal."""

NARROW = ("float16", "bfloat16")
"""Types to which a program rounds what f32 computes."""


@dataclass(frozen=True)
class Sums:
    """How a tensor core adds products.

    window:   bits kept below the largest exponent
    terms:    number of products of one fused sum
    least:    minimum number of products of a fused sum that are not zero fill
    factors:  relative error of a product from rounding its factors
    fraction: fraction bits of a fused sum
    chain:    maximum number of consecutive fused sums before sums in f32 take over; None: no limit
    """

    window: int = WINDOW
    terms: int = TERMS_PER_STEP
    least: int = LEAST_PER_STEP
    factors: float = 0.0
    fraction: int = 23
    chain: int | None = None

    @property
    def bits(self) -> int:
        """Number of significant bits of a fused sum."""
        return self.fraction + 1

    def steps(self, counts: Array) -> Array:
        """Largest number of consecutive fused sums."""
        steps = np.ceil(counts / self.least)
        return steps if self.chain is None else np.minimum(steps, self.chain)


WHOLE = Sums()
"""Sums that keep all bits of f32."""


def sums_of(dtype: str, target: str) -> Sums:
    """Returns how products of `dtype` are summed on a target for which tcir has a pipeline.

    mma.sync of sm_80 keeps 24 bits and adds the products of 16 bytes of a row at once; that of
    sm_90 keeps 25 bits and adds those of 32 bytes (`tcir.machine.numerics.warp_mma`). tf32 drops 13
    of the 23 fraction bits of each factor, an error of less than 2^-10 of the factor. On a target
    with wgmma, fp8 has the bound of wgmma, which is wider than that of mma.sync. Rows may have any
    number of elements, and only the last step of a row contains zero fill.
    """
    if dtype in ("float16", "bfloat16") and TARGETS[target].tcgen05:
        return Sums()
    window = WINDOW if TARGETS[target].fp8 else AMPERE_WINDOW
    if dtype.startswith("float8") and TARGETS[target].wgmma:
        return Sums(FP8_WINDOW, 32, fraction=FP8_WINDOW, chain=FP8_STEPS)
    if dtype == "float32":
        return Sums(window, 8, 4, 2 * 2.0**-10 + 2.0**-20)
    return Sums(window, 32 if dtype.startswith("float8") else TERMS_PER_STEP, LEAST_PER_STEP)


def encoded(magnitudes: Array, dtype: DType) -> Array:
    """Magnitudes of factors according to their encoded exponents: a subnormal number of `dtype`
    counts as the smallest normal number. Zeros stay zero, because their products have no exponent.
    """
    if not is_float(dtype):
        return magnitudes
    least = float(ml_dtypes.finfo(dtype).smallest_normal)  # type: ignore[no-untyped-call]
    sizes, found = magnitudes.astype(np.float64), np.array(magnitudes)
    found[(sizes > 0) & (sizes < least)] = least  # no other number is touched: f8E8M0FNU has no 0
    return found


def fused_sum_bound(
    magnitudes: Array,
    exponents: Array,
    counts: Array,
    reference: Array,
    how: Sums = Sums(),
) -> Array:
    """Bound on |result - reference| per element, in float64.

    magnitudes: S, the sum of |a * b| of each output element
    exponents:  R, the same sum of `encoded` factors
    counts:     K, the number of products of each output element
    reference:  the reference's result; its dtype is the output type (f32, f16 or bf16)
    """
    steps = how.steps(counts.astype(np.float64))
    sums = magnitudes.astype(np.float64)
    per_step = (how.terms + 1) * 2.0**-how.window + 2.0**-how.fraction
    bound = sums * (counts.astype(np.float64) * 2.0**-24 + how.factors)
    bound += exponents.astype(np.float64) * steps * per_step
    relative, absolute = ROUNDING[reference.dtype.name]
    with np.errstate(invalid="ignore"):
        bound += 2 * (relative * (np.abs(reference.astype(np.float64)) + bound) + absolute)
    return bound


def spread_of(inputs: Sequence[Array]) -> float:
    """Root mean square of the products, divided by their mean magnitude."""
    spread = 1.0
    for array in inputs:
        magnitudes = np.abs(array.astype(np.float64))
        mean = float(magnitudes.mean())
        spread *= float(np.sqrt((magnitudes**2).mean())) / mean if mean else 1.0
    return spread


def expected_squares(
    magnitudes: Array,
    exponents: Array,
    counts: Array,
    reference: Array,
    how: Sums,
    spread: float,
) -> Array:
    """Mean square of (result - reference) that sums of random products may have, per element.

    The arguments are those of `fused_sum_bound`; `spread` is the result of `spread_of` for the
    inputs.
    """
    number = np.maximum(counts.astype(np.float64), 1)
    size, largest = (
        spread * each.astype(np.float64) / np.sqrt(number) for each in (magnitudes, exponents)
    )
    steps = how.steps(number)
    per_step = (how.terms + 1) * 2.0 ** -(how.window + 1) + 2.0 ** -(how.fraction + 1)
    error = largest * steps * per_step + size * (np.sqrt(number) * 2.0**-24 + how.factors / 2)
    relative, absolute = ROUNDING[reference.dtype.name]
    unit = 2 * (relative * np.abs(reference.astype(np.float64)) + absolute)
    return error**2 + unit * error


def squares_limit(expected: Array, reference: Array) -> float:
    """The largest allowed mean of error^2 / expected square: 1, plus an allowance for chance in
    small arrays.

    If result and reference round to different sides of a tie, the element is off by a whole unit,
    whose square is unit / error times the expected square.
    """
    if not expected.size:
        return 1.0
    relative, absolute = ROUNDING.get(reference.dtype.name, (0.0, 0.0))  # integers are exact
    with np.errstate(invalid="ignore"):  # of infinities
        unit = 2 * (relative * np.abs(reference.astype(np.float64)) + absolute)
    known = (expected > 0) & ~np.isinf(expected)
    rare = np.divide(unit**2, expected, out=np.zeros_like(expected), where=known)
    return 1 + 4 * float(np.sqrt((3 + rare.mean()) / max(expected.size, 1)))


def upper(values: Array) -> Array:
    """Upper bounds of `values`, which are rounded sums: each is increased by the most that rounding
    may have removed.
    """
    return values.astype(np.float64) * (1 + 2.0**-7)
