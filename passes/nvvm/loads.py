"""Lowering of loads from global memory to registers: ``memref.load``, ``tc.load_index``,
``tc.load_rows``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from tcir._mlir import arith, ir, llvm, scf
from tcir.dialect import tc
from tcir.dialect.attributes import optional_integer
from tcir.errors import PassError
from tcir.passes.emit import simt

from .converter import Converter, GlobalTensor, i32, lower
from .scalar import WORD_BYTES, is_fp8, is_i8
from .stores import INT32_BYTES, MAX_STORE_BYTES, known_divisor, largest_power_of_two

INDEX_BYTES = 4
"""Bytes of an element that is an index."""
NE, ULT = arith.CmpIPredicate.ne, arith.CmpIPredicate.ult


@lower("memref.load")
def convert_load(converter: Converter, op: ir.OpView) -> None:
    """Emits a load executed by every thread; only tensors without dimensions are supported."""
    source = converter.record(op.operation.operands[0], GlobalTensor)
    if source.shape or not isinstance(source.element, ir.F32Type):
        raise PassError(
            f"expected memref.load of memref<f32>, got {op.operation.operands[0].type}; other "
            "tensors are loaded by TMA"
        )
    pointer = converter.pointers[source.argument]
    converter.values[op.operation.results[0]] = llvm.load(
        source.element, pointer, alignment=tc.element_bytes(source.element)
    )


@lower(tc.LoadIndexOp)
def convert_load_index(converter: Converter, op: tc.LoadIndexOp) -> None:
    """Emits a load of one address, executed by every thread."""
    tensor = converter.record(op.tensor, GlobalTensor)
    place = simt.constant(0, 64)
    for number, extent in zip(op.indices, tensor.shape, strict=True):
        place = simt.add(simt.mul(place, extent), simt.wide(converter.ssa(number)))
    address = simt.at(converter.pointers[tensor.argument], simt.mul(place, INDEX_BYTES))
    converter.values[op.value] = llvm.load(i32(), address, alignment=INDEX_BYTES)


@lower(tc.LoadRowsOp)
def convert_load_rows(converter: Converter, op: tc.LoadRowsOp) -> None:
    """Emits loads in which each thread loads its row; contiguous columns take the widest loads that
    their alignment allows.

    As in a store, columns are divided into groups, each of which is entirely inside or entirely
    outside the tensor.
    """
    if not all(isinstance(use.owner.opview, arith.ExtSIOp) for use in op.value.uses):
        check_beside(op.tensor.type)
    source = _Source.create(converter, op)
    count = ir.VectorType(op.value.type).shape[1]
    column_dim = optional_integer(op, "column_dim")
    with op.location:
        if column_dim is None:
            (number,) = source.group(0, 1, 1)
            numbers = [number] * count
        elif column_dim == len(source.tensor.shape) - 1:
            width = source.tensor.shape[column_dim]
            group = gcd(count, width, known_divisor(op.indices[column_dim]))
            most = MAX_STORE_BYTES // source.bytes
            each = largest_power_of_two(most, group)
            numbers = [n for at in range(0, count, group) for n in source.group(at, group, each)]
        else:
            numbers = [n for at in range(count) for n in source.group(at, 1, 1)]
        if is_fp8(op.value.type) or is_i8(op.value.type):
            numbers = [
                simt.bytes_in_word(numbers[at : at + WORD_BYTES])
                for at in range(0, count, WORD_BYTES)
            ]
        vector = converter.vector(numbers)
    converter.values[op.value] = vector


def check_beside(tensor: ir.MemRefType) -> None:
    """Rejects tensors that an epilogue cannot read."""
    if is_i8(tensor.element_type):
        raise PassError(
            f"expected floats or i32 beside the sums, got {tensor} (an epilogue reads no i8); "
            "extend it to i32 in a function of its own"
        )


@dataclass(frozen=True)
class _Source:
    """What a thread loads from.

    row:    whether the thread's row is inside, and address: of its first column
    left:   columns from the first to the end of the tensor; None without a column dimension
    pitch:  bytes between columns
    """

    converter: Converter
    tensor: GlobalTensor
    row: ir.Value
    address: ir.Value
    left: ir.Value | None
    pitch: int

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return tc.element_bytes(self.tensor.element)

    @classmethod
    def create(cls, converter: Converter, op: tc.LoadRowsOp) -> _Source:
        """Checks the op, and computes the address for the executing thread."""
        tensor = converter.record(op.tensor, GlobalTensor)
        row_dim, column_dim = (optional_integer(op, n) for n in ("row_dim", "column_dim"))
        size = tc.element_bytes(tensor.element)
        places = [converter.ssa(each) for each in op.indices]
        inside, left, pitch = converter.constant(1, bits=1), None, 0
        for dim, extent in enumerate(tensor.shape):
            # Not `index + lane < extent`: an index just below 2^32 would wrap into the tensor.
            end = converter.constant(extent)
            begins = arith.cmpi(ULT, places[dim], end)
            inside = arith.andi(inside, begins)
            rest = arith.subi(end, places[dim])
            if dim == row_dim:
                inside = arith.andi(inside, arith.cmpi(ULT, converter.lane, rest))
            if dim == column_dim:
                left, pitch = rest, prod(tensor.shape[dim + 1 :]) * size
        bits = 32 if prod(tensor.shape) * size < INT32_BYTES else 64
        linear = converter.constant(0, bits)
        for dim, extent in enumerate(tensor.shape):
            place = _widened(places[dim], bits)
            if dim == row_dim:
                place = arith.addi(place, _widened(converter.lane, bits))
            linear = arith.addi(arith.muli(linear, converter.constant(extent, bits)), place)
        offset = arith.muli(linear, converter.constant(size, bits))
        address = llvm.getelementptr(converter.pointers[tensor.argument], offset)
        return cls(converter, tensor, inside, address, left, pitch)

    def group(self, first: int, count: int, each: int) -> list[ir.Value]:
        """Loads `count` columns from column `first` on, `each` columns at a time. They are all
        inside the tensor, or all are zeros."""
        fits = self.row
        if first and self.left is not None:
            fits = arith.andi(fits, arith.cmpi(ULT, self.converter.constant(first), self.left))
        at = [(first + n * each) * self.pitch for n in range(count // each)]
        return numbers_at(self.converter, fits, self.address, at, each, self.tensor.element)


def numbers_at(
    converter: Converter,
    fits: ir.Value | None,
    address: ir.Value,
    offsets: Sequence[int],
    count: int,
    element: ir.Type,
) -> list[ir.Value]:
    """Loads `count` elements at each of the `offsets` (in bytes), with one load for each offset;
    the elements are zeros if `fits` is false (None: they are always loaded). fp8 elements give
    codes and i8 elements give bytes, each in an i32. An i1 is true if its byte in memory is not 0.
    """
    nbytes = count * tc.element_bytes(element)
    byte = nbytes == 1  # which has no register
    word = i32() if byte else ir.IntegerType.get_signless(8 * min(nbytes, 4))
    words = nbytes // min(nbytes, 4)
    kind = ir.VectorType.get([words], word) if words > 1 else word

    def load(offset: int) -> ir.Value:
        pointer = llvm.getelementptr(address, offset) if offset else address
        if byte:
            return simt.load_byte(pointer)
        return llvm.load(kind, pointer, alignment=nbytes)

    if fits is None:
        loaded = [load(offset) for offset in offsets]
    else:
        branch = scf.IfOp(fits, [kind] * len(offsets), has_else=True)
        with ir.InsertionPoint(branch.then_block):
            scf.YieldOp([load(offset) for offset in offsets])
        with ir.InsertionPoint(branch.else_block):
            zero = ir.IntegerAttr.get(word, 0)
            splat = ir.DenseElementsAttr.get_splat(kind, zero) if words > 1 else zero
            scf.YieldOp([arith.constant(kind, splat)] * len(offsets))
        loaded = list(branch.results)
    boolean = str(element) == "i1"
    if is_fp8(element) or is_i8(element) or boolean:
        codes = [code for each in loaded for code in _codes(each, min(nbytes, 4))]
        return [arith.cmpi(NE, code, simt.constant(0)) for code in codes] if boolean else codes
    if count == 1:
        return [llvm.bitcast(element, each) for each in loaded]
    rows = [llvm.bitcast(ir.VectorType.get([count], element), each) for each in loaded]
    return [each for row in rows for each in converter.elements(row)]


def _codes(loaded: ir.Value, each: int) -> list[ir.Value]:
    """Splits loaded words into their bytes, as i32."""
    vector = isinstance(loaded.type, ir.VectorType)
    parts = simt.elements_of(loaded) if vector else [loaded]
    wide = [part if part.type == i32() else arith.extui(i32(), part) for part in parts]
    return [
        simt.both_bits(simt.right(word, 8 * n), 0xFF) if each > 1 else word
        for word in wide
        for n in range(each)
    ]


def _widened(number: ir.Value, bits: int) -> ir.Value:
    return number if bits == 32 else arith.extui(ir.IntegerType.get_signless(bits), number)
