"""Rules of TMA stores and bulk groups, and of copies between register tiles and the shared memory
that TMA accesses.
"""

from __future__ import annotations

from math import gcd, prod

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import flag, integer, string
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.ops.store_shared import STORE_BYTES
from tcir.dialect.ops.tma_store import reduction_of, scatters
from tcir.interp.tile.addresses import slice_bytes
from tcir.interp.tile.compiler import Blocking, Compiler, Frame, Step, execute
from tcir.interp.tile.movement import segments
from tcir.interp.tile.values import MemRef, RegisterTile, Site, SmemTile, Stored, Writers
from tcir.interp.types import Array, dtype_of
from tcir.machine import TensorOperand
from tcir.machine.order.distinct import distinct
from tcir.machine.tma.box import Box, store_box


@execute(tc.StoreSharedOp)
def store_shared(compiler: Compiler, op: tc.StoreSharedOp) -> Step:
    value_, tile_, row_, column_ = compiler.operands(op)
    site, sequential = compiler.site(op), compiler.sequential

    def store(frame: Frame) -> None:
        v = frame.values
        value: RegisterTile = v[value_]
        tile: SmemTile = v[tile_]
        frame.cta_run.consume(frame, value, site)
        columns = value.data.shape[1]
        places = _places(frame, tile, v[row_], v[column_], columns, site)
        data = np.ascontiguousarray(value.data).view(np.uint8)
        frame.agent.memory.store(
            "shared",
            places.reshape(-1),
            data.reshape(-1, STORE_BYTES),
            site=site,
        )
        if sequential:
            frame.agent.fence("proxy.async", site=site)

    return store


@execute(tc.LoadSharedOp)
def load_shared(compiler: Compiler, op: tc.LoadSharedOp) -> Step:
    tile_, row_, column_ = compiler.operands(op)
    result, site = compiler.result(op), compiler.site(op)
    columns, dtype = op.value.type.shape[1], dtype_of(op.value.type)

    def load(frame: Frame) -> None:
        v = frame.values
        places = _places(frame, v[tile_], v[row_], v[column_], columns, site)
        raw = frame.agent.memory.load("shared", places.reshape(-1), STORE_BYTES, site=site)
        data = np.ascontiguousarray(raw).reshape(QUARTER_LANES, -1).view(dtype)
        v[result] = RegisterTile(data, quarter=-1)

    return load


def _places(frame: Frame, tile: SmemTile, row: int, column: int, columns: int, site: Site) -> Array:
    """Addresses of the 16-byte units of 32 rows of `columns` columns: int64[32, units]."""
    layout = tile.layout
    per_span = layout.span // layout.element_bytes
    step = gcd(columns, per_span)
    inside = 0 <= row <= layout.mn - QUARTER_LANES and 0 <= column <= layout.k - columns
    if not inside or column % step:
        raise frame.cta_run.error(
            "access-outside-tile",
            f"expected 32 rows and {columns} columns of a tile of {layout.mn} x {layout.k}, "
            f"from a column that is a multiple of {step}, got row {row}, column {column}",
            site,
        )
    rows = slice_bytes(layout, tile.base, column, columns)[row : row + QUARTER_LANES]
    return rows[:, ::STORE_BYTES]


@execute(tc.TmaStoreOp)
def tma_store(compiler: Compiler, op: tc.TmaStoreOp) -> Step:
    (map_,), coords, (tile_,) = segments(compiler, op)
    made = op.map.owner.opview
    tensor_ = compiler.slot(made.tensor)
    mode = "im2col_no_offs" if string(made, "mode") == "im2col" else "tile"
    if scatters(op):
        mode = "tile::scatter4"
    row, reduction, site = integer(op, "row"), reduction_of(op), compiler.site(op)
    writers, sequential = compiler.writers, compiler.sequential

    def store(frame: Frame) -> None:
        v = frame.values
        tile: SmemTile = v[tile_]
        source = tile.base + row * tile.layout.span
        operand = TensorOperand(v[map_], [v[c] for c in coords], mode=mode)
        box = store_box(operand, source, frame.agent.machine.assumptions, site)
        end = tile.base + tile.layout.nbytes
        if box.high > end:
            raise frame.cta_run.error(
                "box-outside-tile",
                f"expected a box of at most {end - source} bytes from row {row} of the tile, got "
                f"{box.high - source}",
                site,
            )
        if sequential:
            frame.agent.fence("proxy.async", site=site)
        frame.agent.tma.store(source, operand, reduction, site=site)
        note_store(frame, writers, v[tensor_], box, site)
        if sequential:
            frame.agent.bulk.commit(site=site)
            frame.agent.drain()

    return store


def note_store(frame: Frame, writers: Writers, target: MemRef, box: Box, site: Site) -> None:
    """Records the store as the writer of the box's elements."""
    elements = distinct((box.addresses - target.address) // target.dtype.itemsize)
    elements = elements[elements < prod(target.shape)]  # rows of one dimension end at 16 bytes
    writers.record(target, elements, Stored(frame.cta.index, 0, 0, site))


@execute(tc.BulkCommitOp)
def bulk_commit(compiler: Compiler, op: tc.BulkCommitOp) -> Step:
    site = compiler.site(op)
    return lambda frame: frame.agent.bulk.commit(site=site)


@execute(tc.BulkWaitOp)
def bulk_wait(compiler: Compiler, op: tc.BulkWaitOp) -> Step:
    pending, read, site = integer(op, "pending"), flag(op, "read"), compiler.site(op)

    def wait(frame: Frame) -> Blocking:
        yield from frame.agent.bulk.wait(pending, read, site=site)

    return wait
