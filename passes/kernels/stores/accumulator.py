"""Stores of sums that are in tensor memory: by threads, by TMA, quantised, or by a store that a
plugin adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES
from tcir.passes.emit.epilogue import Epilogue
from tcir.passes.emit.staged_store import StagedStore
from tcir.passes.emit.tile_kernel import Places, Source, argument, quantise_tile, store_tile
from tcir.passes.kernels.product import Accumulated, Store, Stored, TilePlace
from tcir.passes.kernels.stores.epilogue_tile import TileStores
from tcir.passmanager.remarks import remark

Storing: TypeAlias = "Callable[[ir.Value, Places, Epilogue, Places | None], None]"
"""``storing(d, indices, epilogue, reads)`` stores `epilogue` of an accumulator, as `store_tile`."""


def accumulator_store(
    source: Source,
    results: TileStores,
    read: Sequence[tc.ElementOp],
    storing: Callable[[ir.Value], Storing] | None,
    arguments: list[ir.Value],
    product: Accumulated,
) -> Store:
    """Returns how a kernel with these `arguments` stores its sums.

    results: how the results are stored
    read: matrices that the epilogue reads by TMA
    storing: makes, from the output, a store that is defined outside the package
    """
    out = product.output(arguments[-1])
    matrices = {each: argument(arguments, each.tensor) for each in read}
    staged = None
    if results.stages:
        staged = StagedStore.create(source.op, out, results.tile, results.stages, matrices)
    remark(source.op, str(results))
    own = None if storing is None else storing(out)

    def store(place: TilePlace) -> Stored:
        reads = None if source.after is None else product.reads(source, place)
        along = place.dim("m"), place.dim("n")
        rows, columns = along if reads is None else (None, None)
        readers = staged.loads.readers if staged else None
        epilogue = product.finish(source.epilogue(arguments, rows, columns, readers))
        quantiser = None if source.quantise is None else source.quantiser(arguments)

        def stored(d: ir.Value, place: TilePlace) -> None:
            indices = source.indices(place.indices)
            if own is not None:
                own(d, indices, epilogue, reads)
            elif quantiser is not None:
                quantise_tile(d, quantiser, indices=indices, epilogue=epilogue)
            elif staged:
                staged.store(d, indices, epilogue, reads)
            else:
                store_tile(
                    d,
                    out,
                    rows=QUARTER_LANES,
                    along=along,
                    indices=indices,
                    epilogue=epilogue,
                    columns=results.tile.columns,
                    reads=reads,
                )

        return stored

    return store
