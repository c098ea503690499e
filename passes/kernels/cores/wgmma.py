"""Kernels of wgmma: each warpgroup computes 64 rows of a tile and keeps the sums in registers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.fragments import DEFAULT_ATOM
from tcir.dialect.limits import FP8, TMEM_LANES, WGMMA_M, WGMMA_N, Legal
from tcir.dialect.ops.warpgroup import columns_of
from tcir.dialect.warp_map import (
    CONSUMER,
    WARP_MAP,
    WARP_MAPS,
    WGMMA,
    WGMMA_COMPUTED,
    WGMMA_ONE,
    WGMMA_PROMOTED,
    WGMMA_THREE,
)
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64, i64s
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.kernel_ops import CTAS_PER_SM
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import Source, kernel
from tcir.passes.kernels.cores.fragments import signed_as, sums_over
from tcir.passes.kernels.product import Tile, TilePlace, TileProduct

M_TILE = TMEM_LANES
"""Rows of an output tile: 64 for each of two warpgroups. See `rows_of` for fewer."""
MAPS = {M_TILE: WGMMA, WGMMA_M: WGMMA_ONE, 3 * WGMMA_M: WGMMA_THREE}
"""Warp maps by the rows of a tile: they say which warps multiply."""
N_TILES = (256, 224, 192, 160, 128, 96, 64, 32, 16)
"""Columns of an output tile that the default is chosen from. Stores of columns that are no multiple
of 32 are not deferred: 240, 208, 176 and 144 lose more by that than fuller rounds of tiles gain
(docs/design-notes/gemm-sm90a.md)."""
PROMOTED_COLUMNS = 192
"""The most columns of a partial sum. It takes as many registers as the sums: together 192 of 240
or, with 256 columns multiplied as two halves, 64 and 128."""
N_PROMOTED = Legal(
    (*range(8, PROMOTED_COLUMNS, 8), *range(PROMOTED_COLUMNS, 257, 16)),
    "columns",
    f"{WGMMA_N.source}; more than {PROMOTED_COLUMNS} columns of e4m3 or e5m2 are two products",
)
"""N of a tile of e4m3 or e5m2."""


def check_width(op: ir.OpView, n_tile: int, element: ir.Type, smallest: str) -> int:
    """Returns `n_tile` if wgmma supports it as N; otherwise raises a match failure."""
    legal = N_PROMOTED if is_promoted(element) else columns_of(element)
    if n_tile not in legal:
        raise match_failure(
            op,
            f"expected n-tile to be {legal}, got {n_tile} (N of wgmma, {legal.source}); "
            f"take {legal.nearest(n_tile)}, or 0 to choose; smallest accepted: n-tile=8",
            smallest,
        )
    return n_tile


def rows_of(m: int, op: ir.OpView) -> tuple[int, ...]:
    """Legal numbers of rows of a tile for a product of `m` rows. If `m` is at most 64, tiles of one
    warpgroup are also legal; these leave room for more of B in the ring."""
    one = m <= WGMMA_M and not is_promoted(op.operation.operands[0].type.element_type)
    return (WGMMA_M, M_TILE) if one else (M_TILE,)


@dataclass(frozen=True)
class OfWarpgroups:
    """Kernels with a producer warp and one warpgroup for every 64 rows of a `tile` of the product
    `op`. A warpgroup keeps the sums of its rows in registers.

    computed: whether an additional warpgroup computes an operand from narrower numbers
    """

    op: ir.OpView
    tile: Tile
    target: str
    computed: bool = False

    @property
    def element(self) -> ir.Type:
        """Element type of operand A."""
        return self.op.operation.operands[0].type.element_type

    def kernel(self, source: Source, tiles: OutputTiles) -> AbstractContextManager[list[ir.Value]]:
        """Builds a kernel with the warp map that fits the tile's number of rows."""
        roles = MAPS[self.tile.rows]
        if is_promoted(self.element):
            roles = WGMMA_PROMOTED
        elif self.computed:
            roles = WGMMA_COMPUTED
        attributes = source.function.attributes
        attributes[WARP_MAP] = ir.StringAttr.get(roles)
        attributes[CTAS_PER_SM] = i64(self.tile.per_sm)
        attributes["tc.warps"] = i64s([len(WARP_MAPS[roles][CONSUMER].warps), 1])
        return kernel(source, tiles.grid, target=self.target, cluster=tiles.cluster_shape)

    @property
    def atom(self) -> str:
        """Name of the mma atom whose C layout the sums have; a warp holds 16 rows of them."""
        return DEFAULT_ATOM[str(self.element)]

    def fragment(self, columns: int, sums: ir.Type) -> tc.FragmentType:
        """The fragment type of the sums `sums` with this number of columns."""
        return tc.FragmentType.build([self.tile.rows, columns], sums, "C", self.atom)


class Warpgroups(OfWarpgroups):
    """The wgmma main loop, which multiplies one tile of A by one tile of B per step."""

    def sums(self, product: TileProduct, place: TilePlace) -> list[tuple[ir.Value, TilePlace]]:
        """Emits the sums of the tile at `place`: one fragment, or several fragments side by side if
        partial sums also need registers."""
        load, promoted = product.loads(place), is_promoted(self.element)
        parts = parts_of(self.element, self.tile.columns)
        columns = self.tile.columns // parts
        kind = self.fragment(columns, product.sums)

        def multiply(a: ir.Value, b: ir.Value, before: ir.Value) -> ir.Value:
            if promoted:
                return tc.AddFragmentOp(before, tc.WgmmaProductOp(a, b, kind).d, kind).c
            return signed_as(self.op, tc.WgmmaOp(a, b, before, kind)).d

        def step(number: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
            a, (b,) = load(number)
            tiles = [b] if parts == 1 else [_part(b, part, parts) for part in range(parts)]
            return [multiply(a, *each) for each in zip(tiles, before, strict=True)]

        sums = sums_over([kind] * parts, product.steps, step)
        return [(each, place.of_tile(part, columns)) for part, each in enumerate(sums)]


def is_promoted(element: ir.Type) -> bool:
    """Whether the sums of each step are added in f32 to the earlier sums. This is done for e4m3 and
    e5m2, because wgmma keeps only 13 bits of their sums, too few for a long K."""
    return str(element) in FP8


def parts_of(element: ir.Type, columns: int) -> int:
    """Number of fragments, side by side, that hold the sums of a tile."""
    return ceil_div(columns, PROMOTED_COLUMNS) if is_promoted(element) else 1


def _part(tile: ir.Value, number: int, parts: int) -> ir.Value:
    """One of equal parts of a tile."""
    kind = tile.type
    rows, k = kind.shape
    part = tc.SmemType.build([rows // parts, k], kind.element, kind.major, kind.swizzle)
    return tc.SmemPartOp(tile, index.value(number), part).part
