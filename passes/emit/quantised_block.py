"""Arithmetic of block quantisation: a thread turns numbers that share a scale into their codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from tcir._mlir import arith, ir, llvm
from tcir.dialect.attributes import integer_type
from tcir.dialect.ops.quantise import QuantisedFormat
from tcir.passes.emit import simt
from tcir.passes.emit.fp8 import rounded_pair, widened_pair

INFINITY = 0x7F800000
E2M1 = (
    "{ .reg .b8 a, b, c, d; "
    "cvt.rn.satfinite.e2m1x2.f32 a, $2, $1; cvt.rn.satfinite.e2m1x2.f32 b, $4, $3; "
    "cvt.rn.satfinite.e2m1x2.f32 c, $6, $5; cvt.rn.satfinite.e2m1x2.f32 d, $8, $7; "
    "mov.b32 $0, {a, b, c, d}; }"
)
"""Eight f32 as e2m1 in a word, the first in its lowest bits."""


def quantised_block(
    numbers: Sequence[ir.Value], form: QuantisedFormat, elements: str
) -> tuple[list[ir.Value], ir.Value]:
    """The codes of a block of f32, packed in words, and the code of the block's scale in an i32.

    elements: the type of the codes
    """
    block = _Block.of(numbers, form, _largest(numbers))
    scale, divided = _by_ue4m3(block) if form.block == 16 else _by_ue8m0(block)
    nothing = simt.constant(0)
    return [arith.select(block.finite, each, nothing) for each in _words(divided, elements)], scale


@dataclass(frozen=True)
class QuantisedPart:
    """A thread's numbers of an fp8 block divided by the block's scale, the code of the scale as an
    i32, and whether all numbers of the block are finite (otherwise its codes are 0)."""

    divided: Sequence[ir.Value]
    scale: ir.Value
    finite: ir.Value


def quantised_part(
    numbers: Sequence[ir.Value], form: QuantisedFormat, among: Callable[[ir.Value], ir.Value]
) -> QuantisedPart:
    """Quantises the numbers of a block that a thread holds. among: computes the largest magnitude
    of the whole block from the largest magnitude of the thread's numbers"""
    block = _Block.of(numbers, form, among(_largest(numbers)))
    scale, divided = _by_ue8m0(block)
    return QuantisedPart(divided, scale, block.finite)


@dataclass(frozen=True)
class _Block:
    """Numbers that share a scale; amax: the largest magnitude; finite: whether all are."""

    numbers: Sequence[ir.Value]
    form: QuantisedFormat
    amax: ir.Value
    finite: ir.Value

    @staticmethod
    def of(numbers: Sequence[ir.Value], form: QuantisedFormat, amax: ir.Value) -> _Block:
        """Computes the scale of a block whose largest magnitude is `amax`."""
        infinity = simt.as_f32(simt.constant(INFINITY))
        finite = arith.cmpf(arith.CmpFPredicate.OLT, amax, infinity)
        return _Block(numbers, form, amax, finite)

    def known(self, scale: ir.Value, nan: int) -> ir.Value:
        """The code of the scale, or the code of NaN if the block has a number that is not
        finite."""
        return arith.select(self.finite, scale, simt.constant(nan))


def _largest(numbers: Sequence[ir.Value]) -> ir.Value:
    """The largest magnitude; a NaN is passed on by ``max.NaN``."""
    sizes = [simt.as_f32(simt.both_bits(_bits(n), 0x7FFFFFFF)) for n in numbers]
    return reduce(arith.maximumf, sizes)


Quantised = tuple[ir.Value, Sequence[ir.Value]]
"""The code of a scale, and the numbers of the block divided by it."""


def _by_ue4m3(block: _Block) -> Quantised:
    """amax / 6 as ue4m3, and quotients that round as exact ones do.

    With r = 1 / s, rounded, ``q = x r`` is corrected by its remainder, ``q - (s q - x) r``: the f32
    next to the exact quotient. Scales have 4 bits and ties of e2m1 3, so a quotient that is no tie
    is half a unit of f32 from one at least.
    """
    zero, one = simt.number(0.0), simt.number(1.0)
    nearest = arith.divf(block.amax, simt.number(block.form.largest))
    pair = rounded_pair(nearest, zero, "f8E4M3FN", bounded=True)
    positive = arith.cmpf(arith.CmpFPredicate.OGT, block.amax, zero)
    least = arith.extui(integer_type(32), positive)
    code = arith.maxui(arith.extui(integer_type(32), pair), least)
    used = arith.trunci(integer_type(16), code)
    scale = arith.select(positive, widened_pair(used, "f8E4M3FN")[0], one)
    inverse = arith.divf(one, scale)
    negative = arith.negf(inverse)

    def divided(x: ir.Value) -> ir.Value:
        quotient = arith.mulf(x, inverse)
        remainder = simt.fma(scale, quotient, arith.negf(x))
        return simt.fma(remainder, negative, quotient)

    return block.known(code, 0x7F), [divided(x) for x in block.numbers]


def _by_ue8m0(block: _Block) -> Quantised:
    """The exponent of amax less that of the largest element, and exact products by 2^-exponent.

    Rounded up (rceil), a mantissa beyond that of the largest element carries to the exponent.
    """
    size, form = _bits(block.amax), block.form
    if form.rounding == "rceil":
        largest = int(form.largest / 2.0**form.exponent * 2**23) - 2**23
        size = simt.add(size, 2**23 - 1 - largest)
    exponent = simt.right(size, 23)
    code = arith.maxsi(simt.sub(exponent, form.exponent), simt.constant(0))
    inverse = simt.as_f32(simt.left(arith.subi(simt.constant(254), code), 23))
    return block.known(code, 0xFF), [arith.mulf(x, inverse) for x in block.numbers]


def _words(numbers: Sequence[ir.Value], element: str) -> list[ir.Value]:
    """Codes in words, saturated; of finite numbers."""
    unit = 8 if element == "f4E2M1FN" else 4
    make: Callable[[Sequence[ir.Value]], ir.Value]
    if unit == 8:
        make = _e2m1_word
    else:
        make = _Fp8Word(element)
    return [make(numbers[n : n + unit]) for n in range(0, len(numbers), unit)]


def _e2m1_word(numbers: Sequence[ir.Value]) -> ir.Value:
    return simt.asm(integer_type(32), E2M1, "=r" + ",f" * 8, numbers)


@dataclass(frozen=True)
class _Fp8Word:
    """Four fp8 in a word."""

    element: str

    def __call__(self, numbers: Sequence[ir.Value]) -> ir.Value:
        a, b, c, d = numbers
        pairs = [rounded_pair(*two, self.element, True) for two in ((a, b), (c, d))]
        low, high = (arith.extui(integer_type(32), pair) for pair in pairs)
        return simt.either_bits(low, simt.left(high, 16))


def _bits(number: ir.Value) -> ir.Value:
    return llvm.bitcast(integer_type(32), number)
