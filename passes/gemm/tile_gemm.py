"""tile-gemm: tiles a (batched) matrix product; a CTA computes one or several tiles of 128 output
rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import SWIZZLE_ATOM_ROWS, TMEM_LANES
from tcir.dialect.ops.highlevel import out_layout
from tcir.passes.emit.cluster import ALONE
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.quantise import QUANTISED_COLUMNS, check_quantised
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passes.emit.tensor_functions import tensor_ops
from tcir.passes.emit.tile_kernel import Source, choose_n_tile, find_sources
from tcir.passes.gemm.block_scaled import (
    check_block_scaled,
    choose_scaled_n_tile,
    stage_of,
)
from tcir.passes.gemm.computed_tiles import check_computed, check_computed_rows, rows_step
from tcir.passes.gemm.dense import DenseProduct, check_dense, check_rows, columns_step
from tcir.passes.gemm.grouped import tile_groups
from tcir.passes.gemm.schedules import GemmSchedules
from tcir.passes.gemm.wgmma import tile_for_warpgroups
from tcir.passes.kernels import legal
from tcir.passes.kernels.block_scaled import BlockScaledProduct
from tcir.passes.kernels.collector import SharedTiles
from tcir.passes.kernels.product import Accumulated
from tcir.passes.kernels.scheduled import Scheduled
from tcir.passes.kernels.warps import Warps
from tcir.passmanager.pipeline import register_pass
from tcir.target import TARGETS


@register_pass
@dataclass(frozen=True)
class TileGemm(Scheduled):
    """Turns ``tc.matmul`` or ``tc.block_scaled_matmul`` into the program of one CTA, in program
    order.

    n_tile: columns of an output tile, N of the mma; 0 takes the width that the cost model of
            `tcir.passes.emit.cost` finds fastest or, with `persistent`, `cta_group` or `cluster`,
            equal tiles of at most 128 columns per CTA
    persistent: whether there are no more CTAs than SMs, so that a CTA computes several tiles one
                after another
    ctas: CTAs of a persistent kernel, at most one per tile; 0: one per SM, or for wgmma the
          smallest number that computes all tiles in as many rounds (`fewest_ctas`)
    scheduler: which tiles a persistent CTA computes: every tile whose number differs by a multiple
               of `ctas` (static), or the tiles of CTAs whose launch it cancels (clc; see
               cluster-launch-control)
    store: how results are stored, direct: by each thread from registers; tma: through swizzled
           shared memory
    store_stages: buffers from which a warp stores by TMA in turn; 0 chooses: two in a persistent
                  kernel, whose CTA has the SM to itself, else one
    kind: the kind of block-scaled instruction, if several kinds multiply the operand types; by
          default the kind whose operands take the fewest bytes in shared memory
    epilogue_tile: MxN: the sums that the epilogue loads, stages and stores at a time. store=direct:
                   128xN, N columns in registers of each thread, 16 to 128; store=tma: M rows, 32,
                   64 or 128, in a tile that 1, 2 or 4 warps write and one of them stores. auto:
                   128x16 (128x64 where results are quantised); with store=tma 32 rows of the widest
                   swizzle span that divides a tile's rows, so that no warp waits for another
    n_tiles: tiles of `n_tile` columns, each with an accumulator, by which a CTA multiplies a tile
             of A; collector: the tensor core keeps A from the first of them to the last
    producer_warps: 1, or 2 if a second warp loads the matrices that the epilogue reads (store=tma);
                    consumer_warps: warps that multiply, 1 with tcgen05, 8 with wgmma;
                    epilogue_warps: 4, 8 or 12, which split the columns. 0 chooses: as many
                    producers as have something to load, 4 for the epilogue
    cta_group: 2: pairs of CTAs compute tiles of 256 rows together, M of the mma
    cluster: MxN: CTAs along rows and columns of the output's tiles that load operands together:
             each loads a part of the rows of A, or of the columns of B, that several CTAs of the
             cluster use

    Before::

        %c = "tc.matmul"(%a, %b) {a_layout = "mk", b_layout = "kn"} : (tensor<256x192xf16>, …) -> …

    After (`func.func @f(%a: memref, %b: memref, %c: memref) attributes {tc.kernel, tc.grid, …}`)::

        %d = "tc.tmem_tile"() : !tc.tmem<128x128, f32>
        scf.for %i = 0 to ceil(K / 64) {
          %ta = "tc.smem_tile"(); %tb = "tc.smem_tile"()
          "tc.tma_load"(%map_a, …, %ta); "tc.tma_load"(%map_b, …, %tb)
          per K slice j: "tc.mma"(%d, %ta, %tb)
        }
        scf.for %quarter { scf.for %column { tc.tmem_ld, round, tc.store_rows {rows = 32} } }

    A persistent kernel repeats this in a loop over the CTA's tiles, ordered down groups of 8 rows
    of tiles; a pair of CTAs goes through pairs of tiles.
    A ``tc.epilogue`` of the product is cloned onto the register tiles between load and store, with
    a ``tc.load_rows`` for each tensor it reads.
    A ``tc.quantise_blocks`` of the result becomes, 64 columns at a time, ``tc.quantise_rows`` and
    stores of codes and scale factors.
    A step of a block-scaled product also loads the blocks of scale factors of the tile's rows and
    columns, and copies them to tensor memory (``tc.cp_scales``). If `n_tile` is not a multiple of
    128, a tile may begin inside a block of scale factors; its copies then begin at an earlier
    column. Each CTA of a pair has 128 rows of A, of D and of the output, and it loads half of B's
    tile, but the scale factors of the whole tile. Its mma and copies have ``cta_group = 2``, and
    its kernel has ``tc.cluster = array<i64: 2, 1, 1>``. With `cluster` 1x2 each of two CTAs has its
    own columns and loads half of A's tile for both (``tc.cluster = array<i64: 1, 2, 1>``)::

        %rank = "tc.cta_rank"()
        scf.for %i … {
          %ta = "tc.smem_tile"(); %half = "tc.smem_part"(%ta, %rank)
          "tc.tma_load"(%map_a, …, %half) {cta_mask = 3}; "tc.tma_load"(%map_b, …, %tb)

    With `store` tma a sub-partition's results go through a tile of one swizzle span of columns::

        scf.for %span { scf.for %quarter {
          scf.for %column { tc.tmem_ld, round, tc.store_shared %v -> %tile[0, %column] }
          tc.tma_store %tile -> %map[%first, %row]
        } }

    With `n_tiles` 2 and `collector` each slice of A is multiplied by slices of two tiles of B::

          "tc.mma"(%d0, %ta, %tb0) {collector = "fill"}
          "tc.mma"(%d1, %ta, %tb1) {collector = "lastuse"}

    With epilogue tiles of 64 rows two warps write a tile, and the second of these warps stores it::

          scf.for %column { tc.tmem_ld, round, tc.store_shared %v -> %tile[%q mod 2 * 32, %column] }
          scf.if %q mod 2 == 1 { tc.tma_store %tile -> %map[%first, %row] }

    and a matrix that the epilogue reads is loaded by ``tc.tma_load`` in ``%span``, and then read by
    ``tc.load_shared``.

    For a target with wgmma a tile has 128 rows, 64 for each of two warpgroups, and its sums are a
    ``!tc.fragment`` that the loop carries (`tile_for_warpgroups`)::

        %zero = "tc.zero_fragment"()
        %sums = scf.for %i … iter_args(%acc = %zero) {
          "tc.tma_load"(%map_a, …, %ta); "tc.tma_load"(%map_b, …, %tb)
          scf.yield "tc.wgmma"(%ta, %tb, %acc)
        }
        "tc.store_fragment"(%sums, %out, …)

    The layouts ``mk`` and ``nk`` give K-major tiles, and ``km`` and ``kn`` give MN-major tiles. The
    batch is dimension z of the grid. With ``out_layout = "nm"`` rows of tiles are stored along the
    output's last dimension. Parts of K (``k_part``) are further tiles along dimension z of the
    grid. Preserves the value of every output element up to the order of the f32 sums, and the
    location of the product on every op.
    """

    name: ClassVar[str] = "tile-gemm"
    kind: str = ""
    n_tiles: int = 1
    collector: bool = False
    producer_warps: int = 0
    consumer_warps: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._together

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        product = _product_in(module)
        computed = check_computed if product == legal.DENSE else None
        kind = KINDS[product]
        for source in find_sources(module, kind, self.name, epilogues=True, computed=computed):
            facts = legal.options_of(self) | legal.facts_of(source, product, target)
            legal.check(facts, source.op)
            if product == legal.GROUPED:
                tile_groups(source, self, target, self._together)
            elif TARGETS[target].wgmma:
                tile_for_warpgroups(source, self, target)
            elif product == legal.SCALED:
                self._tile_scaled(source)
            else:
                self._tile_dense(source)

    @property
    def _together(self) -> SharedTiles:
        return SharedTiles(self.n_tiles, self.collector)

    @property
    def warps(self) -> Warps:
        """The numbers of warps of each role that the options state."""
        return Warps(self.producer_warps, self.consumer_warps, self.epilogue_warps)

    def _tile_dense(self, source: Source) -> None:
        op = source.op
        check_dense(op)
        columns = op.out.type.shape[out_layout(op).index("n") - 2]
        option = self._option(source)
        n_tile = choose_n_tile(op, option, columns, self.cta_group)
        n_tile = _whole_blocks(source, option, n_tile)
        if not isinstance(op.b, ir.BlockArgument) and not self.n_tile:
            n_tile = round_up(n_tile, rows_step(op))
        check_computed_rows(op, n_tile)
        cluster = self.cluster_of(op)
        check_rows(op, cluster)
        n_tile = self.in_parts(op, n_tile, cluster, columns_step(op))
        self._tile(source, n_tile, partial(DenseProduct.create, op))

    def _tile_scaled(self, source: Source) -> None:
        op, shape = source.op, ScaledShape.of(source.op, self.kind)
        check_block_scaled(op, shape)
        option = self._option(source)
        n_tile = choose_scaled_n_tile(op, option, shape, self.cta_group, self.persistent)
        n_tile = _whole_blocks(source, option, n_tile)
        cluster = self.cluster_of(op)
        n_tile = self.in_parts(op, n_tile, cluster, SWIZZLE_ATOM_ROWS)
        self._tile(source, n_tile, partial(BlockScaledProduct.create, op, stage=stage_of(shape)))

    def _tile(self, source: Source, n_tile: int, create: Callable[..., Accumulated]) -> None:
        """Builds the kernel of a product that `create` makes of the kernel's arguments."""
        op, together = source.op, self._together
        together.check(op, n_tile)
        together.tell(op, n_tile)
        shared = {"cluster": self.cluster_of(op), "together": together}
        made = partial(create, n_tile=n_tile, cta_group=self.cta_group, **shared)
        self.tile(
            source,
            made,
            n_tile,
            self._output_tiles(source, n_tile * together.count),
            together.count,
        )

    def _option(self, source: Source) -> int:
        """Columns of a tile by the options or the cost model; 0 leaves the choice to a rule."""
        given = self.n_tile or self.n_tiles > 1
        if given or self.persistent or self.cta_group == PAIR or self.cluster != str(ALONE):
            return self.n_tile
        return GemmSchedules(source.op, self.kind, source.quantised_columns).choose().work.n_tile

    def _output_tiles(self, source: Source, n_tile: int) -> OutputTiles:
        *batch, m, n = source.op.out.type.shape
        if out_layout(source.op) == "nm":
            m, n = n, m
        n = source.quantised_columns or n  # scales of padding are zeros: stored, too
        return self.output_tiles(source, m, ceil_div(n, n_tile), prod(batch) if batch else None)


KINDS = {
    legal.DENSE: tc.MatmulOp,
    legal.SCALED: tc.BlockScaledMatmulOp,
    legal.GROUPED: tc.GroupedMatmulOp,
}
"""The op of a product."""


def _product_in(module: ir.Module) -> str:
    """The product that the functions of a module are."""
    ops = list(tensor_ops(module))
    found = [name for name, kind in KINDS.items() if any(isinstance(op, kind) for op in ops)]
    return found[-1] if found else legal.DENSE


def _whole_blocks(source: Source, option: int, n_tile: int) -> int:
    """Columns of a tile: `n_tile`, or where results are quantised and no `option` says, blocks."""
    if source.quantise is None:
        return n_tile
    n_tile = option or min(TMEM_LANES, round_up(n_tile, QUANTISED_COLUMNS))
    check_quantised(source.quantise, n_tile)
    return n_tile
