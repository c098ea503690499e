"""Lowering of ``tc.find_group`` and ``tc.count_tiles``: every thread executes a loop over the group
sizes."""

from __future__ import annotations

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.ops.grouped import capacity, tile_rows
from tcir.passes.emit import simt
from tcir.passes.emit.find_group import find_by_ends, find_group, size_of, tiles_in

from .converter import Converter, GlobalTensor, lower


@lower(tc.FindGroupOp)
def convert_find_group(converter: Converter, op: tc.FindGroupOp) -> None:
    """Emits a division if every group has a capacity; otherwise a loop that counts the tiles of the
    groups."""
    tensor = converter.record(op.sizes, GlobalTensor)
    pointer, tile = converter.pointers[tensor.argument], converter.ssa(op.tile)
    (count,), height = tensor.shape, tile_rows(op)
    if "ends" in op.attributes:
        found = find_by_ends(pointer, tile, count - 1, height)
    else:
        found = find_group(pointer, tile, count, height, capacity(op), "within" in op.attributes)
    for result, value in zip(op.operation.results, found, strict=True):
        converter.values[result] = value


@lower(tc.CountTilesOp)
def convert_count_tiles(converter: Converter, op: tc.CountTilesOp) -> None:
    """Emits a loop that adds up the numbers of tiles of the groups."""
    tensor = converter.record(op.sizes, GlobalTensor)
    pointer = converter.pointers[tensor.argument]
    zero, groups = simt.constant(0), simt.constant(tensor.shape[0])
    loop = scf.ForOp(zero, groups, simt.constant(1), [zero])
    with ir.InsertionPoint(loop.body):
        number, tiles = loop.body.arguments
        scf.YieldOp([simt.add(tiles, tiles_in(size_of(pointer, number), tile_rows(op)))])
    converter.values[op.tiles] = loop.results[0]
