"""A dense matrix product for warpgroups: sums in registers, operands in shared memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import UNSIGNED
from tcir.dialect.fragments import DEFAULT_ATOM
from tcir.dialect.limits import FP8, TMEM_LANES
from tcir.dialect.ops.warpgroup import columns_of
from tcir.dialect.warp_map import CONSUMER, WARP_MAP, WARP_MAPS, WGMMA
from tcir.passes.build import index
from tcir.passes.build.cluster import ALONE, Cluster
from tcir.passes.build.diagnostics import SMALLEST_MATMUL, match_failure
from tcir.passes.build.element_epilogue import check_by_element
from tcir.passes.build.emit import i64, i64s, tails
from tcir.passes.build.fragment_epilogue import fragment_epilogue
from tcir.passes.build.kernel_ops import CTAS_PER_SM
from tcir.passes.build.limits import ceil_div, round_up
from tcir.passes.build.tile_kernel import Source, kernel
from tcir.passes.gemm.dense import DenseProduct, check_dense, columns_step
from tcir.passes.gemm.output_tiles import OutputTiles
from tcir.passes.gemm.place import Place
from tcir.target import TARGETS

M_TILE = TMEM_LANES
"""Rows of an output tile: 64 for each of two warpgroups."""
N_TILES = (256, 192, 128, 96, 64, 32, 16)
"""Columns of an output tile, of which the default is one; 64 and more keep the tensor core busy
(a warpgroup reads 64 rows of A and N of B from shared memory for every instruction)."""
FIXED_COLUMNS = 24
"""What starting and storing a tile costs, in columns' worth of a main loop."""


@dataclass(frozen=True)
class WarpgroupSchedule:
    """n_tile: columns of an output tile, 0 chooses; ctas: of a persistent kernel, 0: one per SM;
    cluster: CTAs that load the operands that they share together.

    A kernel with more tiles than the target has SMs is persistent whether asked for or not: the
    loads of the next tile run while this one is stored.
    """

    n_tile: int
    persistent: bool
    ctas: int
    cluster: Cluster = ALONE

    def tile(self, source: Source, target: str) -> None:
        """Replaces the source function by its kernel."""
        op = source.op
        check_dense(op)
        check_by_element(source, "tile-gemm")
        _check_operands(op)
        *batch, m, n = op.out.type.shape
        sms = TARGETS[target].sms
        rows = ceil_div(m, M_TILE) * (batch[0] if batch else 1)
        n_tile = self.n_tile or _fastest(rows, n, sms, self.cluster.m * columns_step(op))
        legal = columns_of(op.a.type.element_type)
        if n_tile not in legal:
            raise match_failure(
                op,
                f"expected n-tile to be {legal}, got {n_tile} (N of wgmma, {legal.source}); "
                f"take {legal.nearest(n_tile)}, or 0 to choose; smallest accepted: n-tile=8",
                SMALLEST_MATMUL,
            )
        tiles = OutputTiles(
            ceil_div(m, M_TILE), ceil_div(n, n_tile), batch[0] if batch else None,
            cluster=self.cluster,
        )  # fmt: skip
        if self.persistent or tiles.count > sms:
            most = self.ctas or sms // self.cluster.ctas * self.cluster.ctas
            tiles = replace(tiles, ctas=min(tiles.count, most))
        source.function.attributes[WARP_MAP] = ir.StringAttr.get(WGMMA)
        source.function.attributes[CTAS_PER_SM] = i64(1)
        with kernel(source, tiles.grid, target=target, cluster=tiles.cluster_shape) as arguments:
            warps = len(WARP_MAPS[WGMMA][CONSUMER].warps)
            function = ir.InsertionPoint.current.block.owner
            function.attributes["tc.warps"] = i64s([warps, 1])
            product = DenseProduct.create(op, arguments, n_tile, cluster=self.cluster)
            past = ir.StringAttr.get(tails(m % M_TILE != 0, n % n_tile != 0))
            with tiles.each() as (x, y, z):
                place = Place.of(x, y, z, n_tile)
                total = _main_loop(op, product, place, n_tile)
                at = index.values([*place.outer, place.row, place.column])
                if source.after is not None:
                    total = fragment_epilogue(source.after, arguments, total, at, past)
                tc.StoreFragmentOp(total, arguments[-1], at, past)


def _check_operands(op: tc.MatmulOp) -> None:
    """Raises a match failure for what kernels of wgmma do not multiply."""
    for value in (op.a, op.b):
        if str(value.type.element_type) in FP8:
            raise match_failure(
                op,
                f"expected operands of f16, bf16, f32 or i8, got {value.type.element_type} (wgmma "
                "keeps 13 bits of the sums of e4m3 and e5m2, which a long K wears out; they are "
                "not promoted to f32 yet); take pipeline matmul-warp, or widen the operands to f16",
                SMALLEST_MATMUL,
            )
    if "out_layout" in op.attributes or "k_part" in op.attributes:
        raise match_failure(
            op,
            "expected a product as it is on sm_90a, got one whose operands were exchanged or whose "
            "K was split; leave swap and split-k out",
            SMALLEST_MATMUL,
        )


def _fastest(row_tiles: int, columns: int, sms: int, parts: int) -> int:
    """The width with the least columns of main loop on the SM that has most tiles, a multiple of
    `parts` where one fits."""

    def cost(n_tile: int) -> int:
        waves = ceil_div(row_tiles * ceil_div(columns, n_tile), sms)
        return waves * (max(n_tile, 64) + FIXED_COLUMNS)

    fitting = [each for each in N_TILES if each <= round_up(columns, N_TILES[-1])]
    whole = [each for each in fitting if each % parts == 0]
    return min(whole or fitting, key=cost)


def _main_loop(op: tc.MatmulOp, product: DenseProduct, place: Place, n_tile: int) -> ir.Value:
    """The sums of the tile at `place`."""
    atom = DEFAULT_ATOM[str(product.a.type.element)]
    kind = tc.FragmentType.build([M_TILE, n_tile], product.sums, "C", atom)
    zero = tc.ZeroFragmentOp(kind).fragment
    shares = product.cluster.share_of_a(), product.cluster.share_of_b()
    loop = scf.ForOp(index.value(0), index.value(product.steps), index.value(1), [zero])
    with ir.InsertionPoint(loop.body):
        a, b = product.load(place, loop.induction_variable, shares=shares)
        made = tc.WgmmaOp(a, b, loop.inner_iter_args[0], kind)
        if UNSIGNED in op.attributes:
            made.attributes[UNSIGNED] = op.attributes[UNSIGNED]
        scf.YieldOp([made.d])
    return loop.results[0]
