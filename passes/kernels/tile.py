"""The one way to a kernel of tcgen05: tiles of the output, a product's steps, a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tcir._mlir import ir
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.ops.highlevel import k_part, out_layout
from tcir.passes.emit.epilogue import Epilogue
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.staged_store import StagedStore
from tcir.passes.emit.tile_kernel import (
    Accumulate,
    Places,
    Source,
    accumulator,
    argument,
    kernel,
    loop,
    quantise_tile,
    store_tile,
)
from tcir.passes.kernels.product import Place, Product
from tcir.passes.kernels.stores.epilogue_tile import Results
from tcir.passes.kernels.warps import Warps
from tcir.passmanager.remarks import remark

Store: TypeAlias = "Callable[[ir.Value, Places, Epilogue, Places | None], None]"
"""``store(d, indices, epilogue, reads)`` stores `epilogue` of an accumulator, as `store_tile`."""


def tile(
    source: Source,
    create: Callable[[list[ir.Value]], Product],
    n_tile: int,
    tiles: OutputTiles,
    results: Results,
    warps: Warps,
    n_tiles: int = 1,
    storing: Callable[[ir.Value], Store] | None = None,
) -> None:
    """The kernel, from what makes its product out of the kernel's arguments.

    n_tiles: of `n_tile` columns, next to each other, that a CTA computes at a time
    storing: makes a store from outside the package out of the kernel's output; None: `results` say
             how tiles are stored
    """
    read = warps.assign(source, staged=bool(results.stages))
    with kernel(source, tiles.grid, cluster=tiles.cluster_shape) as arguments:
        product = create(arguments)
        out = product.output(arguments[-1])
        matrices = {each: argument(arguments, each.tensor) for each in read}
        staged = None
        if results.stages:
            staged = StagedStore.create(source.op, out, results.tile, results.stages, matrices)
        remark(source.op, str(results))
        store = None if storing is None else storing(out)
        with tiles.each() as (x, y, z):
            place = Place.of(x, y, z, n_tile * n_tiles, out_layout(source.op))
            if k_part(source.op) is not None:
                a = source.op.operation.operands[0].type
                place = place.of_part(a.shape[0] if a.rank == 3 else None)
            step = product.at(place)
            sums = [accumulator(n_tile, product.sums) for _ in range(n_tiles)]
            with loop(product.steps) as i:
                step(sums, i, Accumulate(i))
            reads = None if source.after is None else product.reads(source, place)
            rows, columns = (place.dim("m"), place.dim("n")) if reads is None else (None, None)
            readers = staged.loads.readers if staged else None
            after = source.epilogue(arguments, rows, columns, readers)
            epilogue = product.finish(after)
            quantiser = source.quantiser(arguments) if source.quantise is not None else None
            for number, d in enumerate(sums):
                indices = source.indices(place.of_tile(number, n_tile).indices)
                if store is not None:
                    store(d, indices, epilogue, reads)
                elif quantiser is not None:
                    quantise_tile(d, quantiser, indices=indices, epilogue=epilogue)
                elif staged:
                    staged.store(d, indices, epilogue, reads)
                else:
                    store_tile(
                        d,
                        out,
                        rows=QUARTER_LANES,
                        along=(place.dim("m"), place.dim("n")),
                        indices=indices,
                        epilogue=epilogue,
                        columns=results.tile.columns,
                        reads=reads,
                    )
