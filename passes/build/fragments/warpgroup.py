"""Kernels of wgmma: warpgroups compute 64 rows of a tile each, and keep the sums in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import UNSIGNED
from tcir.dialect.fragments import DEFAULT_ATOM
from tcir.dialect.limits import FP8, TMEM_LANES, WGMMA_M
from tcir.dialect.ops.warpgroup import columns_of
from tcir.dialect.warp_map import CONSUMER, WARP_MAP, WARP_MAPS, WGMMA, WGMMA_ONE
from tcir.passes.build import index
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.build.emit import i64, i64s
from tcir.passes.build.kernel_ops import CTAS_PER_SM
from tcir.passes.build.limits import ceil_div
from tcir.passes.build.output_tiles import OutputTiles
from tcir.passes.build.tile_kernel import Source, kernel

M_TILE = TMEM_LANES
"""Rows of an output tile: 64 for each of two warpgroups."""
MAPS = {M_TILE: WGMMA, WGMMA_M: WGMMA_ONE}
"""By the rows of a tile: who multiplies them."""
N_TILES = (256, 192, 128, 96, 64, 32, 16)
"""Columns of an output tile, of which the default is one."""
PORT_BYTES = 48
"""That TMA brings an SM in a cycle: convolutions on an H200, see docs/conv-sm90a.md."""
START, STORED = 800, 23
"""Cycles that a tile takes to start; elements of a tile that are stored in one."""


@dataclass(frozen=True)
class Tile:
    """rows, columns: of the output, that a CTA computes at a time."""

    rows: int
    columns: int

    def cycles(self, steps: int) -> float:
        """What it takes one SM, in steps of 128 bytes of K: the tensor core multiplies 64 rows in
        two cycles a column, and TMA loads them beside it."""
        multiplying = 2 * self.columns * self.rows / WGMMA_M
        loading = 128 * (self.rows + self.columns) / PORT_BYTES
        return START + self.rows * self.columns / STORED + steps * max(multiplying, loading)

    def count(self, rows: int, columns: int) -> int:
        """Tiles of an output of this size."""
        return ceil_div(rows, self.rows) * ceil_div(columns, self.columns)


def check_operands(op: ir.OpView, operands: list[ir.Value], instead: str, smallest: str) -> None:
    """Raises a match failure for types that kernels of wgmma do not multiply."""
    for value in operands:
        if str(value.type.element_type) in FP8:
            raise match_failure(
                op,
                f"expected operands of f16, bf16, f32 or i8, got {value.type.element_type} (wgmma "
                "keeps 13 bits of the sums of e4m3 and e5m2, which a long K wears out; they are "
                f"not promoted to f32 yet); {instead}widen the operands to f16",
                smallest,
            )


def check_width(op: ir.OpView, n_tile: int, element: ir.Type, smallest: str) -> int:
    """`n_tile`, if wgmma has such an N; else a match failure."""
    legal = columns_of(element)
    if n_tile not in legal:
        raise match_failure(
            op,
            f"expected n-tile to be {legal}, got {n_tile} (N of wgmma, {legal.source}); "
            f"take {legal.nearest(n_tile)}, or 0 to choose; smallest accepted: n-tile=8",
            smallest,
        )
    return n_tile


def fastest(
    rows: int, columns: int, steps: int, sms: int, tiles: Iterable[Tile], batch: int = 1
) -> Tile:
    """Of these tiles the one with which the SM that has most of them is done first."""

    def cost(tile: Tile) -> float:
        return ceil_div(batch * tile.count(rows, columns), sms) * tile.cycles(steps)

    return min(tiles, key=cost)


@contextmanager
def warpgroup_kernel(
    source: Source, tiles: OutputTiles, target: str, rows: int = M_TILE
) -> Iterator[list[ir.Value]]:
    """`tcir.passes.build.tile_kernel.kernel` of a producer, and a warpgroup for every 64 rows."""
    source.function.attributes[WARP_MAP] = ir.StringAttr.get(MAPS[rows])
    source.function.attributes[CTAS_PER_SM] = i64(1)
    with kernel(source, tiles.grid, target=target, cluster=tiles.cluster_shape) as arguments:
        warps = len(WARP_MAPS[MAPS[rows]][CONSUMER].warps)
        function = ir.InsertionPoint.current.block.owner
        function.attributes["tc.warps"] = i64s([warps, 1])
        yield arguments


def sums_over(
    op: ir.OpView,
    steps: int,
    tile: Tile,
    sums: ir.Type,
    load: Callable[[ir.Value], tuple[ir.Value, ir.Value]],
) -> ir.Value:
    """The fragment of a tile's sums: a loop of `steps`, whose tiles of A and B `load` loads."""
    atom = DEFAULT_ATOM[str(op.operation.operands[0].type.element_type)]
    kind = tc.FragmentType.build([tile.rows, tile.columns], sums, "C", atom)
    zero = tc.ZeroFragmentOp(kind).fragment
    loop = scf.ForOp(index.value(0), index.value(steps), index.value(1), [zero])
    with ir.InsertionPoint(loop.body):
        a, b = load(loop.induction_variable)
        made = tc.WgmmaOp(a, b, loop.inner_iter_args[0], kind)
        if UNSIGNED in op.attributes:
            made.attributes[UNSIGNED] = op.attributes[UNSIGNED]
        scf.YieldOp([made.d])
    return loop.results[0]
