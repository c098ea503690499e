"""tile-gemv-padded-n: tiles a block-scaled product with few columns, which are padded to an N of
the mma."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import QUARTER_LANES, TMEM_LANES
from tcir.errors import InputError
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.cluster import ALONE, ClusterShape
from tcir.passes.emit.diagnostics import check_whole_rows
from tcir.passes.emit.element_epilogue import check_by_element
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.index import Index
from tcir.passes.emit.kernel_ops import CTAS_PER_SM
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.scaled_checks import check_scaled
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passes.emit.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    block_id,
    counting_loop,
    find_sources,
    kernel,
)
from tcir.passes.gemv.limits import M_TILES, check_cluster, check_pad_n, check_pair
from tcir.passes.gemv.ranges import CtaRange
from tcir.passes.gemv.reduce import Partials
from tcir.passes.gemv.result import GemvResult
from tcir.passes.gemv.schedule import GemvSchedule, choose
from tcir.passes.kernels import legal
from tcir.passes.kernels.block_scaled import BlockScaledProduct
from tcir.passes.kernels.cores.tcgen05 import Tcgen05
from tcir.passes.kernels.product import Store, TilePlace
from tcir.passes.kernels.scheduled import CLC, check_scheduler
from tcir.passes.kernels.tile import Core, tile
from tcir.passmanager.pipeline import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class TileGemvPaddedN(Pass):
    """Turns ``tc.block_scaled_matmul`` into the program of one CTA, in program order.

    pad_n: N of the mma, a multiple of 16 that holds the columns of B; 8 rests on the assumption
           scaled_n8
    schedule: ``single``: a CTA computes a tile of 128 rows; ``split-k``: several CTAs compute a
              tile, each a part of K; ``stream-k``: every SM computes an equal range of the stages
              of all tiles; ``auto``: the first of these in which no SM has more than 1.05 times the
              mean number of stages
    splits: CTAs per tile with ``split-k``; 0 chooses
    m_tile: rows of a tile, which is M of the mma: 128, or 256 for a pair of CTAs (``tc.cluster =
            array<i64: 2, 1, 1>``; schedule=single, pad_n a multiple of 32)
    scheduler: with schedule=single, ``static``: a CTA for every tile; ``clc``: a CTA also computes
               the tiles of CTAs whose launch it cancels (cluster-launch-control)
    cluster: Mx1: with schedule=single, CTAs along rows, each of which loads a part of the columns
    k_tile: elements of K of a stage: a swizzle span of 32, 64 or 128 bytes; 0 chooses 128 bytes or,
            with ``stream-k``, the widest stage for which the shares of the SMs are even
    kind: kind of the instruction, if several kinds multiply the types; by default the kind whose
          operands take the fewest bytes in shared memory

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

    The batch is dimension z of the grid. With ``split-k`` and ``stream-k`` the kernel stores the
    partial result of every part of a tile to a workspace (``tc.workspaces``), and a second kernel,
    ``@f_reduce`` in the ``gpu.module``, adds them up in the order of k, so the result does not
    depend on timing. A ``tc.epilogue`` of the product is cloned onto the register tiles, after the
    global scales; with parts, the second kernel computes it on their sum. Preserves the value of
    every output element up to the order of the sums, and the location of the product on every op.
    """

    name: ClassVar[str] = "tile-gemv-padded-n"
    pad_n: int = 16
    schedule: str = "auto"
    splits: int = 0
    m_tile: int = TMEM_LANES
    k_tile: int = 0
    kind: str = ""
    scheduler: str = "static"
    cluster: str = str(ALONE)

    def __post_init__(self) -> None:
        check_scheduler(self.scheduler)
        ClusterShape.parse(self.cluster)
        legal.check(legal.options_of(self))
        if self.m_tile not in M_TILES:
            raise InputError(
                f"expected m-tile to be 128 or 256, got {self.m_tile}: a block-scaled mma has "
                "M = 128, or 256 of a pair of CTAs (PTX ISA 9.7.16.2); take m-tile=128"
            )

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        for source in find_sources(module, tc.BlockScaledMatmulOp, self.name, epilogues=True):
            check_whole_rows(source.op, self.name)
            check_by_element(source, self.name)
            facts = legal.facts_of(source, legal.PADDED, target)
            legal.check(legal.options_of(self) | facts, source.op)
            shape = ScaledShape.of(source.op, self.kind)
            check_scaled(source.op, shape)
            check_pad_n(source.op, shape, self.pad_n)
            pair, cluster = self.m_tile > TMEM_LANES, ClusterShape.parse(self.cluster)
            if pair:
                check_pair(source.op, self.pad_n)
            check_cluster(source.op, self.pad_n, cluster)
            whole = pair or cluster != ALONE or self.scheduler == CLC
            name = "single" if whole else self.schedule
            schedule = choose(source.op, shape, name, self.splits, self.k_tile)
            if schedule.ranges.whole:
                self._tile(source, shape, schedule, PAIR if pair else 1, cluster)
            else:
                _tile_ranges(module, source, shape, self.pad_n, schedule)

    def _tile(
        self,
        source: Source,
        shape: ScaledShape,
        schedule: GemvSchedule,
        cta_group: int,
        cluster: ClusterShape,
    ) -> None:
        """One CTA, or a pair, a tile: the result itself."""
        batch, together = shape.batch if shape.batch > 1 else None, ClusterShape(cta_group)
        tiles = OutputTiles(
            ceil_div(shape.m, TMEM_LANES),
            1,
            batch,
            cluster=cluster if together == ALONE else together,
        )
        if self.scheduler == CLC:
            source.function.attributes[CTAS_PER_SM] = i64(1)
            tiles = tiles.launched_each()

        def create(arguments: list[ir.Value]) -> BlockScaledProduct:
            return BlockScaledProduct.create(
                source.op, arguments, schedule.stage, self.pad_n, cta_group, cluster
            )

        def stores(arguments: list[ir.Value], product: BlockScaledProduct) -> Store:
            result = GemvResult.create(source, arguments, product)

            def stored(d: ir.Value, place: TilePlace) -> None:
                def indices(quarter: ir.Value) -> list[Index]:
                    row = index.add(place.row, index.mul(quarter, QUARTER_LANES))
                    return [0 if place.batch is None else place.batch, row, 0]

                result.store(d, indices)

            return lambda place: stored

        core: Core[BlockScaledProduct] = Tcgen05(self.pad_n)
        tile(source, create, tiles, core, stores)


def _tile_ranges(
    module: ir.Module, source: Source, shape: ScaledShape, pad_n: int, schedule: GemvSchedule
) -> None:
    """CTAs with ranges of stages: a partial result for each segment, and a kernel that adds up."""
    ranges, tiles = schedule.ranges, ceil_div(shape.m, TMEM_LANES)
    partials = Partials(source, shape, ranges)
    partials.add_up(module)
    with kernel(source, [ranges.ctas, 1, 1], output=partials.memref) as arguments:
        product = BlockScaledProduct.create(source.op, arguments, schedule.stage, pad_n)
        result = GemvResult.of_sums(arguments[-1])
        share = CtaRange.of(ranges, block_id("x"))

        def segment(number: Index) -> None:
            which = share.tile(number)
            row_tile = index.rem(which, tiles)
            batch = index.div(which, tiles) if shape.batch > 1 else None
            place = TilePlace(row_tile, 0, index.mul(row_tile, TMEM_LANES), 0, batch)
            first = index.sub(share.begin, index.mul(which, ranges.units))
            begin, end = share.bounds(which)
            d, step = accumulator(pad_n), product.at(place)
            with counting_loop(begin, end, ranges.longest) as i:
                step([d], index.add(first, i), Accumulate(index.sub(i, begin)))
            at = share.segment(which)
            result.store(d, lambda quarter: [at, index.mul(quarter, QUARTER_LANES), 0])

        if ranges.per_cta == 1:
            segment(0)
        else:
            with counting_loop(0, share.segments, ranges.per_cta) as number:
                segment(number)
