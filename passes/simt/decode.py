"""Software decoding of narrow formats on CUDA cores.

A group of consecutive elements along k is read as 32-bit words (in memory elements are
little-endian and densely packed). The elements become either doubled integers, four in a word
(e2m1, for dp4a), or f32 numbers. Block scales become f32 factors. PTX ISA 5.2.3 describes the
formats, 9.7.9.7 the instruction prmt, and 9.7.9.21 the conversions of fp8 (from sm_89).
"""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import arith, ir
from tcir.dialect.attributes import integer_type
from tcir.dialect.ops.block_scaled import ELEMENT_BITS
from tcir.passes.emit import simt
from tcir.passes.emit.fp8 import FP8, widened_pair
from tcir.passes.emit.small import widened_small

DOUBLED = (0, 1, 2, 3, 4, 6, 8, 12)
"""Twice the magnitudes of e2m1, by code."""


def words_of(element: str, count: int) -> int:
    """Number of 32-bit words that hold `count` elements."""
    return count * ELEMENT_BITS[element] // 32


@dataclass(frozen=True)
class Tables:
    """The magnitudes `DOUBLED` as bytes, four in a word, and their negatives."""

    plus: tuple[ir.Value, ir.Value]
    minus: tuple[ir.Value, ir.Value]


def doubled_tables() -> Tables:
    """Emits the table of magnitudes and the table of their negatives, once per kernel."""
    plus, minus = (
        (_varying(_table(values[:4])), _table(values[4:]))
        for values in (DOUBLED, tuple(-value for value in DOUBLED))
    )
    return Tables(plus, minus)


def _varying(table: ir.Value) -> ir.Value:
    """`table`, whose first byte is 0, with the top byte of the thread's number there: also 0.

    prmt takes one constant. ptxas holds others that are the same for all threads in uniform
    registers, and copies them before each prmt: an eighth of the instructions of a product.
    """
    return simt.permute(table, simt.thread_index(), simt.constant(0x3217))


def doubled_e2m1(word: ir.Value, tables: Tables) -> list[ir.Value]:
    """Converts eight e2m1 codes to two words of four int8 each, which are twice the values, in
    order of k.

    The code bits without the sign select a byte from a table of magnitudes and a byte from a table
    of their negatives; the signs, replicated over bytes, choose between the two bytes.
    """
    codes = simt.both_bits(word, 0x77777777)
    shifted = simt.left(word, 4)
    result = []
    # Sign bits are the tops of the bytes of `word` (odd codes) and `shifted` (even ones); selector
    # 8 + n replicates the top bit of byte n of the pair.
    for half, signs in enumerate((0x9D8C, 0xBFAE)):
        selector = simt.right(codes, 16 * half)
        magnitude, negative = (
            simt.permute(*table, selector) for table in (tables.plus, tables.minus)
        )
        mask = simt.permute(word, shifted, simt.constant(signs))
        flip = simt.both_bits(simt.differing_bits(magnitude, negative), mask)
        result.append(simt.differing_bits(magnitude, flip))
    return result


def parts_e2m1(word: ir.Value, tables: Tables) -> list[tuple[ir.Value, ir.Value]]:
    """Converts eight e2m1 codes to two pairs of words of four int8 each: one pair is twice the
    positive values, the other is minus twice the negative values.

    The bytes are in order of k, and one of the two is 0 in each place. A sign bit in prmt's
    selector replicates the sign of the selected byte, which is 0 for all magnitudes, so no masks
    are needed. This takes half the instructions of `doubled_e2m1`.
    """
    flipped = simt.differing_bits(word, 0x88888888)
    first, second = (
        (
            simt.permute(*tables.plus, simt.right(word, n)),
            simt.permute(*tables.plus, simt.right(flipped, n)),
        )
        for n in (0, 16)
    )
    return [first, second]


def _table(values: tuple[int, ...]) -> ir.Value:
    return simt.constant(int.from_bytes(bytes(value & 0xFF for value in values), "little"))


def dot4(a: ir.Value, b: ir.Value, total: ir.Value) -> ir.Value:
    """Emits `total` plus the sum of the products of four int8, exactly."""
    text = "dp4a.s32.s32 $0, $1, $2, $3;"
    return simt.asm(integer_type(32), text, "=r,r,r,r", [a, b, total])


def floats(words: list[ir.Value], element: str, count: int) -> list[ir.Value]:
    """Converts `count` elements to f32, exactly, in order of k; NaN and infinities stay."""
    if element in FP8:
        pairs = [
            widened_pair(arith.TruncIOp(integer_type(16), simt.right(word, shift)).result, element)
            for word in words
            for shift in (0, 16)
        ]
        return [value for pair in pairs for value in pair]
    return [_small(words, n, element) for n in range(count)]


def _small(words: list[ir.Value], n: int, element: str) -> ir.Value:
    """Code n of a dense stream."""
    width = ELEMENT_BITS[element]
    first, shift = divmod(n * width, 32)
    code = simt.right(words[first], shift)
    if shift + width > 32:
        code = simt.either_bits(code, simt.left(words[first + 1], 32 - shift))
    return widened_small(code, element)


def scale_factors(codes: ir.Value, count: int, scale: str) -> list[tuple[ir.Value, ...]]:
    """Converts one or two scale codes, in the low bytes of an i32, to factors in f32; NaN stays.

    Each scale gives a tuple of factors, whose product is the scale: ue4m3 gives one factor (its
    sign bit is ignored, as the tensor core does), and ue8m0 gives two.
    """
    if scale == "f8E4M3FN":
        pair = arith.TruncIOp(integer_type(16), simt.both_bits(codes, 0x7F7F)).result
        return [(value,) for value in widened_pair(pair, scale)[:count]]
    return [_ue8m0(simt.both_bits(simt.right(codes, 8 * n), 0xFF)) for n in range(count)]


def _ue8m0(code: ir.Value) -> tuple[ir.Value, ir.Value]:
    """2^(code - 127) as two powers of two, half the exponent rounded down and up; 0xFF is NaN.

    Times the halves of another scale, the lower with the higher, each is a power of two that f32
    holds (2^-127 to 2^127), though the product of both scales (2^-254 to 2^254) need not be.
    """
    lower, higher = (
        simt.both_bits(simt.left(simt.add(code, bias), 22), 0x7F800000) for bias in (127, 128)
    )
    nan = arith.SelectOp(simt.equal(code, 0xFF), simt.constant(0x7FC00000), lower).result
    return simt.as_f32(nan), simt.as_f32(higher)
