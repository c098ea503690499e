"""A block-scaled product with any number of columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.ops.block_scale import ROWS_PER_COLUMN
from tcir.dialect.ops.block_scaled import BLOCK_ROWS
from tcir.dialect.ops.highlevel import k_part
from tcir.passes.emit import index
from tcir.passes.emit.cluster import ALONE, ClusterShape
from tcir.passes.emit.cta_pair import first_column
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.epilogue import Epilogue, scaled
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import MMA_N_STEP, ceil_div, round_up
from tcir.passes.emit.scaled_checks import check_scaled
from tcir.passes.emit.scaled_product import ScaledPlace, ScaledProduct
from tcir.passes.emit.scaled_shape import ScaledShape, Stage
from tcir.passes.emit.tile_kernel import Accumulate, argument, choose_n_tile
from tcir.passes.kernels.product import OfMatrices, Step, TilePlace

ROW_BYTES = 128
"""Bytes of a row in a stage: the widest swizzle."""


def choose_scaled_n_tile(
    op: tc.BlockScaledMatmulOp, option: int, shape: ScaledShape, cta_group: int, persistent: bool
) -> int:
    """Columns of an output tile: `option`, or if that is 0 one block of scale factors for each CTA
    of a group, at most all columns. Persistent pairs take one block: two accumulators of 256
    columns would leave no tensor memory for scale factors."""
    if option == 0:
        blocks = 1 if persistent else cta_group
        return min(BLOCK_ROWS * blocks, round_up(shape.n, MMA_N_STEP * cta_group))
    n_tile = choose_n_tile(op, option, shape.n, cta_group)
    if shape.n > n_tile and n_tile % ROWS_PER_COLUMN:
        raise match_failure(
            op,
            f"expected n-tile to be a multiple of {ROWS_PER_COLUMN} with {shape.n} columns of B, "
            f"got {n_tile} ({ROWS_PER_COLUMN} rows share a column of scale factors, PTX ISA "
            f"9.7.16.10.7); take n-tile={round_up(n_tile, ROWS_PER_COLUMN)}",
        )
    return n_tile


def check_block_scaled(op: tc.BlockScaledMatmulOp, shape: ScaledShape) -> None:
    """Raises a match failure for operands that TMA or the tensor core cannot read."""
    if op.b.type.rank < op.a.type.rank:
        raise match_failure(
            op,
            "expected a matrix B, got a vector; take pipeline gemv-padded-n, whose schedules "
            "are made for few columns",
        )
    if shape.b.layout != "blocked_128x4":
        raise match_failure(
            op,
            f'expected b_scale_layout = "blocked_128x4", got "{shape.b.layout}" (tensor memory '
            "wants the scales of 128 rows in blocks); run reorder-scales first",
        )
    check_scaled(op, shape)
    part, step = k_part(op), stage_of(shape).k
    if part is not None and part % step:
        raise match_failure(
            op,
            f"expected k_part to be a multiple of {step}, got {part} (a step of the main loop, a "
            f"span of the swizzle and its scales); take k_part = {round_up(part, step)}",
        )


def stage_of(shape: ScaledShape) -> Stage:
    """A step of the main loop."""
    return Stage(shape, ROW_BYTES)


@dataclass(frozen=True)
class BlockScaledProduct(OfMatrices):
    """``tc.block_scaled_matmul`` in tiles of 128 rows and `n_tile` columns.

    factors: the kernel's global scales; steps: the number that covers K, or a part of it
    cluster: CTAs that load elements of A and B together
    """

    product: ScaledProduct
    n_tile: int
    factors: tuple[ir.Value, ...]
    steps: int
    cluster: ClusterShape = ALONE

    @staticmethod
    def create(
        op: tc.BlockScaledMatmulOp,
        arguments: list[ir.Value],
        shape: ScaledShape,
        n_tile: int,
        cta_group: int = 1,
        cluster: ClusterShape = ALONE,
    ) -> BlockScaledProduct:
        """Builds the tensor maps in a kernel of these `arguments`."""
        factors = tuple(argument(arguments, g) for g in (op.a_global, op.b_global) if g is not None)
        stage = stage_of(shape)
        product = ScaledProduct.create(op, arguments, stage, n_tile, cta_group, cluster)
        steps = ceil_div(k_part(op) or shape.k, stage.k)
        return BlockScaledProduct(product, n_tile, factors, steps, cluster)

    @property
    def sums(self) -> ir.Type:
        """Type of the accumulator."""
        return ir.F32Type.get()

    def at(self, place: TilePlace) -> Step:
        """The stages of the tile at `place`."""
        column, block, inside = self._columns(place)
        column = first_column(column, self.product.b.type.shape[0], self.product.cta_group)
        batch = 0 if place.batch is None else place.batch
        at = ScaledPlace(
            place.row, place.row_tile, batch, column, block, inside,
            self.cluster.share_of_a(), self.cluster.share_of_b(),
        )  # fmt: skip
        return partial(self._multiply, at, place.part)

    def _multiply(
        self,
        place: ScaledPlace,
        part: Index | None,
        sums: Sequence[ir.Value],
        step: Index,
        accumulate: Accumulate,
    ) -> None:
        (d,) = sums
        if part is not None:
            step = index.add(index.mul(part, self.steps), step)
        self.product.multiply(d, step, place, accumulate)

    def _columns(self, place: TilePlace) -> tuple[Index, Index, Index]:
        """First column of the tile, its block of scale factors, and its number in that."""
        if self.n_tile % BLOCK_ROWS == 0:
            return place.column, index.mul(place.column_tile, self.n_tile // BLOCK_ROWS), 0
        if self.product.stage.shape.n <= self.n_tile:
            return 0, 0, 0
        block = index.div(place.column, BLOCK_ROWS)
        return place.column, block, index.rem(place.column, BLOCK_ROWS)

    def finish(self, epilogue: Epilogue) -> Epilogue:
        """Returns `epilogue` of the sums times the product of the global scales."""
        return scaled(self.factors, epilogue)
