"""Block quantisation of a thread's row in registers, and the store of its scales.

Nothing is shuffled: a block is neighbouring columns of a row, and a thread has the whole row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from tcir._mlir import arith, ir, llvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integer_type
from tcir.dialect.ops.block_scale import SCALE_ROW_BYTES
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES
from tcir.dialect.ops.quantise import BlockFormat
from tcir.passes.build import simt
from tcir.passes.build.fp8 import rounded_pair, widened_pair

from .converter import Converter, GlobalTensor, lower, require_role
from .structure import only_if

INFINITY = 0x7F800000
E2M1 = (
    "{ .reg .b8 a, b, c, d; "
    "cvt.rn.satfinite.e2m1x2.f32 a, $2, $1; cvt.rn.satfinite.e2m1x2.f32 b, $4, $3; "
    "cvt.rn.satfinite.e2m1x2.f32 c, $6, $5; cvt.rn.satfinite.e2m1x2.f32 d, $8, $7; "
    "mov.b32 $0, {a, b, c, d}; }"
)
"""Eight f32 as e2m1 in a word, the first in its lowest bits."""


@lower(tc.QuantiseRowsOp)
def convert_quantise_rows(converter: Converter, op: tc.QuantiseRowsOp) -> None:
    """Per block the largest magnitude, the scale, quotients, and codes in words."""
    row, form = converter.ssa(op.values), op.format
    columns = range(ir.VectorType(row.type).shape[0])
    numbers = [llvm.extractelement(row, simt.constant(n)) for n in columns]
    words, scales = list[ir.Value](), list[ir.Value]()
    for first in columns[:: form.block]:
        block = _Block.of(numbers[first : first + form.block], form)
        scale, divided = _by_ue4m3(block) if form.block == 16 else _by_ue8m0(block)
        scales.append(scale)
        nothing = simt.constant(0)
        words += [
            arith.select(block.finite, word, nothing) for word in _words(divided, op.elements)
        ]
    kind = ir.VectorType.get([len(words)], integer_type(32))
    codes = llvm.mlir_poison(kind)
    for n, word in enumerate(words):
        codes = llvm.insertelement(codes, word, simt.constant(n))
    converter.values[op.codes] = codes
    placed = [simt.left(scale, 8 * n) if n else scale for n, scale in enumerate(scales)]
    converter.values[op.scales] = reduce(simt.either_bits, placed)


@dataclass(frozen=True)
class _Block:
    """Numbers that share a scale; amax: the largest magnitude; finite: whether all are."""

    numbers: Sequence[ir.Value]
    form: BlockFormat
    amax: ir.Value
    finite: ir.Value

    @staticmethod
    def of(numbers: Sequence[ir.Value], form: BlockFormat) -> _Block:
        """A NaN is passed on by ``max.NaN``."""
        sizes = [simt.as_f32(simt.both_bits(_bits(n), 0x7FFFFFFF)) for n in numbers]
        amax = reduce(arith.maximumf, sizes)
        infinity = simt.as_f32(simt.constant(INFINITY))
        finite = arith.cmpf(arith.CmpFPredicate.OLT, amax, infinity)
        return _Block(numbers, form, amax, finite)

    def known(self, scale: ir.Value, nan: int) -> ir.Value:
        """The code of the scale, of NaN if the block is not finite."""
        return arith.select(self.finite, scale, simt.constant(nan))


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


@lower(tc.StoreScalesOp)
def convert_store_scales(converter: Converter, op: tc.StoreScalesOp) -> None:
    """Each thread stores its row's scales, 1, 2 or 4 bytes; those that are padding as zeros."""
    require_role(converter, op)
    value, target, *indices = op.operands
    tensor = converter.record(target, GlobalTensor)
    *outer, row, scale = (converter.ssa(each) for each in indices)
    count = value.type.shape[1]
    block = [*outer, simt.right(row, 7), simt.right(scale, 2)]
    ult, inside = arith.CmpIPredicate.ult, converter.constant(1, bits=1)
    linear = simt.constant(0, 64)
    for index, extent in zip(block, tensor.shape, strict=False):
        inside = arith.andi(inside, arith.cmpi(ult, index, converter.constant(extent)))
        linear = simt.add(simt.mul(linear, extent), simt.wide(index))
    quarter = simt.both_bits(simt.right(row, 5), BLOCK_ROWS // 32 - 1)
    place = simt.add(simt.mul(quarter, BLOCK_SCALES), simt.both_bits(scale, BLOCK_SCALES - 1))
    place = simt.add(place, simt.mul(converter.lane, SCALE_ROW_BYTES))
    left = simt.sub(simt.constant(integer(op, "rows")), row)
    used = arith.cmpi(arith.CmpIPredicate.slt, converter.lane, left)
    scales = _without_padding(converter.ssa(value), scale, count, integer(op, "scales"))
    word = arith.select(used, scales, simt.constant(0))
    with only_if(inside):
        offset = simt.add(simt.mul(linear, BLOCK_BYTES), simt.wide(place))
        pointer = llvm.getelementptr(converter.pointers[tensor.argument], offset)
        if count == 1:
            simt.store_byte(pointer, word)
        else:
            part = word if count == 4 else arith.trunci(integer_type(16), word)
            llvm.store(part, pointer, alignment=count)


def _without_padding(value: ir.Value, first: ir.Value, count: int, scales: int) -> ir.Value:
    """`count` scales in a word, from number `first` on, with zeros from number `scales` on.

    `first` is a multiple of `count`: where `scales` is one, too, all are scales or none.
    """
    if scales % BLOCK_SCALES == 0:
        return value  # what is behind the last block is not stored
    whole = scales - scales % count
    before = arith.select(simt.less(first, whole), value, simt.constant(0))
    if scales == whole:
        return before
    part = simt.both_bits(value, (1 << 8 * (scales - whole)) - 1)
    return arith.select(simt.equal(first, whole), part, before)
