"""TMA stores, and the register tiles written to shared memory before."""

from __future__ import annotations

from tcir._mlir import arith, ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import defining, flag, integer, string
from tcir.dialect.ops.store_shared import STORE_BYTES, column_step
from tcir.dialect.ops.tma_store import reduction_of, scatters
from tcir.errors import PassError
from tcir.passes.build.gpu_module import pointer_type

from .converter import Converter, SmemTile, TensorMap, lower, require_role
from .stores import known_divisor, words_of
from .structure import only_if

WORD_BYTES = 4


@lower(tc.StoreSharedOp)
def convert_store_shared(converter: Converter, op: tc.StoreSharedOp) -> None:
    """Each thread stores its row in units of 16 bytes, whose place in a row the swizzle permutes.

    A row of a swizzle-span column is ``span`` bytes; bits 4 and up of the byte in it are XORed with
    bits 7 and up of the row's address (PTX ISA 9.7.16.10.6).
    """
    require_role(converter, op)
    tile = converter.record(op.tile, SmemTile)
    value = converter.ssa(op.value)
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
    words = words_of(value, columns * element_bytes, WORD_BYTES)
    unit = STORE_BYTES // WORD_BYTES
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
            word = (further + start) // WORD_BYTES
            part = llvm.shufflevector(words, range(word, word + unit))
            llvm.store(part, pointer, alignment=STORE_BYTES)


@lower(tc.TmaStoreOp)
def convert_tma_store(converter: Converter, op: tc.TmaStoreOp) -> None:
    """``cp.async.bulk.tensor`` or ``cp.reduce.async.bulk.tensor`` by one elected thread."""
    require_role(converter, op)
    tile = converter.record(op.tile, SmemTile)
    mode = "im2col" if string(defining(op.map, tc.MakeTensorMapOp), "mode") == "im2col" else "tile"
    if scatters(op):
        mode = "tile_scatter4"
    source = converter.shared(tile.address.plus(integer(op, "row") * tile.type.span))
    tensor_map = converter.record(op.map, TensorMap).pointer
    coordinates = [converter.ssa(coordinate) for coordinate in op.coords]
    reduction = reduction_of(op)
    with only_if(nvvm.elect_sync()):
        if reduction is None:
            nvvm.cp_async_bulk_tensor_global_shared_cta(tensor_map, source, coordinates, mode=mode)
        else:
            _reduce(tensor_map, source, coordinates, mode, reduction)


_REDUCE_MODES = {"tile": "tile", "im2col": "im2col_no_offs"}


def _reduce(
    tensor_map: ir.Value,
    source: ir.Value,
    coordinates: list[ir.Value],
    mode: str,
    reduction: str,
) -> None:
    """As inline PTX: the back end does not know the intrinsic that nvvm's op becomes."""
    count = len(coordinates)
    place = ", ".join(f"${1 + i}" for i in range(count))
    llvm.inline_asm(
        None,
        [tensor_map, *coordinates, source],
        f"cp.reduce.async.bulk.tensor.{count}d.global.shared::cta.{reduction}"
        f".{_REDUCE_MODES[mode]}.bulk_group [$0, {{{place}}}], [${1 + count}];",
        ",".join(["l", *["r"] * (count + 1), "~{memory}"]),
        has_side_effects=True,
    )


@lower(tc.BulkCommitOp)
def convert_bulk_commit(converter: Converter, op: tc.BulkCommitOp) -> None:
    """``cp.async.bulk.commit_group`` by the elected thread, which PTX ISA 9.7.13.14 makes the same
    every time."""
    require_role(converter, op)
    with only_if(nvvm.elect_sync()):
        nvvm.cp_async_bulk_commit_group()


@lower(tc.BulkWaitOp)
def convert_bulk_wait(converter: Converter, op: tc.BulkWaitOp) -> None:
    """``cp.async.bulk.wait_group`` by the elected thread."""
    require_role(converter, op)
    with only_if(nvvm.elect_sync()):
        nvvm.cp_async_bulk_wait_group(integer(op, "pending"), read=flag(op, "read"))


@lower(tc.WarpBarrierOp)
def convert_warp_barrier(converter: Converter, op: tc.WarpBarrierOp) -> None:
    """``bar.warp.sync`` of all threads."""
    require_role(converter, op)
    nvvm.bar_warp_sync(converter.constant(-1))
