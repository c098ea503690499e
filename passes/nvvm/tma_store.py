"""Lowering of TMA stores."""

from __future__ import annotations

from tcir._mlir import ir, llvm, nvvm
from tcir.dialect import tc
from tcir.dialect.attributes import defining, flag, integer, string
from tcir.dialect.ops.tma_store import reduction_of, scatters
from tcir.passes.emit import simt

from .converter import Converter, SmemTile, TensorMap, lower


@lower(tc.TmaStoreOp)
def convert_tma_store(converter: Converter, op: tc.TmaStoreOp) -> None:
    """Emits ``cp.async.bulk.tensor`` or ``cp.reduce.async.bulk.tensor`` by one elected thread."""
    tile = converter.record(op.tile, SmemTile)
    mode = "im2col" if string(defining(op.map, tc.MakeTensorMapOp), "mode") == "im2col" else "tile"
    if scatters(op):
        mode = "tile_scatter4"
    source = converter.shared(tile.address.plus(integer(op, "row") * tile.type.span))
    tensor_map = converter.record(op.map, TensorMap).pointer
    coordinates = [converter.ssa(coordinate) for coordinate in op.coords]
    reduction = reduction_of(op)
    with simt.only_if(nvvm.elect_sync()):
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
    """Emits inline PTX: the back end does not know the intrinsic that nvvm's op becomes."""
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
    """Emits ``cp.async.bulk.commit_group`` by the elected thread. The same thread is elected each
    time (PTX ISA 9.7.13.14)."""
    with simt.only_if(nvvm.elect_sync()):
        nvvm.cp_async_bulk_commit_group()


@lower(tc.BulkWaitOp)
def convert_bulk_wait(converter: Converter, op: tc.BulkWaitOp) -> None:
    """Emits ``cp.async.bulk.wait_group`` by the elected thread."""
    with simt.only_if(nvvm.elect_sync()):
        nvvm.cp_async_bulk_wait_group(integer(op, "pending"), read=flag(op, "read"))


@lower(tc.WarpBarrierOp)
def convert_warp_barrier(converter: Converter, op: tc.WarpBarrierOp) -> None:
    """Emits ``bar.warp.sync`` of all threads of the warp."""
    nvvm.bar_warp_sync(converter.constant(-1))
