"""Attention with block-scaled queries and keys: their tiles, and the products that compute the
scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, integer_type
from tcir.dialect.limits import MMA_K_BYTES, SWIZZLE_OF_SPAN, TMEM_LANES
from tcir.dialect.ops.block_scale import ScaledStep
from tcir.dialect.ops.block_scaled import BLOCK_ROWS, SCALE_LAYOUTS, SCALE_TYPES
from tcir.passes.emit import index
from tcir.passes.emit.index import Index, constant
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.scaled_shape import ScaledRows, ScaledShape, Stage
from tcir.passes.emit.scaled_tiles import (
    BlockedScales,
    ScaledOperand,
    ScaledTile,
    multiply_scaled,
)
from tcir.passes.emit.tile_kernel import argument


def scores_of(op: tc.AttentionOp) -> ScaledShape | None:
    """The scores of all heads as block-scaled products; None if queries and keys have no scales."""
    if not isinstance(op, tc.BlockScaledAttentionOp):
        return None
    of, kind = op.extents(), op.scaled_kind
    q, k = (
        ScaledRows.of(kind, str(each.type.element_type), of[letter], SCALE_LAYOUTS[1])
        for each, letter in ((op.q, "m"), (op.k, "n"))
    )
    scale = SCALE_TYPES[str(op.q_scales.type.element_type)]
    step = ScaledStep(kind, integer(op, "block"))
    return ScaledShape(of["b"] * of["h"], of["m"], of["n"], of["d"], q, k, step, scale)


def stage_of(shape: ScaledShape) -> Stage:
    """Number of elements of a head in one swizzle span of a tile: all elements of the head, up to
    128 bytes."""
    bytes_ = min(ceil_div(shape.k, shape.step.k) * MMA_K_BYTES, max(SWIZZLE_OF_SPAN))
    return Stage(shape, min(span for span in SWIZZLE_OF_SPAN if span >= bytes_))


def scale_columns(shape: ScaledShape, keys: int) -> int:
    """Columns of tensor memory for the scales of a tile of queries and of two blocks of keys: the
    scales of one block are copied while the other block is multiplied."""
    stage = stage_of(shape)
    q, k = (
        BlockedScales.columns_of(rows, tile, stage)
        for rows, tile in ((shape.m, TMEM_LANES), (shape.n, keys))
    )
    return stage.per_tile * (q + 2 * k)


@dataclass(frozen=True)
class ScaledHeads:
    """Tiles of rows of one head together with their scales. heads: number of heads of a batch"""

    stage: Stage
    elements: ScaledOperand
    scales: BlockedScales
    heads: int

    @staticmethod
    def both(
        op: tc.BlockScaledAttentionOp, shape: ScaledShape, arguments: Sequence[ir.Value], keys: int
    ) -> tuple[ScaledHeads, ScaledHeads]:
        """Describes the tiles of queries and the blocks of `keys` keys, and builds their tensor
        maps from the kernel's `arguments`."""
        of, made = op.extents(), []
        for tensor, scales, rows, count, letter in (
            (op.q, op.q_scales, shape.a, TMEM_LANES, "h"),
            (op.k, op.k_scales, shape.b, keys, "g"),
        ):
            stage = stage_of(replace(shape, batch=of["b"] * of[letter]))
            elements = ScaledOperand.create(argument(arguments, tensor), rows, stage, count)
            blocks = BlockedScales.create(argument(arguments, scales), rows.rows, stage, count)
            made.append(ScaledHeads(stage, elements, blocks, of[letter]))
        return made[0], made[1]

    def load(self, batch: Index, head: Index, row: Index, apart: bool = False) -> list[ScaledTile]:
        """Loads a tile of rows from `row` on, and copies its scales to tensor memory, to a tile for
        each swizzle span of the head. apart: ignored"""
        assert not apart
        of = index.add(index.mul(batch, self.heads), head)
        block, inside = index.div(row, BLOCK_ROWS), index.rem(row, BLOCK_ROWS)
        loaded, tiles = [], []
        for unit in range(self.stage.per_tile):
            elements, scales = (
                tc.SmemTileOp(each.type).tile for each in (self.elements, self.scales)
            )
            self.elements.load(elements, row, unit, self.stage, of)
            self.scales.load(scales, block, unit, self.stage, of)
            loaded.append((elements, scales))
        for unit, (elements, scales) in enumerate(loaded):
            factors = self.scales.factors(self.stage)
            self.scales.copy(scales, factors, unit, self.stage, inside)
            tiles.append(ScaledTile(elements, factors, self.scales))
        return tiles


def multiply_tiles(
    d: ir.Value,
    queries: Sequence[ScaledTile],
    keys: Sequence[ScaledTile],
    shape: ScaledShape,
    accumulate: ir.Value,
) -> None:
    """Emits the products that compute the scores of a block of keys. Zeros after a head's last
    element are not multiplied, because their scales may be anything.

    accumulate: the operand ``accumulate`` of the first instruction
    """
    stage, every = stage_of(shape), ceil_div(shape.k, shape.step.k)
    operands = chain([accumulate], repeat(constant(1, integer_type(1))))
    for unit, (a, b) in enumerate(zip(queries, keys, strict=True)):
        steps = min(stage.steps, every - unit * stage.steps)
        multiply_scaled(stage, [d], a, [b], lambda: next(operands), steps)
