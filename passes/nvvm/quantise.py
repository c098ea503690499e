"""Lowering of block quantisation in registers, and of stores of scales.

A thread that holds a whole row needs no shuffle, because a block consists of neighbouring columns
of that row. In fragments four threads share a row and exchange their largest magnitudes.
"""

from __future__ import annotations

from functools import reduce

from tcir._mlir import arith, ir, llvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integer_type
from tcir.dialect.fragments import share
from tcir.dialect.ops.block_scale import ROWS_PER_COLUMN, SCALE_ROW_BYTES
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES
from tcir.dialect.ops.quantise import SCALED_COLUMNS, WORD_COLUMNS
from tcir.errors import PassError
from tcir.passes.emit import simt
from tcir.passes.emit.fp8 import saturated_word
from tcir.passes.emit.quantised_block import QuantisedPart, quantised_block, quantised_part

from .converter import Converter, Fragment, GlobalTensor, lower
from .warp_store import ATOM, PAIR, QUAD, ROW_STEP, Held, of_quad, places_of

BLOCK_ATOMS = SCALED_COLUMNS // ATOM
"""Atoms that a block spans."""


@lower(tc.QuantiseRowsOp)
def convert_quantise_rows(converter: Converter, op: tc.QuantiseRowsOp) -> None:
    """Emits for each block the largest magnitude, the scale, the quotients, and the codes, packed
    in words."""
    row, form = converter.ssa(op.values), op.format
    numbers = simt.elements_of(row)
    words, scales = list[ir.Value](), list[ir.Value]()
    for first in range(0, len(numbers), form.block):
        made, scale = quantised_block(numbers[first : first + form.block], form, op.elements)
        words += made
        scales.append(scale)
    converter.values[op.codes] = simt.vector_of(words)
    placed = [simt.left(scale, 8 * n) if n else scale for n, scale in enumerate(scales)]
    converter.values[op.scales] = reduce(simt.either_bits, placed)


@lower(tc.StoreScalesOp)
def convert_store_scales(converter: Converter, op: tc.StoreScalesOp) -> None:
    """Emits stores in which each thread stores the scales of its row: 1, 2 or 4 bytes, with zeros
    for padding."""
    value, target, *indices = op.operands
    tensor = converter.record(target, GlobalTensor)
    *outer, row, scale = (converter.ssa(each) for each in indices)
    count = value.type.shape[1]
    block = [*outer, simt.right(row, 7), simt.right(scale, 2)]
    ult, inside = arith.CmpIPredicate.ult, converter.constant(1, bits=1)
    for index, extent in zip(block, tensor.shape, strict=False):
        inside = arith.andi(inside, arith.cmpi(ult, index, converter.constant(extent)))
    linear = simt.linear(block, tensor.shape)
    quarter = simt.both_bits(simt.right(row, 5), BLOCK_ROWS // 32 - 1)
    place = simt.add(simt.mul(quarter, BLOCK_SCALES), simt.both_bits(scale, BLOCK_SCALES - 1))
    place = simt.add(place, simt.mul(converter.lane, SCALE_ROW_BYTES))
    left = simt.sub(simt.constant(integer(op, "rows")), row)
    used = arith.cmpi(arith.CmpIPredicate.slt, converter.lane, left)
    scales = _without_padding(converter.ssa(value), scale, count, integer(op, "scales"))
    word = arith.select(used, scales, simt.constant(0))
    with simt.only_if(inside):
        offset = simt.add(simt.mul(linear, BLOCK_BYTES), simt.wide(place))
        pointer = llvm.getelementptr(converter.pointers[tensor.argument], offset)
        if count == 1:
            simt.store_byte(pointer, word)
        else:
            part = word if count == 4 else arith.trunci(integer_type(16), word)
            llvm.store(part, pointer, alignment=count)


def _without_padding(value: ir.Value, first: ir.Value, count: int, scales: int) -> ir.Value:
    """`count` scales in a word, from number `first` on, with zeros from number `scales` on.

    `first` is a multiple of `count`: if `scales` is one as well, all are scales or none.
    """
    if scales % BLOCK_SCALES == 0:
        return value  # what is behind the last block is not stored
    whole = scales - scales % count
    before = arith.select(simt.less(first, whole), value, simt.constant(0))
    if scales == whole:
        return before
    part = simt.both_bits(value, (1 << 8 * (scales - whole)) - 1)
    return arith.select(simt.equal(first, whole), part, before)


# --- fragments ---------------------------------------------------------------------------------


@lower(tc.QuantiseFragmentOp)
def convert_quantise_fragment(converter: Converter, op: tc.QuantiseFragmentOp) -> None:
    """Emits the largest magnitude over the four threads that share a row, the scale, and the codes.

    Each of the four threads computes the scale.
    """
    values = converter.record(op.values, Fragment)
    part = share(values.type.atom, "C", values.type.shape, converter.warps)
    if part.columns % WORD_COLUMNS:
        raise PassError(
            f"expected warps of a multiple of {WORD_COLUMNS} columns to quantise, got "
            f"{part.columns} (tc.warps = {list(converter.warps)} of {values.type})"
        )
    places = places_of(values.type, converter.warps)
    element = str(op.codes.type.element)
    columns: dict[tuple[int, int], list[tuple[int, ir.Value]]] = {}
    for (down, right), value in zip(places, values.registers, strict=True):
        columns.setdefault((down, right // SCALED_COLUMNS), []).append((right, value))
    blocks = {
        place: quantised_part(
            [value for _, value in sorted(held, key=lambda pair: pair[0])], op.format, _of_row
        )
        for place, held in columns.items()
    }
    codes = [
        _codes([blocks[down, n // BLOCK_ATOMS] for down in (top, top + ROW_STEP)], n, element)
        for top in range(0, part.rows, 2 * ROW_STEP)
        for n in range(part.columns // ATOM)
    ]
    converter.values[op.codes] = Fragment(op.codes.type, tuple(codes), packed=True)
    words = [
        simt.bytes_in_word(
            [blocks[down, n].scale for down in (top, top + ROW_STEP) for n in (first, first + 1)]
        )
        for top, first in _words(part.rows, part.columns)
    ]
    converter.values[op.scales] = Fragment(op.scales.type, tuple(words), packed=True)


def _codes(rows: list[QuantisedPart], atom: int, element: str) -> ir.Value:
    """A thread's pairs of the two rows of an atom in a word, 0 in blocks that are not finite."""
    first = PAIR * (atom % BLOCK_ATOMS)
    numbers = [number for row in rows for number in row.divided[first : first + PAIR]]
    known = [
        arith.select(row.finite, simt.constant(bits), simt.constant(0))
        for row, bits in zip(rows, (0xFFFF, 0xFFFF0000), strict=True)
    ]
    return simt.both_bits(saturated_word(numbers, element), simt.either_bits(*known))


def _of_row(own: ir.Value) -> ir.Value:
    """The largest of the four threads with a row; a NaN of one is all's."""
    return of_quad(own, arith.maximumf)


def _words(rows: int, columns: int) -> list[tuple[int, int]]:
    """The upper row of a warp's atoms and the first of two blocks, of each word of scales."""
    return [
        (top, column // SCALED_COLUMNS)
        for top in range(0, rows, 2 * ROW_STEP)
        for column in range(0, columns, WORD_COLUMNS)
    ]


@lower(tc.StoreFragmentScalesOp)
def convert_store_fragment_scales(converter: Converter, op: tc.StoreFragmentScalesOp) -> None:
    """Emits stores in which each thread stores one of the four bytes of a word; three other threads
    store the other bytes."""
    scales = converter.record(op.fragment, Fragment)
    tensor = converter.record(op.tensor, GlobalTensor)
    held = Held.create(converter, scales.type, op)
    part = share(scales.type.atom, "C", scales.type.shape, converter.warps)
    *outer, row, column = held.first
    own = simt.both_bits(converter.lane, QUAD - 1)
    row = simt.add(row, simt.mul(simt.right(own, 1), ROW_STEP))
    block = simt.add(simt.divide(column, SCALED_COLUMNS), simt.both_bits(own, 1))
    rows, count = integer(op, "rows"), integer(op, "scales")
    for word, (down, right) in zip(scales.registers, _words(part.rows, part.columns), strict=True):
        at = simt.add(row, down), simt.add(block, right)
        known = simt.both_bits(simt.less(at[0], rows), simt.less(at[1], count))
        place = list(at) if op.row_major else _in_blocks(*at)
        indices = [*outer, *place]
        inside = reduce(
            simt.both_bits,
            (simt.less(n, extent) for n, extent in zip(indices, tensor.shape, strict=True)),
        )
        byte = arith.shrui(word, simt.left(own, 3))
        value = byte if op.row_major else arith.select(known, byte, simt.constant(0))
        with simt.only_if(inside):
            linear = simt.linear(indices, tensor.shape)
            simt.store_byte(simt.at(converter.pointers[tensor.argument], linear), value)


def _in_blocks(row: ir.Value, block: ir.Value) -> list[ir.Value]:
    """The block of 128 x 4 along rows and along scales, and the byte in it."""
    quarter = simt.rest(simt.divide(row, ROWS_PER_COLUMN), BLOCK_ROWS // ROWS_PER_COLUMN)
    column = simt.add(simt.mul(quarter, BLOCK_SCALES), simt.rest(block, BLOCK_SCALES))
    byte = simt.add(simt.mul(simt.rest(row, ROWS_PER_COLUMN), SCALE_ROW_BYTES), column)
    return [simt.divide(row, BLOCK_ROWS), simt.divide(block, BLOCK_SCALES), byte]
