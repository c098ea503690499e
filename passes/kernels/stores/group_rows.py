"""Stores of the rows of a group by TMA: TMA stores whole boxes, and threads store the rows of the
group's last, partial box.

TMA leaves out only rows outside the output, so a box at a group's end would overwrite the first
rows of the next group. The TMA store of such a box is therefore moved to rows after the output's
last row, where TMA stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.passes.emit import index
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import lane_index, spread
from tcir.passes.emit.staged_store import StagedStore
from tcir.passes.emit.tile_kernel import Source, argument
from tcir.passes.kernels.product import Store, Stored, TilePlace
from tcir.passes.kernels.stores.epilogue_tile import TileStores
from tcir.passmanager.remarks import remark


def select_whole(box: tuple[Index, int], end: Index, then: Index, otherwise: Index) -> ir.Value:
    """Selects `then` if all rows of a box are before the `end` of the group, so that TMA stores the
    box, and `otherwise` if threads store it. box: its first row, and its number of rows"""
    after = index.value(index.add(*box))
    whole = arith.cmpi(arith.CmpIPredicate.ule, after, index.value(end))
    return arith.select(whole, index.value(then), index.value(otherwise))


def group_store(
    source: Source,
    results: TileStores,
    read: Sequence[tc.ElementOp],
    arguments: list[ir.Value],
    product: object,
) -> Store:
    """Returns how a kernel with these `arguments` stores rows of groups. The other parameters are
    as in `accumulator_store`."""
    out = arguments[-1]
    matrices = {each: argument(arguments, each.tensor) for each in read}
    staged = StagedStore.create(source.op, out, results.tile, results.stages, matrices)
    remark(source.op, f"{results}; threads store the rows of a group's last tile")
    rank, extent, rows = out.type.rank, out.type.shape[-2], results.tile.rows

    def store(place: TilePlace) -> Stored:
        readers = staged.loads.readers
        epilogue = source.epilogue(arguments, rank - 2, staged=readers, group=place.group)

        def stored(d: ir.Value, place: TilePlace) -> None:
            assert place.end is not None
            end = place.end

            def boxes(quarter: Index) -> Callable[[Index], list[Index]]:
                at = place.indices(quarter)

                def box(column: Index) -> list[Index]:
                    *outer, row, column = at(column)
                    return [*outer, select_whole((row, rows), end, row, extent), column]

                return box

            def with_rest(sums: ir.Value, at: Sequence[Index]) -> ir.Value:
                value = epilogue(sums, at)
                *outer, row, column = at
                inside = index.rem(index.value(index.sub(row, place.row)), rows)
                last = select_whole((index.sub(row, inside), rows), end, 0, end)
                lanes = lane_index() + row
                mine = lanes.where(lanes.below(last), extent)
                places = [*(spread(each).value for each in outer), mine.value]
                tc.StoreLanesOp(value, out, places, index.value(column))
                return value

            staged.store(d, place.indices, with_rest, boxes=boxes)

        return stored

    return store
