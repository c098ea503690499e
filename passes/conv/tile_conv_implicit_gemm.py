"""tile-conv-implicit-gemm: a convolution as a matrix product; TMA gathers A tap by tap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import (
    MMA_K_BYTES,
    QUARTER_LANES,
    TMEM_LANES,
)
from tcir.passes.conv.im2col import Im2col, check_im2col, gathered
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.sources import find_convolutions
from tcir.passes.conv.wgmma import as_matrix, tile_for_warpgroups
from tcir.passes.emit import index
from tcir.passes.emit.builders import mma, of_pair
from tcir.passes.emit.cta_pair import check_cta_group
from tcir.passes.emit.diagnostics import SMALLEST_CONV
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import Lanes, lane_index
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    block_id,
    kernel,
    loop,
    store_tile,
    store_tile_lanes,
)
from tcir.passes.kernels import legal
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class TileConvImplicitGemm(Pass):
    """Turns ``tc.conv2d`` into the sequential program of one CTA.

    A CTA computes 128 neighbouring output pixels, counted through (n, p, q), times `n_tile` output
    channels. TMA loads the pixels of each tap in im2col mode, so the input goes to shared memory
    once per tap.

    n_tile: output channels per CTA, N of the mma; 0 chooses
    cta_group: 2: pairs of CTAs compute tiles of 256 pixels together, M of the mma

    Before::

        %y = "tc.conv2d"(%x, %w) {…} : (tensor<1x56x56x64xf16>, tensor<3x3x64x64xf16>) -> …

    After (`func.func @f(%x: memref, %w: memref, %y: memref) attributes {tc.kernel, tc.grid, …}`)::

        %map_x = "tc.make_tensor_map"(%x) {mode = "im2col", box = [64, 128], …}
        %d = "tc.tmem_tile"() : !tc.tmem<128x64, f32>
        scf.for %i = 0 to R * S * ceil(C / 64) {
          %a = "tc.smem_tile"(); %b = "tc.smem_tile"()
          "tc.tma_load"(%map_x, %c0, %w, %h, %n, offsets %s, %r, %a); "tc.tma_load"(%map_w, …, %b)
          per K slice j: "tc.mma"(%d, %a, %b)
        }
        scf.for %quarter { scf.for %column { tc.tmem_ld, round, tc.store_rows {rows = 32} } }

    With `cta_group` 2 (``tc.cluster = array<i64: 2, 1, 1>``, a grid of whole clusters) a CTA has
    its 128 pixels of A, of D and of the output, and loads half of the filters of the tile::

        %rank = "tc.cta_rank"()
        %mine = arith.addi %k0, (%rank * 32)
          "tc.tma_load"(%map_x, %c0, %w, %h, %n, offsets %s, %r, %a)
          "tc.tma_load"(%map_w, %mine, …, %b)
          per K slice j: "tc.mma"(%d, %a, %b) {cta_group = 2}

    Of an odd number of tiles the last CTA has no pixels: TMA fills its A with zeros, and it stores
    nothing.

    For sm_90a the sums are a fragment of two warpgroups, which the loop over taps carries; the tile
    is as wide as keeps the busiest SM least busy, and more tiles than SMs are a loop::

        %sums = scf.for %i = … iter_args(%c = %zero) { … "tc.wgmma"(%a, %b, %c) }
        "tc.store_fragment"(%sums, %rows, %m0, %k0)

    Preserves the value of every output element up to the order of the f32 sums, and the location
    of the convolution on every op.
    """

    name: ClassVar[str] = "tile-conv-implicit-gemm"
    n_tile: int = 0
    cta_group: int = 1

    def __post_init__(self) -> None:
        check_cta_group(self.cta_group)

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        for source in find_convolutions(module, self.name):
            facts = legal.options_of(self) | legal.facts_of(source, legal.IM2COL, target)
            legal.check(facts, source.op, SMALLEST_CONV)
            if TARGETS[target].wgmma:
                check_im2col(source.op, gathered(ConvShape.of(source.op)))
                tile_for_warpgroups(source, self.n_tile, target)
                continue
            self.check(source.op)
            shape = gathered(ConvShape.of(source.op))
            n_tile = shape.choose_n_tile(source.op, self.n_tile, self.cta_group)
            _tile(source, shape, n_tile, self.cta_group)

    def check(self, op: ir.OpView) -> None:
        """Raises `PassError` when this pass cannot tile `op`, a ``tc.conv2d``."""
        shape = gathered(ConvShape.of(op))
        check_im2col(op, shape)
        shape.choose_n_tile(op, self.n_tile, self.cta_group)


def _tile(source: Source, shape: ConvShape, n_tile: int, cta_group: int) -> None:
    pixels = shape.n * shape.p * shape.q
    grid = [round_up(ceil_div(pixels, TMEM_LANES), cta_group), ceil_div(shape.k, n_tile), 1]
    cluster = [PAIR, 1, 1] if cta_group == PAIR else None
    with kernel(source, grid, cluster=cluster) as arguments:
        product = Im2col.create(source.op, arguments, n_tile, cta_group)
        m0 = index.mul(block_id("x"), TMEM_LANES)
        k0 = index.mul(block_id("y"), n_tile)
        load = product.at(m0, k0)
        d = accumulator(n_tile, shape.sum_element)
        with loop(product.steps) as i:
            a, b = load(i)
            accumulate = Accumulate(i)
            for j in range(shape.kc * shape.element_bytes // MMA_K_BYTES):
                made = mma(d, a, b, accumulate.take(), j, unsigned=shape.unsigned)
                if cta_group == PAIR:
                    of_pair(made)

        _store(source, shape, d, arguments, m0, lambda first: source.column(index.add(k0, first)))


def _store(
    source: Source,
    shape: ConvShape,
    d: ir.Value,
    arguments: list[ir.Value],
    m0: Index,
    channel: Callable[[Index], Index],
) -> None:
    """Stores the sums of the pixels from `m0`, which follow each other in memory.

    To a ``tc.epilogue`` every lane has a pixel of its own, as rows and images end anywhere; without
    one the output is a matrix.
    """
    out = arguments[-1]
    epilogue = source.epilogue(arguments, None)

    def pixels(quarter: ir.Value) -> list[Lanes]:
        number = lane_index() + index.add(m0, index.mul(quarter, QUARTER_LANES))
        row = number // shape.q
        return [row // shape.p, row % shape.p, number % shape.q]

    def indices(quarter: ir.Value) -> Callable[[Index], list[Index]]:
        first = index.add(m0, index.mul(quarter, QUARTER_LANES))
        return lambda column: [first, channel(column)]

    if source.after is not None:
        store_tile_lanes(d, out, places=pixels, column=channel, epilogue=epilogue)
        return
    store_tile(d, as_matrix(out), rows=QUARTER_LANES, row_dim=0, indices=indices, epilogue=epilogue)
