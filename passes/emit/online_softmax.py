"""The numbers of a softmax over blocks, computed in threads as `tcir.interp.online_softmax` defines
them.

The numbers are f32, or vectors of f32 with one number per row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tcir._mlir import arith, ir, llvm
from tcir.dialect.ops.attention import FAR, LEAST_EXPONENT, LN_2, LOG2_E, POLYNOMIAL, TO_WHOLE
from tcir.passes.emit.functions.f32 import about_one, constant, each


def exp2(x: ir.Value) -> ir.Value:
    """Emits ``ex2.approx.ftz.f32``."""
    return each("ex2.approx.ftz.f32", x)


def online_max(
    before: ir.Value, largest: ir.Value, scale: float, tau: float, below: float = 0.0
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Emits three numbers: the maximum of the rows so far, the reference of the exponents (0 for a
    row of -inf), and the factor of earlier sums."""
    kind = before.type
    factor = constant(kind, scale)
    if below:
        largest = arith.subf(largest, constant(kind, below))
    after = arith.maxnumf(before, largest)
    empty = arith.cmpf(arith.CmpFPredicate.OEQ, after, constant(kind, -math.inf))
    reference = arith.select(empty, constant(kind, 0.0), after)
    was, now = (arith.mulf(value, factor) for value in (before, reference))
    far = arith.ori(_is_far(was), _is_far(now))
    difference = arith.mulf(arith.subf(before, reference), factor)
    exponent = arith.select(far, difference, arith.subf(was, now))
    alpha = exp2(exponent)
    if tau > 0:
        keeps = arith.cmpf(arith.CmpFPredicate.OGE, exponent, constant(kind, -tau))
        after, reference = (arith.select(keeps, before, value) for value in (after, reference))
        alpha = arith.select(keeps, constant(kind, 1.0), alpha)
    return after, reference, alpha


@dataclass(frozen=True)
class Shift:
    """A map from the scores of a row to exponents: ``(score - taken) * scale + added``. far:
    whether `taken` is subtracted; if not, `taken` is 0"""

    far: ir.Value
    taken: ir.Value
    added: ir.Value

    @staticmethod
    def of(reference: ir.Value, scale: float) -> Shift:
        """Builds the shift for a given reference of the exponents."""
        kind = reference.type
        zero = constant(kind, 0.0)
        product = arith.mulf(reference, constant(kind, scale))
        far = _is_far(product)
        taken = arith.select(far, reference, zero)
        return Shift(far, taken, arith.select(far, zero, arith.negf(product)))


def power(score: ir.Value, scale: ir.Value, added: ir.Value) -> ir.Value:
    """Emits ``2^(score * scale + added)`` by an fma and an ex2."""
    return exp2(llvm.intr_fma(score, scale, added))


def exp2_polynomial(x: ir.Value) -> ir.Value:
    """Emits 2^x of a vector by the polynomial `POLYNOMIAL`: a maximum, two sums, a difference,
    three fma, and a product with a power of two. All of these except the maximum and a shift
    operate on two elements at a time."""
    bits = ir.VectorType.get(x.type.shape, ir.IntegerType.get_signless(32))
    to_whole = constant(x.type, TO_WHOLE)
    x = arith.maximumf(x, constant(x.type, LEAST_EXPONENT))
    shifted = arith.addf(x, to_whole)
    rest = arith.subf(x, arith.subf(shifted, to_whole))
    exponent = arith.ShLIOp(arith.bitcast(bits, shifted), constant(bits, 23)).result
    return arith.mulf(about_one(rest, POLYNOMIAL), arith.bitcast(x.type, exponent))


def inverse_sum(total: ir.Value, times: float = 1.0) -> ir.Value:
    """Emits ``rcp.approx.ftz.f32`` of `total`, or 1 if it is 0 or NaN. times: a factor of the
    result"""
    none = arith.cmpf(arith.CmpFPredicate.UEQ, total, constant(total.type, 0.0))
    inverse = each("rcp.approx.ftz.f32", arith.select(none, constant(total.type, 1.0), total))
    return inverse if times == 1 else arith.mulf(inverse, constant(total.type, times))


def log_sum(largest: ir.Value, total: ir.Value, scale: float) -> ir.Value:
    """Emits the natural logarithm of a row's sum of exponentials, by ``lg2.approx.ftz.f32``; -inf
    if the sum is 0."""
    kind = total.type
    scaled = arith.mulf(largest, constant(kind, scale))
    bits = arith.addf(scaled, each("lg2.approx.ftz.f32", total))
    none = arith.cmpf(arith.CmpFPredicate.OEQ, total, constant(kind, 0.0))
    natural = arith.mulf(bits, constant(kind, LN_2))
    return arith.select(none, constant(kind, -math.inf), natural)


def weight(logarithm: ir.Value, reference: ir.Value) -> ir.Value:
    """Emits the weight ``exp(logarithm - reference)`` of a part of the keys. logarithm: natural
    logarithm of the part's sum of exponentials"""
    difference = arith.subf(logarithm, reference)
    return exp2(arith.mulf(difference, constant(difference.type, LOG2_E)))


def combined_sum(reference: ir.Value, total: ir.Value) -> ir.Value:
    """Emits the natural logarithm of the sum of exponentials of all parts of the keys, from the
    `total` of their weights; -inf if `total` is 0."""
    kind = total.type
    logarithm = each("lg2.approx.ftz.f32", total)
    found = llvm.intr_fma(logarithm, constant(kind, LN_2), reference)
    none = arith.cmpf(arith.CmpFPredicate.OEQ, total, constant(kind, 0.0))
    return arith.select(none, constant(kind, -math.inf), found)


def _is_far(exponent: ir.Value) -> ir.Value:
    """Whether the magnitude of an exponent of two is above `FAR`."""
    size = each("abs.f32", exponent)
    return arith.cmpf(arith.CmpFPredicate.OGT, size, constant(exponent.type, FAR))
