"""Rules of the stand-alone shift and of the copy of a halo."""

from __future__ import annotations

from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.limits import CP_SHAPES, MMA_K_BYTES, QUARTER_LANES, SLICE_COLUMNS
from tcir.interp.tile.addresses import slice_bytes
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute, of_pair
from tcir.interp.tile.values import SmemTile, TmemTile

_ROWS, *_ = CP_SHAPES["4x256b"]


@execute(tc.ShiftOp)
def shift(compiler: Compiler, op: tc.ShiftOp) -> Step:
    (tile_,) = compiler.operands(op)
    k_slice, quarter = integer(op, "slice"), integer(op, "quarter")
    cta_group = cta_group_of(op)
    site, sequential = compiler.site(op), compiler.sequential

    def move(frame: Frame) -> None:
        if not frame.elected():
            return
        tile: TmemTile = frame.values[tile_]
        column = tile.origin(frame) + tile.column + SLICE_COLUMNS * k_slice
        place = (QUARTER_LANES * quarter) << 16 | column
        frame.agent.tensor_core.shift(place, cta_group, site=site)
        if sequential:
            frame.agent.drain()

    return of_pair(move, site) if sequential and cta_group == PAIR else move


@execute(tc.RefreshOp)
def refresh(compiler: Compiler, op: tc.RefreshOp) -> Step:
    source_, target_ = compiler.operands(op)
    k_slice, row, cta_group = integer(op, "slice"), integer(op, "row"), cta_group_of(op)
    site, sequential = compiler.site(op), compiler.sequential

    def copy(frame: Frame) -> None:
        if not frame.elected():
            return
        source: SmemTile = frame.values[source_]
        target: TmemTile = frame.values[target_]
        step = MMA_K_BYTES // source.layout.element_bytes
        column = target.origin(frame) + target.column + SLICE_COLUMNS * k_slice
        rows = row, row + _ROWS
        addresses = slice_bytes(source.layout, source.base, step * k_slice, step, rows)
        frame.agent.tensor_core.cp(
            (QUARTER_LANES - 1) << 16 | column,
            frame.cta_run.element_operand(addresses),
            "4x256b",
            cta_group=cta_group,
            site=site,
        )
        if sequential:
            frame.agent.drain()

    return of_pair(copy, site) if sequential and cta_group == PAIR else copy
