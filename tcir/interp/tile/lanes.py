"""Rules of the ops with a value per lane."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir.interp.tile.compiler import Compiler, Frame, Step, rule
from tcir.interp.tile.values import MemRef, Registers, Stored

LANES = 32


@rule("tc.lane_index")
def lane_index(compiler: Compiler, op: Any) -> Step:
    result = compiler.result(op)

    def number(frame: Frame) -> None:
        frame.values[result] = Registers(np.arange(LANES, dtype=np.int64), quarter=-1)

    return number


@rule("tc.store_lanes")
def store_lanes(compiler: Compiler, op: Any) -> Step:
    value_, tensor_, *places_, column_ = compiler.operands(op)
    site, writers = compiler.site(op), compiler.writers

    def store(frame: Frame) -> None:
        v = frame.values
        value: Registers = v[value_]
        target: MemRef = v[tensor_]
        frame.launch.consume(frame, value, site)
        places, first = [v[i].data for i in places_], v[column_]
        inside = np.ones(LANES, bool)
        linear = np.zeros(LANES, np.int64)
        for place, extent in zip(places, target.shape):
            inside &= (place >= 0) & (place < extent)
            linear = linear * extent + place
        width = target.shape[-1]
        if not inside.any() or not 0 <= first < width:
            return
        columns = min(value.data.shape[1], width - first)
        elements = (linear * width + first)[inside]
        size = target.dtype.itemsize
        data = np.ascontiguousarray(value.data[inside, :columns])
        frame.agent.store(
            "global",
            target.address + elements * size,
            data.view(np.uint8).reshape(len(elements), columns * size),
            site=site,
        )
        owner = writers.owner.get(target.buffer)
        if owner is None:
            raise frame.launch.error("store-to-input", "expected a result of the kernel", site)
        every = elements[:, None] + np.arange(columns)
        owner[every] = len(writers.stores)
        lane = LANES * value.quarter + np.flatnonzero(inside).astype(np.int16)
        writers.lane[target.buffer][every] = lane[:, None]
        writers.stores.append(Stored(frame.cta.index, value.quarter, value.column, site))

    return store
