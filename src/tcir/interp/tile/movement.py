"""Rules of data movement: TMA loads, and stores of rows of registers to global memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integers, string
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.multicast import CTA_MASK, transposed
from tcir.dialect.ops.stores import column_dim
from tcir.dialect.ops.tma import GATHERED_ROWS, gathers, halo_of, map_dtype
from tcir.interp.tile.compiler import (
    Blocking,
    Compiler,
    Frame,
    Step,
    execute,
    in_leader,
    meet,
)
from tcir.interp.tile.loads import store_elements
from tcir.interp.tile.values import (
    MemRef,
    RegisterTile,
    SmemTile,
    Stored,
)
from tcir.machine import TensorOperand
from tcir.machine.tma.tensor_map import DecodedMap, MapFields

_GROUPS = {"im2col_w": 1, "im2col_w128": 4}
"""Mode of a load -> its groups of pixels, each with a halo (PTX ISA 5.5.5)."""
_LOAD_MODES = {
    "tiled": "tile", "im2col": "im2col", "im2col_w": "im2col::w", "im2col_w128": "im2col::w::128",
}  # fmt: skip
"""Mode of a tensor map -> PTX modifiers of a load from it."""


def _fields(op: tc.MakeTensorMapOp) -> MapFields:
    dims, strides, box, steps, corners = (
        tuple(integers(op, n)) for n in ("dims", "strides", "box", "element_strides", "corners")
    )
    mode = string(op, "mode")
    dtype = map_dtype(op)
    where: dict[str, Any] = {"box": box}
    if mode != "tiled":
        half = len(corners) // 2
        where = {
            "lower_corner": corners[:half],
            "upper_corner": corners[half:],
            "channels_per_pixel": box[0],
            "pixels_per_column": box[1],
        }
    return MapFields(mode, dtype, dims, strides, steps, string(op, "swizzle"), **where)


@execute(tc.MakeTensorMapOp)
def make_tensor_map(compiler: Compiler, op: tc.MakeTensorMapOp) -> Step:
    (tensor,), fields = compiler.operands(op), _fields(op)
    return compiler.assigns(op, lambda frame: DecodedMap(fields, frame.values[tensor].address))


@execute(tc.TmaLoadOp)
def tma_load(compiler: Compiler, op: tc.TmaLoadOp) -> Step:
    map_, coords, offsets, tile_, signal = segments(compiler, op)
    row, nbytes, site = integer(op, "row"), integer(op, "nbytes"), compiler.site(op)
    halo = halo_of(op)
    rows, cta_group = GATHERED_ROWS if gathers(op) else 1, cta_group_of(op)
    masks = compiler.masks(op) if CTA_MASK in op.attributes else None

    def issue(frame: Frame, bar: int, mask: int | None) -> int:
        """Starts the load; returns the number of bytes that it counts on its mbarrier."""
        v = frame.values
        tensor_map: DecodedMap = v[map_[0]]
        tile: SmemTile = v[tile_[0]]
        start = tile.base + row * tile.layout.span
        room = tile.base + tile.layout.nbytes - start
        fields = tensor_map.fields
        box = rows * fields.box_bytes
        if halo:
            box += _GROUPS[fields.mode] * halo * fields.box_bytes // fields.counts[1]
        if box > room:
            raise frame.cta_run.error(
                "box-outside-tile",
                f"expected a box of at most {room} bytes from row {row} of the tile, got {box}",
                site,
            )
        taps = [v[o] for o in offsets]
        frame.agent.tma.load(
            start,
            TensorOperand(
                tensor_map,
                [v[c] for c in coords],
                mode="tile::gather4" if rows > 1 else _LOAD_MODES[fields.mode],
                im2col_offsets=[halo, *taps] if fields.mode in _GROUPS else taps,
            ),
            in_leader(bar) if cta_group == PAIR else bar,
            cta_mask=mask,
            cta_group=cta_group,
            site=site,
        )
        return box * fields.unit.global_bytes // fields.unit.shared_bytes

    def load(frame: Frame) -> None:
        if not frame.elected():
            return
        if signal:
            mask = None if masks is None else masks[frame.cta.rank_in_cluster]
            issue(frame, frame.values[signal[0]].address, mask)
            return
        bar = frame.cta_run.announce(frame, nbytes, site)
        frame.agent.fence("proxy.async", site=site)  # in a program in order, reads are over
        counted = issue(frame, bar, None)
        frame.cta_run.complete_load(frame, nbytes, counted, site)

    def together(frame: Frame) -> Blocking:
        """Executes the loads of a sequential program: all CTAs of the cluster reach the op, and all
        of their loads are complete after it.
        """
        assert masks is not None
        rank = frame.cta.rank_in_cluster
        count = transposed(masks)[rank].bit_count()
        bar = frame.cta_run.announce(frame, nbytes * count, site)
        frame.agent.fence("tcgen05.before", site=site)
        yield from meet(frame, site)
        frame.agent.fence("tcgen05.after", site=site)
        frame.agent.fence("proxy.async", site=site)
        counted = issue(frame, bar, masks[rank])
        frame.agent.drain()
        yield from meet(frame, site)
        frame.cta_run.complete_load(frame, nbytes * count, counted * count, site)

    return load if signal or masks is None else together


def segments(compiler: Compiler, op: ir.OpView) -> list[list[int]]:
    """Slots of an op's operands, one list for each operand of the op's definition."""
    slots = compiler.operands(op)
    sizes = list(ir.DenseI32ArrayAttr(op.operation.attributes["operandSegmentSizes"]))
    ends = np.cumsum(sizes).tolist()
    return [slots[end - size : end] for size, end in zip(sizes, ends)]


@execute(tc.StoreRowsOp)
def store_rows(compiler: Compiler, op: tc.StoreRowsOp) -> Step:
    value_, tensor_, *indices_ = compiler.operands(op)
    rows, row_dim, site = integer(op, "rows"), integer(op, "row_dim"), compiler.site(op)
    columns_along, writers = column_dim(op), compiler.writers

    def store(frame: Frame) -> None:
        v = frame.values
        value: RegisterTile = v[value_]
        target: MemRef = v[tensor_]
        frame.cta_run.consume(frame, value, site)
        first = [v[i] for i in indices_]
        most = min(rows, value.data.shape[0])
        lanes, columns = clip(first, target.shape, most, row_dim, columns_along)
        columns = min(columns, value.data.shape[1])
        if not lanes or not columns:
            return
        pitches = [int(np.prod(target.shape[dim + 1 :])) for dim in (row_dim, columns_along)]
        start = int(np.ravel_multi_index(first, target.shape))
        every = start + pitches[0] * np.arange(lanes, dtype=np.int64)[:, None]
        every = every + pitches[1] * np.arange(columns)
        lane = QUARTER_LANES * value.quarter + np.arange(lanes, dtype=np.int16)[:, None]
        if pitches[1] != 1:
            lane = np.repeat(lane, columns, axis=0)
            every = every.reshape(-1, 1)
        stored = Stored(frame.cta.index, value.quarter, value.column, site)
        data = value.data[:lanes, :columns]
        store_elements(frame, writers, target, every, data, stored, lane)

    return store


def clip(
    first: list[int], shape: tuple[int, ...], rows: int, row_dim: int, column_dim: int = -1
) -> tuple[int, int]:
    """Returns how many of `rows` rows, and how many columns, are inside the tensor, counted from
    `first` on.

    Indices are unsigned, so a negative index is far outside. Rows run along `row_dim`, columns
    along `column_dim`; a row that is outside in any dimension is not stored.
    """
    if any(not 0 <= i < n for i, n in zip(first, shape, strict=True)):
        return 0, 0
    return min(rows, shape[row_dim] - first[row_dim]), shape[column_dim] - first[column_dim]
