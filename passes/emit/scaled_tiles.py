"""Tiles of block-scaled operands in shared memory, and the TMA loads that fill them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import SWIZZLE_OF_SPAN, TMEM_LANES
from tcir.dialect.ops.block_scale import (
    ROWS_PER_COLUMN,
    SCALE_COLUMNS,
    SCALE_ROW_BYTES,
    SCALE_ROWS,
)
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, i64, make_tensor_map, tma_load
from tcir.passes.emit.cluster import MulticastShare, multicast
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.scaled_shape import ScaledRows, Stage

_CHUNK = 256
"""Bytes of the inner dimension of a box of whole scale blocks: the maximum of a box."""


def byte_tile(rows: int, row_bytes: int) -> tc.SmemType:
    """Type of a K-major tile of bytes, one swizzle span wide."""
    i8 = ir.IntegerType.get_signless(8)
    return tc.SmemType.build([rows, row_bytes], i8, "K", SWIZZLE_OF_SPAN[row_bytes])


def _columns(count: int) -> ir.Value:
    """A tile of `count` columns of scale factors in tensor memory."""
    i8 = ir.IntegerType.get_signless(8)
    return tc.TmemTileOp(tc.TmemType.build([TMEM_LANES, 4 * count], i8)).tile


@dataclass(frozen=True)
class ScaledOperand:
    """A tile ``[tile_rows, stage.k]`` of A or B that is loaded through a tensor map of bytes. A TMA
    box may be only a part of the tile."""

    type: tc.SmemType
    map: ir.Value
    operand: ScaledRows

    @staticmethod
    def create(
        tensor: ir.Value, operand: ScaledRows, stage: Stage, tile_rows: int, parts: int = 1
    ) -> ScaledOperand:
        """Builds the tensor map, whose dimensions are k (innermost), rows and batch. A box has one
        of `parts` equal parts of the rows."""
        shape, type_ = stage.shape, byte_tile(tile_rows, stage.row_bytes)
        # The stride of a single row is not used, but it has to be legal.
        pitch = operand.row_bytes(shape.k)
        pitch = pitch if operand.rows * shape.batch > 1 else round_up(pitch, 32)
        tensor_map = make_tensor_map(
            tensor,
            TmaBox([operand.units(stage.k), tile_rows // parts, 1]),
            dims=[operand.units(shape.k), operand.rows, shape.batch],
            strides=[pitch, pitch * operand.rows],
            swizzle=type_.swizzle,
            dtype=operand.dtype,
        )
        return ScaledOperand(type_, tensor_map, operand)

    def load(
        self,
        tile: ir.Value,
        row: Index,
        unit: Index,
        stage: Stage,
        batch: Index,
        share: MulticastShare | None = None,
    ) -> None:
        """Fills `tile` with stage `unit` of the rows from `row` on; elements outside the tensor are
        zero. If CTAs of a cluster share the tile, this CTA loads its part for all of them."""
        if share is not None:
            tile = share.part(tile)
            row = share.first(row, tile.type.shape[0])
        k = index.mul(unit, self.operand.units(stage.k))
        nbytes = tile.type.shape[0] * self.operand.row_bytes(stage.k)  # gaps do not count
        load = tma_load(self.map, index.values([k, row, batch]), tile, 0, nbytes)
        if share is not None:
            multicast(load, share.masks)


@dataclass(frozen=True)
class BlockedScales:
    """Scales in the 128x4 layout. A stage loads adjacent blocks: either all their rows (`whole`),
    or only the first 32 rows of 16 bytes, with zeros past `rows`.

    row_blocks: number of blocks of 128 rows that a tile touches
    shifted:    whether tiles may begin inside a block, at a multiple of 32 rows. The copies of such
                a tile to tensor memory then begin at an earlier column, so that the scales of the
                tile's first row are always in the same column
    """

    type: tc.SmemType
    map: ir.Value
    chunk: int
    row_blocks: int = 1
    shifted: bool = False

    @staticmethod
    def create(
        tensor: ir.Value, rows: int, stage: Stage, tile_rows: int, whole: bool = True
    ) -> BlockedScales:
        """Builds the tensor map for tiles of `tile_rows` rows, out of `rows` rows."""
        shape, blocks = stage.shape, stage.scale_blocks
        along_k = shape.scale_blocks * BLOCK_BYTES
        row_blocks, shifted = _touched(rows, tile_rows)
        if whole:
            dims = [_CHUNK, along_k // _CHUNK, ceil_div(rows, BLOCK_ROWS), shape.batch]
            box, strides = [_CHUNK, blocks * BLOCK_BYTES // _CHUNK, row_blocks, 1], None
        else:
            dims = [SCALE_ROW_BYTES, min(rows, SCALE_ROWS), shape.scale_blocks, shape.batch]
            box = [SCALE_ROW_BYTES, SCALE_ROWS, blocks, 1]
            strides = [SCALE_ROW_BYTES, BLOCK_BYTES, along_k]
        tensor_map = make_tensor_map(
            tensor, TmaBox(box), dims=dims, strides=strides, swizzle="NONE", dtype="u8"
        )
        type_ = byte_tile(SCALE_ROWS * blocks * row_blocks, SCALE_ROW_BYTES)
        chunk = BLOCK_BYTES // _CHUNK if whole else 0
        return BlockedScales(type_, tensor_map, chunk, row_blocks, shifted)

    @staticmethod
    def columns_of(rows: int, tile_rows: int, stage: Stage) -> int:
        """Number of tensor-memory columns that the scales of a tile of `tile_rows` rows, out of
        `rows` rows, take."""
        row_blocks, shifted = _touched(rows, tile_rows)
        return SCALE_COLUMNS * (row_blocks * stage.scale_blocks + shifted)

    def load(
        self, tile: ir.Value, row_block: Index, unit: Index, stage: Stage, batch: Index
    ) -> None:
        """Fills `tile` with the blocks of stage `unit`; scales past the last block are zero."""
        block = index.mul(unit, stage.scale_blocks)
        coords = [0, index.mul(block, self.chunk), row_block, batch]
        if not self.chunk:
            coords = [0, 0, block, batch]
        tma_load(self.map, index.values(coords), tile, 0, self.type.nbytes)

    def factors(self, stage: Stage) -> ir.Value:
        """Allocates a tensor-memory tile for the scales of a stage."""
        return _columns(self.column(stage.scale_blocks, stage))

    def copy(
        self, tile: ir.Value, target: ir.Value, unit: Index, stage: Stage, row: Index = 0
    ) -> list[tc.CpScalesOp]:
        """Emits a copy of each block of scales to 4 columns of tensor memory (``tc.cp_scales``).

        row: first row of the tile within its block
        """
        left = index.div(row, ROWS_PER_COLUMN) if self.shifted else 0
        copies = []
        for number in range(self.row_blocks * stage.scale_blocks):
            rows, sets = divmod(number, stage.scale_blocks)
            column = index.sub(self.column(sets, stage) + SCALE_COLUMNS * rows, left)
            copies.append(tc.CpScalesOp(tile, target, index.value(column), i64(number)))
        return copies

    def column(self, sets: int, stage: Stage) -> int:
        """Column of set number `sets` of the stage in the tensor-memory tile of scales."""
        return SCALE_COLUMNS * (self.row_blocks * sets + self.shifted)


def _touched(rows: int, tile_rows: int) -> tuple[int, bool]:
    """Blocks of scales that a tile touches, and whether tiles begin inside a block."""
    step = gcd(tile_rows, BLOCK_ROWS) if rows > tile_rows else BLOCK_ROWS
    return ceil_div(BLOCK_ROWS - step + tile_rows, BLOCK_ROWS), step < BLOCK_ROWS


@dataclass(frozen=True)
class RowScales:
    """Row-major scales of up to 32 rows. A TMA box of 16 scales times 32 rows becomes 4 sets of
    scales.

    A box begins at a multiple of 16 bytes. A stage that needs fewer than 16 scales uses the same
    box as its neighbours. Its copy to tensor memory begins at an earlier column, so that the
    stage's own scales are in the expected column.
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
            TmaBox([SCALE_ROW_BYTES, SCALE_ROWS, 1]),
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
        """Allocates a tensor-memory tile for the scales of a stage."""
        return _columns(SCALE_COLUMNS if stage.scales == SCALE_ROW_BYTES else 2 * SCALE_COLUMNS)

    def copy(
        self, tile: ir.Value, target: ir.Value, unit: Index, stage: Stage, row: Index = 0
    ) -> list[tc.CpScalesOp]:
        """Emits one ``tc.cp_scales``. There is only one tile, which begins at row 0."""
        column: Index = 0
        if stage.scales != SCALE_ROW_BYTES:
            inside = index.rem(index.mul(unit, stage.scales // BLOCK_SCALES), SCALE_COLUMNS)
            column = index.sub(SCALE_COLUMNS, inside)
        return [tc.CpScalesOp(tile, target, index.value(column), i64(0))]

    def column(self, sets: int, stage: Stage) -> int:
        """Column of set number `sets` of the stage in the tensor-memory tile of scales: a set of 32
        rows takes one column."""
        return sets + (0 if stage.scales == SCALE_ROW_BYTES else SCALE_COLUMNS)


Scales = BlockedScales | RowScales


@dataclass(frozen=True)
class ScaledTile:
    """A stage of an operand: its elements in shared memory, and its scales in tensor memory."""

    elements: ir.Value
    factors: ir.Value
    scales: Scales


def multiply_scaled(
    stage: Stage,
    sums: Sequence[ir.Value],
    a: ScaledTile,
    tiles: Sequence[ScaledTile],
    accumulate: Callable[[], ir.Value],
    steps: int,
    usage: Callable[[int], str] | None = None,
) -> list[ir.OpView]:
    """Emits the first `steps` instructions of a stage, for each tile of B in `tiles` and its
    accumulator in `sums`.

    accumulate: operand ``accumulate`` of the next instructions
    usage: what the collector does with A for each tile
    """
    shape = stage.shape
    types = (shape.step.kind, shape.a.element, shape.b.element, shape.scale_type)
    made: list[ir.OpView] = []
    for j in range(steps):
        (sets, first), taken = stage.scale_place(j), accumulate()
        for number, (d, b) in enumerate(zip(sums, tiles, strict=True)):
            mma = tc.MmaBlockScaleOp(
                d, a.elements, b.elements, a.factors, b.factors, taken,
                *map(ir.StringAttr.get, types),
                i64(shape.step.block), i64(j), i64(j),
                i64(a.scales.column(sets, stage)), i64(b.scales.column(sets, stage)),
                i64(first), i64(first),
            )  # fmt: skip
            if usage is not None:
                mma.attributes["collector"] = ir.StringAttr.get(usage(number))
            made.append(mma)
    return made
