"""Rules of block quantisation on register tiles and fragments, and of stores of scale factors."""

from __future__ import annotations

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import integer
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.ops.block_scale import ROWS_PER_COLUMN, SCALE_ROW_BYTES
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES
from tcir.dialect.ops.quantise import SCALED_COLUMNS
from tcir.interp.tensor.quantise import quantised
from tcir.interp.tile.compiler import Compiler, Frame, Step, execute
from tcir.interp.tile.loads import store_elements
from tcir.interp.tile.movement import segments
from tcir.interp.tile.values import MemRef, RegisterTile, Stored
from tcir.interp.tile.warp import held_by
from tcir.interp.tile.wgmma import settled
from tcir.interp.types import DTYPES, Array, dtype_of


@execute(tc.QuantiseRowsOp)
def quantise_rows(compiler: Compiler, op: tc.QuantiseRowsOp) -> Step:
    (values_,), site = compiler.operands(op), compiler.site(op)
    codes_, scales_ = compiler.slots_of((op.codes, op.scales))
    form, packed = op.format, op.format.bits == 4
    kinds = np.dtype(DTYPES[op.elements]), dtype_of(op.scales.type)

    def quantise(frame: Frame) -> None:
        tile: RegisterTile = frame.values[values_]
        frame.cta_run.consume(frame, tile, site)
        codes, scales = quantised(tile.data, form, *kinds)
        if packed:
            nibbles = codes.view(np.uint8) & 15
            codes = (nibbles[:, ::2] | nibbles[:, 1::2] << 4).view(np.int8)
        frame.values[codes_] = RegisterTile(codes, tile.quarter, tile.column)
        frame.values[scales_] = RegisterTile(scales, tile.quarter, tile.column)

    return quantise


@execute(tc.StoreScalesOp)
def store_scales(compiler: Compiler, op: tc.StoreScalesOp) -> Step:
    value_, tensor_, *indices_ = compiler.operands(op)
    rows, scales = integer(op, "rows"), integer(op, "scales")
    site, writers = compiler.site(op), compiler.writers

    def store(frame: Frame) -> None:
        v = frame.values
        value: RegisterTile = v[value_]
        target: MemRef = v[tensor_]
        frame.cta_run.consume(frame, value, site)
        *outer, row, scale = (v[i] for i in indices_)
        count = value.data.shape[1]
        if row % QUARTER_LANES or scale % count:
            raise frame.cta_run.error(
                "unaligned-scales",
                f"expected a row that is a multiple of {QUARTER_LANES} and a scale that is one of "
                f"{count}, got {row} and {scale}",
                site,
            )
        block = (*outer, row // BLOCK_ROWS, scale // BLOCK_SCALES)
        if any(not 0 <= i < n for i, n in zip(block, target.shape[:-1], strict=True)):
            return
        lanes = np.arange(QUARTER_LANES)
        column = row % BLOCK_ROWS // ROWS_PER_COLUMN * BLOCK_SCALES + scale % BLOCK_SCALES
        first = int(np.ravel_multi_index(block, target.shape[:-1])) * BLOCK_BYTES
        places = first + lanes * SCALE_ROW_BYTES + column
        data = np.ascontiguousarray(value.data).view(np.uint8).copy()
        data[row + lanes >= rows] = 0
        data[:, scale + np.arange(count) >= scales] = 0
        every = places[:, None] + np.arange(count)
        stored = Stored(frame.cta.index, value.quarter, value.column, site)
        lane = (QUARTER_LANES * value.quarter + lanes)[:, None]
        store_elements(frame, writers, target, every, data, stored, lane)

    return store


@execute(tc.QuantiseFragmentOp)
def quantise_fragment(compiler: Compiler, op: tc.QuantiseFragmentOp) -> Step:
    """Quantises the agent's part of a fragment. In the returned scales, every element of a block
    has the block's scale.
    """
    (values_,), site, form = compiler.operands(op), compiler.site(op), op.format
    codes_, scales_ = compiler.slots_of((op.codes, op.scales))
    kinds = dtype_of(op.codes.type.element), dtype_of(op.scales.type.element)

    def quantise(frame: Frame) -> None:
        values = settled(frame, values_, site).view(np.float32)
        codes, scales = quantised(values, form, *kinds)
        frame.values[codes_] = codes
        frame.values[scales_] = np.repeat(scales, form.block, axis=1)

    return quantise


@execute(tc.StoreFragmentScalesOp)
def store_fragment_scales(compiler: Compiler, op: tc.StoreFragmentScalesOp) -> Step:
    """Stores one byte per block of columns; MachineError if the tile begins inside a block."""
    (fragment_,), (tensor_,), indices_ = segments(compiler, op)
    limits = integer(op, "rows"), integer(op, "scales")
    part, row_major = held_by(compiler, op.fragment.type), op.row_major
    site, writers = compiler.site(op), compiler.writers

    def store(frame: Frame) -> None:
        v = frame.values
        target: MemRef = v[tensor_]
        scales = settled(frame, fragment_, site)[:, ::SCALED_COLUMNS].view(np.uint8)
        *outer, row, column = part(frame).moved([v[i] for i in indices_])
        if column % SCALED_COLUMNS:
            raise frame.cta_run.error(
                "unaligned-scales",
                f"expected a column that is a multiple of {SCALED_COLUMNS}, got {column}",
                site,
            )
        rows = row + np.arange(scales.shape[0])[:, None]
        blocks = column // SCALED_COLUMNS + np.arange(scales.shape[1])[None, :]
        known = (rows < limits[0]) & (blocks < limits[1])
        place = _row_major(rows, blocks) if row_major else _in_blocks(rows, blocks)
        matrix = [np.full((1, 1), each) for each in outer]
        at = np.broadcast_arrays(*matrix, *place)
        inside = np.logical_and.reduce([a < n for a, n in zip(at, target.shape, strict=True)])
        if not inside.any():
            return
        places = np.ravel_multi_index([a[inside] for a in at], target.shape)[:, None]
        data = np.where(known, scales, 0).astype(np.uint8)[inside]
        stored = Stored(frame.cta.index, 0, column, site)
        store_elements(frame, writers, target, places, data, stored)

    return store


def _row_major(rows: Array, blocks: Array) -> list[Array]:
    return [rows, blocks]


def _in_blocks(rows: Array, blocks: Array) -> list[Array]:
    """Returns the block's index along rows and along scales, and the byte in the block."""
    column = rows % BLOCK_ROWS // ROWS_PER_COLUMN * BLOCK_SCALES + blocks % BLOCK_SCALES
    byte = rows % ROWS_PER_COLUMN * SCALE_ROW_BYTES + column
    return [rows // BLOCK_ROWS, blocks // BLOCK_SCALES, byte]
