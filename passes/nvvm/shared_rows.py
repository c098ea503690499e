"""Lowering of copies between register tiles and the rows of shared tiles that TMA reads or has
written."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import arith, ir, llvm
from tcir.dialect import tc
from tcir.dialect.ops.store_shared import STORE_BYTES, column_step
from tcir.errors import PassError
from tcir.passes.emit.gpu_module import pointer_type

from .converter import Converter, SmemTile, i32, lower
from .scalar import converted_type
from .stores import known_divisor, words_of

WORD_BYTES = 4
WORDS = STORE_BYTES // WORD_BYTES
"""Words of a unit, which the swizzle moves as a whole."""


@lower(tc.StoreSharedOp)
def convert_store_shared(converter: Converter, op: tc.StoreSharedOp) -> None:
    """Emits stores in which each thread stores its row in units of 16 bytes."""
    nbytes = op.value.type.shape[1] * tc.element_bytes(op.tile.type.element)
    words = words_of(converter.ssa(op.value), nbytes, WORD_BYTES)
    for word, pointer in _units(converter, op):
        part = llvm.shufflevector(words, range(word, word + WORDS))
        llvm.store(part, pointer, alignment=STORE_BYTES)


@lower(tc.LoadSharedOp)
def convert_load_shared(converter: Converter, op: tc.LoadSharedOp) -> None:
    """Emits loads in which each thread loads its row in units of 16 bytes."""
    kind = op.value.type
    nbytes = kind.shape[1] * tc.element_bytes(kind.element_type)
    words = llvm.mlir_poison(ir.VectorType.get([nbytes // WORD_BYTES], i32()))
    for word, pointer in _units(converter, op):
        unit = llvm.load(ir.VectorType.get([WORDS], i32()), pointer, alignment=STORE_BYTES)
        for place in range(WORDS):
            part = llvm.extractelement(unit, converter.constant(place))
            words = llvm.insertelement(words, part, converter.constant(word + place))
    row = converted_type(kind)
    converter.values[op.value] = words if row == words.type else llvm.bitcast(row, words)


def _units(
    converter: Converter, op: tc.StoreSharedOp | tc.LoadSharedOp
) -> Iterator[tuple[int, ir.Value]]:
    """The first word of each 16-byte unit of the thread's row, and a pointer to the unit.

    A row of a swizzle-span column is ``span`` bytes; bits 4 and up of the byte in it are XORed with
    bits 7 and up of the row's address (PTX ISA 9.7.16.10.6).
    """
    tile = converter.record(op.tile, SmemTile)
    kind = tile.type
    element_bytes, span = tc.element_bytes(kind.element), kind.span
    columns = op.value.type.shape[1]
    step = column_step(kind, columns)
    if known_divisor(op.column) % step:
        raise PassError(
            f"expected a first column known to be a multiple of {step}, got one that is a multiple "
            f"of {known_divisor(op.column)}: 16 bytes would be in two rows of the tile"
        )
    byte = arith.MulIOp(converter.ssa(op.column), converter.constant(element_bytes)).result
    column = arith.DivUIOp(byte, converter.constant(span)).result
    inside = arith.RemUIOp(byte, converter.constant(span)).result
    row = arith.AddIOp(converter.ssa(op.row), converter.lane).result
    base = converter.add(tile.address.base, tile.address.offset)
    for further in range(0, columns * element_bytes, min(span, columns * element_bytes)):
        at = converter.add(column, further // span)
        first = arith.MulIOp(at, converter.constant(kind.shape[0])).result
        line = arith.MulIOp(arith.AddIOp(first, row).result, converter.constant(span)).result
        address = arith.AddIOp(base, line).result
        phase = arith.AndIOp(
            arith.ShRUIOp(address, converter.constant(3)).result,
            converter.constant((span - 1) & -STORE_BYTES),
        ).result
        for start in range(0, min(span, columns * element_bytes), STORE_BYTES):
            place = arith.XOrIOp(converter.add(inside, start), phase).result
            pointer = llvm.inttoptr(pointer_type(3), arith.AddIOp(address, place).result)
            yield (further + start) // WORD_BYTES, pointer
