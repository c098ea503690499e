"""A product for each group of rows, whose sizes are known at run time."""

from __future__ import annotations

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES, TMEM_LANES
from tcir.dialect.ops.grouped import tiles_of
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import LaneValue, lane_index, spread
from tcir.passes.emit.limits import ceil_div
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
from tcir.passes.gemm.dense import DenseProduct
from tcir.passes.kernels.product import TilePlace

UNWRITTEN = "tc.unwritten"
"""Attribute of a kernel that leaves elements of its result as they are."""


def row_tiles(op: tc.GroupedMatmulOp) -> int:
    """The most tiles of 128 rows that the groups can have, whatever their sizes."""
    groups, rows = op.b.type.shape[0], op.a.type.shape[-2]
    if op.masked:
        return groups * tiles_of(rows)
    # ceil(n / 128) is at most (n + 127) / 128, and 1 for every row.
    return min(rows, (rows + (TMEM_LANES - 1) * groups) // TMEM_LANES)


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
