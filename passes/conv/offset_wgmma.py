"""``conv-smem-offset`` for warpgroups: all taps read one tile in shared memory, each from its own
first row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import SMEM_BYTES, TMA_STRIDE, WARP, WARPGROUP, WGMMA_M
from tcir.passes.conv.im2col import check_cluster, check_filter_rows, check_im2col, filters_step
from tcir.passes.conv.offset_walk import OffsetWalk, fastest_walk
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.wgmma import check_product
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, i64s, make_tensor_map, tails, tma_load
from tcir.passes.emit.cluster import ALONE, ClusterShape
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.element_epilogue import check_elements
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.operand_tiles import TiledOperand, k_major
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import Source, argument
from tcir.passes.kernels.cores.fragments import signed_as, sums_over
from tcir.passes.kernels.cores.wgmma import N_TILES, OfWarpgroups, is_promoted
from tcir.passes.kernels.product import OfMatrices, Tile, TilePlace
from tcir.passes.kernels.scheduled import BY_TMA, Scheduled
from tcir.passes.kernels.stores.fragment import FragmentStore
from tcir.passes.kernels.tile import tile
from tcir.target import TARGETS

WARP_ROWS = WGMMA_M * WARP // WARPGROUP
"""Rows of a warp, which TMA stores as a box: a quarter of a warpgroup's (PTX ISA 9.7.15.5.1)."""


def choose_walk(
    op: tc.Conv2dOp,
    shape: ConvShape,
    option: int,
    target: str,
    cluster: ClusterShape = ALONE,
    line_step: int = 1,
) -> OffsetWalk:
    """The fastest tile whose output channels belong to one group and can be divided equally among
    the CTAs of `cluster`, which load one part each. Raises a match failure if wgmma cannot multiply
    these types, or if no tile fits in shared memory."""
    check_im2col(op, shape)
    check_filter_rows(op, shape)
    check_cluster(op, shape, cluster)
    if shape.pixel_bytes % TMA_STRIDE.values[0]:
        raise match_failure(
            op,
            "expected an input whose pixels are stored with rows of a multiple of 16 bytes, got "
            "whole filter rows as one pixel, as the pass fold-filter-rows makes them (a step of "
            "this schedule multiplies all taps of a tile); take tile-conv-implicit-gemm, or leave "
            "fold-filter-rows out",
            SMALLEST_CONV,
        )
    if is_promoted(shape.element):
        raise match_failure(
            op,
            f"expected operands of f16, bf16, f32 or i8, got {shape.element} (a step of this "
            "schedule sums all taps of a tile in one accumulator, and wgmma keeps only 13 bits of "
            "sums of e4m3 and e5m2); take tile-conv-implicit-gemm, or widen the operands to f16",
            SMALLEST_CONV,
        )
    multiple = cluster.multiple(filters_step(op, shape))
    option = check_product(op, shape, option, multiple)
    widths = [option] if option else [each for each in N_TILES if each % multiple == 0]
    found = fastest_walk(shape, widths, TARGETS[target].sms, line_step)
    if found is None:
        raise match_failure(
            op,
            f"expected a tile whose pixels and filter taps fit {SMEM_BYTES} bytes of shared "
            f"memory and one im2col load, got none for strides {list(shape.strides)}, dilations "
            f"{list(shape.dilations)}, a {shape.r}x{shape.s} filter and n-tile={option or 'any'}; "
            "use a smaller n-tile, or pipeline conv-implicit-gemm",
            SMALLEST_CONV,
        )
    return found


def tile_for_warpgroups(source: Source, options: Scheduled, target: str) -> None:
    """Replaces the function of a ``tc.conv2d`` by a kernel of wgmma.

    A kernel with more tiles than the target has SMs is persistent: the next tile is loaded while
    the current one is stored.
    """
    op, shape, sms = source.op, ConvShape.of(source.op), TARGETS[target].sms
    cluster = ClusterShape.parse(options.cluster)
    line_step = WARP_ROWS if options.store == BY_TMA else 1
    walk = choose_walk(op, shape, options.n_tile, target, cluster, line_step)
    options.in_parts(op, walk.columns, cluster, filters_step(op, shape))
    if source.after is not None:
        check_elements(source.after, f"in a kernel for {target}", "take target sm_100a")
    parts = shape.parts if shape.k_part else None
    tiles = options.shared_out(OutputTiles(*walk.tiles, parts, cluster=cluster), sms, sms)
    past = tails(True, shape.k % walk.columns != 0)
    core = WarpgroupTaps(op, Tile(walk.rows, walk.columns), target)
    tile(
        source,
        lambda arguments: RowWalk.create(op, walk, arguments, cluster),
        tiles,
        core,
        partial(
            FragmentStore.of,
            source,
            past,
            walk=i64s(walk.image),
            staging=options.staging(core, tiles),
        ),
    )


@dataclass(frozen=True)
class RowWalk(OfMatrices):
    """A convolution in tiles of positions on a `walk`; each tap reads the tile from a different
    first row.

    pixels: the im2col map of the input
    filters: operand B of one tap, of which each CTA of a `cluster` loads a part
    steps: iterations of the main loop for one part of the sums: over channels, and over the filter
        rows that have tiles of their own
    """

    walk: OffsetWalk
    pixels: ir.Value
    filters: TiledOperand
    steps: int
    sums: ir.Type
    cluster: ClusterShape = ALONE

    @staticmethod
    def create(
        op: tc.Conv2dOp, walk: OffsetWalk, arguments: Sequence[ir.Value], cluster: ClusterShape
    ) -> RowWalk:
        """Builds the tensor maps in a kernel of these `arguments`."""
        shape = walk.shape
        pixels = make_tensor_map(
            argument(arguments, op.x),
            TmaBox(
                [shape.kc, walk.positions], [1, *shape.strides[::-1], 1], "im2col", walk.corners
            ),
            dims=[shape.channels, shape.w, shape.h, shape.n],
            swizzle=k_major(walk.tile_rows, shape.kc, shape.element).swizzle,
        )
        w = argument(arguments, op.w)
        filters = shape.filter_operand(w, walk.columns, shape.kc, cluster.m)
        return RowWalk(walk, pixels, filters, walk.steps, shape.sum_element, cluster)

    def loads(self, place: TilePlace) -> Callable[[Index], tuple[list[ir.Value], list[ir.Value]]]:
        """Returns a function that loads A and B for each tap of a step of the tile at `place`."""
        walk, shape = self.walk, self.walk.shape
        (sh, sw), dilation = shape.strides, shape.dilations[0]
        a_type = k_major(walk.tile_rows, shape.kc, shape.element)
        n, y, x = index.delinearize(place.row, [shape.n, *walk.image])
        h0 = index.sub(index.mul(y, sh), shape.pad_top)
        w0 = index.sub(index.mul(x, sw), shape.pad_left)
        group_c0, share = shape.first_channel(place.column), self.cluster.share_of_b()
        first_row = 0 if place.part is None else index.mul(place.part, shape.r // shape.parts)

        def load(step: Index) -> tuple[list[ir.Value], list[ir.Value]]:
            filter_row, channels = index.delinearize(
                step, [1 if walk.whole else shape.r // shape.parts, ceil_div(shape.c, shape.kc)]
            )
            filter_row = index.add(first_row, filter_row)
            c0 = index.mul(channels, shape.kc)
            at = index.values([index.add(group_c0, c0), w0, h0, n])
            tiles = {each: tc.SmemTileOp(a_type).tile for each in walk.classes}
            taps = [tc.SmemTileOp(self.filters.type).tile for _ in walk.taps]
            for (row, column), each in tiles.items():
                down = row if walk.whole else index.mul(filter_row, dilation)
                nbytes = walk.positions * a_type.span
                tma_load(self.pixels, at, each, 0, nbytes, index.values([column, down]))
            for each, (r, s) in zip(taps, walk.taps, strict=True):
                row = r if walk.whole else filter_row
                self.filters.load(each, {"mn": place.column, "k": c0, "s": s, "r": row}, share)
            return [tiles[walk.place(*tap)[0]] for tap in walk.taps], taps

        return load


class WarpgroupTaps(OfWarpgroups):
    """The main loop of wgmma instructions in which each tap's instructions start at their own row
    of A."""

    def sums(self, product: RowWalk, place: TilePlace) -> list[tuple[ir.Value, TilePlace]]:
        """Emits the sums of the tile at `place`, a fragment."""
        load, kind = product.loads(place), self.fragment(self.tile.columns, product.sums)
        rows = i64s([product.walk.place(*tap)[1] for tap in product.walk.taps])

        def step(number: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
            return [signed_as(self.op, tc.WgmmaTapsOp(*load(number), before[0], rows, kind)).d]

        return [(sums_over([kind], product.steps, step)[0], place)]
