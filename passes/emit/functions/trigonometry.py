"""Circular functions of f32 numbers, and of vectors of them.

An angle is reduced by multiples of π/2 in f64, with two constants that hold 107 bits of π/2; the
remainder then goes through polynomials of the library Cephes (`sinf`, `cosf`, `atanf`), whose error
is 2^-24.
"""

from __future__ import annotations

import math

from tcir._mlir import arith, ir, llvm
from tcir.passes.emit.functions.f32 import about_one, constant, each, with_element

WHOLE = 1.5 * 2.0**52
"""Adding this to an f64 rounds it to a whole number, in the low bits of the sum."""
LARGEST = 2.0**50
"""Smallest angle whose number of π/2 does not fit f64: the functions give NaN."""
HALF_PI = (math.pi / 2, 6.123233995736766e-17)
SINE = (-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4)
COSINE = (4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5)
ARC = (-3.33329491539e-1, 1.99777106478e-1, -1.38776856032e-1, 8.05374449538e-2)


def sin(x: ir.Value) -> ir.Value:
    """Emits the sine: the polynomial that belongs to the quadrant of the angle, with the sign of
    that quadrant."""
    return _of_quadrant(*_reduced(x), 0)


def cos(x: ir.Value) -> ir.Value:
    """Emits the cosine as the sine of the angle plus one quadrant."""
    return _of_quadrant(*_reduced(x), 1)


def tan(x: ir.Value) -> ir.Value:
    """Emits the tangent as the quotient of sine and cosine."""
    reduced = _reduced(x)
    return arith.divf(_of_quadrant(*reduced, 0), _of_quadrant(*reduced, 1))


def atan(x: ir.Value) -> ir.Value:
    """Emits the arc tangent: up to |x| = tan(π/8) as a polynomial of x, from there to tan(3π/8) by
    the polynomial of (|x| - 1) / (|x| + 1), and above by the polynomial of -1 / |x|."""
    one, size = constant(x.type, 1.0), each("abs.f32", x)
    high = _more(size, math.tan(3 * math.pi / 8))
    middle = _more(size, math.tan(math.pi / 8))
    above = arith.select(high, constant(x.type, -1.0), arith.subf(size, one))
    below = arith.select(high, size, arith.addf(size, one))
    y = arith.select(middle, arith.divf(above, below), size)
    start = arith.select(high, constant(x.type, math.pi / 2), constant(x.type, math.pi / 4))
    start = arith.select(middle, start, constant(x.type, 0.0))
    result = arith.addf(start, arith.mulf(y, about_one(arith.mulf(y, y), ARC)))
    negative = arith.cmpf(arith.CmpFPredicate.OLT, x, constant(x.type, 0.0))
    small = arith.select(middle, result, arith.mulf(x, about_one(arith.mulf(y, y), ARC)))
    both = arith.andi(negative, middle)
    return arith.select(both, arith.negf(result), small)


def asin(x: ir.Value) -> ir.Value:
    """Emits the arc sine as ``atan(x / sqrt((1 - x) (1 + x)))``."""
    one = constant(x.type, 1.0)
    square = arith.mulf(arith.subf(one, x), arith.addf(one, x))
    return atan(arith.divf(x, each("sqrt.rn.f32", square)))


def acos(x: ir.Value) -> ir.Value:
    """Emits the arc cosine as ``2 atan(sqrt((1 - x) / (1 + x)))``."""
    one = constant(x.type, 1.0)
    quotient = arith.divf(arith.subf(one, x), arith.addf(one, x))
    half = atan(each("sqrt.rn.f32", quotient))
    return arith.addf(half, half)


def _reduced(x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Reduces an angle to -π/4 to π/4; also returns the quadrant's number, of which only the low
    bits matter."""
    wide = with_element(x.type, ir.F64Type.get())
    angle = arith.extf(wide, x)
    sum_ = llvm.intr_fma(angle, constant(wide, 2 / math.pi), constant(wide, WHOLE))
    count = arith.subf(sum_, constant(wide, WHOLE))
    for part in HALF_PI:
        angle = llvm.intr_fma(count, constant(wide, -part), angle)
    size = each("abs.f32", x)
    inside = arith.cmpf(arith.CmpFPredicate.OLT, size, constant(x.type, LARGEST))
    rest = arith.select(inside, arith.truncf(x.type, angle), constant(x.type, math.nan))
    bits = arith.bitcast(with_element(x.type, ir.IntegerType.get_signless(64)), sum_)
    return rest, arith.trunci(with_element(x.type, ir.IntegerType.get_signless(32)), bits)


def _of_quadrant(rest: ir.Value, quadrant: ir.Value, further: int) -> ir.Value:
    kind = quadrant.type
    if further:
        quadrant = arith.addi(quadrant, constant(kind, further))
    square = arith.mulf(rest, rest)
    sine = arith.mulf(rest, about_one(square, SINE))
    cosine = about_one(square, (-0.5, *COSINE))
    odd, half = (
        arith.cmpi(
            arith.CmpIPredicate.ne, arith.andi(quadrant, constant(kind, bit)), constant(kind, 0)
        )
        for bit in (1, 2)
    )
    result = arith.select(odd, cosine, sine)
    return arith.select(half, arith.negf(result), result)


def _more(size: ir.Value, number: float) -> ir.Value:
    return arith.cmpf(arith.CmpFPredicate.OGT, size, constant(size.type, number))
