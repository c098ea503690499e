"""tile-gemv-padded-n: a block-scaled product with few columns, its vectors padded to an N tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES, TMEM_LANES
from tcir.passes.build import index
from tcir.passes.build.emit import i64
from tcir.passes.build.index import Index
from tcir.passes.build.limits import ceil_div
from tcir.passes.build.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    argument,
    block_id,
    counting_loop,
    find_sources,
    kernel,
    loop,
)
from tcir.passes.gemv.limits import check_gemv, check_pad_n
from tcir.passes.gemv.ranges import Share
from tcir.passes.gemv.reduce import Partials
from tcir.passes.gemv.result import Result
from tcir.passes.gemv.scaled_tiles import (
    BlockedScales,
    RowScales,
    ScaledOperand,
    Scales,
)
from tcir.passes.gemv.schedule import Schedule, choose
from tcir.passes.gemv.shapes import GemvShape, Stage
from tcir.passmanager.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class TileGemvPaddedN(Pass):
    """Turns ``tc.block_scaled_matmul`` into the sequential program of one CTA.

    pad_n: N of the mma, a multiple of 16 that holds the columns of B; 8 rests on the assumption
           scaled_n8
    schedule: ``single``: a CTA computes a tile of 128 rows; ``split-k``: several CTAs, each a part
           of K; ``stream-k``: every SM an equal range of the stages of all tiles; ``auto`` takes
           the first of these in which no SM has more than 1.05 times the mean share
    splits: CTAs per tile with ``split-k``; 0 chooses
    kind: of the instruction, where several multiply the types; left out, the one with the least
          bytes in shared memory

    Before::

        %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb, %ga, %gb) {block = 16, …}
            : (tensor<7168x16384xf4E2M1FN>, …, tensor<16384xf4E2M1FN>, …) -> tensor<7168xf16>

    After (`func.func @f(%a: memref<7168x8192xi8>, …) attributes {tc.kernel, tc.grid, …}`)::

        %d = "tc.tmem_tile"() : !tc.tmem<128x16, f32>
        scf.for %i = 0 to ceil(K / 256) {
          %ta, %tsa, %tb, %tsb = "tc.smem_tile"()   // 128x256 of A, 16x256 of B, their scales
          "tc.tma_load"(…) of each                  // rows of B past its own are zeros, no traffic
          %sfa, %sfb = "tc.tmem_tile"() : !tc.tmem<128x64, i8>
          "tc.cp_scales"(%tsa, %sfa) …; "tc.cp_scales"(%tsb, %sfb) …
          per K slice j: "tc.mma_block_scale"(%d, %ta, %tb, %sfa, %sfb) {sfa_column = 4 * j, …}
        }
        scf.for %quarter { tc.tmem_ld of B's own columns, times the global scales, round,
                           tc.store_rows }

    The batch is grid z. With ``split-k`` and ``stream-k`` the kernel stores the partial result of
    every part of a tile to a workspace (``tc.workspaces``), and a second kernel, ``@f_reduce`` in
    the ``gpu.module``, adds them up in the order of k, so the result does not depend on timing.
    Preserves the value of every output element up to the order of the sums,
    and the location of the product on every op.
    """

    name: ClassVar[str] = "tile-gemv-padded-n"
    pad_n: int = 16
    schedule: str = "auto"
    splits: int = 0
    kind: str = ""

    def run(self, module: ir.Module) -> None:
        for source in find_sources(module, tc.BlockScaledMatmulOp, self.name):
            shape = GemvShape.of(source.op, self.kind)
            check_gemv(source.op, shape)
            check_pad_n(source.op, shape, self.pad_n)
            schedule = choose(source.op, shape, self.schedule, self.splits)
            if schedule.ranges.whole:
                _tile(source, shape, self.pad_n, schedule)
            else:
                _tile_ranges(source, shape, self.pad_n, schedule).add_up(module)


def _tile(source: Source, shape: GemvShape, pad_n: int, schedule: Schedule) -> None:
    """One CTA a tile: the result itself."""
    stage = schedule.stage
    with kernel(source, [ceil_div(shape.m, TMEM_LANES), 1, shape.batch]) as arguments:
        operands = Operands.create(source.op, arguments, stage, pad_n)
        tile, batch = block_id("x"), block_id("z") if shape.batch > 1 else 0
        row = index.mul(tile, TMEM_LANES)
        result = Result.create(source.op, arguments, shape)
        d = accumulator(pad_n)
        with loop(stage.per_tile) as i:
            operands.multiply(d, i, row, tile, batch, Accumulate(i))

        def indices(quarter: ir.Value) -> list[Index]:
            return [batch, index.add(row, index.mul(quarter, QUARTER_LANES)), 0]

        result.store(d, indices)


def _tile_ranges(source: Source, shape: GemvShape, pad_n: int, schedule: Schedule) -> Partials:
    """CTAs with ranges of stages: a partial result for each segment."""
    ranges, tiles = schedule.ranges, ceil_div(shape.m, TMEM_LANES)
    partials = Partials.of(source, shape, ranges)
    with kernel(source, [ranges.ctas, 1, 1], output=partials.memref) as arguments:
        operands = Operands.create(source.op, arguments, schedule.stage, pad_n)
        result = Result(arguments[-1], ())
        share = Share.of(ranges, block_id("x"))

        def segment(number: Index) -> None:
            tile = share.tile(number)
            place = index.rem(tile, tiles), index.div(tile, tiles) if shape.batch > 1 else 0
            row, behind = index.mul(place[0], TMEM_LANES), index.mul(tile, ranges.units)
            first = index.sub(share.begin, behind)
            begin, end = share.bounds(tile)
            d = accumulator(pad_n)
            with counting_loop(begin, end, ranges.longest) as i:
                unit, accumulate = index.add(first, i), Accumulate(index.sub(i, begin))
                operands.multiply(d, unit, row, place[0], place[1], accumulate)
            at = share.segment(tile)
            result.store(d, lambda quarter: [at, index.mul(quarter, QUARTER_LANES), 0])

        if ranges.per_cta == 1:
            segment(0)
        else:
            with counting_loop(0, share.segments, ranges.per_cta) as number:
                segment(number)
    return partials


@dataclass(frozen=True)
class Operands:
    """A, B and their scales: the body of the main loop."""

    stage: Stage
    a: ScaledOperand
    b: ScaledOperand
    sa: Scales
    sb: Scales

    @staticmethod
    def create(op: ir.OpView, arguments: list[ir.Value], stage: Stage, pad_n: int) -> Operands:
        """Builds the tensor maps."""
        shape = stage.shape
        sb_tensor = argument(arguments, op.b_scales)
        sb: Scales
        if shape.b.layout == "row_major":
            sb = RowScales.create(sb_tensor, shape.n, stage)
        else:
            sb = BlockedScales.create(sb_tensor, shape.n, stage, pad_n > QUARTER_LANES)
        return Operands(
            stage,
            ScaledOperand.create(argument(arguments, op.a), shape.a, stage, TMEM_LANES),
            ScaledOperand.create(argument(arguments, op.b), shape.b, stage, pad_n),
            BlockedScales.create(argument(arguments, op.a_scales), shape.m, stage, True),
            sb,
        )

    def multiply(
        self,
        d: ir.Value,
        unit: Index,
        row: Index,
        tile: Index,
        batch: Index,
        accumulate: Accumulate,
    ) -> None:
        """Loads stage `unit` of the rows from `row` on and adds its product to `d`."""
        stage = self.stage
        loads = (
            (self.a, row), (self.sa, tile), (self.b, 0), (self.sb, 0),
        )  # fmt: skip
        tiles = [tc.SmemTileOp(source.type).tile for source, _ in loads]
        for (source, at), smem in zip(loads, tiles, strict=True):
            source.load(smem, at, unit, stage, batch)
        a, sa, b, sb = tiles
        sfa, sfb = self.sa.factors(stage), self.sb.factors(stage)
        self.sa.copy(sa, sfa, unit, stage)
        self.sb.copy(sb, sfb, unit, stage)
        for j in range(stage.steps):
            sets, first = stage.scale_place(j)
            tc.MmaBlockScaleOp(
                d, a, b, sfa, sfb, accumulate.take(),
                *_strings(stage.shape),
                i64(stage.shape.step.block), i64(j), i64(j),
                i64(self.sa.column(sets, stage)), i64(self.sb.column(sets, stage)),
                i64(first), i64(first),
            )  # fmt: skip


def _strings(shape: GemvShape) -> list[ir.StringAttr]:
    names = (shape.step.kind, shape.a.element, shape.b.element, shape.scale_type)
    return [ir.StringAttr.get(name) for name in names]
