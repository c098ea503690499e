"""Registers to global memory: ``tc.store_rows``, ``tc.store_lanes``."""

from __future__ import annotations

from math import gcd, prod

from tcir._mlir import arith, ir, llvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.errors import PassError

from .converter import WARP, Converter, GlobalTensor, lower, require_role
from .structure import only_if

MAX_STORE_BYTES = 16
"""Widest vector store of a thread (PTX ISA 9.7.9.12: .v4.b32)."""

INT32_BYTES = 2**31


def known_divisor(value: ir.Value) -> int:
    """A known divisor of `value`, an index of the program; 0 for the constant 0.

    It determines how wide stores may be and which columns of a tile share a bounds check.
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
        case "arith.index_cast":
            return known_divisor(operands[0])
        case "arith.select":
            return gcd(*map(known_divisor, operands[1:]))
    return 1


def largest_power_of_two(limit: int, *numbers: int) -> int:
    """The largest power of two up to `limit` that divides all `numbers`."""
    width = limit
    while any(number % width for number in numbers):
        width //= 2
    return width


@lower(tc.StoreRowsOp)
def convert_store_rows(converter: Converter, op: tc.StoreRowsOp) -> None:
    """Each thread stores its row with the widest vector stores its alignment allows.

    Columns are cut into groups that lie inside or outside the tensor as a whole, since the group's
    width divides the first column and the tensor's width; each group is one predicate.
    """
    row_dim, rows = integer(op, "row_dim"), integer(op, "rows")
    last = ir.MemRefType(op.tensor.type).rank - 1
    if not 0 <= row_dim < last:
        raise PassError(
            f"expected row_dim before the last dimension {last}: columns go along it, got {row_dim}"
        )
    _convert_store(converter, op, row_dim, rows)


@lower(tc.StoreLanesOp)
def convert_store_lanes(converter: Converter, op: tc.StoreLanesOp) -> None:
    """Each thread stores its row at its own indices."""
    _convert_store(converter, op, None, WARP)


def _convert_store(
    converter: Converter, op: tc.StoreRowsOp | tc.StoreLanesOp, row_dim: int | None, rows: int
) -> None:
    """`row_dim`: the dimension consecutive rows run along; None: indices are per thread."""
    require_role(converter, op)
    stored, target, *starts_at = op.operands
    tensor = converter.record(target, GlobalTensor)
    value = converter.ssa(stored)
    last = len(tensor.shape) - 1
    columns = ir.VectorType(value.type).shape[0]
    element_bytes = tc.element_bytes(tensor.element)
    indices = [converter.ssa(index) for index in starts_at]
    width = tensor.shape[last]
    group = gcd(columns, width, known_divisor(starts_at[last]))
    store_bytes = largest_power_of_two(MAX_STORE_BYTES, group * element_bytes)
    words = words_of(value, element_bytes, min(store_bytes, 4))
    per_store = store_bytes // min(store_bytes, 4)

    inside = _row_inside(converter, indices, tensor.shape, row_dim, rows)
    with only_if(inside):
        address = _row_address(converter, tensor, indices, row_dim, element_bytes)
        left = arith.SubIOp(converter.constant(width), indices[last]).result
        starts = arith.CmpIOp(
            arith.CmpIPredicate.ult, indices[last], converter.constant(width)
        ).result
        for start in range(0, columns, group):
            fits = starts
            if start:
                more = arith.CmpIOp(arith.CmpIPredicate.ult, converter.constant(start), left).result
                fits = arith.AndIOp(starts, more).result
            with only_if(fits):
                for column in range(start, start + group, store_bytes // element_bytes):
                    first_byte = column * element_bytes
                    first = first_byte // min(store_bytes, 4)
                    _store(converter, words, first, per_store, address, first_byte, store_bytes)


def _row_inside(
    converter: Converter,
    indices: list[ir.Value],
    shape: tuple[int, ...],
    row_dim: int | None,
    rows: int,
) -> ir.Value:
    """Whether this thread's row is one of `rows` and inside the tensor in all but the last."""
    ult = arith.CmpIPredicate.ult
    inside = converter.constant(1, bits=1)
    if row_dim is not None:
        bound = converter.constant(min(rows, WARP))
        inside = arith.CmpIOp(ult, converter.lane, bound).result
    for dim, (index, extent) in enumerate(zip(indices[:-1], shape[:-1], strict=True)):
        size = converter.constant(extent)
        inside = arith.AndIOp(inside, arith.CmpIOp(ult, index, size).result).result
        if dim == row_dim:
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


def words_of(value: ir.Value, element_bytes: int, word_bytes: int) -> ir.Value:
    """The row as a vector of integers of `word_bytes`."""
    count = ir.VectorType(value.type).shape[0] * element_bytes // word_bytes
    word = ir.IntegerType.get_signless(8 * word_bytes)
    return llvm.bitcast(ir.VectorType.get([count], word), value)


def _store(
    converter: Converter,
    words: ir.Value,
    first: int,
    count: int,
    address: ir.Value,
    first_byte: int,
    nbytes: int,
) -> None:
    if count == 1:
        part = llvm.extractelement(words, converter.constant(first))
    else:
        part = llvm.shufflevector(words, range(first, first + count))
    pointer = llvm.getelementptr(address, first_byte) if first_byte else address
    llvm.store(part, pointer, alignment=nbytes)
