"""Computes elements of a factor from narrower numbers, two elements in a register.

A thread has 16 bytes of a row of stored numbers (`UNIT`) and makes the words of an ``mma.sync``
from them. Elements of f16 and bf16 are computed two at a time. Integers become floats by bit
operations: in a float with the exponent of 2^10 (f16) or 2^7 (bf16) the lowest mantissa bit is
worth 1, so a bit field that is placed in the mantissa becomes a float by one subtraction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from tcir._mlir import arith, ir, llvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer_type
from tcir.dialect.fragments import WORD_BYTES
from tcir.dialect.upstream import names
from tcir.passes.analysis.computed import Computed, ComputedResult, Fixed, Node, Read
from tcir.passes.analysis.digits import Number
from tcir.passes.emit import narrow, simt
from tcir.passes.emit.fp8 import FP8, widened_pair

HALVES = 0x00010001
"""Times a number of 16 bits: the number in both halves of a word."""
SPREAD = (0x4140, 0x4342)
"""Bytes 0 and 1, or 2 and 3, of a word and zeros between them (prmt)."""
LOW_HALVES, HIGH_HALVES = 0x5410, 0x7632
"""The low, or the high, halves of two words (prmt)."""
MANTISSA = {"f16": (10, 0x6400, 1024.0), "bf16": (7, 0x4300, 128.0)}
"""Bits of the mantissa that count ones, the bits of the number whose mantissa that is, and it."""
SIGN = 0x80
ON_PAIRS = names(arith.AddFOp, arith.MulFOp, arith.SubFOp)
"""Ops with an instruction for two numbers of 16 bits."""
Beside: TypeAlias = "Mapping[tuple[ir.Value, Number], ir.Value]"
"""Scales and zero points in registers, by argument and place."""
FROM_BYTES = names(arith.SIToFPOp, arith.UIToFPOp)


@dataclass(frozen=True)
class Dequantise:
    """Converts the stored numbers of a quantised factor that a thread loads to words of f16 or
    bf16."""

    how: Computed

    @property
    def elements(self) -> int:
        """Number of elements along k in a thread's bytes."""
        return self.how.columns * self.how.count

    @cached_property
    def order(self) -> list[tuple[int, int]]:
        """The two elements that each word holds: adjacent elements or, if a byte of stored numbers
        holds two elements, the elements of every other byte, which a mask leaves in the two halves
        of a word."""
        if self.how.count != 2 or tc.element_bytes(self.how.stored.element) != 1:
            return [(n, n + 1) for n in range(0, self.elements, 2)]
        return [
            (first + lane, first + lane + 4)
            for first in range(0, self.elements, 8)
            for first in (first, first + 2)
            for lane in range(2)
        ]

    def words(self, stored: list[ir.Value], beside: Beside) -> list[ir.Value]:
        """Computes the words, in the order `order`.

        stored: the thread's bytes
        beside: scales and zero points
        """
        same: dict[Node, ir.Value] = {}
        pairs = (_Pair(self.how, stored, beside, each, same) for each in self.order)
        return [each.word() for each in pairs]

    def alike(self, words: list[ir.Value]) -> list[ir.Value]:
        """Reorders words with adjacent elements of another factor into the order `order`."""
        found = []
        for low, high in self.order:
            a, b = words[low // 2], words[high // 2]
            halves = HIGH_HALVES if low % 2 else LOW_HALVES
            found.append(a if high == low + 1 else simt.permute(a, b, simt.constant(halves)))
        return found


@dataclass
class _Pair:
    """Two elements of a word; at: their numbers; same: values that all elements share."""

    how: Computed
    stored: list[ir.Value]
    beside: Beside
    at: tuple[int, int]
    same: dict[Node, ir.Value]
    made: dict[Node, tuple[ir.Value, ir.Value]] = field(default_factory=dict)

    @property
    def _numbers(self) -> tuple[int, int]:
        """The stored numbers that hold the elements, by their places in the thread's bytes."""
        low, high = (each // self.how.count for each in self.at)
        return low, high

    def word(self) -> ir.Value:
        """Both elements as one 32-bit register."""
        low, high = (self.how.lanes[each % self.how.count] for each in self.at)
        if low is high:
            vector = self._vector(low)
        else:
            vector = simt.vector_of([self._scalars(low)[0], self._scalars(high)[1]])
        return llvm.bitcast(integer_type(8 * WORD_BYTES), vector)

    # --- two at a time ---------------------------------------------------------------------------

    def _vector(self, node: Node) -> ir.Value:
        """Both elements as a vector."""
        if not _varies(node):
            return simt.vector_of([self._uniform(node)] * 2)
        if isinstance(node, ComputedResult) and str(node.element) in MANTISSA:
            made = self._converted(node, node.element)
            if made is not None:
                return made
            op, kinds = node.op, {each.element for each in node.operands}
            if op.name in ON_PAIRS and kinds == {node.element}:
                return _again(op, node.element, [self._vector(each) for each in node.operands])
            if op.name == "arith.truncf" and kinds == {ir.F32Type.get()}:
                wide = simt.vector_of(self._scalars(node.operands[0]))
                return _again(op, node.element, [wide])
        return simt.vector_of(self._scalars(node))

    def _converted(self, node: ComputedResult, kind: ir.Type) -> ir.Value | None:
        """Floats of 16 bits that are made from bits of the stored numbers, if `node` is that."""
        if node.op.name not in FROM_BYTES or str(self.how.stored.element) != "i8":
            return None
        if (bits := _field(node.operands[0])) is None:
            return None
        shift, width = bits
        mantissa, magic, one = MANTISSA[str(kind)]
        signed = width == 8 and node.op.name == "arith.sitofp"
        if width == 8 and mantissa < 8:
            return self._of_byte(kind, signed)
        halves = self._spread(shift, SIGN if signed else 0)
        mask = (1 << width) - 1
        word = simt.either_bits(simt.both_bits(halves, _both(mask)), _both(magic))
        return arith.subf(
            llvm.bitcast(_pair_of(kind), word), _number(kind, one + (SIGN if signed else 0))
        )

    def _of_byte(self, kind: ir.Type, signed: bool) -> ir.Value:
        """All eight bits of a byte where the mantissa has seven: 128 + the low ones, less 128, or
        256 if the sign is set: the sign is the lowest bit of the exponent."""
        halves = self._spread(0, 0 if signed else SIGN)
        _, magic, _ = MANTISSA[str(kind)]
        low, sign = (
            simt.either_bits(simt.both_bits(halves, _both(mask)), _both(magic))
            for mask in (SIGN - 1, SIGN)
        )
        made = arith.subf(llvm.bitcast(_pair_of(kind), low), llvm.bitcast(_pair_of(kind), sign))
        return made if signed else arith.addf(made, _number(kind, float(SIGN)))

    def _spread(self, shift: int, flipped: int) -> ir.Value:
        """The bytes of both numbers, shifted, in the low bits of the halves of a word, and other
        bits above them; flipped: bits of a byte that are inverted first."""
        low, high = self._numbers
        word = self.stored[low // WORD_BYTES]
        if flipped:
            word = simt.differing_bits(word, simt.constant(0x01010101 * flipped))
        if high == low + 2:
            return simt.right(word, 8 * (low % 2) + shift)
        zeros, chosen = simt.constant(0), simt.constant(SPREAD[low % WORD_BYTES // 2])
        return simt.right(simt.permute(word, zeros, chosen), shift)

    # --- one by one ------------------------------------------------------------------------------

    def _scalars(self, node: Node) -> tuple[ir.Value, ir.Value]:
        """The two elements."""
        if node not in self.made:
            self.made[node] = self._new(node)
        return self.made[node]

    def _new(self, node: Node) -> tuple[ir.Value, ir.Value]:
        if not _varies(node):
            value = self._uniform(node)
            return value, value
        if isinstance(node, Read):
            low, high = map(self._number, self._numbers)
            return low, high
        assert isinstance(node, ComputedResult), "a constant varies nowhere"
        wide, half = ir.F32Type.get(), ir.F16Type.get()
        if node.element == wide and (made := self._converted(node, half)) is not None:
            return _numbers_of(arith.extf(ir.VectorType.get([2], wide), made))
        if str(node.operands[0].element) in FP8 and self.how.count == 1:
            return self._of_codes(node)
        if node.op.name in ON_PAIRS and str(node.element) in MANTISSA:
            return _numbers_of(self._vector(node))
        made_of = [self._scalars(each) for each in node.operands]
        low, high = (
            narrow.computed(node.op.opview, [each[n] for each in made_of]) for n in range(2)
        )
        return low, high

    def _of_codes(self, node: ComputedResult) -> tuple[ir.Value, ir.Value]:
        """Floats of two adjacent codes of fp8."""
        low, _ = self._numbers
        word = simt.right(self.stored[low // WORD_BYTES], 8 * (low % WORD_BYTES))
        codes = arith.TruncIOp(integer_type(16), word).result
        pair = widened_pair(codes, str(self.how.stored.element))
        if node.element == pair[0].type:
            return pair[0], pair[1]
        narrowed = arith.truncf(ir.VectorType.get([2], node.element), simt.vector_of(pair))
        return _numbers_of(narrowed)

    def _number(self, place: int) -> ir.Value:
        """A stored number as a register holds one (`narrow`)."""
        kind = self.how.stored.element
        size = tc.element_bytes(kind)
        word = self.stored[place * size // WORD_BYTES]
        return narrow.of_word(word, place * size % WORD_BYTES, kind)

    def _uniform(self, node: Node) -> ir.Value:
        """A value that is the same for all elements."""
        if node not in self.same:
            match node:
                case Read():
                    self.same[node] = self.beside[node.argument, node.at]
                case Fixed():
                    self.same[node] = narrow.constant(node.element, node.value)
                case ComputedResult():
                    operands = [self._uniform(each) for each in node.operands]
                    self.same[node] = narrow.computed(node.op.opview, operands)
        return self.same[node]


def _varies(node: Node) -> bool:
    """Whether a value depends on a stored number."""
    match node:
        case Read():
            return node.by_column
        case ComputedResult():
            return any(map(_varies, node.operands))
    return False


def _field(node: Node) -> tuple[int, int] | None:
    """The bits of a stored byte that are an integer: their shift and their number; None if it is
    computed in another way."""
    if isinstance(node, Read):
        return (0, 8) if node.by_column else None
    if not isinstance(node, ComputedResult) or len(node.operands) != 2:
        return None
    before, other = _field(node.operands[0]), node.operands[1]
    if before is None or not isinstance(other, Fixed) or str(node.element) != "i8":
        return None
    (shift, width), number = before, ir.IntegerAttr(other.value).value & 0xFF
    if node.op.name == "arith.andi" and number & (number + 1) == 0:
        return (shift, min(width, number.bit_length())) if number else None
    if node.op.name == "arith.shrui" and number < width:
        return shift + number, width - number
    return None


def _both(bits: int) -> ir.Value:
    return simt.constant(HALVES * bits)


def _pair_of(kind: ir.Type) -> ir.Type:
    return ir.VectorType.get([2], kind)


def _number(kind: ir.Type, value: float) -> ir.Value:
    """A number in both halves."""
    pair = _pair_of(kind)
    splat = ir.DenseElementsAttr.get_splat(pair, ir.FloatAttr.get(kind, value))
    return arith.ConstantOp(pair, splat).result


def _numbers_of(vector: ir.Value) -> tuple[ir.Value, ir.Value]:
    low, high = simt.elements_of(vector)
    return low, high


def _again(op: ir.Operation, kind: ir.Type, operands: list[ir.Value]) -> ir.Value:
    """An op on two numbers."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, [_pair_of(kind)], operands, attributes).result
