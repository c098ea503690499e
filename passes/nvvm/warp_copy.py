"""Lowering of cp.async: which pieces of a tile each thread copies."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.errors import PassError
from tcir.passes.emit import simt
from tcir.passes.emit.gpu_module import pointer_type

from .converter import Converter, GlobalTensor, SmemTile, StagedTile, lower
from .linear import LinearMap, ThreadOffset

_SIZE_LIMIT = 2**31


@dataclass(frozen=True)
class CopyPieces:
    """A tile divided into pieces of `width` bytes. Thread t copies pieces t, t + threads, …"""

    type: tc.StagedType
    width: int
    threads: int

    @property
    def per_row(self) -> int:
        """Number of pieces in a row of the tile."""
        return self.type.pitch // self.width

    @property
    def rounds(self) -> list[int]:
        """The pieces that thread 0 copies, one for each round."""
        return list(range(0, self.type.nbytes // self.width, self.threads))

    @property
    def working(self) -> int:
        """Number of threads that copy a piece in every round."""
        return min(self.threads, self.type.nbytes // self.width)

    def shared_offset(self, piece: int) -> int:
        """Byte offset of a piece in the tile."""
        row, column = divmod(piece, self.per_row)
        inner = column * self.width // tc.element_bytes(self.type.element)
        mn, k = (row, inner) if self.type.major == "K" else (inner, row)
        offset: int = self.type.offset(mn, k)
        return offset

    def row(self, piece: int) -> int:
        """Row of a piece."""
        return piece // self.per_row

    def byte(self, piece: int) -> int:
        """The first byte of a piece, counted from the start of its row."""
        return piece % self.per_row * self.width


@lower(tc.CpAsyncOp)
def convert_cp_async(converter: Converter, op: tc.CpAsyncOp) -> None:
    """Emits ``cp.async.cg`` for pieces of 16 bytes, or ``.ca`` for smaller pieces; a source size of
    0 fills the piece with zeros."""
    tile = converter.record(op.tile, StagedTile)
    tensor = converter.record(op.tensor, GlobalTensor)
    pieces = CopyPieces(tile.type, integer(op, "width"), converter.threads)
    if pieces.working == converter.threads:
        _copy(converter, op, tile, tensor, pieces)
        return
    bound = converter.constant(pieces.working)
    with simt.only_if(arith.CmpIOp(arith.CmpIPredicate.ult, converter.thread, bound).result):
        _copy(converter, op, tile, tensor, pieces)


def _copy(
    converter: Converter,
    op: tc.CpAsyncOp,
    tile: StagedTile,
    tensor: GlobalTensor,
    pieces: CopyPieces,
) -> None:
    *batch, first_row, first_column = (converter.ssa(index) for index in op.indices)
    bytes_ = tc.element_bytes(tensor.element)
    height, columns = tensor.shape[-2:]
    pitch = columns * bytes_
    tails = string(op, "tails").split()
    row = arith.AddIOp(first_row, LinearMap.of(pieces.row, pieces.working).emit(converter)).result
    byte = arith.AddIOp(
        arith.MulIOp(first_column, converter.constant(bytes_)).result,
        LinearMap.of(pieces.byte, pieces.working).emit(converter),
    ).result
    source = global_pointer(converter, tensor, [*batch, row], pitch, byte)
    place = LinearMap.of(pieces.shared_offset, pieces.working)
    for piece in pieces.rounds:
        base, offset = ThreadOffset(place, pieces.shared_offset(piece)).emit(converter)
        target = shared_pointer(tile, base, offset)
        further = pieces.row(piece) * pitch + pieces.byte(piece)
        size = None
        if "inner" in tails:
            size = _left(converter, pitch - pieces.byte(piece), byte, pieces.width)
        if "outer" in tails:
            limit = converter.constant(height - pieces.row(piece))
            inside = arith.CmpIOp(arith.CmpIPredicate.slt, row, limit).result
            full = size if size is not None else converter.constant(pieces.width)
            size = arith.SelectOp(inside, full, converter.constant(0)).result
        modifier = "cg" if pieces.width == 16 else "ca"
        nvvm.cp_async_shared_global(
            target, byte_pointer(source, further), pieces.width, modifier, size
        )


def _left(converter: Converter, end: int, byte: ir.Value, width: int) -> ir.Value:
    """Bytes of a piece before the end of the row, 0 to `width`."""
    left = arith.SubIOp(converter.constant(end), byte).result
    least = arith.MaxSIOp(left, converter.constant(0)).result
    return arith.MinSIOp(least, converter.constant(width)).result


def global_pointer(
    converter: Converter, tensor: GlobalTensor, rows: list[ir.Value], pitch: int, byte: ir.Value
) -> ir.Value:
    """The i64 address of byte `byte` of row `rows` of a tensor; the batch index, if any, precedes
    the row."""
    wide = ir.IntegerType.get_signless(64)
    linear = arith.ExtSIOp(wide, rows[0]).result
    if len(rows) > 1:
        per_batch = converter.constant(tensor.shape[-2], 64)
        linear = arith.MulIOp(linear, per_batch).result
        linear = arith.AddIOp(linear, arith.ExtSIOp(wide, rows[1]).result).result
    offset = arith.MulIOp(linear, converter.constant(pitch, 64)).result
    # The row first: it does not change in the main loop, the byte does.
    start = llvm.getelementptr(converter.pointers[tensor.argument], offset)
    return llvm.getelementptr(start, arith.ExtSIOp(wide, byte).result)


def byte_pointer(base: ir.Value, offset: int) -> ir.Value:
    """A pointer to ``base + offset``."""
    if not offset:
        return base
    if offset >= _SIZE_LIMIT:
        raise PassError(f"expected a tile of less than 2 GB of the tensor, got {offset} bytes")
    return llvm.getelementptr(base, offset)


def shared_pointer(tile: StagedTile | SmemTile, base: ir.Value, offset: int) -> ir.Value:
    """A pointer `offset` bytes after the thread's address `base` in a tile."""
    address = arith.AddIOp(tile.address.base, base).result
    pointer = llvm.inttoptr(pointer_type(3), address)
    return byte_pointer(pointer, tile.address.offset + offset)


@lower(tc.CpAsyncCommitOp)
def convert_commit(converter: Converter, op: tc.CpAsyncCommitOp) -> None:
    """Lowers to ``cp.async.commit_group``."""
    nvvm.cp_async_commit_group()


@lower(tc.CpAsyncWaitOp)
def convert_wait(converter: Converter, op: tc.CpAsyncWaitOp) -> None:
    """Lowers to ``cp.async.wait_group``."""
    nvvm.cp_async_wait_group(integer(op, "pending"))
