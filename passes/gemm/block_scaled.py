"""Block-scaled matrix products with any number of columns."""

from __future__ import annotations

from tcir.dialect import tc
from tcir.dialect.ops.block_scale import ROWS_PER_COLUMN
from tcir.dialect.ops.block_scaled import BLOCK_ROWS
from tcir.dialect.ops.highlevel import k_part
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.limits import MMA_N_STEP, round_up
from tcir.passes.emit.scaled_checks import check_scaled
from tcir.passes.emit.scaled_shape import ScaledShape, Stage
from tcir.passes.emit.tile_kernel import choose_n_tile

ROW_BYTES = 128
"""Bytes of a row in a stage: the widest swizzle."""


def choose_scaled_n_tile(
    op: tc.BlockScaledMatmulOp, option: int, shape: ScaledShape, cta_group: int, persistent: bool
) -> int:
    """Number of columns of an output tile: `option` or, if that is 0, one block of scale factors
    for each CTA of the group, at most all columns. Persistent CTA pairs take one block for both
    CTAs, because two accumulators of 256 columns would leave no tensor memory for scale factors."""
    if option == 0:
        blocks = 1 if persistent else cta_group
        return min(BLOCK_ROWS * blocks, round_up(shape.n, MMA_N_STEP * cta_group))
    n_tile = choose_n_tile(op, option, shape.n, cta_group)
    if shape.n > n_tile and n_tile % ROWS_PER_COLUMN:
        raise match_failure(
            op,
            f"expected n-tile to be a multiple of {ROWS_PER_COLUMN} with {shape.n} columns of B, "
            f"got {n_tile} (in tensor memory {ROWS_PER_COLUMN} rows share a column of scale "
            f"factors, PTX ISA 9.7.16.10.7); take n-tile={round_up(n_tile, ROWS_PER_COLUMN)}",
        )
    return n_tile


def check_block_scaled(op: tc.BlockScaledMatmulOp, shape: ScaledShape) -> None:
    """Raises a match failure for operands that TMA or the tensor core cannot read."""
    if op.b.type.rank < op.a.type.rank:
        raise match_failure(
            op,
            "expected B to be a matrix, got a vector; take pipeline gemv-padded-n, whose "
            "schedules are made for few columns",
        )
    if shape.b.layout != "blocked_128x4":
        raise match_failure(
            op,
            f'expected b_scale_layout = "blocked_128x4", got "{shape.b.layout}" (tensor memory '
            "needs the scales of 128 rows stored as one block); run reorder-scales first",
        )
    check_scaled(op, shape)
    part, step = k_part(op), stage_of(shape).k
    if part is not None and part % step:
        raise match_failure(
            op,
            f"expected k_part to be a multiple of {step}, got {part} ({step} elements are one "
            "step of the main loop: a span of the swizzle and its scales); take k_part = "
            f"{round_up(part, step)}",
        )


def stage_of(shape: ScaledShape) -> Stage:
    """The stage that one step of the main loop loads and multiplies."""
    return Stage(shape, ROW_BYTES)
