"""tile-conv-implicit-gemm: tiles a convolution as a matrix product; TMA gathers A tap by tap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.passes.conv.im2col import (
    Im2col,
    check_im2col,
    check_parts,
    choose_channels,
    gathered,
)
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.sources import ConvTiling, find_convolutions
from tcir.passes.conv.wgmma import tile_for_warpgroups
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.tile_kernel import Source
from tcir.passes.kernels import legal
from tcir.passmanager.pipeline import register_pass
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class TileConvImplicitGemm(ConvTiling):
    """Turns ``tc.conv2d`` into the program of one CTA, in program order.

    A CTA computes 128 neighbouring output pixels, counted through (n, p, q), times `n_tile` output
    channels. TMA loads the pixels of each tap in im2col mode, so the input goes to shared memory
    once per tap.

    n_tile: output channels of a tile, N of the mma; 0 chooses
    n_tiles: tiles of `n_tile` channels that a CTA computes from its pixels, each with an
             accumulator
    persistent, ctas, scheduler: which CTA computes which tiles, as in tile-gemm; for sm_90a the
                                 kernel is persistent whenever it has more tiles than SMs
    store, store_stages, epilogue_tile, epilogue_warps: how results are stored, as in tile-gemm: the
                                                        output is a matrix of pixels and channels
    cta_group: 2: pairs of CTAs compute tiles of 256 pixels together, M of the mma
    cluster: MxN: CTAs along pixels and output channels that load operands together: the M along
             pixels each load a part of the filters, the N along channels each load a part of the
             pixels

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
    128 pixels of its own in A, D and the output, and loads half of the filters of the tile::

        %rank = "tc.cta_rank"()
        %mine = arith.addi %k0, (%rank * 32)
          "tc.tma_load"(%map_x, %c0, %w, %h, %n, offsets %s, %r, %a)
          "tc.tma_load"(%map_w, %mine, …, %b)
          per K slice j: "tc.mma"(%d, %a, %b) {cta_group = 2}

    If the number of tiles is odd, the last CTA has no pixels: TMA fills its A with zeros, and it
    stores nothing.

    For sm_90a the sums are a fragment of two warpgroups, carried by the loop over taps. The
    width of a tile is chosen so that the busiest SM finishes earliest::

        %sums = scf.for %i = … iter_args(%c = %zero) { … "tc.wgmma"(%a, %b, %c) }
        "tc.store_fragment"(%sums, %rows, %m0, %k0)

    Preserves the value of every output element up to the order of the f32 sums, and the location
    of the convolution on every op.
    """

    name: ClassVar[str] = "tile-conv-implicit-gemm"

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        for source in find_convolutions(module, self.name, options=legal.options_of(self)):
            if TARGETS[target].wgmma:
                tile_for_warpgroups(source, self, target)
            else:
                self._tile(source)

    def check(self, op: ir.OpView) -> None:
        """Raises `PassError` when this pass cannot tile `op`, a ``tc.conv2d``."""
        self._choose(op)

    def _choose(self, op: ir.OpView) -> tuple[ConvShape, int]:
        """The convolution as it is gathered, and the output channels of a tile."""
        shape = gathered(ConvShape.of(op))
        check_im2col(op, shape)
        check_parts(op, shape)
        return shape, choose_channels(self, op, shape)

    def _tile(self, source: Source) -> None:
        op, cluster = source.op, self.cluster_of(source.op)
        shape, n_tile = self._choose(op)
        self.tile(
            source,
            lambda arguments: Im2col.create(
                op, arguments, n_tile, self.cta_group, cluster=cluster, count=self.n_tiles
            ),
            n_tile,
            self.output_tiles(
                source,
                shape.n * shape.p * shape.q,
                ceil_div(shape.k, self.n_tiles * n_tile),
                shape.parts if shape.k_part else None,
            ),
            self.n_tiles,
        )
