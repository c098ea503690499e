"""Rules of the stand-alone shift and of the copy of a halo."""

from __future__ import annotations

from typing import Any

from tcir.interp.tile.addresses import slice_bytes
from tcir.interp.tile.compiler import Compiler, Frame, Step, rule
from tcir.interp.tile.movement import QUARTER, SLICE_BYTES
from tcir.interp.tile.places import integer
from tcir.interp.tile.values import SmemTile, TmemTile

COLUMNS = SLICE_BYTES // 4
ROWS = 4


@rule("tc.shift")
def shift(compiler: Compiler, op: Any) -> Step:
    (tile_,) = compiler.operands(op)
    k_slice, quarter = integer(op, "slice") or 0, integer(op, "quarter") or 0
    site, sequential = compiler.site(op), compiler.sequential

    def move(frame: Frame) -> None:
        if not frame.elected():
            return
        tile: TmemTile = frame.values[tile_]
        column = tile.origin(frame) + tile.column + COLUMNS * k_slice
        frame.agent.shift((QUARTER * quarter) << 16 | column, site=site)
        if sequential:
            frame.agent.drain()

    return move


@rule("tc.refresh")
def refresh(compiler: Compiler, op: Any) -> Step:
    source_, target_ = compiler.operands(op)
    k_slice, row = integer(op, "slice") or 0, integer(op, "row") or 0
    site, sequential = compiler.site(op), compiler.sequential

    def copy(frame: Frame) -> None:
        if not frame.elected():
            return
        source: SmemTile = frame.values[source_]
        target: TmemTile = frame.values[target_]
        step = SLICE_BYTES // source.layout.element_bytes
        column = target.origin(frame) + target.column + COLUMNS * k_slice
        addresses = slice_bytes(source.layout, source.base, step * k_slice, step)
        frame.agent.cp_bytes(
            (QUARTER - 1) << 16 | column, addresses[row : row + ROWS], "4x256b", site=site
        )
        if sequential:
            frame.agent.drain()

    return copy
