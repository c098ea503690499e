"""Online softmax over blocks of keys, in the f32 instructions of attention kernels.

The executors of all levels use these definitions. Rows are rows of scores, and the exponents of a
row are relative to the row's ``reference``. With ``c = f32(scale * log2(e))``, for each block of
scores S::

    m', r, alpha = online_max(m, max(S), c, tau, below)
    P = exponentials(S, r, c)                          # 2^((S - r) * c)
    l' = fma(l, alpha, sum(P)); O' = alpha * O + P * V

After the last block the result is ``O / l``, and the logarithm of the sum of exponentials is ``(m *
c + log2(l)) * ln(2)``.

Where the keys are divided into parts, each part has such a logarithm, which gives the weight of the
part in the combined result (`weight`, `combined_sum`).
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
    """Returns ``scale * log2(e)``, rounded once to f32: the factor that turns a score into an
    exponent of two.
    """
    return np.float32(scale * attention.LOG2_E)


def flushed(x: Array) -> Array:
    """Replaces subnormal f32 numbers by zeros of the same sign (``.ftz``)."""
    x = np.asarray(x, np.float32)
    return np.where(np.abs(x) < _LEAST, np.copysign(np.float32(0), x), x)


def exp2(x: Array) -> Array:
    """Computes ``ex2.approx.ftz.f32``, rounded to nearest (PTX ISA 9.7.3.21)."""
    with np.errstate(all="ignore"):
        return flushed(np.exp2(flushed(x).astype(np.float64)).astype(np.float32))


def exp2_polynomial(x: Array) -> Array:
    """Computes 2^x by the polynomial `attention.POLYNOMIAL`, for x below 128.

    n is the whole number nearest to x, and f = x - n. The result is ``1 + c1 f + c2 f^2 + c3 f^3``,
    computed in fused multiply-adds, times 2^n; n is taken from the sum that rounds x. The result is
    exact for whole x, 0 for x up to `attention.LEAST_EXPONENT`, and NaN for NaN.
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
    """Computes ``lg2.approx.ftz.f32``, rounded to nearest (PTX ISA 9.7.3.20)."""
    with np.errstate(all="ignore"):
        return flushed(np.log2(flushed(x).astype(np.float64)).astype(np.float32))


def reciprocal(x: Array) -> Array:
    """Computes ``rcp.approx.ftz.f32``, rounded to nearest (PTX ISA 9.7.3.13)."""
    with np.errstate(all="ignore"):
        return flushed((1.0 / flushed(x).astype(np.float64)).astype(np.float32))


FAR = np.float32(attention.FAR)
TO_WHOLE = np.float32(attention.TO_WHOLE)


def exponents(scores: Array, reference: Array, c: np.float32) -> Array:
    """Computes ``(scores - reference) * c``.

    This is one fma of the scores, c and the row's product ``reference * c``. The product is rounded
    once, and its rounding error cancels in ``O / l``. Where the magnitude of the product exceeds
    `FAR`, a subtraction and a multiplication are used instead.
    """
    with np.errstate(all="ignore"):
        product = reference * c
        near = fma(scores, np.asarray(c), -product)
        return np.where(np.abs(product) > FAR, (scores - reference) * c, near)


def masked(scores: Array, row: int, column: int, keys: int, band: attention.Band) -> Array:
    """Scores of a block whose first row is `row` and whose first key is `column`, with -inf for
    every key that is not below `keys` or lies outside the row's band.
    """
    rows, columns = scores.shape
    return np.where(allowed(rows, columns, keys, band, (row, column)), scores, np.float32(-np.inf))


def online_max(
    before: Array, largest: Array, c: np.float32, tau: float, below: float = 0.0
) -> tuple[Array, Array, Array]:
    """Returns the new maximum of each row, the reference of the row's exponents, and the factor by
    which the row's earlier sums are multiplied.

    before:  maximum before this block; -inf before the first block
    largest: maximum of the block
    tau:     largest growth of exponents for which the sums are not rescaled: up to this growth the
             earlier maximum remains (0: the new maximum is always taken)
    below:   difference between the largest score and the maximum that is kept, so that exponentials
             are up to ``2^(below * c)``

    The exponent of the factor is ``before * c - maximum * c``, because exponentials are relative to
    these two products. If one of the products exceeds `FAR`, the exponent is ``(before - maximum) *
    c``. A row with only -inf has the reference 0, so that its exponentials are 0 and not NaN.
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
    """Computes ``2^((scores - reference) * c)``, which is at most about ``2^tau``.

    reference:  one column with a number per row
    polynomial: number of columns, the last ones of every 16 columns, whose powers are computed by
                `exp2_polynomial`
    """
    x = exponents(scores, reference, c)
    powers = exp2(x)
    columns = attention.by_polynomial(x.shape[1], polynomial)
    powers[:, columns] = exp2_polynomial(x[:, columns])
    return powers


def row_sum(values: Array, parts: int) -> Array:
    """Returns the sum of each row, as a column.

    Column n is added to the partial sum number ``n mod parts``. Then the second half of the partial
    sums is added to the first half, repeatedly, until one sum is left.
    """
    with np.errstate(all="ignore"):
        total = values[:, :parts]
        for first in range(parts, values.shape[1], parts):
            total = total + values[:, first : first + parts]
        while total.shape[1] > 1:
            half = total.shape[1] // 2
            total = total[:, :half] + total[:, half:]
        return total


def inverse_sum(total: Array, times: float = 1.0) -> Array:
    """Returns the factor ``times / total`` by which a row of O is multiplied after the last block.
    For a row without keys, and for a row whose sum is NaN, the factor is ``times``; the O of a row
    without keys thus stays zero.
    """
    with np.errstate(all="ignore"):
        inverse = reciprocal(np.where((total == 0) | np.isnan(total), np.float32(1), total))
        return inverse * np.float32(times)


def log_sum(largest: Array, total: Array, c: np.float32) -> Array:
    """Returns the natural logarithm of the sum of exponentials; -inf for a row without keys."""
    with np.errstate(all="ignore"):
        bits = largest * c + log2(total)
        return np.where(total == 0, np.float32(-np.inf), bits * LN_2).astype(np.float32)


def weight(logarithm: Array, reference: Array) -> Array:
    """Returns ``exp(logarithm - reference)``, the weight of a part of the keys; `logarithm` is the
    natural logarithm of the part's sum of exponentials.
    """
    with np.errstate(all="ignore"):
        return exp2((logarithm - reference) * np.float32(attention.LOG2_E))


def combined_sum(reference: Array, total: Array) -> Array:
    """Natural logarithm of the sum over all parts, given the sum of their weights (`total`); -inf
    if `total` is 0."""
    with np.errstate(all="ignore"):
        found = fma(log2(total), np.asarray(LN_2), reference)
        return np.where(total == 0, np.float32(-np.inf), found).astype(np.float32)
