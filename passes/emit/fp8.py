"""f8E4M3FN and f8E5M2 on CUDA cores: conversions of pairs of numbers (PTX ISA 9.7.9.21, from
sm_89).

``cvt.rn.satfinite`` saturates to the largest number. `arith.truncf` instead gives NaN (for e4m3,
which has no infinity) or infinity. The code of that NaN or infinity is one more than the code of
the largest number, so `rounded_pair` adds one to the code of a number that is rounded beyond the
largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcir._mlir import arith, ir, llvm
from tcir.dialect.attributes import integer_type
from tcir.passes.emit import simt


@dataclass(frozen=True)
class Fp8:
    """An fp8 format: its name in PTX, and its overflow threshold.

    beyond: the largest f32 that is rounded to the largest fp8 number; larger f32 overflow
    """

    ptx: str
    beyond: float


FP8 = {
    # 448 and the next step, 480: their middle goes to the even code, that of 448.
    "f8E4M3FN": Fp8("e4m3", 464.0),
    # 57344 and 65536: the middle, 61440, goes to the even code, that of infinity.
    "f8E5M2": Fp8("e5m2", 61440.0 - 2.0**-8),
}


def rounded_pair(low: ir.Value, high: ir.Value, element: str, bounded: bool) -> ir.Value:
    """Rounds two f32 to fp8, returned in an i16. bounded: whether it is known that neither
    overflows"""
    form, i16 = FP8[element], integer_type(16)
    text = f"cvt.rn.satfinite.{form.ptx}x2.f32 $0, $2, $1;"
    pair = simt.asm(i16, text, "=h,f,f", [low, high])
    if bounded:
        return pair
    for place, number in enumerate((low, high)):
        size = llvm.bitcast(
            ir.F32Type.get(), simt.both_bits(llvm.bitcast(integer_type(32), number), 0x7FFFFFFF)
        )
        over = arith.cmpf(arith.CmpFPredicate.OGT, size, simt.number(form.beyond))
        one, none = (simt.constant(n, 16) for n in (1 << 8 * place, 0))
        pair = arith.addi(pair, arith.select(over, one, none))
    return pair


def saturated_word(numbers: Sequence[ir.Value], element: str) -> ir.Value:
    """Rounds four f32 to fp8, saturated to the largest number, returned in an i32."""
    cvt = f"cvt.rn.satfinite.{FP8[element].ptx}x2.f32"
    text = f"{{ .reg .b16 a, b; {cvt} a, $2, $1; {cvt} b, $4, $3; mov.b32 $0, {{a, b}}; }}"
    return simt.asm(integer_type(32), text, "=r" + ",f" * 4, numbers)


def widened_pair(pair: ir.Value, element: str) -> list[ir.Value]:
    """Converts the two fp8 of an i16 to f32, exactly, by way of f16; the lower one first."""
    text = f"cvt.rn.f16x2.{FP8[element].ptx}x2 $0, $1;"
    halves = simt.asm(integer_type(32), text, "=r,h", [pair])
    vector = llvm.bitcast(ir.VectorType.get([2], ir.F16Type.get()), halves)
    return [
        arith.extf(ir.F32Type.get(), llvm.extractelement(vector, simt.constant(n)))
        for n in range(2)
    ]


def rounded_code(number: ir.Value, element: str) -> ir.Value:
    """Rounds an f32, f16 or bf16 to an fp8 code, returned as an i32 whose upper bytes are zero."""
    wide = ir.F32Type.get()
    x = number if number.type == wide else arith.extf(wide, number)
    return arith.extui(integer_type(32), rounded_pair(x, simt.number(0.0), element, bounded=False))


def widened_code(code: ir.Value, element: str, kind: ir.Type) -> ir.Value:
    """Converts the fp8 code in the low byte of an i32 to a float of type `kind`, exactly."""
    number, _ = widened_pair(arith.trunci(integer_type(16), code), element)
    if number.type == kind:
        return number
    return (arith.extf if kind.width > number.type.width else arith.truncf)(kind, number)
