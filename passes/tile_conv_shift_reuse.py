"""tile-conv-shift-reuse: a convolution whose input tile stays in tensor memory for a filter row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import MMA_K_BYTES, QUARTER_LANES, TMEM_LANES
from tcir.passes import index_math as math
from tcir.passes.conv_shapes import ConvShape
from tcir.passes.emit import i64, make_tensor_map, mma, tma_load
from tcir.passes.index_math import Index
from tcir.passes.limits import ceil_div
from tcir.passes.operand_tiles import k_major, k_step
from tcir.passes.refusal import SMALLEST_CONV, refuse
from tcir.passes.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    argument,
    block_id,
    choose_n_tile,
    find_sources,
    kernel,
    loop,
    store_tile,
)
from tcir.pipeline import Pass, register_pass

QUARTERS = TMEM_LANES // QUARTER_LANES


@dataclass(frozen=True)
class RowUnits:
    """How output rows are cut into units of one 32-lane quarter (tiling ``rows``).

    Tap s of a filter row sees its input one pixel further right, which ``.ashift`` provides by
    moving every lane's pixel to the lane below it; after S-1 shifts the last S-1 lanes of a
    quarter hold no new pixel. So a unit is ``valid = 32 - (S-1)`` neighbouring outputs of one row,
    and a CTA computes four.
    """

    valid: int
    blocks: int
    count: int

    @staticmethod
    def of(shape: ConvShape) -> RowUnits:
        """The units of a convolution with stride and dilation 1."""
        valid = QUARTER_LANES - (shape.s - 1)
        blocks = ceil_div(shape.q, valid)
        return RowUnits(valid, blocks, shape.n * shape.p * blocks)

    @property
    def ctas(self) -> int:
        """CTAs that compute all units."""
        return ceil_div(self.count, QUARTERS)

    def decode(self, unit: Index, shape: ConvShape) -> tuple[Index, Index, Index]:
        """``(n, p, first q)`` of a unit; n is past the end for units past the last."""
        n, p, block = math.delinearize(unit, [shape.n, shape.p, self.blocks])
        return n, p, math.mul(block, self.valid)


@register_pass
@dataclass(frozen=True)
class TileConvShiftReuse(Pass):
    """Turns ``tc.conv2d`` (stride 1, dilation 1) into the sequential program of one CTA.

    n_tile: output channels per CTA, N of the mma; 0 chooses
    halo:   ``mask``: lanes without a new pixel are computed and not stored
    tiling: ``rows``: a quarter holds neighbouring pixels of one output row

    Before::

        %y = "tc.conv2d"(%x, %w) {…} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> …

    After (`func.func @f(%x: memref, %w: memref, %y: memref) attributes {tc.kernel, tc.grid, …}`)::

        %d = "tc.tmem_tile"() : !tc.tmem<128x64, f32>
        scf.for %i = 0 to R * ceil(C / 64) {
          %a = "tc.smem_tile"()     // 4 quarters x 32 neighbouring pixels x 64 channels
          %b0, %b1, %b2 = …         // the filter, one tile per tap of the row
          "tc.tma_load"(%map_x, …, %a) {row = 0, 32, 64, 96}; "tc.tma_load"(%map_w, …, %b0) …
          %ta = "tc.tmem_tile"()
          per K slice j:
            "tc.cp"(%a, %ta) {slice = j}
            "tc.mma"(%d, %ta, %b0) {ashift = true}; "tc.mma"(%d, %ta, %b1) {ashift = true};
            "tc.mma"(%d, %ta, %b2) {ashift = false}
        }
        scf.for %quarter { scf.for %column { tc.tmem_ld, round, tc.store_rows {rows = 30} } }

    Preserves the value of every output element up to the order of the f32 sums, and the location
    of the convolution on every op.
    """

    name: ClassVar[str] = "tile-conv-shift-reuse"
    n_tile: int = 0
    halo: str = "mask"
    tiling: str = "rows"

    def run(self, module: ir.Module) -> None:
        for source in find_sources(module, tc.Conv2dOp, self.name):
            self._check(source.op)
            shape = ConvShape.of(source.op)
            self._tile(source, shape, choose_n_tile(source.op, self.n_tile, shape.k))

    def _check(self, op: Any) -> None:
        for option, known in (("halo", "mask"), ("tiling", "rows")):
            if getattr(self, option) != known:
                raise refuse(
                    op, f"expected {option}={known}, got {getattr(self, option)} (not in this "
                    f"version); leave {option} out"
                )  # fmt: skip
        shape = ConvShape.of(op)
        if shape.strides != (1, 1) or shape.dilations != (1, 1):
            raise refuse(
                op,
                f"expected strides and dilations of 1, got strides {list(shape.strides)} and "
                f"dilations {list(shape.dilations)} (.ashift moves the input by one lane, that is "
                "by one neighbouring pixel); use conv-implicit-gemm",
                SMALLEST_CONV,
            )
        if shape.s > QUARTER_LANES:
            raise refuse(
                op,
                f"expected filters at most {QUARTER_LANES} wide, got S={shape.s} (every tap after "
                f"the first loses one of a quarter's {QUARTER_LANES} lanes); use "
                "conv-implicit-gemm",
                SMALLEST_CONV,
            )

    def _tile(self, source: Source, shape: ConvShape, n_tile: int) -> None:
        op = source.op
        units = RowUnits.of(shape)
        kc = k_step(shape.c, shape.element_bytes)
        steps_per_row = ceil_div(shape.c, kc)
        a_type = k_major(TMEM_LANES, kc, shape.element)
        with kernel(source, [units.ctas, ceil_div(shape.k, n_tile), 1]) as arguments:
            x, out = argument(arguments, op.x), arguments[-1]
            map_x = make_tensor_map(
                x,
                dims=[shape.c, shape.w, shape.h, shape.n],
                box=[kc, QUARTER_LANES, 1, 1],
                element_bytes=shape.element_bytes,
                swizzle=a_type.swizzle,
            )
            filters = shape.filter_operand(argument(arguments, op.w), n_tile, kc)
            first_unit = math.mul(block_id("x"), QUARTERS)
            k0 = math.mul(block_id("y"), n_tile)
            rows = []
            for quarter in range(QUARTERS):
                n, p, q = units.decode(math.add(first_unit, quarter), shape)
                rows.append((math.sub(q, shape.pad_left), math.sub(p, shape.pad_top), n))
            d = accumulator(n_tile)
            with loop(shape.r * steps_per_row) as i:
                r, c0 = math.div(i, steps_per_row), math.mul(math.rem(i, steps_per_row), kc)
                a = tc.SmemTileOp(a_type).tile
                taps = [tc.SmemTileOp(filters.type).tile for _ in range(shape.s)]
                for quarter, (w, h, n) in enumerate(rows):
                    coords = math.values([c0, w, math.add(h, r), n])
                    tma_load(map_x, coords, a, QUARTER_LANES * quarter, QUARTER_LANES * a_type.span)
                for s, tile in enumerate(taps):
                    filters.load(tile, {"mn": k0, "k": c0, "s": s, "r": r})
                ta = tc.TmemTileOp(tc.TmemType.build([TMEM_LANES, kc], shape.element)).tile
                accumulate = Accumulate(i)
                for j in range(kc * shape.element_bytes // MMA_K_BYTES):
                    tc.CpOp(a, ta, i64(j))
                    for s, tile in enumerate(taps):
                        mma(d, ta, tile, accumulate.take(), j, ashift=s < shape.s - 1)

            def indices(quarter: Any) -> Any:
                n, p, q = units.decode(math.add(first_unit, quarter), shape)
                return lambda column: [n, p, q, math.add(k0, column)]

            store_tile(d, out, rows=units.valid, row_dim=2, indices=indices)
