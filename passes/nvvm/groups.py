"""``tc.find_group``: a loop over the sizes in every thread."""

from __future__ import annotations

from tcir._mlir import arith, ir, llvm, scf
from tcir.dialect import tc
from tcir.dialect.limits import TMEM_LANES
from tcir.dialect.ops.grouped import capacity, tiles_of
from tcir.passes.emit import simt

from .converter import Converter, GlobalTensor, lower

SIZE_BYTES = 4


@lower(tc.FindGroupOp)
def convert_find_group(converter: Converter, op: tc.FindGroupOp) -> None:
    """Divides if every group has a capacity; otherwise counts the tiles of the groups."""
    tensor = converter.record(op.sizes, GlobalTensor)
    pointer, tile = converter.pointers[tensor.argument], converter.ssa(op.tile)
    room = capacity(op)
    if room is None:
        found = _search(pointer, tile, tensor.shape[0], "within" in op.attributes)
    else:
        group, inside = simt.divide(tile, tiles_of(room)), simt.rest(tile, tiles_of(room))
        first = simt.mul(inside, TMEM_LANES)
        found = [group, first, _rows(_size(pointer, group), first)]
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
        scf.YieldOp([simt.add(tiles, _tiles(_size(pointer, number)))])
    converter.values[op.tiles] = loop.results[0]


def _tiles(size: ir.Value) -> ir.Value:
    """Tiles of 128 rows of a group of `size`."""
    return simt.divide(simt.add(size, TMEM_LANES - 1), TMEM_LANES)


def _size(pointer: ir.Value, group: ir.Value) -> ir.Value:
    i32 = ir.IntegerType.get_signless(32)
    place = simt.mul(simt.wide(group), SIZE_BYTES)
    return llvm.load(i32, simt.at(pointer, place), alignment=SIZE_BYTES)


def _rows(size: ir.Value, first: ir.Value) -> ir.Value:
    """Rows from `first` on of a group of `size`, at most a tile."""
    left = simt.smaller(simt.sub(size, first), TMEM_LANES)
    return arith.select(simt.less(first, size), left, simt.constant(0))


def _search(pointer: ir.Value, tile: ir.Value, groups: int, within: bool) -> list[ir.Value]:
    """Group, first row and number of rows of a tile, for groups in sequence.

    within: whether the first row is counted in its group. Carried: these three, and the tiles and
    rows of the groups so far.
    """
    zero = simt.constant(0)
    loop = scf.ForOp(zero, simt.constant(groups), simt.constant(1), [zero] * 5)
    with ir.InsertionPoint(loop.body):
        number, *carried, tiles, rows = loop.body.arguments
        size = _size(pointer, number)
        inside = simt.sub(tile, tiles)
        mine = _tiles(size)
        # `inside` of a group that was passed is below 0, which is no number below `mine`.
        here = simt.less(inside, mine)
        first = simt.mul(inside, TMEM_LANES)
        new = [number, first if within else simt.add(rows, first), _rows(size, first)]
        chosen = [arith.select(here, a, b) for a, b in zip(new, carried, strict=True)]
        scf.YieldOp([*chosen, simt.add(tiles, mine), simt.add(rows, size)])
    return list(loop.results)[:3]
