"""Rules of data movement: TMA, shared to tensor memory, tensor memory to registers to global."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir._mlir import ir
from tcir.interp.tile.addresses import slice_bytes
from tcir.interp.tile.compiler import Compiler, Frame, Step, rule
from tcir.interp.tile.places import integer
from tcir.interp.tile.values import Load, MemRef, Registers, SmemTile, Stored, TmemTile
from tcir.interp.types import dtype_of, integers, shape_of
from tcir.machine.tma.tensor_map import DecodedMap, MapFields

QUARTER = 32
"""Lanes that one warp reaches."""

_CP_ROWS = 128
_GROUPS = 4
"""Groups of 32 pixels in a load of .im2col::w::128, each with a halo (PTX ISA 5.5.5)."""
_LOAD_MODES = {"tiled": "tile", "im2col": "im2col", "im2col_w128": "im2col::w::128"}
"""Mode of a map -> how PTX spells a load from it."""

SLICE_BYTES = 32
"""Bytes of K per row that one mma and one cp take (PTX ISA 9.7.16.5, 9.7.16.9)."""


def text(op: Any, name: str) -> str:
    """The string attribute `name`."""
    value: str = ir.StringAttr(op.operation.attributes[name]).value
    return value


def _fields(op: Any) -> MapFields:
    attributes = op.operation.attributes
    dims, strides, box, steps, corners = (
        integers(attributes[n]) for n in ("dims", "strides", "box", "element_strides", "corners")
    )
    mode = text(op, "mode")
    element = str(ir.MemRefType(op.operation.operands[0].type).element_type)
    dtype = text(op, "dtype") if "dtype" in attributes else element
    where: dict[str, Any] = {"box": box}
    if mode != "tiled":
        half = len(corners) // 2
        where = {
            "lower_corner": corners[:half],
            "upper_corner": corners[half:],
            "channels_per_pixel": box[0],
            "pixels_per_column": box[1],
        }
    return MapFields(mode, dtype, dims, strides, steps, text(op, "swizzle"), **where)


@rule("tc.make_tensor_map")
def make_tensor_map(compiler: Compiler, op: Any) -> Step:
    (tensor,), result = compiler.operands(op), compiler.result(op)
    fields = _fields(op)

    def bind(frame: Frame) -> None:
        frame.values[result] = DecodedMap(fields, frame.values[tensor].address)

    return bind


@rule("tc.tma_load")
def tma_load(compiler: Compiler, op: Any) -> Step:
    map_, coords, offsets, tile_, signal = segments(compiler, op)
    row, nbytes, site = integer(op, "row") or 0, integer(op, "nbytes") or 0, compiler.site(op)
    halo = integer(op, "halo") or 0

    def load(frame: Frame) -> None:
        if not frame.elected():
            return
        v = frame.values
        tensor_map: DecodedMap = v[map_[0]]
        tile: SmemTile = v[tile_[0]]
        start = tile.base + row * tile.layout.span
        room = tile.base + tile.layout.nbytes - start
        fields = tensor_map.fields
        box = fields.box_bytes + _GROUPS * halo * fields.box_bytes // fields.counts[1]
        if box > room:
            raise frame.launch.error(
                "box-outside-tile",
                f"expected a box of at most {room} bytes from row {row} of the tile, got {box}",
                site,
            )
        taps = [v[o] for o in offsets]
        bar = v[signal[0]].address if signal else frame.launch.announce(frame, nbytes, site)
        frame.agent.tma_load(
            start,
            tensor_map,
            [v[c] for c in coords],
            bar,
            mode=_LOAD_MODES[fields.mode],
            im2col_offsets=[halo, *taps] if fields.mode == "im2col_w128" else taps,
            site=site,
        )
        if not signal:
            frame.launch.complete_load(frame, nbytes, box, site)

    return load


def segments(compiler: Compiler, op: Any) -> list[list[int]]:
    """Operand slots, one list per declared operand."""
    slots = compiler.operands(op)
    sizes = list(ir.DenseI32ArrayAttr(op.operation.attributes["operandSegmentSizes"]))
    ends = np.cumsum(sizes).tolist()
    return [slots[end - size : end] for size, end in zip(sizes, ends)]


@rule("tc.cp")
def cp(compiler: Compiler, op: Any) -> Step:
    source_, target_ = compiler.operands(op)
    k_slice, site, sequential = integer(op, "slice") or 0, compiler.site(op), compiler.sequential

    def copy(frame: Frame) -> None:
        if not frame.elected():
            return
        source: SmemTile = frame.values[source_]
        target: TmemTile = frame.values[target_]
        layout = source.layout
        if layout.major != "K" or layout.mn < _CP_ROWS:
            raise frame.launch.error(
                "bad-cp-source", f"expected a K-major tile of 128 rows, got {layout}", site
            )
        step = SLICE_BYTES // layout.element_bytes
        column = 8 * k_slice
        if column + 8 > target.columns:
            raise frame.launch.error(
                "slice-outside-tile",
                f"expected a slice of the tile's {target.columns} columns, got slice {k_slice}",
                site,
            )
        frame.agent.cp_bytes(
            target.origin(frame) + target.column + column,
            slice_bytes(layout, source.base, step * k_slice, step)[:_CP_ROWS],
            "128x256b",
            site=site,
        )
        if sequential:
            frame.agent.drain()

    return copy


@rule("tc.tmem_ld")
def tmem_ld(compiler: Compiler, op: Any) -> Step:
    source_, quarter_, column_ = compiler.operands(op)
    result, site, sequential = compiler.result(op), compiler.site(op), compiler.sequential
    lanes, count = shape_of(op.operation.results[0].type)
    dtype = dtype_of(op.operation.results[0].type)

    def load(frame: Frame) -> None:
        v = frame.values
        source: TmemTile = v[source_]
        quarter, column = v[quarter_], v[column_]
        if not (0 <= quarter < 4 and 0 <= column <= source.columns - count) or lanes != QUARTER:
            raise frame.launch.error(
                "access-outside-tile",
                f"expected quarter 0..3 and columns within {source.columns}, "
                f"got quarter {quarter}, columns {column}..{column + count - 1}",
                site,
            )
        address = (QUARTER * quarter) << 16 | (source.origin(frame) + source.column + column)
        with frame.launch.as_warp(frame, quarter):
            words = frame.agent.tmem_ld(address, shape="32x32b", num=count, site=site)
        data = np.ascontiguousarray(words.T).view(dtype)
        handle = Load(site, ready=sequential)
        if sequential:
            frame.agent.drain()
        else:
            frame.loads.append(handle)
        v[result] = Registers(data, quarter, column, handle)

    return load


@rule("tc.tmem_st")
def tmem_st(compiler: Compiler, op: Any) -> Step:
    value_, target_, quarter_, column_ = compiler.operands(op)
    site, sequential = compiler.site(op), compiler.sequential
    lanes, count = shape_of(op.operation.operands[0].type)

    def store(frame: Frame) -> None:
        v = frame.values
        target: TmemTile = v[target_]
        quarter, column = v[quarter_], v[column_]
        if not (0 <= quarter < 4 and 0 <= column <= target.columns - count) or lanes != QUARTER:
            raise frame.launch.error(
                "access-outside-tile",
                f"expected quarter 0..3 and columns within {target.columns}, "
                f"got quarter {quarter}, columns {column}..{column + count - 1}",
                site,
            )
        frame.launch.consume(frame, v[value_], site)
        address = (QUARTER * quarter) << 16 | (target.origin(frame) + target.column + column)
        words = np.ascontiguousarray(v[value_].data).view(np.uint32).T
        with frame.launch.as_warp(frame, quarter):
            frame.agent.tmem_st(address, "32x32b", count, words, site=site)
        if sequential:
            frame.agent.drain()

    return store


@rule("tc.tmem_wait")
def tmem_wait(compiler: Compiler, op: Any) -> Step:
    kind, site = text(op, "kind"), compiler.site(op)

    def wait(frame: Frame) -> None:
        frame.agent.tmem_wait(kind, site=site)
        if kind == "ld":
            for load in frame.loads:
                load.ready = True
            frame.loads.clear()

    return wait


@rule("tc.store_rows")
def store_rows(compiler: Compiler, op: Any) -> Step:
    value_, tensor_, *indices_ = compiler.operands(op)
    rows, row_dim, site = integer(op, "rows") or 0, integer(op, "row_dim") or 0, compiler.site(op)
    writers = compiler.writers

    def store(frame: Frame) -> None:
        v = frame.values
        value: Registers = v[value_]
        target: MemRef = v[tensor_]
        frame.launch.consume(frame, value, site)
        first = [v[i] for i in indices_]
        lanes, columns = clip(first, target.shape, min(rows, value.data.shape[0]), row_dim)
        columns = min(columns, value.data.shape[1])
        if not lanes or not columns:
            return
        pitch = int(np.prod(target.shape[row_dim + 1 :], dtype=np.int64))
        start = int(np.ravel_multi_index(first, target.shape))
        elements = start + pitch * np.arange(lanes, dtype=np.int64)
        size = target.dtype.itemsize
        data = np.ascontiguousarray(value.data[:lanes, :columns])
        frame.agent.store(
            "global",
            target.address + elements * size,
            data.view(np.uint8).reshape(lanes, columns * size),
            site=site,
        )
        owner = writers.owner.get(target.buffer)
        if owner is None:
            raise frame.launch.error("store-to-input", "expected a result of the kernel", site)
        every = elements[:, None] + np.arange(columns)
        owner[every] = len(writers.stores)
        lane = QUARTER * value.quarter + np.arange(lanes, dtype=np.int16)
        writers.lane[target.buffer][every] = lane[:, None]
        writers.stores.append(Stored(frame.cta.index, value.quarter, value.column, site))

    return store


def clip(first: list[int], shape: tuple[int, ...], rows: int, row_dim: int) -> tuple[int, int]:
    """How many of `rows` rows and how many columns from `first` lie in the tensor.

    Indices are unsigned, so a negative one is far outside. Rows run along `row_dim`, columns along
    the last dimension; a row outside in any dimension is not stored.
    """
    if any(not 0 <= i < n for i, n in zip(first, shape, strict=True)):
        return 0, 0
    return min(rows, shape[row_dim] - first[row_dim]), shape[-1] - first[-1]
