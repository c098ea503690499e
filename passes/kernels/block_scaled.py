"""Block-scaled matrix products: operand tiles in shared memory, and one stage of the main loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import QUARTER_LANES, TMEM_LANES
from tcir.dialect.ops.block_scaled import BLOCK_ROWS
from tcir.dialect.ops.highlevel import k_part
from tcir.passes.emit import index
from tcir.passes.emit.builders import of_pair
from tcir.passes.emit.cluster import ALONE, ClusterShape
from tcir.passes.emit.cta_pair import first_column
from tcir.passes.emit.epilogue import Epilogue, scaled
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.scaled_shape import Stage
from tcir.passes.emit.scaled_tiles import (
    BlockedScales,
    RowScales,
    ScaledOperand,
    ScaledTile,
    Scales,
    multiply_scaled,
)
from tcir.passes.emit.tile_kernel import Accumulate, argument
from tcir.passes.kernels.collector import ONE, SharedTiles
from tcir.passes.kernels.product import OfMatrices, Step, TilePlace


@dataclass(frozen=True)
class BlockScaledProduct(OfMatrices):
    """``tc.block_scaled_matmul`` in tiles of 128 rows and `n_tile` columns.

    stage: the data of one step of the main loop
    steps: number of steps that cover K, or a part of K
    factors: the kernel's global scales
    cta_group: 2 for a product of CTA pairs. Each CTA of a pair loads half of a tile of B, but the
        scales of the whole tile, because the mma of a pair with M = 256 reads B's scales in the
        tensor memory of both CTAs (PTX ISA 9.7.16.10.7; CUTLASS, tmem_sf_frg)
    cluster: CTAs that load elements of A and B together; each CTA loads all its scales itself
    together: number of tiles of B by which a tile of A is multiplied, each with its own sums
    """

    stage: Stage
    n_tile: int
    a: ScaledOperand
    b: ScaledOperand
    sa: Scales
    sb: Scales
    steps: int
    factors: tuple[ir.Value, ...]
    cta_group: int = 1
    cluster: ClusterShape = ALONE
    together: SharedTiles = ONE

    @staticmethod
    def create(
        op: tc.BlockScaledMatmulOp,
        arguments: list[ir.Value],
        stage: Stage,
        n_tile: int,
        cta_group: int = 1,
        cluster: ClusterShape = ALONE,
        together: SharedTiles = ONE,
    ) -> BlockScaledProduct:
        """Builds the tensor maps in a kernel of these `arguments`."""
        shape = stage.shape
        sb_tensor = argument(arguments, op.b_scales)
        sb: Scales
        several = together.count > 1 or shape.n > n_tile
        whole = n_tile > QUARTER_LANES or several
        if shape.b.layout == "row_major":
            sb = RowScales.create(sb_tensor, shape.n, stage)
        else:
            sb = BlockedScales.create(sb_tensor, shape.n, stage, n_tile, whole)
        a, b, half = argument(arguments, op.a), argument(arguments, op.b), n_tile // cta_group
        return BlockScaledProduct(
            stage,
            n_tile,
            ScaledOperand.create(a, shape.a, stage, TMEM_LANES, cluster.n),
            ScaledOperand.create(b, shape.b, stage, half, cluster.m),
            BlockedScales.create(argument(arguments, op.a_scales), shape.m, stage, TMEM_LANES),
            sb,
            ceil_div(k_part(op) or shape.k, stage.k),
            tuple(argument(arguments, g) for g in (op.a_global, op.b_global) if g is not None),
            cta_group,
            cluster,
            together,
        )

    @property
    def sums(self) -> ir.Type:
        """Type of the accumulator."""
        return ir.F32Type.get()

    def at(self, place: TilePlace) -> Step:
        """The stages of the main loop for the tile at `place`."""
        stage, batch = self.stage, 0 if place.batch is None else place.batch
        columns = [self._columns(place, number) for number in range(self.together.count)]
        share_of_a, share_of_b = self.cluster.share_of_a(), self.cluster.share_of_b()
        usage = self.together.usage if self.together.collector else None

        def step(sums: Sequence[ir.Value], unit: Index, accumulate: Accumulate) -> None:
            if place.part is not None:
                unit = index.add(index.mul(place.part, self.steps), unit)
            sources = (self.a, self.sa, *(self.b, self.sb) * len(columns))
            a, sa, *of_b = (tc.SmemTileOp(source.type).tile for source in sources)
            elements, scales = of_b[::2], of_b[1::2]
            self.a.load(a, place.row, unit, stage, batch, share_of_a)
            self.sa.load(sa, place.row_tile, unit, stage, batch)
            for b, sb, (column, block, _) in zip(elements, scales, columns, strict=True):
                self.b.load(b, column, unit, stage, batch, share_of_b)
                self.sb.load(sb, block, unit, stage, batch)
            sfa = self.sa.factors(stage)
            left = ScaledTile(a, sfa, self.sa)
            right = [ScaledTile(b, self.sb.factors(stage), self.sb) for b in elements]
            issued: list[ir.OpView] = list(self.sa.copy(sa, sfa, unit, stage))
            for tile, sb, (_, _, inside) in zip(right, scales, columns, strict=True):
                issued += self.sb.copy(sb, tile.factors, unit, stage, inside)
            issued += multiply_scaled(stage, sums, left, right, accumulate.take, stage.steps, usage)
            if self.cta_group == PAIR:
                for op in issued:
                    of_pair(op)

        return step

    def _columns(self, place: TilePlace, number: int) -> tuple[Index, Index, Index]:
        """First column that this CTA loads of tile `number` of B, the block of scale factors of the
        tile's first column, and its number in that."""
        column, block, inside = self._tile_columns(place, number)
        return first_column(column, self.b.type.shape[0], self.cta_group), block, inside

    def _tile_columns(self, place: TilePlace, number: int) -> tuple[Index, Index, Index]:
        n_tile, count = self.n_tile, self.together.count
        if self.stage.shape.n <= n_tile and count == 1:
            return 0, 0, 0
        column = place.of_tile(number, n_tile).column
        if n_tile % BLOCK_ROWS == 0:
            blocks = n_tile // BLOCK_ROWS
            first = index.mul(place.column_tile, count * blocks)
            return column, index.add(first, number * blocks), 0
        return column, index.div(column, BLOCK_ROWS), index.rem(column, BLOCK_ROWS)

    def finish(self, epilogue: Epilogue) -> Epilogue:
        """Returns an epilogue that multiplies the sums by the product of the global scales and then
        applies `epilogue`."""
        return scaled(self.factors, epilogue)
