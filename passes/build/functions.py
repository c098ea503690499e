"""exp, tanh and erf of numbers and vectors, by a few f32 instructions of stated accuracy.

``ex2.approx.f32`` errs by 2^-22 of its result, ``rcp.approx.f32`` by 2^-23 (PTX ISA 9.7.3);
`tcir.validation.propagation.APPROXIMATE` is what that allows.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import arith, ir, llvm

LOG2_E = 1.4426950408889634
ERF_P = 0.3275911
ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26: within 1.5e-7."""


def function(name: str, given: ir.Value) -> ir.Value:
    """The op `name` of `FUNCTIONS`; narrower types than f32 are widened, and the result rounded."""
    wide = _with_element(given.type, ir.F32Type.get())
    x = given if given.type == wide else arith.extf(wide, given)
    result = FUNCTIONS[name](x)
    return result if given.type == wide else arith.truncf(given.type, result)


def exp(x: ir.Value) -> ir.Value:
    """``2^(x log2(e))``."""
    return _each("ex2.approx.f32", arith.mulf(x, _constant(x.type, LOG2_E)))


def tanh(x: ir.Value) -> ir.Value:
    """``1 - 2 / (1 + exp(2x))``."""
    one, two = (_constant(x.type, n) for n in (1.0, 2.0))
    inverse = _each("rcp.approx.f32", arith.addf(one, exp(arith.mulf(two, x))))
    return arith.subf(one, arith.mulf(two, inverse))


def erf(x: ir.Value) -> ir.Value:
    """``1 - t (a1 + t (a2 + …)) exp(-x^2)`` with ``t = 1 / (1 + p |x|)``, and the sign of x."""
    zero, one = (_constant(x.type, n) for n in (0.0, 1.0))
    negative = arith.cmpf(arith.CmpFPredicate.OLT, x, zero)
    size = arith.select(negative, arith.negf(x), x)
    t = _each("rcp.approx.f32", arith.addf(one, arith.mulf(_constant(x.type, ERF_P), size)))
    total = _constant(x.type, ERF[-1])
    for factor in reversed(ERF[:-1]):
        total = arith.addf(arith.mulf(total, t), _constant(x.type, factor))
    tail = arith.mulf(arith.mulf(total, t), exp(arith.negf(arith.mulf(x, x))))
    result = arith.subf(one, tail)
    return arith.select(negative, arith.negf(result), result)


FUNCTIONS = {"math.exp": exp, "math.tanh": tanh, "math.erf": erf}
"""Those that there are, by the op's name."""


def _with_element(kind: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType.get(kind.shape, element) if isinstance(kind, ir.VectorType) else element


def _constant(kind: ir.Type, number: float) -> ir.Value:
    value = ir.FloatAttr.get(ir.F32Type.get(), number)
    if isinstance(kind, ir.VectorType):
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, value))
    return arith.constant(kind, value)


def _each(instruction: str, x: ir.Value) -> ir.Value:
    """A unary instruction on every element."""
    f32 = ir.F32Type.get()

    def one(number: ir.Value) -> ir.Value:
        return llvm.inline_asm(f32, [number], f"{instruction} $0, $1;", "=f,f").results[0]

    if not isinstance(x.type, ir.VectorType):
        return one(x)
    places: Sequence[ir.Value] = [
        arith.constant(ir.IntegerType.get_signless(32), n) for n in range(x.type.shape[0])
    ]
    result = llvm.mlir_poison(x.type)
    for place in places:
        result = llvm.insertelement(result, one(llvm.extractelement(x, place)), place)
    return result
