"""Hyperbolic functions of f32 numbers and vectors: computed from exponentials and, near 0, from
series."""

from __future__ import annotations

from tcir._mlir import arith, ir, llvm
from tcir.passes.emit.functions.f32 import LOG2_E, about_one, constant, each, exp

NEAR_EXPM1, NEAR_SINH = 0.25, 0.5
"""Below these the series are taken, which keep zeros, signs and small numbers."""
EXPM1 = (1 / 2, 1 / 6, 1 / 24, 1 / 120, 1 / 720)
SINH = (1 / 6, 1 / 120, 1 / 5040)


def expm1(x: ir.Value) -> ir.Value:
    """Emits ``exp(x) - 1``."""
    far = arith.subf(exp(x), constant(x.type, 1.0))
    return _near(x, NEAR_EXPM1, arith.mulf(x, about_one(x, EXPM1)), far)


def sinh(x: ir.Value) -> ir.Value:
    """Emits ``h - 1 / 4h``, where `h` is half the exponential of abs(x), with the sign of x."""
    half, quarter = _half(x)
    size = arith.subf(half, quarter)
    negative = arith.cmpf(arith.CmpFPredicate.OLT, x, constant(x.type, 0.0))
    far = arith.select(negative, arith.negf(size), size)
    return _near(x, NEAR_SINH, arith.mulf(x, about_one(arith.mulf(x, x), SINH)), far)


def cosh(x: ir.Value) -> ir.Value:
    """Emits ``h + 1 / 4h``, where `h` is half the exponential of abs(x)."""
    return arith.addf(*_half(x))


def _half(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """``exp(abs(x)) / 2``, which overflows no sooner than the function, and its inverse over 4."""
    log2_e, less = constant(x.type, LOG2_E), constant(x.type, -1.0)
    half = each("ex2.approx.f32", llvm.intr_fma(each("abs.f32", x), log2_e, less))
    return half, arith.divf(constant(x.type, 0.25), half)


def _near(x: ir.Value, limit: float, near: ir.Value, far: ir.Value) -> ir.Value:
    size = each("abs.f32", x)
    is_near = arith.cmpf(arith.CmpFPredicate.OLT, size, constant(x.type, limit))
    return arith.select(is_near, near, far)
