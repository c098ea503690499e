"""Block quantisation of accumulators in registers: four threads have a row of a block."""

from __future__ import annotations

from functools import reduce

from tcir._mlir import arith, ir, llvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integer_type
from tcir.dialect.fragments import share
from tcir.dialect.ops.block_scale import ROWS_PER_COLUMN, SCALE_ROW_BYTES
from tcir.dialect.ops.block_scaled import BLOCK_ROWS, BLOCK_SCALES
from tcir.dialect.ops.quantise_fragment import SCALED_COLUMNS, WORD_COLUMNS
from tcir.errors import PassError
from tcir.passes.build import simt
from tcir.passes.build.quantised_block import QuantisedPart, quantised_part

from .converter import Converter, Fragment, GlobalTensor, lower
from .structure import only_if
from .warp_store import ATOM, QUAD, Held, places_of

ROW_STEP = 8
"""Rows from one of a thread's rows of an atom to the other (PTX ISA 9.7.14.5)."""
BLOCK_ATOMS = SCALED_COLUMNS // ATOM
"""Atoms that a block goes through."""


@lower(tc.QuantiseFragmentOp)
def convert_quantise_fragment(converter: Converter, op: tc.QuantiseFragmentOp) -> None:
    """The largest of a thread's 8 magnitudes, of the four threads with the row; scale and codes.

    Every thread of the four computes the scale.
    """
    values = converter.record(op.values, Fragment)
    part = share(values.type.atom, "C", values.type.shape, converter.warps)
    if part.columns % WORD_COLUMNS:
        raise PassError(
            f"expected warps of a multiple of {WORD_COLUMNS} columns to quantise, got "
            f"{part.columns} (tc.warps = {list(converter.warps)} of {values.type})"
        )
    places = places_of(values.type, converter.warps)
    columns: dict[tuple[int, int], list[tuple[int, ir.Value]]] = {}
    for (down, right), value in zip(places, values.registers, strict=True):
        columns.setdefault((down, right // SCALED_COLUMNS), []).append((right, value))
    blocks = {
        place: quantised_part(
            [value for _, value in sorted(held, key=lambda pair: pair[0])],
            op.format, str(op.codes.type.element), _of_row,
        )
        for place, held in columns.items()
    }  # fmt: skip
    atoms = part.columns // ATOM
    codes = [
        _codes(blocks[top, n // BLOCK_ATOMS], blocks[top + ROW_STEP, n // BLOCK_ATOMS], n)
        for top in range(0, part.rows, 2 * ROW_STEP)
        for n in range(atoms)
    ]
    converter.values[op.codes] = Fragment(op.codes.type, tuple(codes), packed=True)
    words = [
        simt.bytes_in_word(
            [blocks[down, n].scale for down in (top, top + ROW_STEP) for n in (first, first + 1)]
        )
        for top, first in _words(part.rows, part.columns)
    ]
    converter.values[op.scales] = Fragment(op.scales.type, tuple(words), packed=True)


def _codes(upper: QuantisedPart, lower: QuantisedPart, atom: int) -> ir.Value:
    """A thread's pairs of the two rows of an atom in a word, 0 in blocks that are not finite."""
    word, mask = simt.constant(0), simt.constant(0)
    for block, bits in ((upper, 0xFFFF), (lower, 0xFFFF0000)):
        pair = arith.extui(integer_type(32), block.pairs[atom % BLOCK_ATOMS])
        word = simt.either_bits(word, simt.left(pair, 16) if bits > 0xFFFF else pair)
        used = arith.select(block.finite, simt.constant(bits), simt.constant(0))
        mask = simt.either_bits(mask, used)
    return simt.both_bits(word, mask)


def _of_row(own: ir.Value) -> ir.Value:
    """The largest of the four threads with a row; a NaN of one is all's."""
    for distance in (1, 2):
        bits = llvm.bitcast(integer_type(32), own)
        other = simt.as_f32(simt.shuffle_xor(bits, distance))
        own = arith.maximumf(own, other)
    return own


def _words(rows: int, columns: int) -> list[tuple[int, int]]:
    """The upper row of a warp's atoms and the first of two blocks, of each word of scales."""
    return [
        (top, column // SCALED_COLUMNS)
        for top in range(0, rows, 2 * ROW_STEP)
        for column in range(0, columns, WORD_COLUMNS)
    ]


@lower(tc.StoreFragmentScalesOp)
def convert_store_fragment_scales(converter: Converter, op: tc.StoreFragmentScalesOp) -> None:
    """Each thread stores one of the four bytes of a word that it shares with three others."""
    scales = converter.record(op.fragment, Fragment)
    tensor = converter.record(op.tensor, GlobalTensor)
    held = Held.create(converter, scales.type, op)
    part = share(scales.type.atom, "C", scales.type.shape, converter.warps)
    *outer, row, column = held.first
    own = simt.both_bits(converter.lane, QUAD - 1)
    row = simt.add(row, simt.mul(simt.right(own, 1), ROW_STEP))
    block = simt.add(simt.right(column, 5), simt.both_bits(own, 1))
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
        with only_if(inside):
            linear = simt.constant(0, 64)
            for index, extent in zip(indices, tensor.shape, strict=True):
                linear = simt.add(simt.mul(linear, extent), simt.wide(index))
            simt.store_byte(simt.at(converter.pointers[tensor.argument], linear), value)


def _in_blocks(row: ir.Value, block: ir.Value) -> list[ir.Value]:
    """The block of 128 x 4 along rows and along scales, and the byte in it."""
    quarter = simt.rest(simt.divide(row, ROWS_PER_COLUMN), BLOCK_ROWS // ROWS_PER_COLUMN)
    column = simt.add(simt.mul(quarter, BLOCK_SCALES), simt.rest(block, BLOCK_SCALES))
    byte = simt.add(simt.mul(simt.rest(row, ROWS_PER_COLUMN), SCALE_ROW_BYTES), column)
    return [simt.divide(row, BLOCK_ROWS), simt.divide(block, BLOCK_SCALES), byte]
