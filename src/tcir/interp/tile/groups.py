"""Rule of ``tc.find_group``."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tcir.dialect import tc
from tcir.dialect.ops.grouped import capacity, tile_rows
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.values import MemRef, Site


@execute(tc.FindGroupOp)
def find_group(compiler: Compiler, op: tc.FindGroupOp) -> Step:
    sizes_, tile_ = compiler.operands(op)
    results = compiler.slots_of(op.operation.results)
    room, site, within = capacity(op), compiler.site(op), "within" in op.attributes
    height = tile_rows(op)

    def find(frame: Frame) -> None:
        v = frame.values
        sizes = _sizes(frame, v[sizes_], site)
        if "ends" in op.attributes:
            found = place_by_ends(sizes, int(v[tile_]), height)
        else:
            rows = sizes if room is None else np.full_like(sizes, room)
            found = place(sizes, rows, int(v[tile_]), height, room is None and not within)
        for slot, value in zip(results, found, strict=True):
            v[slot] = value

    return find


@execute(tc.CountTilesOp)
def count_tiles(compiler: Compiler, op: tc.CountTilesOp) -> Step:
    (sizes_,), result, site = compiler.operands(op), compiler.result(op), compiler.site(op)
    height = tile_rows(op)

    def count(frame: Frame) -> None:
        sizes = _sizes(frame, frame.values[sizes_], site)
        frame.values[result] = int((-(-sizes // height)).sum())

    return count


def _sizes(frame: Frame, source: MemRef, site: Site) -> np.ndarray:
    """Rows of every group."""
    addresses = source.address + 4 * np.arange(source.shape[0], dtype=np.int64)
    raw = frame.agent.memory.load("global", addresses, 4, site=site)
    return np.ascontiguousarray(raw).view(np.int32).reshape(-1).astype(np.int64)


def place(
    sizes: np.ndarray, rows: np.ndarray, tile: int, height: int, packed: bool
) -> tuple[int, int, int]:
    """Returns the group to which a tile of `height` rows belongs, the tile's first row, and its
    number of rows. rows: number of rows for which each group has room
    """
    before = 0
    for group, (size, room) in enumerate(zip(sizes, rows, strict=True)):
        tiles = -(-room // height)
        if tile < tiles:
            inside = height * tile
            return group, before + inside, int(max(0, min(size - inside, height)))
        tile -= int(tiles)
        before += int(size) if packed else 0
    return 0, 0, 0


def place_by_ends(ends: np.ndarray, tile: int, height: int) -> tuple[int, int, int]:
    """Like `place`, for groups whose rows are next to each other: group n has the rows from
    ``ends[n]`` up to ``ends[n + 1]``.
    """
    for group, (start, end) in enumerate(pairwise(ends.tolist())):
        tiles = max(0, -(-(end - start) // height))
        if tile < tiles:
            first = start + height * tile
            return group, first, min(end - first, height)
        tile -= tiles
    return 0, 0, 0
