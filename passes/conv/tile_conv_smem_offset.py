"""tile-conv-smem-offset: tiles a convolution so that all taps read one shared tile, each at its own
row offset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import (
    MMA_K_BYTES,
    QUARTER_LANES,
    SMEM_BYTES,
    SWIZZLE_ATOM_ROWS,
    TMEM_LANES,
)
from tcir.passes.conv.im2col import check_filter_rows, choose_channels, tiles_of_filters
from tcir.passes.conv.offset_plan import CORE_COLUMN_BYTES, OffsetPlan, best_plan
from tcir.passes.conv.offset_wgmma import tile_for_warpgroups
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.sources import ConvTiling, find_convolutions
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, make_tensor_map, mma, of_pair, tma_load
from tcir.passes.emit.cluster import ClusterShape
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import LaneValue, lane_index, spread
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.operand_tiles import TiledOperand
from tcir.passes.emit.tile_kernel import Accumulate, Source, argument
from tcir.passes.kernels import legal
from tcir.passes.kernels.cores.tcgen05 import Tcgen05
from tcir.passes.kernels.product import OfMatrices, Step, Store, TilePlace
from tcir.passes.kernels.stores.lanes import box_store, lane_store
from tcir.passes.kernels.tile import tile
from tcir.passmanager.pipeline import register_pass
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class TileConvSmemOffset(ConvTiling):
    """Turns ``tc.conv2d`` into the program of one CTA, in program order.

    A CTA loads the pixels of a few output rows and their halo once, without a swizzle, so pixels
    are 16 bytes apart; each tap reads the same tile from its own row on (``a_row``). Lanes between
    the rows of the image are computed and not stored.

    n_tile: output channels of a tile, N of the mma; 0 chooses
    n_tiles: tiles of `n_tile` channels that a CTA computes from the same pixels, each with its own
             accumulator
    persistent, ctas, scheduler, epilogue_warps: as in tile-gemm; for sm_90a a kernel with more
                                                 tiles than SMs is persistent
    store, store_stages, epilogue_tile: as in tile-gemm; a box of TMA is a row of outputs, so that
                                        with store=tma rows begin at multiples of 8 lanes
    cta_group: 2: pairs of CTAs compute two tiles together, each with half of the filters
    cluster: Mx1: CTAs along pixels, each of which loads a part of the filters

    The sums may be in parts (``k_part``), each with the same number of filter rows.

    Before::

        %y = "tc.conv2d"(%x, %w) {…} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> …

    After (`func.func @f(%x: memref, %w: memref, %y: memref) attributes {tc.kernel, tc.grid, …}`)::

        %map_x = "tc.make_tensor_map"(%x) {dims = [8, W, H, N, C/8], swizzle = "NONE", …}
        %d = "tc.tmem_tile"() : !tc.tmem<128x64, f32>
        scf.for %i = 0 to ceil(C / 64) {
          %a = "tc.smem_tile"()     // 4 rows of 58 pixels, for 2 rows of 56 outputs
          "tc.tma_load"(%map_x, …, %a)
          %b0, … %b8 = …            // the filter, one tile per tap
          per K slice j, per tap: "tc.mma"(%d, %a, %b) {a_row = 58 * r + s}
        }
        scf.for %quarter { scf.for %column { tc.tmem_ld, round, tc.store_lanes } }

    Preserves the value of every output element up to the order of the f32 sums, and the location
    of the convolution on every op.
    """

    name: ClassVar[str] = "tile-conv-smem-offset"

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        options = legal.options_of(self)
        for source in find_convolutions(module, self.name, legal.ROW_WALK, options=options):
            if TARGETS[target].wgmma:
                tile_for_warpgroups(source, self, target)
            else:
                self._tile(source)

    def check(self, op: ir.OpView) -> None:
        """Raises `PassError` when this pass cannot tile `op`, a ``tc.conv2d``."""
        shape = ConvShape.of(op)
        self._plan(op, shape, self._channels(op, shape))

    def _channels(self, op: ir.OpView, shape: ConvShape) -> int:
        """Output channels of a tile."""
        check_filter_rows(op, shape)
        return choose_channels(self, op, shape)

    def _plan(self, op: ir.OpView, shape: ConvShape, n_tile: int, staged: int = 0) -> OffsetPlan:
        """The plan of a tile; staged: bytes of shared memory from which TMA stores, in boxes that
        begin at whole swizzle atoms."""
        row_step = SWIZZLE_ATOM_ROWS if staged else 1
        plan = best_plan(shape, self.n_tiles * n_tile // self.cta_group, row_step, staged)
        if plan is None:
            raise match_failure(
                op,
                f"expected 128 outputs whose pixels and filter taps fit {SMEM_BYTES - staged} "
                "bytes of shared memory and TMA boxes of 256 pixels, got none for strides "
                f"{list(shape.strides)}, dilations {list(shape.dilations)}, a {shape.r}x{shape.s} "
                f"filter and n-tile={n_tile}; use a smaller n-tile, or pipeline "
                "conv-implicit-gemm",
                SMALLEST_CONV,
            )
        return plan

    def _tile(self, source: Source) -> None:
        op, shape = source.op, ConvShape.of(source.op)
        n_tile = self._channels(op, shape)
        results = self.results(source, n_tile, TMEM_LANES)
        out = source.function.type.results[0]
        plan = self._plan(op, shape, n_tile, results.staged_bytes(out.element_type))
        stores: Callable[[list[ir.Value], PixelRows], Store]
        stores = partial(lane_store, source, None, results)
        if results.stages:
            stores = partial(box_store, source, results, plan.stored)
        self.warps.assign(source, staged=False)
        columns = ceil_div(shape.k, self.n_tiles * n_tile)
        tile(
            source,
            lambda arguments: PixelRows.create(op, arguments, plan, n_tile, self),
            self.output_tiles(
                source, plan.ctas * TMEM_LANES, columns, shape.parts if shape.k_part else None
            ),
            Tcgen05(n_tile, self.n_tiles),
            stores,
        )


@dataclass(frozen=True)
class PixelRows(OfMatrices):
    """``tc.conv2d`` in tiles of a `plan`; each tap reads the tile from a different first row.

    pixels: the map of the input; tail: map of the zeros after the last pixels, if any
    filters: operand B of one tap, of which each CTA of a pair loads half, and of a `cluster` a part
    count: adjacent tiles of filters by which the pixels are multiplied
    """

    plan: OffsetPlan
    pixels: ir.Value
    tail: ir.Value | None
    filters: TiledOperand
    cta_group: int
    cluster: ClusterShape
    count: int

    @staticmethod
    def create(
        op: tc.Conv2dOp,
        arguments: list[ir.Value],
        plan: OffsetPlan,
        n_tile: int,
        options: ConvTiling,
    ) -> PixelRows:
        """Builds the tensor maps in a kernel of these `arguments`."""
        shape, cluster, pair = plan.shape, options.cluster_of(op), options.cta_group
        x, w = argument(arguments, op.x), argument(arguments, op.w)
        return PixelRows(
            plan,
            _pixel_map(x, plan, [*plan.box, plan.images, plan.core_columns], shape.strides),
            _pixel_map(x, plan, [plan.tail, 1, 1, 1], (1, 1)) if plan.tail else None,
            shape.filter_operand(w, n_tile // pair, shape.kc, cluster.m),
            pair,
            cluster,
            options.n_tiles,
        )

    @property
    def steps(self) -> int:
        """Iterations of the main loop for one part of the sums: over channels, times the filter
        rows that have tiles of their own."""
        return self.plan.steps

    @property
    def sums(self) -> ir.Type:
        """Type of the accumulator."""
        return self.plan.shape.sum_element

    def _first(self, place: TilePlace) -> tuple[Index, Index, Index]:
        """Image, row and column of the first output of the tile at `place`."""
        plan = self.plan
        n, p, q = index.delinearize(place.row_tile, list(plan.grid))
        return index.mul(n, plan.images), index.mul(p, plan.rows), index.mul(q, plan.columns)

    def at(self, place: TilePlace) -> Step:
        """The steps of the main loop for the tile at `place`."""
        plan, shape = self.plan, self.plan.shape
        unit, chunks = CORE_COLUMN_BYTES // shape.element_bytes, ceil_div(shape.c, shape.kc)
        columns = plan.all_core_columns * unit
        a_type = tc.SmemType.build([plan.pixels, columns], shape.element, "K", "NONE")
        n0, p0, q0 = self._first(place)
        w0 = index.sub(index.mul(q0, shape.strides[1]), shape.pad_left)
        h0 = index.sub(index.mul(p0, shape.strides[0]), shape.pad_top)
        group_column = index.div(shape.first_channel(place.column), unit)
        channels = tiles_of_filters(place.column, self.filters, self.count, self.cta_group)
        share = self.cluster.share_of_b()

        def load(row: Index, chunk: Index) -> list[tuple[ir.Value, int, list[ir.Value]]]:
            """Returns for each tap its tile of A, the first row that it reads in this tile, and its
            tiles of B."""
            column0 = index.add(group_column, index.mul(chunk, plan.core_columns))
            down = 0 if plan.whole else index.mul(row, shape.dilations[0])
            loaded = {kind: tc.SmemTileOp(a_type).tile for kind in plan.classes}
            for kind, a in loaded.items():
                h, w = index.add(index.add(h0, kind[0]), down), index.add(w0, kind[1])
                rows = plan.pixels * plan.core_columns
                at = index.values([0, w, h, n0, column0])
                tma_load(self.pixels, at, a, 0, rows * CORE_COLUMN_BYTES)
                if self.tail is not None:
                    outside = index.values([0, shape.w, 0, 0, 0])
                    tma_load(self.tail, outside, a, rows, plan.tail * CORE_COLUMN_BYTES)
            c0, taps = index.mul(chunk, shape.kc), []
            kind_b = self.filters.type
            filters = [[tc.SmemTileOp(kind_b).tile for _ in channels] for _ in plan.taps]
            for tiles, (r, s) in zip(filters, plan.taps, strict=True):
                for b, k0 in zip(tiles, channels, strict=True):
                    origin = {"mn": k0, "k": c0, "s": s, "r": r if plan.whole else row}
                    self.filters.load(b, origin, share)
                kind, first = plan.place(r, s)
                taps.append((loaded[kind], first, tiles))
            return taps

        first_row = 0 if place.part is None else index.mul(place.part, shape.r // shape.parts)

        def step(sums: Sequence[ir.Value], number: Index, accumulate: Accumulate) -> None:
            taps = load(index.add(first_row, index.div(number, chunks)), index.rem(number, chunks))
            for j in range(shape.kc * shape.element_bytes // MMA_K_BYTES):
                for a, row, tiles in taps:
                    taken = accumulate.take()
                    for d, b in zip(sums, tiles, strict=True):
                        op = mma(d, a, b, taken, j, a_row=row, unsigned=shape.unsigned)
                        if self.cta_group == PAIR:
                            of_pair(op)

        return step

    def corner(self, place: TilePlace, quarter: ir.Value) -> list[Index]:
        """The first output of the tile, for boxes that all sub-partitions share."""
        return [*place.outer, *self._first(place)]

    def lanes(self, out: ir.Value, place: TilePlace, quarter: ir.Value) -> list[LaneValue]:
        """Returns the outputs of a sub-partition's lanes. A lane between two rows of pixels has no
        output and gets a position outside the tensor."""
        plan = self.plan
        n0, p0, q0 = self._first(place)
        lane = lane_index() + index.mul(quarter, QUARTER_LANES)
        x, y = lane % plan.pitch, lane // plan.pitch
        inside = x.below(plan.columns) & y.below(plan.images * plan.rows)
        image, row = y // plan.rows, y % plan.rows
        part = map(spread, place.outer)
        return [*part, image + n0, row + p0, (x + q0).where(inside, plan.shape.q)]


def _pixel_map(x: ir.Value, plan: OffsetPlan, box: list[int], strides: tuple[int, int]) -> ir.Value:
    """Map of the input as ``[16 bytes of channels, W, H, N, rest of the channels]``."""
    shape = plan.shape
    pixel = shape.channels * shape.element_bytes
    row = shape.w * pixel
    unit = CORE_COLUMN_BYTES // shape.element_bytes
    return make_tensor_map(
        x,
        TmaBox([unit, *box], steps=[1, strides[1], strides[0], 1, 1]),
        dims=[unit, shape.w, shape.h, shape.n, ceil_div(shape.channels, unit)],
        strides=[pixel, row, shape.h * row, CORE_COLUMN_BYTES],
        swizzle="NONE",
    )
