"""A product for each group of rows, whose sizes are known at run time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES, TMEM_LANES
from tcir.dialect.ops.grouped import tiles_of
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL
from tcir.passes.emit.element_epilogue import check_by_element
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import LaneValue, lane_index, spread
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    argument,
    block_id,
    counting_loop,
    kernel,
    loop,
    store_tile_lanes,
)
from tcir.passes.gemm.dense import DenseProduct, check_dense, columns_step, k_of
from tcir.passes.kernels.cores.wgmma import M_TILE, N_TILES, Warpgroups, check_width
from tcir.passes.kernels.cores.wgmma_cost import matrix_cycles
from tcir.passes.kernels.product import Elements, Tile, TilePlace
from tcir.passes.kernels.scheduled import Scheduled
from tcir.passes.kernels.stores.fragment import tile_fragments
from tcir.target import TARGETS

GROUP_RANK = 3
"""Indices of a result by its group: the group, the row and the column."""
UNWRITTEN = "tc.unwritten"
"""Attribute of a kernel that leaves elements of its result as they are."""


def row_tiles(op: tc.GroupedMatmulOp) -> int:
    """The most tiles of 128 rows that the groups can have, whatever their sizes."""
    groups, rows = op.b.type.shape[0], op.a.type.shape[-2]
    if op.masked:
        return groups * tiles_of(rows)
    # ceil(n / 128) is at most (n + 127) / 128, and 1 for every row.
    return min(rows, (rows + (TMEM_LANES - 1) * groups) // TMEM_LANES)


@dataclass(frozen=True)
class GroupedProduct(DenseProduct):
    """A `DenseProduct` of groups of rows, for cores that keep sums in fragments."""

    def elements(self, after: tc.EpilogueOp, arguments: Sequence[ir.Value]) -> Elements:
        """Returns the tensors that `after` reads, with their maps from the group, row and column of
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


def tile_groups_for_warpgroups(source: Source, options: Scheduled, target: str) -> None:
    """Emits a persistent kernel of wgmma: a CTA finds the group of each of its tiles.

    The CTAs share out the tiles of the group sizes read at run time: all columns of a row of tiles,
    then the next row.
    """
    op = source.op
    check_dense(op)
    check_by_element(source, "tile-gemm")
    element, n, sms = op.a.type.element_type, op.out.type.shape[-1], TARGETS[target].sms
    n_tile = options.n_tile or _width(op, n, sms)
    check_width(op, n_tile, element, SMALLEST_MATMUL)
    columns = ceil_div(n, n_tile)
    tiles = OutputTiles(row_tiles(op), columns, None).shared_by(options.ctas or sms)
    source.function.attributes[UNWRITTEN] = ir.UnitAttr.get()

    @contextmanager
    def places(arguments: list[ir.Value]) -> Iterator[TilePlace]:
        sizes, ctas = argument(arguments, op.sizes), tiles.ctas or 1
        count = index.mul(tc.CountTilesOp(sizes).tiles, columns)
        left = index.sub(index.add(count, ctas - 1), block_id("x"))
        with counting_loop(0, index.div(left, ctas), ceil_div(tiles.count, ctas)) as turn:
            number = index.add(index.mul(turn, ctas), block_id("x"))
            found = tc.FindGroupOp(sizes, index.value(index.div(number, columns)))
            if op.masked:
                found.attributes["within"] = ir.UnitAttr.get()
            column_tile = index.rem(number, columns)
            column, end = index.mul(column_tile, n_tile), index.add(found.first, found.count)
            group = found.group
            yield TilePlace(0, column_tile, found.first, column, group, number=group, end=end)

    tile_fragments(
        source,
        lambda arguments: GroupedProduct.create(op, arguments, n_tile),
        tiles,
        Warpgroups(op, Tile(M_TILE, n_tile), target),
        m=0,  # every group may end inside a tile
        n=n,
        places=places,
    )


def _width(op: tc.GroupedMatmulOp, n: int, sms: int) -> int:
    """The fastest width of a tile by the model, if every tile of the largest number has rows."""
    step = columns_step(op)
    widths = [each for each in N_TILES if each % step == 0 and each <= round_up(n, N_TILES[-1])]
    steps = ceil_div(k_of(op) * tc.element_bytes(op.a.type.element_type), 128)

    def cycles(width: int) -> float:
        count = row_tiles(op) * ceil_div(n, width)
        return matrix_cycles(Tile(M_TILE, width), steps, count, sms)

    return min(widths or [N_TILES[-1]], key=cycles)


def tile_grouped(source: Source, n_tile: int) -> None:
    """Emits a kernel with one CTA per possible tile; a CTA finds its group, or does nothing."""
    op = source.op
    n = op.out.type.shape[-1]
    source.function.attributes[UNWRITTEN] = ir.UnitAttr.get()
    with kernel(source, [row_tiles(op), ceil_div(n, n_tile), 1]) as arguments:
        product = DenseProduct.create(op, arguments, n_tile)
        found = tc.FindGroupOp(argument(arguments, op.sizes), block_id("x"))
        if op.masked:
            found.attributes["capacity"] = i64(op.a.type.shape[-2])
        column_tile = block_id("y")
        column = index.mul(column_tile, n_tile)
        place = TilePlace(0, column_tile, found.first, column, found.group)
        step = product.at(place)
        # No rows, no turn: the roles of the CTA fall through to its end.
        turns = arith.minui(found.count, index.value(1))
        with counting_loop(0, turns, 1):
            d = accumulator(n_tile, product.sums)
            with loop(product.steps) as i:
                step([d], i, Accumulate(i))

            def places(quarter: ir.Value) -> list[LaneValue]:
                row = lane_index() + index.mul(quarter, QUARTER_LANES)
                beyond = op.out.type.shape[-2]
                rows = (row + found.first).where(row.below(found.count), beyond)
                return [spread(found.group), rows] if op.masked else [rows]

            def first(quarter: ir.Value) -> list[Index]:
                row = index.add(found.first, index.mul(quarter, QUARTER_LANES))
                return [found.group, row] if op.masked else [row]

            store_tile_lanes(
                d,
                arguments[-1],
                places=places,
                column=lambda n: source.column(index.add(column, n)),
                epilogue=source.epilogue(arguments, op.out.type.rank - 2, group=found.group),
                first=first if source.after else None,
            )
