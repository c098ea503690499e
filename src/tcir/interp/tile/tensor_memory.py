"""Rules of tensor memory in all shapes: registers of a warp, and rows of a shared tile."""

from __future__ import annotations

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import flag, integer, string
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.limits import CP_SHAPES, QUARTER_LANES, QUARTERS
from tcir.dialect.ops.cp_rows import format_of, lane_of
from tcir.dialect.ops.tmem_words import HALF_LANES, covered_columns, repetitions, split_of
from tcir.interp.tile.addresses import slice_bytes
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute, of_pair
from tcir.interp.tile.values import PendingLoad, RegisterTile, Site, SmemTile, TmemTile


def _address(
    frame: Frame, tile: TmemTile, quarter: int, column: int, columns: int, upper: bool, site: Site
) -> int:
    if not (0 <= quarter < QUARTERS and 0 <= column <= tile.columns - columns):
        raise frame.cta_run.error(
            "access-outside-tile",
            f"expected quarter 0..3 and columns within {tile.columns}, got quarter {quarter}, "
            f"columns {column}..{column + columns - 1}",
            site,
        )
    lane = QUARTER_LANES * quarter + HALF_LANES * upper
    return lane << 16 | (tile.origin(frame) + tile.column + column)


@execute(tc.TmemLdWordsOp)
def ld_words(compiler: Compiler, op: tc.TmemLdWordsOp) -> Step:
    source_, quarter_, column_ = compiler.operands(op)
    result, site, sequential = compiler.result(op), compiler.site(op), compiler.sequential
    shape, num, split = string(op, "shape"), repetitions(op), split_of(op)
    upper, pack, columns = flag(op, "upper"), flag(op, "pack"), covered_columns(op)

    def load(frame: Frame) -> None:
        v = frame.values
        quarter, column = v[quarter_], v[column_]
        address = _address(frame, v[source_], quarter, column, columns, upper, site)
        with frame.cta_run.as_warp(frame, quarter):
            words = frame.agent.tmem.ld(address, shape, num, pack, split, site=site)
        handle = PendingLoad(site, ready=sequential)
        if sequential:
            frame.agent.drain()
        else:
            frame.loads.append(handle)
        data = np.ascontiguousarray(words.T).view(np.int32)
        v[result] = RegisterTile(data, quarter, column, handle)

    return load


@execute(tc.TmemStWordsOp)
def st_words(compiler: Compiler, op: tc.TmemStWordsOp) -> Step:
    value_, target_, quarter_, column_ = compiler.operands(op)
    site, sequential = compiler.site(op), compiler.sequential
    shape, num, split = string(op, "shape"), repetitions(op), split_of(op)
    upper, pack, columns = flag(op, "upper"), flag(op, "pack"), covered_columns(op)

    def store(frame: Frame) -> None:
        v = frame.values
        quarter, column = v[quarter_], v[column_]
        address = _address(frame, v[target_], quarter, column, columns, upper, site)
        frame.cta_run.consume(frame, v[value_], site)
        words = np.ascontiguousarray(v[value_].data).view(np.uint32).T
        with frame.cta_run.as_warp(frame, quarter):
            frame.agent.tmem.st(address, shape, num, words, pack, split, site=site)
        if sequential:
            frame.agent.drain()

    return store


@execute(tc.CpRowsOp)
def cp_rows(compiler: Compiler, op: tc.CpRowsOp) -> Step:
    source_, target_ = compiler.operands(op)
    site, sequential = compiler.site(op), compiler.sequential
    shape, multicast = string(op, "shape"), string(op, "multicast") or None
    row, byte, column = (integer(op, name) for name in ("row", "byte", "column"))
    count, width = CP_SHAPES[shape][:2]
    lane, source_format, cta_group = lane_of(op), format_of(op), cta_group_of(op)

    def copy(frame: Frame) -> None:
        if not frame.elected():
            return
        source: SmemTile = frame.values[source_]
        target: TmemTile = frame.values[target_]
        size = source.layout.element_bytes
        rows = row, row + count
        every = slice_bytes(source.layout, source.base, byte // size, width // size, rows)
        frame.agent.tensor_core.cp(
            lane << 16 | (target.origin(frame) + target.column + column),
            frame.cta_run.element_operand(every),
            shape,
            multicast,
            source_format,
            cta_group,
            site=site,
        )
        if sequential:
            frame.agent.drain()

    return of_pair(copy, site) if sequential and cta_group == PAIR else copy
