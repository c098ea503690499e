"""Stores of sums in tensor memory in which each lane has its own indices in the output."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from tcir._mlir import ir
from tcir.passes.emit import index
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import LaneValue
from tcir.passes.emit.staged_store import RowBoxes, StagedStore
from tcir.passes.emit.tile_kernel import Source, store_tile_lanes
from tcir.passes.kernels.product import Store, Stored, TilePlace
from tcir.passes.kernels.stores.epilogue_tile import TileStores
from tcir.passmanager.remarks import remark


class OfLanes(Protocol):
    """A product whose lanes compute rows, or pixels, that need not be neighbours in the output."""

    def lanes(self, out: ir.Value, place: TilePlace, quarter: ir.Value) -> list[LaneValue]:
        """Indices in `out` of the lanes of a sub-partition of the tile at `place`, without the
        column; a lane without a result has an index outside `out`, so that it stores nothing.
        """


class OfBoxes(OfLanes, Protocol):
    """A product whose outputs TMA stores in boxes."""

    def corner(self, place: TilePlace, quarter: ir.Value) -> list[Index]:
        """Indices of the output of lane 0 of a sub-partition, without the column."""


def lane_store(
    source: Source,
    row_dim: int | None,
    results: TileStores,
    arguments: list[ir.Value],
    product: OfLanes,
) -> Store:
    """Returns how a kernel with these `arguments` stores its lanes.

    row_dim: the output's dimension along which the lanes of a sub-partition are adjacent, whether
        they are stored or not; None: lanes may be anywhere in the output
    results: how the results are stored
    """
    out = arguments[-1]
    remark(source.op, str(results))

    def store(place: TilePlace) -> Stored:
        epilogue = source.epilogue(arguments, row_dim, group=place.group)

        def first(quarter: ir.Value) -> list[Index]:
            return place.indices(quarter)(0)[:-1]

        def stored(d: ir.Value, place: TilePlace) -> None:
            store_tile_lanes(
                d,
                out,
                places=partial(product.lanes, out, place),
                column=lambda n: source.column(index.add(place.column, n)),
                epilogue=epilogue,
                first=None if row_dim is None or source.after is None else first,
                columns=results.tile.columns,
            )

        return stored

    return store


def box_store(
    source: Source,
    results: TileStores,
    boxes: RowBoxes,
    arguments: list[ir.Value],
    product: OfBoxes,
) -> Store:
    """Like `lane_store`, but TMA stores the `boxes` of each tile of `results`."""
    out = arguments[-1]
    staged = StagedStore.create(source.op, out, results.tile, results.stages, {}, row_boxes=boxes)
    remark(source.op, str(results))

    def store(place: TilePlace) -> Stored:
        epilogue = source.epilogue(arguments, None)

        def stored(d: ir.Value, place: TilePlace) -> None:
            def at(indices: list[Index]) -> Callable[[Index], list[Index]]:
                return lambda n: [*indices, source.column(index.add(place.column, n))]

            def lanes(quarter: ir.Value) -> Callable[[Index], list[Index]]:
                return at([each.value for each in product.lanes(out, place, quarter)])

            staged.store(d, lambda quarter: at(product.corner(place, quarter)), epilogue, lanes)

        return stored

    return store
