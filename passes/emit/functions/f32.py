"""Building blocks for functions of f32 numbers and vectors."""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import arith, ir, llvm

LOG2_E = 1.4426950408889634


def with_element(kind: ir.Type, element: ir.Type) -> ir.Type:
    """A scalar or vector type with its element type replaced."""
    return ir.VectorType.get(kind.shape, element) if isinstance(kind, ir.VectorType) else element


def constant(kind: ir.Type, number: float) -> ir.Value:
    """A constant of a scalar type, or of a vector type with `number` in all elements."""
    element = getattr(kind, "element_type", kind)
    whole = isinstance(element, ir.IntegerType)
    value = (ir.IntegerAttr if whole else ir.FloatAttr).get(element, number)
    if isinstance(kind, ir.VectorType):
        return arith.constant(kind, ir.DenseElementsAttr.get_splat(kind, value))
    return arith.constant(kind, value)


def fma(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """Emits ``a * b + c``, rounded once, as an op of the dialect `math`."""
    return ir.Operation.create("math.fma", results=[a.type], operands=[a, b, c]).result


def about_one(x: ir.Value, factors: Sequence[float]) -> ir.Value:
    """Emits ``1 + x (f0 + x (f1 + …))`` in fused multiply-adds."""
    total = constant(x.type, factors[-1])
    for factor in (*reversed(factors[:-1]), 1.0):
        total = llvm.intr_fma(total, x, constant(x.type, factor))
    return total


def exp(x: ir.Value) -> ir.Value:
    """Emits ``exp(x)`` as ``2^(x log2(e))``."""
    return each("ex2.approx.f32", arith.mulf(x, constant(x.type, LOG2_E)))


def each(instruction: str, x: ir.Value) -> ir.Value:
    """Applies a unary f32 instruction to a number, or to every element of a vector."""
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
