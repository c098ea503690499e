"""Mathematical functions of numbers and vectors, computed by a few f32 instructions of documented
accuracy.

``ex2.approx.f32`` has a relative error of at most 2^-22, ``rcp.approx.f32`` of 2^-23 and
``rsqrt.approx.f32`` of 2^-22.9. ``lg2.approx.f32`` has a relative error of 2^-22 or, for arguments
between 1/2 and 2, an absolute error of 2^-22 (PTX ISA 9.7.3); `tcir.validation.functions` has the
resulting bounds. ``sqrt.rn`` and ``cvt`` to integers are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tcir._mlir import arith, ir, llvm
from tcir.passes.emit.functions.f32 import LOG2_E, constant, each, exp, with_element
from tcir.passes.emit.functions.hyperbolic import cosh, expm1, sinh
from tcir.passes.emit.functions.trigonometry import acos, asin, atan, cos, sin, tan

LN_2 = 0.6931471805599453
ERFC = (-1.62788904, -0.918509364, -0.148665473, 0.0295900386, -0.00294420682)
"""Coefficients of x, x^2 … in log2(erfc(x)), fitted for the least error of 2^(…) in f32: 2^-20.58,
which with the error of ex2 is below 2^-20, from 0 on. Three more terms would reach 2^-24, but a
gelu of half-precision results, which does not need it, would have a quarter more instructions."""


WIDE = 32
"""Bits of f32."""
SMALL = 0.25
"""Limit below which tanh is computed by its series, which keeps zeros, signs and small numbers."""
TANH = (-1 / 3, 2 / 15, -17 / 315)


def function(name: str, given: ir.Value, exponent: float | None = None) -> ir.Value:
    """Emits the function `name`, a key of `NAMES`. Arguments of types narrower than f32 are
    widened, and the result is rounded back.

    exponent: exponent of a power
    """
    wide = with_element(given.type, ir.F32Type.get())
    x = given if given.type == wide else arith.extf(wide, given)
    result = FUNCTIONS[name](x) if exponent is None else power(x, exponent)
    return result if given.type == wide else arith.truncf(given.type, result)


def divided(a: ir.Value, b: ir.Value) -> ir.Value:
    """Emits a / b. PTX has no division of f16 and bf16, so it is done in f32: the f32 quotient has
    more than twice the digits of these types, so rounding it again gives the same result as
    rounding once."""
    element = a.type.element_type if isinstance(a.type, ir.VectorType) else a.type
    if element.width >= WIDE:
        return arith.divf(a, b)
    wide = with_element(a.type, ir.F32Type.get())
    return arith.truncf(a.type, arith.divf(arith.extf(wide, a), arith.extf(wide, b)))


def log(x: ir.Value) -> ir.Value:
    """Emits the natural logarithm as ``log2(x) / log2(e)``."""
    return arith.mulf(each("lg2.approx.f32", x), constant(x.type, LN_2))


def tanh(x: ir.Value) -> ir.Value:
    """Emits tanh as ``1 - 2 / (1 + exp(2x))`` and, near 0, as ``x (1 + x^2 (…))``, in fused
    multiply-adds.

    Subnormal numbers are treated as zeros; next to 1 that makes no difference.
    """
    one, less = constant(x.type, 1.0), constant(x.type, -2.0)
    power = each("ex2.approx.ftz.f32", arith.mulf(x, constant(x.type, 2 * LOG2_E)))
    far = llvm.intr_fma(each("rcp.approx.ftz.f32", arith.addf(one, power)), less, one)
    square = arith.mulf(x, x)
    tail = constant(x.type, TANH[-1])
    for factor in reversed(TANH[:-1]):
        tail = llvm.intr_fma(tail, square, constant(x.type, factor))
    near = arith.mulf(x, llvm.intr_fma(tail, square, one))
    is_near = arith.cmpf(arith.CmpFPredicate.OLT, square, constant(x.type, SMALL**2))
    return arith.select(is_near, near, far)


def erf(x: ir.Value) -> ir.Value:
    """Emits erf as ``1 - 2^(a1 |x| + a2 x^2 + …)`` with the sign of x.

    It takes fused multiply-adds, without subnormals, which are negligible next to 1, and one
    instruction of the special-function unit, which takes a warp 8 cycles, as long as 8
    multiply-adds.
    """
    size = each("abs.f32", x)
    total = constant(x.type, ERFC[-1])
    for factor in reversed(ERFC[:-1]):
        total = llvm.intr_fma(total, size, constant(x.type, factor))
    tail = each("ex2.approx.ftz.f32", arith.mulf(total, size))
    result = arith.subf(constant(x.type, 1.0), tail)
    negative = arith.cmpf(arith.CmpFPredicate.OLT, x, constant(x.type, 0.0))
    return arith.select(negative, arith.negf(result), result)


def power(x: ir.Value, exponent: float) -> ir.Value:
    """Emits ``x^exponent``: by repeated multiplication if the exponent is an integer, by a square
    root for 1/2, and else as ``2^(exponent log2(x))``."""
    size = abs(exponent)
    if size == int(size):
        result = _product(x, int(size))
    else:  # of -inf the power is that of inf, of -0 that of 0
        low, high = (constant(x.type, sign * math.inf) for sign in (-1, 1))
        x = arith.select(arith.cmpf(arith.CmpFPredicate.OEQ, x, low), high, x)
        if size != 0.5:
            scaled = arith.mulf(each("lg2.approx.f32", x), constant(x.type, exponent))
            return each("ex2.approx.f32", scaled)
        result = arith.addf(each("sqrt.rn.f32", x), constant(x.type, 0.0))
    return result if exponent >= 0 else arith.divf(constant(x.type, 1.0), result)


def _product(x: ir.Value, count: int) -> ir.Value:
    """`count` times x as a factor, by squares."""
    result: ir.Value | None = None
    while count:
        if count % 2:
            result = x if result is None else arith.mulf(result, x)
        count //= 2
        x = arith.mulf(x, x) if count else x
    return constant(x.type, 1.0) if result is None else result


def _instruction(text: str) -> Callable[[ir.Value], ir.Value]:
    return lambda x: each(text, x)


FUNCTIONS: dict[str, Callable[[ir.Value], ir.Value]] = {
    "math.exp": exp,
    "math.exp2": _instruction("ex2.approx.f32"),
    "math.log": log,
    "math.log1p": lambda x: log(arith.addf(x, constant(x.type, 1.0))),
    "math.log2": _instruction("lg2.approx.f32"),
    "math.log10": lambda x: arith.mulf(each("lg2.approx.f32", x), constant(x.type, math.log10(2))),
    "math.expm1": expm1,
    "math.sin": sin,
    "math.cos": cos,
    "math.tan": tan,
    "math.asin": asin,
    "math.acos": acos,
    "math.atan": atan,
    "math.sinh": sinh,
    "math.cosh": cosh,
    "math.tanh": tanh,
    "math.erf": erf,
    "math.sqrt": _instruction("sqrt.rn.f32"),
    "math.rsqrt": _instruction("rsqrt.approx.f32"),
    "math.absf": _instruction("abs.f32"),
    "math.floor": _instruction("cvt.rmi.f32.f32"),
    "math.ceil": _instruction("cvt.rpi.f32.f32"),
    "math.trunc": _instruction("cvt.rzi.f32.f32"),
    "math.roundeven": _instruction("cvt.rni.f32.f32"),
}
"""Functions of one number, by the op's name."""
POWERS = ("math.powf", "math.fpowi")
"""Powers with a constant exponent."""
NAMES = (*FUNCTIONS, *POWERS, "math.fma")
"""All functions."""
NO_EXPONENT = (
    "expected a constant, finite exponent of {}, got another (a power of any two numbers is a "
    "logarithm and an exponential: math.log, arith.mulf, math.exp); make it a constant"
)


def constant_number(number: ir.Value) -> float | None:
    """The number if all elements of a constant are the same finite number; None for anything
    else."""
    if isinstance(number.owner, ir.Block) or number.owner.name != "arith.constant":
        return None
    value = number.owner.attributes["value"]
    if isinstance(value, ir.DenseElementsAttr):
        value = value.get_splat_value() if value.is_splat else None
    found = float(value.value) if isinstance(value, ir.FloatAttr | ir.IntegerAttr) else math.inf
    return found if math.isfinite(found) else None
