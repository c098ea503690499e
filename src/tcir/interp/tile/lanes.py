"""Rules of the ops on lane masks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.limits import LANE_MASK_BYTES, QUARTER_LANES
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.loads import store_elements
from tcir.interp.tile.values import LaneMasks, MemRef, RegisterTile, Site, Stored, TmemTile


@execute(tc.LaneIndexOp)
def lane_index(compiler: Compiler, op: tc.LaneIndexOp) -> Step:
    lanes = np.arange(QUARTER_LANES, dtype=np.int64)
    return compiler.assigns(op, lambda frame: RegisterTile(lanes, quarter=-1))


@execute(tc.LaneMasksOp)
def lane_masks(compiler: Compiler, op: tc.LaneMasksOp) -> Step:
    result, base = compiler.result(op), compiler.places.shared[op.operation]
    count = integer(op, "count")
    fresh = op.operation not in compiler.places.planned

    def make_table(frame: Frame) -> None:
        if fresh and frame.elected():
            start = frame.cta.shared + base
            frame.cta_run.forget_shared(frame, start, LANE_MASK_BYTES * count)
        frame.values[result] = LaneMasks(frame.cta.shared + base, count)

    return make_table


def _entry(frame: Frame, table: LaneMasks, entry: int, site: Site) -> int:
    """Address of an entry of a table of lane masks."""
    return table.base + LANE_MASK_BYTES * frame.cta_run.below("an entry", entry, table.count, site)


@execute(tc.WriteLaneMaskOp)
def write_lane_mask(compiler: Compiler, op: tc.WriteLaneMaskOp) -> Step:
    masks_, entry_, quarter_, on_ = compiler.operands(op)
    site = compiler.site(op)

    def write(frame: Frame) -> None:
        v = frame.values
        on: RegisterTile = v[on_]
        word = int(np.packbits(~on.data, bitorder="little").view(np.uint32)[0])
        place = _entry(frame, v[masks_], v[entry_], site) + 4 * v[quarter_]
        data = np.array([[word]], np.uint32).view(np.uint8)
        frame.agent.memory.store("shared", np.array([place], np.int64), data, site=site)

    return write


@execute(tc.EnableLanesOp)
def enable_lanes(compiler: Compiler, op: tc.EnableLanesOp) -> Step:
    d_, masks_, entry_ = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)

    def enable(frame: Frame) -> None:
        v = frame.values
        place = _entry(frame, v[masks_], v[entry_], site)
        raw = frame.agent.memory.load(
            "shared", np.array([place], np.int64), LANE_MASK_BYTES, site=site
        )
        words = np.ascontiguousarray(raw).view(np.uint32)[0]
        tile: TmemTile = v[d_]
        v[result] = replace(tile, disabled=tuple(int(w) for w in words))

    return enable


@execute(tc.StoreLanesOp)
def store_lanes(compiler: Compiler, op: tc.StoreLanesOp) -> Step:
    value_, tensor_, *places_, column_ = compiler.operands(op)
    site, writers = compiler.site(op), compiler.writers

    def store(frame: Frame) -> None:
        v = frame.values
        value: RegisterTile = v[value_]
        target: MemRef = v[tensor_]
        frame.cta_run.consume(frame, value, site)
        places, first = [v[i].data for i in places_], v[column_]
        inside = np.ones(QUARTER_LANES, bool)
        linear = np.zeros(QUARTER_LANES, np.int64)
        for place, extent in zip(places, target.shape):
            inside &= (place >= 0) & (place < extent)
            linear = linear * extent + place
        width = target.shape[-1]
        if not inside.any() or not 0 <= first < width:
            return
        columns = min(value.data.shape[1], width - first)
        elements = (linear * width + first)[inside]
        every = elements[:, None] + np.arange(columns)
        lane = QUARTER_LANES * value.quarter + np.flatnonzero(inside).astype(np.int16)
        stored = Stored(frame.cta.index, value.quarter, value.column, site)
        data = value.data[inside, :columns]
        store_elements(frame, writers, target, every, data, stored, lane[:, None])

    return store
