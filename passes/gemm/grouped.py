"""A product for each group of rows, whose sizes are known at run time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import QUARTER_LANES, TMEM_LANES
from tcir.dialect.ops.grouped import most_tiles, tiles_of
from tcir.dialect.ops.highlevel import k_part, k_parts
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.cluster import ALONE, ClusterShape
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, match_failure
from tcir.passes.emit.element_epilogue import check_by_element
from tcir.passes.emit.index import Index
from tcir.passes.emit.kernel_ops import CTAS_PER_SM
from tcir.passes.emit.lanes import LaneValue, lane_index, spread
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import (
    Source,
    argument,
    block_id,
    choose_n_tile,
    counting_loop,
)
from tcir.passes.gemm.dense import DenseProduct, check_dense, check_rows, columns_step, k_of
from tcir.passes.kernels.collector import ONE, SharedTiles
from tcir.passes.kernels.cores.tcgen05 import Tcgen05
from tcir.passes.kernels.cores.wgmma import (
    M_TILE,
    N_TILES,
    Warpgroups,
    check_width,
    parts_of,
)
from tcir.passes.kernels.cores.wgmma_cost import matrix_cycles
from tcir.passes.kernels.product import Elements, Tile, TilePlace
from tcir.passes.kernels.scheduled import Scheduled
from tcir.passes.kernels.stores.fragment import tile_fragments
from tcir.passes.kernels.stores.group_rows import group_store
from tcir.passes.kernels.stores.lanes import lane_store
from tcir.passes.kernels.tile import Stores, tile
from tcir.program.launch import UNWRITTEN
from tcir.target import TARGETS

GROUP_RANK = 3
"""Indices of a result by its group: the group, the row and the column."""


def row_tiles(op: tc.GroupedMatmulOp, height: int = TMEM_LANES) -> int:
    """The largest number of tiles of `height` rows that the groups can have, whatever their sizes
    are."""
    groups, rows = op.b.type.shape[0], op.a.type.shape[-2]
    return groups * tiles_of(rows, height) if op.masked else most_tiles(rows, groups, height)


@dataclass(frozen=True)
class GroupedProduct(DenseProduct):
    """A `DenseProduct` whose rows are divided into groups."""

    def lanes(self, out: ir.Value, place: TilePlace, quarter: ir.Value) -> list[LaneValue]:
        """Returns the rows of a sub-partition's lanes. A lane whose row does not belong to the
        group gets a row after the last row of `out`."""
        row = lane_index() + index.add(place.row, index.mul(quarter, QUARTER_LANES))
        assert place.end is not None
        rows = row.where(row.below(place.end), out.type.shape[-2])
        return [*map(spread, place.outer), rows]

    def elements(self, after: tc.EpilogueOp, arguments: Sequence[ir.Value]) -> Elements:
        """Returns the tensors that `after` reads, with maps that take the group, row and column of
        a result."""
        found = {each.tensor: argument(arguments, each.tensor) for each in after.elements}
        return found, [_of_group(each) for each in after.elements]


def _of_group(element: tc.ElementOp) -> ir.AffineMap:
    """The map of `element` from a group, a row and a column: with rows of all groups in sequence
    it names no group, and has its own row and column one dimension later."""
    later = GROUP_RANK - element.out_rank
    places = [
        ir.AffineConstantExpr.get(0) if dim is None else ir.AffineDimExpr.get(dim + later)
        for dim in element.dims
    ]
    group = [ir.AffineDimExpr.get(0)] if element.of_group else []
    return ir.AffineMap.get(GROUP_RANK, 0, [*group, *places])


def tile_groups(
    source: Source, options: Scheduled, target: str, together: SharedTiles = ONE
) -> None:
    """Emits a kernel whose CTAs find the group of each of their tiles.

    In a persistent kernel (every wgmma kernel is one) the CTAs divide among them the tiles of the
    group sizes that they read at run time, in the order: all columns of a row of tiles, then the
    next row. Otherwise there is a CTA for each tile that the groups could have, which may find that
    its tile does not exist. The CTAs of a cluster or pair compute tiles of the same group.
    """
    op = source.op
    check_dense(op)
    if source.after is not None and (parts := k_parts(op)) is not None:
        raise match_failure(
            source.after,
            f"expected an epilogue on whole sums, got one on the sums of one of {parts} parts of "
            f"K: the launch that adds the parts has to compute it; take split-k={parts} instead "
            "of k_part",
        )
    n, sms = op.out.type.shape[-1], TARGETS[target].sms
    wgmma = TARGETS[target].wgmma
    pair, cluster = options.cta_group, options.cluster_of(op)
    check_rows(op, cluster)
    if wgmma:
        check_by_element(source, "tile-gemm")
        n_tile = options.n_tile or _width(op, n, sms)
    else:
        n_tile = choose_n_tile(op, options.n_tile, n, pair)
    n_tile = options.in_parts(op, n_tile, cluster, columns_step(op))
    if wgmma:
        check_width(op, n_tile, op.a.type.element_type, SMALLEST_MATMUL)
    together.check(op, n_tile)
    together.tell(op, n_tile)
    shape = ClusterShape(PAIR) if pair == PAIR else cluster
    rows = shape.m * row_tiles(op, shape.m * TMEM_LANES)
    columns = ceil_div(n, together.count * n_tile)
    tiles = OutputTiles(rows, columns, k_parts(op), cluster=shape)
    if wgmma or options.persistent:
        tiles = options.distributed(tiles, sms)
        source.function.attributes[CTAS_PER_SM] = i64(1)
    source.function.attributes[UNWRITTEN] = ir.UnitAttr.get()

    def create(arguments: list[ir.Value]) -> GroupedProduct:
        return GroupedProduct.create(op, arguments, n_tile, pair, cluster, together)

    places = partial(_places, op, tiles, together.count * n_tile)
    if wgmma:
        core = Warpgroups(op, Tile(M_TILE, n_tile), target)
        # m: every group may end inside a tile
        staging = options.staging(core, tiles, parts_of(op.a.type.element_type, n_tile))
        tile_fragments(source, create, tiles, core, m=0, n=n, staging=staging, places=places)
    else:
        results = options.results(source, n_tile)
        read = options.warps.assign(source, staged=bool(results.stages))
        stores: Stores = partial(lane_store, source, op.out.type.rank - 2, results)
        if results.stages:
            stores = partial(group_store, source, results, read)
        tile(source, create, tiles, Tcgen05(n_tile, together.count), stores, places)


@contextmanager
def _places(
    op: tc.GroupedMatmulOp, tiles: OutputTiles, columns: int, arguments: list[ir.Value]
) -> Iterator[TilePlace]:
    """Yields the place of each tile of a CTA, `columns` wide, in a loop; a tile without rows has no
    turn in it. The rows of a cluster are those of one tile of a group, some maybe after its end."""
    sizes, cluster = argument(arguments, op.sizes), tiles.cluster
    alone, height = cluster == ALONE, cluster.m * TMEM_LANES

    def of_height(op: tc.FindGroupOp | tc.CountTilesOp) -> None:
        if height != TMEM_LANES:
            op.attributes["tile_rows"] = i64(height)

    def find(number: Index) -> tc.FindGroupOp:
        found = tc.FindGroupOp(sizes, index.value(number))
        of_height(found)
        if op.masked and tiles.ctas is None:
            found.attributes["capacity"] = i64(op.a.type.shape[-2])
        elif op.masked:
            found.attributes["within"] = ir.UnitAttr.get()
        return found

    def place(found: tc.FindGroupOp, column_tile: Index, part: Index | None) -> TilePlace:
        column, group = index.mul(column_tile, columns), found.group
        end = _least(index.add(found.first, found.count), op.out.type.shape[-2])
        first = found.first
        if cluster.m > 1:
            first = index.add(first, index.mul(cluster.along_m(), TMEM_LANES))
        number = group
        if part is not None:
            groups = op.b.type.shape[0]
            number = index.add(index.mul(part, groups), group) if op.masked else part
        batch = group if op.masked else None
        return TilePlace(
            0, column_tile, first, column, batch, part=part, number=number, group=group, end=end
        )

    if tiles.ctas is None:
        found = find(index.div(block_id("x"), cluster.m))
        at = place(found, block_id("y"), None if tiles.batch is None else block_id("z"))
        with counting_loop(0, _least(found.count, 1), 1):
            yield at
        return
    wide, together = ceil_div(tiles.n, cluster.n), cluster.ctas
    across = wide * (tiles.batch or 1)  # the parts of K of a row of tiles, one after another
    most, sharing = tiles.count // together, tiles.ctas // together
    counted = tc.CountTilesOp(sizes)
    of_height(counted)
    count = _least(index.mul(counted.tiles, across), most)
    left = index.sub(index.add(count, sharing - 1), index.div(block_id("x"), together))
    turns = most if tiles.taken_over else ceil_div(most, sharing)
    with counting_loop(0, index.div(left, sharing), turns) as turn:
        earlier = 0 if tiles.taken_over else index.mul(turn, sharing)
        number = index.add(earlier, index.div(block_id("x"), together))
        found, part = find(index.div(number, across)), None
        column = index.rem(number, across)
        if tiles.batch is not None:
            part, column = index.div(column, wide), index.rem(column, wide)
        column = index.mul(column, cluster.n)
        yield place(found, column if alone else index.add(column, cluster.along_n()), part)


def _least(number: Index, most: int) -> ir.Value:
    """The number, or `most` if that is less: sizes may be too large for the operands."""
    return arith.minui(index.value(number), index.value(most))


def _width(op: tc.GroupedMatmulOp, n: int, sms: int) -> int:
    """The fastest width of a tile by the model, if every tile of the largest number has rows."""
    step = columns_step(op)
    widths = [each for each in N_TILES if each % step == 0 and each <= round_up(n, N_TILES[-1])]
    steps = ceil_div((k_part(op) or k_of(op)) * tc.element_bytes(op.a.type.element_type), 128)
    parts = k_parts(op) or 1

    def cycles(width: int) -> float:
        count = parts * row_tiles(op) * ceil_div(n, width)
        return matrix_cycles(Tile(M_TILE, width), steps, count, sms)

    return min(widths or [N_TILES[-1]], key=cycles)
