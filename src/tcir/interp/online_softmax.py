"""A softmax over blocks of keys, in the f32 instructions of attention kernels.

All levels share these definitions: rows are rows of scores, and a row's exponents are relative to
its ``reference``. With ``c = f32(scale * log2(e))``, for each block of scores S::

    m', r, alpha = online_max(m, max(S), c, tau, below)
    P = exponentials(S, r, c)                          # 2^((S - r) * c)
    l' = fma(l, alpha, sum(P)); O' = alpha * O + P * V

and at the end ``O / l``, and ``(m * c + log2(l)) * ln(2)`` for the logarithm of the sum.

Where keys are divided into parts, these logarithms give the weight of each part (`weight`,
`combined_sum`).
"""

from __future__ import annotations

import numpy as np

from tcir.dialect.ops import attention
from tcir.interp.bands import allowed
from tcir.interp.tensor.math import fma
from tcir.interp.types import Array

LN_2 = np.float32(attention.LN_2)
_LEAST = np.float32(2.0**-126)


def log2_scale(scale: float) -> np.float32:
    """``scale * log2(e)``, by which scores become exponents of two, rounded once to f32."""
    return np.float32(scale * attention.LOG2_E)


def flushed(x: Array) -> Array:
    """Replaces subnormal f32 numbers by zeros of the same sign (``.ftz``)."""
    x = np.asarray(x, np.float32)
    return np.where(np.abs(x) < _LEAST, np.copysign(np.float32(0), x), x)


def exp2(x: Array) -> Array:
    """``ex2.approx.ftz.f32``, rounded to nearest (PTX ISA 9.7.3.21)."""
    with np.errstate(all="ignore"):
        return flushed(np.exp2(flushed(x).astype(np.float64)).astype(np.float32))


def exp2_polynomial(x: Array) -> Array:
    """2^x by a polynomial, `attention.POLYNOMIAL`, for x below 128.

    With n the nearest whole number of x: ``1 + c1 f + c2 f^2 + c3 f^3`` of f = x - n, in fused
    multiply-adds, times 2^n, whose exponent comes from the sum that rounds x. Exact for whole x;
    0 from `attention.LEAST_EXPONENT` on down; NaN for NaN.
    """
    with np.errstate(all="ignore"):
        x = np.maximum(np.asarray(x, np.float32), np.float32(attention.LEAST_EXPONENT))
        shifted = x + TO_WHOLE
        rest = x - (shifted - TO_WHOLE)
        total = np.full_like(rest, attention.POLYNOMIAL[-1])
        for factor in (*reversed(attention.POLYNOMIAL[:-1]), 1.0):
            total = fma(total, rest, np.asarray(factor, np.float32))
        return total * (shifted.view(np.uint32) << np.uint32(23)).view(np.float32)


def log2(x: Array) -> Array:
    """``lg2.approx.ftz.f32``, rounded to nearest (PTX ISA 9.7.3.20)."""
    with np.errstate(all="ignore"):
        return flushed(np.log2(flushed(x).astype(np.float64)).astype(np.float32))


def reciprocal(x: Array) -> Array:
    """``rcp.approx.ftz.f32``, rounded to nearest (PTX ISA 9.7.3.13)."""
    with np.errstate(all="ignore"):
        return flushed((1.0 / flushed(x).astype(np.float64)).astype(np.float32))


FAR = np.float32(attention.FAR)
TO_WHOLE = np.float32(attention.TO_WHOLE)


def exponents(scores: Array, reference: Array, c: np.float32) -> Array:
    """``(scores - reference) * c``: one fma with the row's ``reference * c``, which is rounded once
    and cancels in ``O / l``; where its magnitude exceeds `FAR`, a difference and a product."""
    with np.errstate(all="ignore"):
        product = reference * c
        near = fma(scores, np.asarray(c), -product)
        return np.where(np.abs(product) > FAR, (scores - reference) * c, near)


def masked(scores: Array, row: int, column: int, keys: int, band: attention.Band) -> Array:
    """Scores of the rows from `row` and the keys from `column` on, -inf from the key `keys` on and
    outside the band."""
    rows, columns = scores.shape
    return np.where(allowed(rows, columns, keys, band, (row, column)), scores, np.float32(-np.inf))


def online_max(
    before: Array, largest: Array, c: np.float32, tau: float, below: float = 0.0
) -> tuple[Array, Array, Array]:
    """New maximum of each row, the reference of its exponents, and the factor of its earlier sums.

    before:  maximum before this block, -inf at first
    largest: maximum of the block
    tau:     largest growth of exponents without rescaling the sums: up to it the earlier maximum
             remains (0: the new maximum is always taken)
    below:   difference between the largest score and the maximum that is kept, so that exponentials
             are up to ``2^(below * c)``

    The exponent of the factor is ``before * c - maximum * c``, because exponentials are relative to
    these products; beyond `FAR` it is ``(before - maximum) * c``. A row with only -inf has the
    reference 0, so that its exponentials are 0, not NaN.
    """
    with np.errstate(all="ignore"):
        after = np.fmax(before, largest - np.float32(below))
        reference = np.where(after == -np.inf, np.float32(0), after)
        was, now = before * c, reference * c
        far = (np.abs(was) > FAR) | (np.abs(now) > FAR)
        exponent = np.where(far, (before - reference) * c, was - now)
        alpha = exp2(exponent)
        if tau > 0:
            keeps = exponent >= np.float32(-tau)
            after, reference = (np.where(keeps, before, new) for new in (after, reference))
            alpha = np.where(keeps, np.float32(1), alpha)
    return after, reference, alpha


def exponentials(scores: Array, reference: Array, c: np.float32, polynomial: int = 0) -> Array:
    """``2^((scores - reference) * c)``, at most near ``2^tau``.

    reference:  a column
    polynomial: number of columns, the last ones of every 16, for which `exp2_polynomial` computes
                the powers
    """
    x = exponents(scores, reference, c)
    powers = exp2(x)
    columns = attention.by_polynomial(x.shape[1], polynomial)
    powers[:, columns] = exp2_polynomial(x[:, columns])
    return powers


def row_sum(values: Array, parts: int) -> Array:
    """Row sums, as a column: column n is added to partial sum ``n mod parts``; then the second half
    of the partial sums is added to the first, until one is left."""
    with np.errstate(all="ignore"):
        total = values[:, :parts]
        for first in range(parts, values.shape[1], parts):
            total = total + values[:, first : first + parts]
        while total.shape[1] > 1:
            half = total.shape[1] // 2
            total = total[:, :half] + total[:, half:]
        return total


def inverse_sum(total: Array, times: float = 1.0) -> Array:
    """Factor of a row of O at the end: ``times / total``; ``times`` for a row without keys, so that
    its O is zero, and for a row whose sum is NaN."""
    with np.errstate(all="ignore"):
        inverse = reciprocal(np.where((total == 0) | np.isnan(total), np.float32(1), total))
        return inverse * np.float32(times)


def log_sum(largest: Array, total: Array, c: np.float32) -> Array:
    """The natural logarithm of the sum of exponentials; -inf where a row had no key."""
    with np.errstate(all="ignore"):
        bits = largest * c + log2(total)
        return np.where(total == 0, np.float32(-np.inf), bits * LN_2).astype(np.float32)


def weight(logarithm: Array, reference: Array) -> Array:
    """Weight ``exp(logarithm - reference)`` of a part of the keys, whose sum of exponentials has
    this natural logarithm."""
    with np.errstate(all="ignore"):
        return exp2((logarithm - reference) * np.float32(attention.LOG2_E))


def combined_sum(reference: Array, total: Array) -> Array:
    """Natural logarithm of the sum over all parts, given the sum of their weights (`total`); -inf
    if `total` is 0."""
    with np.errstate(all="ignore"):
        found = fma(log2(total), np.asarray(LN_2), reference)
        return np.where(total == 0, np.float32(-np.inf), found).astype(np.float32)
