"""Rules of softmax ops on rows of registers, where each thread has one row, and the row's maximum
and sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES, QUARTERS, TMEM_LANES
from tcir.dialect.ops.attention import Band
from tcir.dialect.ops.row_vectors import PARTIAL_SUMS
from tcir.interp import online_softmax
from tcir.interp.tensor.arith import saturated
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.values import RegisterTile, Site
from tcir.interp.types import Array, dtype_of


@execute(tc.LaneNumbersOp)
def lane_numbers(compiler: Compiler, op: tc.LaneNumbersOp) -> Step:
    data = np.full((TMEM_LANES, 1), ir.FloatAttr(op.value).value, np.float32)
    return compiler.assigns(op, lambda frame: RegisterTile(data, quarter=-1))


def _lanes(frame: Frame, quarter: int, site: Site) -> slice:
    """The lanes of a sub-partition, of which a warp holds those of its own."""
    own = frame.warp % QUARTERS if frame.in_role else quarter
    if quarter != own or not 0 <= quarter < QUARTERS:
        raise frame.cta_run.error(
            "access-outside-tile",
            f"expected the numbers of sub-partition {own}, which this warp holds, got those of "
            f"{quarter}",
            site,
        )
    return slice(QUARTER_LANES * quarter, QUARTER_LANES * (quarter + 1))


@execute(tc.RowNumbersOp)
def row_numbers(compiler: Compiler, op: tc.RowNumbersOp) -> Step:
    numbers_, quarter_ = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)

    def take(frame: Frame) -> None:
        quarter = frame.values[quarter_]
        lanes = _lanes(frame, quarter, site)
        frame.values[result] = RegisterTile(frame.values[numbers_].data[lanes], quarter)

    return take


@execute(tc.SetRowNumbersOp)
def set_row_numbers(compiler: Compiler, op: tc.SetRowNumbersOp) -> Step:
    numbers_, quarter_, mine_ = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)

    def put(frame: Frame) -> None:
        v = frame.values
        data = v[numbers_].data.copy()
        data[_lanes(frame, v[quarter_], site)] = v[mine_].data
        v[result] = RegisterTile(data, quarter=-1)

    return put


def _of_rows(compiler: Compiler, op: ir.OpView, compute: Callable[..., Sequence[Array]]) -> Step:
    """Applies a function of the operands' data, which gives that of each result."""
    operands, site = compiler.operands(op), compiler.site(op)
    results = compiler.slots_of(op.operation.results)

    def step(frame: Frame) -> None:
        tiles: list[RegisterTile] = [frame.values[each] for each in operands]
        for tile in tiles:
            frame.cta_run.consume(frame, tile, site)
        quarter = max(tile.quarter for tile in tiles)
        for result, data in zip(results, compute(*(tile.data for tile in tiles)), strict=True):
            frame.values[result] = RegisterTile(data, quarter)

    return step


@execute(tc.RowMaxOp)
def row_max(compiler: Compiler, op: tc.RowMaxOp) -> Step:
    return _of_rows(compiler, op, lambda x: [np.fmax.reduce(x, axis=1, keepdims=True)])


@execute(tc.RowSumOp)
def row_sum(compiler: Compiler, op: tc.RowSumOp) -> Step:
    return _of_rows(compiler, op, lambda x: [online_softmax.row_sum(x, PARTIAL_SUMS)])


def _scale(op: tc.RowOnlineMaxOp | tc.RowExponentialsOp | tc.RowLogSumOp) -> np.float32:
    return np.float32(ir.FloatAttr(op.scale).value)


@execute(tc.RowOnlineMaxOp)
def online_max(compiler: Compiler, op: tc.RowOnlineMaxOp) -> Step:
    scale, tau, below = _scale(op), ir.FloatAttr(op.tau).value, op.below
    return _of_rows(
        compiler,
        op,
        lambda before, largest: online_softmax.online_max(before, largest, scale, tau, below),
    )


@execute(tc.MaskRowsOp)
def mask_rows(compiler: Compiler, op: tc.MaskRowsOp) -> Step:
    scores_, row_, column_, keys_ = compiler.operands(op)
    band = Band.of(op)
    result, site = compiler.result(op), compiler.site(op)

    def mask(frame: Frame) -> None:
        v = frame.values
        scores: RegisterTile = v[scores_]
        frame.cta_run.consume(frame, scores, site)
        data = online_softmax.masked(scores.data, v[row_], v[column_], v[keys_], band)
        v[result] = RegisterTile(data, scores.quarter)

    return mask


@execute(tc.RowExponentialsOp)
def exponentials(compiler: Compiler, op: tc.RowExponentialsOp) -> Step:
    scale, polynomial = _scale(op), op.polynomial
    return _of_rows(
        compiler,
        op,
        lambda scores, reference: [
            online_softmax.exponentials(scores, reference, scale, polynomial)
        ],
    )


@execute(tc.NarrowRowsOp)
def narrow_rows(compiler: Compiler, op: tc.NarrowRowsOp) -> Step:
    dtype = dtype_of(op.narrow.type.element_type)
    return _of_rows(compiler, op, lambda wide: [saturated(wide, dtype)])


@execute(tc.RowsDifferOp)
def rows_differ(compiler: Compiler, op: tc.RowsDifferOp) -> Step:
    (numbers_,), result = compiler.operands(op), compiler.result(op)
    value, site = np.float32(ir.FloatAttr(op.value).value), compiler.site(op)

    def vote(frame: Frame) -> None:
        numbers: RegisterTile = frame.values[numbers_]
        frame.cta_run.consume(frame, numbers, site)
        frame.values[result] = int((numbers.data != value).any())

    return vote


@execute(tc.RowInverseSumOp)
def inverse_sum(compiler: Compiler, op: tc.RowInverseSumOp) -> Step:
    times = op.times
    return _of_rows(compiler, op, lambda total: [online_softmax.inverse_sum(total, times)])


@execute(tc.RowLogSumOp)
def log_sum(compiler: Compiler, op: tc.RowLogSumOp) -> Step:
    scale = _scale(op)
    return _of_rows(
        compiler,
        op,
        lambda largest, total: [online_softmax.log_sum(largest, total, scale)],
    )
