"""Lowering of stores from registers to global memory: ``tc.store_rows``, ``tc.store_lanes``."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

from tcir._mlir import arith, ir, llvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integer_type
from tcir.dialect.ops.stores import column_dim
from tcir.passes.emit import simt
from tcir.passes.emit.diagnostics import is_op

from .converter import WARP, Converter, GlobalTensor, lower

MAX_STORE_BYTES = 16
"""Widest vector store of a thread (PTX ISA 9.7.9.12: .v4.b32)."""

INT32_BYTES = 2**31


def known_divisor(value: ir.Value) -> int:
    """A number that is known to divide `value`, an index of the program; 0 for the constant 0.

    This number determines how wide stores may be and which columns of a tile share a bounds check.
    """
    if isinstance(value.owner, ir.Block):
        loop = value.owner.owner
        if loop.operation.name == "scf.for" and value == value.owner.arguments[0]:
            return gcd(known_divisor(loop.operands[0]), known_divisor(loop.operands[2]))
        return 1
    op = value.owner
    operands = list(op.operands)
    match op.name:
        case "arith.constant":
            return abs(ir.IntegerAttr(op.attributes["value"]).value)
        case "arith.addi" | "arith.subi":
            return gcd(*map(known_divisor, operands))
        case "arith.muli":
            return prod(map(known_divisor, operands))
        case "arith.divui" if is_op(operands[1], "arith.constant"):
            divisor, by = map(known_divisor, operands)
            return divisor // by if divisor % by == 0 else 1
        case "arith.index_cast" | "vector.broadcast":
            return known_divisor(operands[0])
        case "arith.select":
            return gcd(*map(known_divisor, operands[1:]))
    return 1


def largest_power_of_two(limit: int, *numbers: int) -> int:
    """The largest power of two that is at most `limit` and divides all `numbers`."""
    width = limit
    while any(number % width for number in numbers):
        width //= 2
    return width


@lower(tc.StoreRowsOp)
def convert_store_rows(converter: Converter, op: tc.StoreRowsOp) -> None:
    """Emits stores in which each thread stores its row with the widest vector stores that its
    alignment allows.

    Columns are divided into groups, each of which is entirely inside or entirely outside the
    tensor, because the group's width divides both the first column and the tensor's width. Each
    group has one predicate. Columns that are not contiguous are stored one by one, so that the
    lanes of a warp together store to contiguous addresses.
    """
    along = integer(op, "row_dim"), column_dim(op)
    _convert_store(converter, op, _Along(*along, integer(op, "rows")))


@lower(tc.StoreLanesOp)
def convert_store_lanes(converter: Converter, op: tc.StoreLanesOp) -> None:
    """Emits stores in which each thread stores its row at indices of its own."""
    _convert_store(converter, op, _Along(None, len(op.places), WARP))


@dataclass(frozen=True)
class _Along:
    """The dimensions of the tensor that rows (None: indices are per thread) and columns of a tile
    go along, and how many rows there are."""

    row: int | None
    column: int
    rows: int


def _convert_store(
    converter: Converter, op: tc.StoreRowsOp | tc.StoreLanesOp, along: _Along
) -> None:
    stored, target, *starts_at = op.operands
    tensor = converter.record(target, GlobalTensor)
    value = converter.ssa(stored)
    columns = stored.type.shape[1]
    element_bytes = tc.element_bytes(tensor.element)
    indices = [converter.ssa(index) for index in starts_at]
    width, first_column = tensor.shape[along.column], indices[along.column]
    pitch = prod(tensor.shape[along.column + 1 :])
    group = gcd(columns, width, known_divisor(starts_at[along.column]))
    contiguous = group if pitch == 1 else 1
    store_bytes = largest_power_of_two(MAX_STORE_BYTES, contiguous * element_bytes)
    words = words_of(value, columns * element_bytes, min(store_bytes, 4))
    per_store = store_bytes // min(store_bytes, 4)

    inside = _row_inside(converter, indices, tensor.shape, along)
    with simt.only_if(inside):
        address = _row_address(converter, tensor, indices, along.row, element_bytes)
        left = arith.SubIOp(converter.constant(width), first_column).result
        starts = arith.CmpIOp(
            arith.CmpIPredicate.ult, first_column, converter.constant(width)
        ).result
        for start in range(0, columns, group):
            fits = starts
            if start:
                more = arith.CmpIOp(arith.CmpIPredicate.ult, converter.constant(start), left).result
                fits = arith.AndIOp(starts, more).result
            with simt.only_if(fits):
                for column in range(start, start + group, store_bytes // element_bytes):
                    first = column * element_bytes // min(store_bytes, 4)
                    place = column * pitch * element_bytes
                    _store(converter, words, first, per_store, address, place, store_bytes)


def _row_inside(
    converter: Converter,
    indices: list[ir.Value],
    shape: tuple[int, ...],
    along: _Along,
) -> ir.Value:
    """Whether this thread's row is one of the rows and inside the tensor in all but its columns."""
    ult = arith.CmpIPredicate.ult
    inside = converter.constant(1, bits=1)
    if along.row is not None:
        bound = converter.constant(min(along.rows, WARP))
        inside = arith.CmpIOp(ult, converter.lane, bound).result
    for dim, (index, extent) in enumerate(zip(indices, shape, strict=True)):
        if dim == along.column:
            continue
        size = converter.constant(extent)
        inside = arith.AndIOp(inside, arith.CmpIOp(ult, index, size).result).result
        if dim == along.row:
            # Not `index + lane < extent`: an index just below 2^32 would wrap into the tensor.
            left = arith.SubIOp(size, index).result
            more = arith.CmpIOp(ult, converter.lane, left).result
            inside = arith.AndIOp(inside, more).result
    return inside


def _row_address(
    converter: Converter,
    tensor: GlobalTensor,
    indices: list[ir.Value],
    row_dim: int | None,
    element_bytes: int,
) -> ir.Value:
    """Address of this thread's row at the first column, in i64 where 2^31 bytes can be passed."""
    bits = 32 if prod(tensor.shape) * element_bytes < INT32_BYTES else 64
    integer = ir.IntegerType.get_signless(bits)

    def widen(number: ir.Value) -> ir.Value:
        return number if bits == 32 else arith.ExtUIOp(integer, number).result

    places = [widen(index) for index in indices]
    if row_dim is not None:
        places[row_dim] = arith.AddIOp(places[row_dim], widen(converter.lane)).result
    linear = places[0]
    for place, extent in zip(places[1:], tensor.shape[1:], strict=True):
        scaled = arith.MulIOp(linear, converter.constant(extent, bits)).result
        linear = arith.AddIOp(scaled, place).result
    offset = arith.MulIOp(linear, converter.constant(element_bytes, bits)).result
    return llvm.getelementptr(converter.pointers[tensor.argument], offset)


def words_of(value: ir.Value, nbytes: int, word_bytes: int) -> ir.Value:
    """A row of `nbytes` bytes as a vector of integers of `word_bytes` bytes; single bytes are i32.

    The scales of a row are in the low bytes of an i32.
    """
    if isinstance(value.type, ir.IntegerType) and value.type.width > 8 * nbytes:
        value = arith.trunci(integer_type(8 * nbytes), value)
    if word_bytes > 1:
        word = integer_type(8 * word_bytes)
        return llvm.bitcast(ir.VectorType.get([nbytes // word_bytes], word), value)
    halves = llvm.bitcast(ir.VectorType.get([nbytes // 2], integer_type(16)), value)
    bytes_ = llvm.mlir_poison(ir.VectorType.get([nbytes], integer_type(32)))
    for place in range(nbytes):
        half = llvm.extractelement(halves, simt.constant(place // 2))
        byte = simt.right(arith.extui(integer_type(32), half), 8 * (place % 2))
        bytes_ = llvm.insertelement(bytes_, byte, simt.constant(place))
    return bytes_


def _store(
    converter: Converter,
    words: ir.Value,
    first: int,
    count: int,
    address: ir.Value,
    place: int,
    nbytes: int,
) -> None:
    if count == 1:
        part = llvm.extractelement(words, converter.constant(first))
    else:
        part = llvm.shufflevector(words, range(first, first + count))
    pointer = llvm.getelementptr(address, place) if place else address
    if nbytes == 1:
        simt.store_byte(pointer, part)
        return
    llvm.store(part, pointer, alignment=nbytes)
