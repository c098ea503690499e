"""Rules of tensor memory: copies from and to the registers of a warp, copies of the rows of a
shared tile, and the shift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import flag, integer, string
from tcir.dialect.cta_pair import cta_group_of
from tcir.dialect.limits import CP_SHAPES, MMA_K_BYTES, QUARTER_LANES, QUARTERS, SLICE_COLUMNS
from tcir.dialect.ops.block_scale import SCALE_COLUMNS, SCALE_ROWS
from tcir.dialect.ops.cp_rows import format_of, lane_of
from tcir.dialect.ops.tmem_words import HALF_LANES, covered_columns, repetitions, split_of
from tcir.interp.tile.addresses import slice_bytes
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.values import PendingLoad, RegisterTile, Site, SmemTile, TmemTile
from tcir.interp.types import dtype_of, shape_of


def _address(
    frame: Frame, tile: TmemTile, quarter: int, column: int, columns: int, upper: bool, site: Site
) -> int:
    """Tensor-memory address of a sub-partition's registers in `columns` columns of the tile."""
    if not (0 <= quarter < QUARTERS and 0 <= column <= tile.columns - columns):
        raise frame.cta_run.error(
            "access-outside-tile",
            f"expected quarter 0..3 and columns within {tile.columns}, got quarter {quarter}, "
            f"columns {column}..{column + columns - 1}",
            site,
        )
    return tile.address(frame, column, QUARTER_LANES * quarter + HALF_LANES * upper)


@execute(tc.TmemLdOp, tc.TmemLdWordsOp)
def tmem_ld(compiler: Compiler, op: tc.TmemLdOp | tc.TmemLdWordsOp) -> Step:
    source_, quarter_, column_ = compiler.operands(op)
    result, site, sequential = compiler.result(op), compiler.site(op), compiler.sequential
    shape, num, columns, upper, pack, split = _form(op, op.operation.results[0].type)
    dtype = dtype_of(op.operation.results[0].type)

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
        data = np.ascontiguousarray(words.T).view(dtype)
        v[result] = RegisterTile(data, quarter, column, handle)

    return load


@execute(tc.TmemStOp, tc.TmemStWordsOp)
def tmem_st(compiler: Compiler, op: tc.TmemStOp | tc.TmemStWordsOp) -> Step:
    value_, target_, quarter_, column_ = compiler.operands(op)
    site, sequential = compiler.site(op), compiler.sequential
    shape, num, columns, upper, pack, split = _form(op, op.operation.operands[0].type)

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


def _form(op: ir.OpView, registers: ir.Type) -> tuple[str, int, int, bool, bool, int | None]:
    """Shape, repetitions, columns, whether the upper lanes, packed, and the split of an access to
    tensor memory; `registers`: the type of its register tile."""
    if isinstance(op, tc.TmemLdOp | tc.TmemStOp):
        columns = shape_of(registers)[1]
        return "32x32b", columns, columns, False, False, None
    given = flag(op, "upper"), flag(op, "pack"), split_of(op)
    return string(op, "shape"), repetitions(op), covered_columns(op), *given


@execute(tc.TmemWaitOp)
def tmem_wait(compiler: Compiler, op: tc.TmemWaitOp) -> Step:
    kind, site = string(op, "kind"), compiler.site(op)

    def wait(frame: Frame) -> None:
        frame.agent.tmem.wait(kind, site=site)
        if kind == "ld":
            for load in frame.loads:
                load.ready = True
            frame.loads.clear()

    return wait


@execute(tc.CpOp)
def cp(compiler: Compiler, op: tc.CpOp) -> Step:
    k_slice = integer(op, "slice")
    return _copy(compiler, op, _Rows("128x256b", 0, MMA_K_BYTES * k_slice, SLICE_COLUMNS * k_slice))


@execute(tc.RefreshOp)
def refresh(compiler: Compiler, op: tc.RefreshOp) -> Step:
    row, k_slice = integer(op, "row"), integer(op, "slice")
    byte, column = MMA_K_BYTES * k_slice, SLICE_COLUMNS * k_slice
    return _copy(compiler, op, _Rows("4x256b", row, byte, column, lane=QUARTER_LANES - 1))


@execute(tc.CpScalesOp)
def cp_scales(compiler: Compiler, op: tc.CpScalesOp) -> Step:
    rows = _Rows("32x128b", SCALE_ROWS * integer(op, "block"), 0, 0, multicast="warpx4")
    return _copy(compiler, op, rows)


@execute(tc.CpRowsOp)
def cp_rows(compiler: Compiler, op: tc.CpRowsOp) -> Step:
    row, byte, column = (integer(op, name) for name in ("row", "byte", "column"))
    shape, multicast = string(op, "shape"), string(op, "multicast") or None
    rows = _Rows(shape, row, byte, column, lane_of(op), multicast, format_of(op))
    return _copy(compiler, op, rows)


@dataclass(frozen=True)
class _Rows:
    """What a copy to tensor memory reads and writes: rows of a shared tile from `row` and `byte`
    on, to columns from `column` on, and lanes from `lane` on."""

    shape: str
    row: int
    byte: int
    column: int
    lane: int = 0
    multicast: str | None = None
    source_format: str | None = None


def _copy(compiler: Compiler, op: ir.OpView, rows: _Rows) -> Step:
    """Copies rows; a third operand of the op is added to their column."""
    source_, target_, *column_ = compiler.operands(op)
    site, cta_group = compiler.site(op), cta_group_of(op)
    count, width = CP_SHAPES[rows.shape][:2]

    def copy(frame: Frame) -> None:
        source: SmemTile = frame.values[source_]
        target: TmemTile = frame.values[target_]
        column = rows.column + sum(frame.values[each] for each in column_)
        if column_ and not 0 <= column <= target.columns - SCALE_COLUMNS:
            raise frame.cta_run.error(
                "access-outside-tile",
                f"expected 4 columns of the tile's {target.columns}, got those from {column} on",
                site,
            )
        size, taken = source.layout.element_bytes, (rows.row, rows.row + count)
        every = slice_bytes(source.layout, source.base, rows.byte // size, width // size, taken)
        frame.agent.tensor_core.cp(
            target.address(frame, column, rows.lane),
            frame.cta_run.element_operand(every),
            rows.shape,
            rows.multicast,
            rows.source_format,
            cta_group,
            site=site,
        )

    return compiler.issues(op, copy)


@execute(tc.ShiftOp)
def shift(compiler: Compiler, op: tc.ShiftOp) -> Step:
    (tile_,) = compiler.operands(op)
    column, lane = SLICE_COLUMNS * integer(op, "slice"), QUARTER_LANES * integer(op, "quarter")
    cta_group, site = cta_group_of(op), compiler.site(op)

    def move(frame: Frame) -> None:
        tile: TmemTile = frame.values[tile_]
        frame.agent.tensor_core.shift(tile.address(frame, column, lane), cta_group, site=site)

    return compiler.issues(op, move)
