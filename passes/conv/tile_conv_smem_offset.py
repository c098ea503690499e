"""tile-conv-smem-offset: a convolution whose taps read one shared tile at different row offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import MMA_K_BYTES, QUARTER_LANES, SMEM_BYTES
from tcir.passes.conv.offset_plan import CORE_COLUMN_BYTES, OffsetPlan, best_plan
from tcir.passes.conv.offset_wgmma import tile_for_warpgroups
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.sources import find_convolutions
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, i64, make_tensor_map, mma, tma_load
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.kernel_ops import CTAS_PER_SM
from tcir.passes.emit.lanes import LaneValue, lane_index
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    argument,
    kernel,
    loop,
    store_tile_lanes,
)
from tcir.passes.kernels import legal
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class TileConvSmemOffset(Pass):
    """Turns ``tc.conv2d`` into the sequential program of one CTA.

    A CTA loads the pixels of a few output rows and their halo once, without a swizzle, so pixels
    are 16 bytes apart; each tap reads the same tile from its own row on (``a_row``). Lanes between
    the rows of the image are computed and not stored.

    n_tile: output channels per CTA, N of the mma; 0 chooses
    persistent: no more CTAs than SMs, each of which computes several tiles one after another; for
                sm_90a the kernel is persistent whenever it has more tiles than SMs
    ctas: CTAs of a persistent kernel; 0: one per SM

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
    n_tile: int = 0
    persistent: bool = False
    ctas: int = 0

    def __post_init__(self) -> None:
        legal.check(legal.options_of(self))

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        for source in find_convolutions(module, self.name, legal.ROW_WALK):
            if TARGETS[target].wgmma:
                ctas = self.ctas or TARGETS[target].sms
                tile_for_warpgroups(source, self.n_tile, target, self.persistent, ctas)
                continue
            shape = ConvShape.of(source.op)
            n_tile = shape.choose_n_tile(source.op, self.n_tile)
            plan = _choose_plan(source.op, shape, n_tile)
            tiles = OutputTiles(plan.ctas, ceil_div(shape.k, n_tile), None)
            if self.persistent:
                source.function.attributes[CTAS_PER_SM] = i64(1)
                tiles = tiles.shared_by(self.ctas or TARGETS[target].sms)
            _tile(source, plan, n_tile, tiles)

    def check(self, op: ir.OpView) -> None:
        """Raises `PassError` when this pass cannot tile `op`, a ``tc.conv2d``."""
        shape = ConvShape.of(op)
        _choose_plan(op, shape, shape.choose_n_tile(op, self.n_tile))


def _choose_plan(op: ir.OpView, shape: ConvShape, n_tile: int) -> OffsetPlan:
    plan = best_plan(shape, n_tile)
    if plan is None:
        raise match_failure(
            op,
            f"expected 128 outputs whose pixels and filter taps fit {SMEM_BYTES} bytes of shared "
            f"memory and boxes of 256 pixels, got none for strides {list(shape.strides)}, "
            f"dilations {list(shape.dilations)}, a {shape.r}x{shape.s} filter and n-tile={n_tile}; "
            "use a smaller n-tile or conv-implicit-gemm",
            SMALLEST_CONV,
        )
    return plan


def _tile(source: Source, plan: OffsetPlan, n_tile: int, tiles: OutputTiles) -> None:
    op, shape = source.op, plan.shape
    unit = CORE_COLUMN_BYTES // shape.element_bytes
    chunks = ceil_div(shape.c, shape.kc)
    a_type = tc.SmemType.build(
        [plan.pixels, plan.all_core_columns * unit], shape.element, "K", "NONE"
    )
    with kernel(source, tiles.grid) as arguments:
        x, out = argument(arguments, op.x), arguments[-1]
        map_x = _pixel_map(x, plan, [*plan.box, plan.images, plan.core_columns], shape.strides)
        map_tail = _pixel_map(x, plan, [plan.tail, 1, 1, 1], (1, 1)) if plan.tail else None
        filters = shape.filter_operand(argument(arguments, op.w), n_tile, shape.kc)
        with tiles.each() as (pixel_tile, column_tile, _):
            n, p, q = index.delinearize(pixel_tile, list(plan.grid))
            n0 = index.mul(n, plan.images)
            p0, q0 = index.mul(p, plan.rows), index.mul(q, plan.columns)
            w0 = index.sub(index.mul(q0, shape.strides[1]), shape.pad_left)
            h0 = index.sub(index.mul(p0, shape.strides[0]), shape.pad_top)
            k0 = index.mul(column_tile, n_tile)
            first_column = index.div(shape.first_channel(k0), unit)
            d = accumulator(n_tile, shape.sum_element)
            with loop(plan.steps) as i:
                row = index.div(i, chunks)
                column0 = index.add(
                    first_column, index.mul(index.rem(i, chunks), plan.core_columns)
                )
                c0 = index.mul(index.rem(i, chunks), shape.kc)
                down = 0 if plan.whole else index.mul(row, shape.dilations[0])
                loaded = {}
                for kind in plan.classes:
                    tile = loaded[kind] = tc.SmemTileOp(a_type).tile
                    h, w = index.add(index.add(h0, kind[0]), down), index.add(w0, kind[1])
                    nbytes = plan.pixels * plan.core_columns * CORE_COLUMN_BYTES
                    tma_load(map_x, index.values([0, w, h, n0, column0]), tile, 0, nbytes)
                    if map_tail is not None:
                        outside = index.values([0, shape.w, 0, 0, 0])
                        first, nbytes = (
                            plan.pixels * plan.core_columns,
                            plan.tail * CORE_COLUMN_BYTES,
                        )
                        tma_load(map_tail, outside, tile, first, nbytes)
                filter_tiles = [tc.SmemTileOp(filters.type).tile for _ in plan.taps]
                for tile, (r, s) in zip(filter_tiles, plan.taps, strict=True):
                    at = {"mn": k0, "k": c0, "s": s, "r": r if plan.whole else row}
                    filters.load(tile, at)
                accumulate = Accumulate(i)
                for j in range(shape.kc * shape.element_bytes // MMA_K_BYTES):
                    for tile, tap in zip(filter_tiles, plan.taps, strict=True):
                        (kind, first), taken = plan.place(*tap), accumulate.take()
                        mma(d, loaded[kind], tile, taken, j, a_row=first, unsigned=shape.unsigned)

            def places(quarter: ir.Value) -> list[LaneValue]:
                lane = lane_index() + index.mul(quarter, QUARTER_LANES)
                x, y = lane % plan.pitch, lane // plan.pitch
                inside = x.below(plan.columns) & y.below(plan.images * plan.rows)
                image, row = y // plan.rows, y % plan.rows
                return [image + n0, row + p0, (x + q0).where(inside, shape.q)]

            store_tile_lanes(
                d,
                out,
                places=places,
                column=lambda first: source.column(index.add(k0, first)),
                epilogue=source.epilogue(arguments, None),
            )


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
