"""Tiles of block-scaled operands in shared memory, and the TMA loads that fill them."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import TMEM_LANES
from tcir.dialect.ops.block_scale import SCALE_COLUMNS, SCALE_ROW_BYTES, SCALE_ROWS
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES
from tcir.passes.build import index
from tcir.passes.build.emit import Box, i64, make_tensor_map, tma_load
from tcir.passes.build.index import Index
from tcir.passes.build.limits import ceil_div, round_up
from tcir.passes.gemv.shapes import Operand, Stage

_SWIZZLES = {span: mode for mode, span in tc.SWIZZLE_BYTES.items()}
_CHUNK = 256
"""Bytes of the inner dimension of a box of whole scale blocks: the maximum of a box."""


def byte_tile(rows: int, row_bytes: int) -> tc.SmemType:
    """Type of a K-major tile of bytes, one swizzle span wide."""
    i8 = ir.IntegerType.get_signless(8)
    return tc.SmemType.build([rows, row_bytes], i8, "K", _SWIZZLES[row_bytes])


def _columns(count: int) -> ir.Value:
    """A tile of `count` columns of scale factors in tensor memory."""
    i8 = ir.IntegerType.get_signless(8)
    return tc.TmemTileOp(tc.TmemType.build([TMEM_LANES, 4 * count], i8)).tile


@dataclass(frozen=True)
class ScaledOperand:
    """The rows ``[tile_rows, stage.k]`` of A or B, from a tensor map of bytes."""

    type: tc.SmemType
    map: ir.Value
    operand: Operand

    @staticmethod
    def create(tensor: ir.Value, operand: Operand, stage: Stage, tile_rows: int) -> ScaledOperand:
        """Builds the tensor map, innermost k, then rows, then the batch."""
        shape, type_ = stage.shape, byte_tile(tile_rows, stage.row_bytes)
        # The stride of a single row is not used, but it has to be legal.
        pitch = operand.row_bytes(shape.k)
        pitch = pitch if operand.rows * shape.batch > 1 else round_up(pitch, 32)
        tensor_map = make_tensor_map(
            tensor,
            Box([operand.units(stage.k), tile_rows, 1]),
            dims=[operand.units(shape.k), operand.rows, shape.batch],
            strides=[pitch, pitch * operand.rows],
            swizzle=type_.swizzle,
            dtype=operand.dtype,
        )
        return ScaledOperand(type_, tensor_map, operand)

    def load(self, tile: ir.Value, row: Index, unit: Index, stage: Stage, batch: Index) -> None:
        """Fills `tile` with stage `unit` of the rows from `row` on; zero outside the tensor."""
        k = index.mul(unit, self.operand.units(stage.k))
        nbytes = self.type.shape[0] * self.operand.row_bytes(stage.k)  # gaps do not count
        tma_load(self.map, index.values([k, row, batch]), tile, 0, nbytes)


@dataclass(frozen=True)
class BlockedScales:
    """Scales in the 128x4 layout: a stage loads adjacent blocks, either all their rows (`whole`) or
    the first 32 of 16 bytes, of which those past `rows` are zero."""

    type: tc.SmemType
    map: ir.Value
    chunk: int

    @staticmethod
    def create(tensor: ir.Value, rows: int, stage: Stage, whole: bool) -> BlockedScales:
        """Builds the tensor map."""
        shape, blocks = stage.shape, stage.scale_blocks
        along_k = shape.scale_blocks * BLOCK_BYTES
        if whole:
            dims = [_CHUNK, along_k // _CHUNK, ceil_div(rows, BLOCK_ROWS), shape.batch]
            box, strides = [_CHUNK, blocks * BLOCK_BYTES // _CHUNK, 1, 1], None
        else:
            dims = [SCALE_ROW_BYTES, min(rows, SCALE_ROWS), shape.scale_blocks, shape.batch]
            box = [SCALE_ROW_BYTES, SCALE_ROWS, blocks, 1]
            strides = [SCALE_ROW_BYTES, BLOCK_BYTES, along_k]
        tensor_map = make_tensor_map(
            tensor, Box(box), dims=dims, strides=strides, swizzle="NONE", dtype="u8"
        )
        type_ = byte_tile(SCALE_ROWS * blocks, SCALE_ROW_BYTES)
        return BlockedScales(type_, tensor_map, BLOCK_BYTES // _CHUNK if whole else 0)

    def load(
        self, tile: ir.Value, row_block: Index, unit: Index, stage: Stage, batch: Index
    ) -> None:
        """Fills `tile` with the blocks of stage `unit`; zero past the last block."""
        block = index.mul(unit, stage.scale_blocks)
        coords = [0, index.mul(block, self.chunk), row_block, batch]
        if not self.chunk:
            coords = [0, 0, block, batch]
        tma_load(self.map, index.values(coords), tile, 0, self.type.nbytes)

    def factors(self, stage: Stage) -> ir.Value:
        """A tensor-memory tile for the factors."""
        return _columns(SCALE_COLUMNS * stage.scale_blocks)

    def copy(self, tile: ir.Value, target: ir.Value, unit: Index, stage: Stage) -> None:
        """``tc.cp_scales`` of every block, 4 columns each."""
        for block in range(stage.scale_blocks):
            tc.CpScalesOp(tile, target, index.value(SCALE_COLUMNS * block), i64(block))

    def column(self, sets: int, stage: Stage) -> int:
        """Column of set number `sets` of the stage in the factors."""
        return SCALE_COLUMNS * sets


@dataclass(frozen=True)
class RowScales:
    """Row-major scales of up to 32 rows: a box of 16 scales times 32 rows becomes 4 sets.

    A box begins at a multiple of 16 bytes. A stage that needs fewer than 16 scales shares the box
    with its neighbours; its copy is offset to the left so that its own scales are in place.
    """

    type: tc.SmemType
    map: ir.Value

    @staticmethod
    def create(tensor: ir.Value, rows: int, stage: Stage) -> RowScales:
        """Builds the tensor map."""
        shape = stage.shape
        pitch = shape.scales if rows * shape.batch > 1 else round_up(shape.scales, 16)
        tensor_map = make_tensor_map(
            tensor,
            Box([SCALE_ROW_BYTES, SCALE_ROWS, 1]),
            dims=[shape.scales, rows, shape.batch],
            strides=[pitch, pitch * rows],
            swizzle="NONE",
            dtype="u8",
        )
        return RowScales(byte_tile(SCALE_ROWS, SCALE_ROW_BYTES), tensor_map)

    def load(
        self, tile: ir.Value, row_block: Index, unit: Index, stage: Stage, batch: Index
    ) -> None:
        """Fills `tile` with the 16 scales that include those of stage `unit`."""
        box = index.div(index.mul(unit, stage.scales), SCALE_ROW_BYTES)
        coords = [index.mul(box, SCALE_ROW_BYTES), 0, batch]
        tma_load(self.map, index.values(coords), tile, 0, self.type.nbytes)

    def factors(self, stage: Stage) -> ir.Value:
        """A tensor-memory tile for the factors."""
        return _columns(SCALE_COLUMNS if stage.scales == SCALE_ROW_BYTES else 2 * SCALE_COLUMNS)

    def copy(self, tile: ir.Value, target: ir.Value, unit: Index, stage: Stage) -> None:
        """One ``tc.cp_scales``."""
        column: Index = 0
        if stage.scales != SCALE_ROW_BYTES:
            inside = index.rem(index.mul(unit, stage.scales // BLOCK_SCALES), SCALE_COLUMNS)
            column = index.sub(SCALE_COLUMNS, inside)
        tc.CpScalesOp(tile, target, index.value(column), i64(0))

    def column(self, sets: int, stage: Stage) -> int:
        """Column of set number `sets` of the stage in the factors: 32 rows take one column."""
        return sets + (0 if stage.scales == SCALE_ROW_BYTES else SCALE_COLUMNS)


Scales = BlockedScales | RowScales
