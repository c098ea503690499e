"""A block-scaled product: operand tiles in shared memory, and one stage of the main loop."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import QUARTER_LANES, TMEM_LANES
from tcir.passes.emit.builders import i64, of_pair
from tcir.passes.emit.cluster import ALONE, ClusterShape, MulticastShare
from tcir.passes.emit.index import Index
from tcir.passes.emit.scaled_shape import ScaledShape, Stage
from tcir.passes.emit.scaled_tiles import BlockedScales, RowScales, ScaledOperand, Scales
from tcir.passes.emit.tile_kernel import Accumulate, argument


@dataclass(frozen=True)
class ScaledPlace:
    """Where a tile begins: its first row and column, and the blocks of 128 that hold these.

    column: first column that this CTA loads, which may lie in the middle of a pair's tile
    column_block, column_inside: block of the tile's first column, and its place in the block
    share_of_a, share_of_b: parts that this CTA of a cluster loads of tiles that it shares
    """

    row: Index
    row_block: Index
    batch: Index
    column: Index = 0
    column_block: Index = 0
    column_inside: Index = 0
    share_of_a: MulticastShare | None = None
    share_of_b: MulticastShare | None = None


@dataclass(frozen=True)
class ScaledProduct:
    """A, B and scales in tiles of 128 rows and `n_tile` columns: the body of the main loop.

    cta_group: 2 for a product of CTA pairs, whose CTAs load half of a tile of B each, and the
    scales of all of it: the mma of a pair with M = 256 finds those in both tensor memories (PTX ISA
    9.7.16.10.7; CUTLASS, tmem_sf_frg)
    """

    stage: Stage
    a: ScaledOperand
    b: ScaledOperand
    sa: Scales
    sb: Scales
    cta_group: int = 1

    @staticmethod
    def create(
        op: ir.OpView,
        arguments: list[ir.Value],
        stage: Stage,
        n_tile: int,
        cta_group: int = 1,
        cluster: ClusterShape = ALONE,
    ) -> ScaledProduct:
        """Builds the tensor maps; CTAs of a cluster share elements, each loads scales itself."""
        shape = stage.shape
        sb_tensor = argument(arguments, op.b_scales)
        sb: Scales
        whole = n_tile > QUARTER_LANES or shape.n > n_tile
        if shape.b.layout == "row_major":
            sb = RowScales.create(sb_tensor, shape.n, stage)
        else:
            sb = BlockedScales.create(sb_tensor, shape.n, stage, n_tile, whole)
        a, b, half = argument(arguments, op.a), argument(arguments, op.b), n_tile // cta_group
        return ScaledProduct(
            stage,
            ScaledOperand.create(a, shape.a, stage, TMEM_LANES, cluster.n),
            ScaledOperand.create(b, shape.b, stage, half, cluster.m),
            BlockedScales.create(argument(arguments, op.a_scales), shape.m, stage, TMEM_LANES),
            sb,
            cta_group,
        )

    def multiply(
        self, d: ir.Value, unit: Index, place: ScaledPlace, accumulate: Accumulate
    ) -> None:
        """Loads stage `unit` of the tile at `place` and adds its product to `d`."""
        stage = self.stage
        sources = (self.a, self.sa, self.b, self.sb)
        a, sa, b, sb = (tc.SmemTileOp(source.type).tile for source in sources)
        self.a.load(a, place.row, unit, stage, place.batch, place.share_of_a)
        self.sa.load(sa, place.row_block, unit, stage, place.batch)
        self.b.load(b, place.column, unit, stage, place.batch, place.share_of_b)
        self.sb.load(sb, place.column_block, unit, stage, place.batch)
        sfa, sfb = self.sa.factors(stage), self.sb.factors(stage)
        issued: list[ir.OpView] = [
            *self.sa.copy(sa, sfa, unit, stage),
            *self.sb.copy(sb, sfb, unit, stage, place.column_inside),
        ]
        for j in range(stage.steps):
            sets, first = stage.scale_place(j)
            mma = tc.MmaBlockScaleOp(
                d, a, b, sfa, sfb, accumulate.take(),
                *_strings(stage.shape),
                i64(stage.shape.step.block), i64(j), i64(j),
                i64(self.sa.column(sets, stage)), i64(self.sb.column(sets, stage)),
                i64(first), i64(first),
            )  # fmt: skip
            issued.append(mma)
        if self.cta_group == PAIR:
            for op in issued:
                of_pair(op)


def _strings(shape: ScaledShape) -> list[ir.StringAttr]:
    names = (shape.step.kind, shape.a.element, shape.b.element, shape.scale_type)
    return [ir.StringAttr.get(name) for name in names]
