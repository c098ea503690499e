"""Finds the group of a tile, by a loop over the group sizes that every thread executes."""

from __future__ import annotations

from collections.abc import Callable

from tcir._mlir import arith, ir, llvm, scf
from tcir.dialect.ops.grouped import tiles_of
from tcir.passes.emit import simt

SIZE_BYTES = 4


def find_group(
    pointer: ir.Value,
    tile: ir.Value,
    groups: int,
    height: int,
    capacity: int | None = None,
    within: bool = False,
) -> list[ir.Value]:
    """Emits the search for the group, the first row and the number of rows of a tile of `height`
    rows. pointer: address of the group sizes. The other parameters are as in ``tc.find_group``."""
    if capacity is None:
        return _found(tile, groups, height, lambda n, _: (size_of(pointer, n), None), None, within)
    tiles = tiles_of(capacity, height)
    group, inside = simt.divide(tile, tiles), simt.rest(tile, tiles)
    first = simt.mul(inside, height)
    return [group, first, _rows(size_of(pointer, group), first, height)]


def find_by_ends(pointer: ir.Value, tile: ir.Value, groups: int, height: int) -> list[ir.Value]:
    """Like `find_group`, for groups that are given by their ends instead of their sizes."""

    def sized(number: ir.Value, start: ir.Value) -> tuple[ir.Value, ir.Value]:
        end = size_of(pointer, simt.add(number, 1))
        return arith.maxsi(simt.sub(end, start), simt.constant(0)), end

    return _found(tile, groups, height, sized, size_of(pointer, simt.constant(0)))


def tiles_in(size: ir.Value, height: int) -> ir.Value:
    """Number of tiles of `height` rows that a group of `size` rows needs."""
    return simt.divide(simt.add(size, height - 1), height)


def size_of(pointer: ir.Value, group: ir.Value) -> ir.Value:
    """Loads the number of rows of a group."""
    i32 = ir.IntegerType.get_signless(32)
    place = simt.mul(simt.wide(group), SIZE_BYTES)
    return llvm.load(i32, simt.at(pointer, place), alignment=SIZE_BYTES)


def _rows(size: ir.Value, first: ir.Value, height: int) -> ir.Value:
    """Rows from `first` on of a group of `size`, at most the `height` of a tile."""
    left = simt.smaller(simt.sub(size, first), height)
    return arith.select(simt.less(first, size), left, simt.constant(0))


def _found(
    tile: ir.Value,
    groups: int,
    height: int,
    sized: Callable[[ir.Value, ir.Value], tuple[ir.Value, ir.Value | None]],
    start: ir.Value | None,
    within: bool = False,
) -> list[ir.Value]:
    """Group, first row and number of rows of a tile of `height` rows.

    sized: size of a group by its number and its first row, and the first row of the next one, if
    that is not the sum; start: first row of the first group, if that is not 0. Carried: the three
    results, the tiles of the groups so far, and the first row of the next one.
    """
    zero = simt.constant(0)
    carried = [zero, zero, zero, zero, zero if start is None else start]
    loop = scf.ForOp(zero, simt.constant(groups), simt.constant(1), carried)
    with ir.InsertionPoint(loop.body):
        number, *best, tiles, rows = loop.body.arguments
        size, end = sized(number, rows)
        inside = simt.sub(tile, tiles)
        mine = tiles_in(size, height)
        # `inside` of a group that was passed is below 0, which is no number below `mine`.
        here = simt.less(inside, mine)
        first = simt.mul(inside, height)
        new = [number, first if within else simt.add(rows, first), _rows(size, first, height)]
        chosen = [arith.select(here, a, b) for a, b in zip(new, best, strict=True)]
        tiles = simt.add(tiles, mine)
        scf.YieldOp([*chosen, tiles, simt.add(rows, size) if end is None else end])
    return list(loop.results)[:3]
