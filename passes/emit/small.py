"""Floats of 4 and 6 bits and f8E8M0FNU on CUDA cores. A number is represented by its code, in an
i32.

Widening uses integer instructions, which every target has and which are exact; rounding uses
``cvt`` (PTX ISA 9.7.9.21, from sm_100a). f8E8M0FNU consists of an exponent only: its value is
2^(code - 127), or NaN (OCP Microscaling Formats 1.0, 5.4.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import arith, ir
from tcir.dialect.attributes import integer_type
from tcir.passes.emit import simt


@dataclass(frozen=True)
class Small:
    """A float format of 4 or 6 bits, without infinities and NaN: sign, exponent and mantissa.

    ptx: name of the format in PTX
    packed: whether ``cvt`` writes two codes to a byte
    """

    bits: int
    mantissa: int
    bias: int
    ptx: str
    packed: bool = False


SMALL = {
    "f4E2M1FN": Small(4, 1, 1, "e2m1", packed=True),
    "f6E2M3FN": Small(6, 3, 1, "e2m3"),
    "f6E3M2FN": Small(6, 2, 3, "e3m2"),
}
EXPONENT = "f8E8M0FNU"


def widened_small(code: ir.Value, element: str) -> ir.Value:
    """Converts the code in the low bits of an i32 to f32, exactly; the bits above the code are
    ignored.

    It moves the code's exponent to the exponent field of an f16 and multiplies by a power of two. A
    code with exponent 0 becomes a subnormal f16, which f32 represents exactly, so the product is
    exact.
    """
    form = SMALL[element]
    sign = simt.left(simt.both_bits(code, 1 << (form.bits - 1)), 16 - form.bits)
    magnitude = simt.both_bits(code, (1 << (form.bits - 1)) - 1)
    raw = simt.either_bits(sign, simt.left(magnitude, 10 - form.mantissa))
    half = arith.BitcastOp(ir.F16Type.get(), arith.TruncIOp(integer_type(16), raw).result).result
    scale = simt.number(2.0 ** (15 - form.bias))
    return arith.MulFOp(arith.ExtFOp(ir.F32Type.get(), half).result, scale).result


def rounded_small(number: ir.Value, element: str) -> ir.Value:
    """Rounds an f32 to a code, to nearest even and saturated; NaN becomes the largest number."""
    form = SMALL[element]
    zero = simt.number(0.0)
    cvt = f"cvt.rn.satfinite.{form.ptx}x2.f32"
    if form.packed:
        text = f"{{ .reg .b8 a; {cvt} a, $2, $1; mov.b32 $0, {{a, a, a, a}}; }}"
        word = simt.asm(integer_type(32), text, "=r,f,f", [number, zero])
        return simt.both_bits(word, (1 << form.bits) - 1)
    pair = simt.asm(integer_type(16), f"{cvt} $0, $2, $1;", "=h,f,f", [number, zero])
    return arith.ExtUIOp(integer_type(32), pair).result


def widened_exponent(code: ir.Value) -> ir.Value:
    """Converts an f8E8M0FNU code to f32, in which 2^-127 is subnormal."""
    least, nan = simt.constant(0x00400000), simt.constant(0x7FC00000)
    bits = arith.SelectOp(simt.equal(code, 0), least, simt.left(code, 23)).result
    return simt.as_f32(arith.SelectOp(simt.equal(code, 0xFF), nan, bits).result)


def rounded_exponent(number: ir.Value) -> ir.Value:
    """Converts an f32 to the nearest f8E8M0FNU; a tie is rounded up. 0, negative numbers,
    infinities and numbers that round beyond 2^127 give NaN, as in ml_dtypes."""
    bits = arith.BitcastOp(integer_type(32), number).result
    half = simt.constant(0x00400000)
    # Of subnormal numbers the middle is 1.5 · 2^-127, a quarter of their range further.
    tiny = simt.less(bits, 0x00800000)
    half = arith.SelectOp(tiny, simt.constant(0x00200000), half).result
    code = simt.smaller(simt.right(simt.add(bits, half), 23), 0xFF)
    positive = simt.less(simt.sub(bits, 1), 0x7F800000)  # neither 0 nor with a sign, nor NaN
    return arith.SelectOp(positive, code, simt.constant(0xFF)).result
