"""The tcgen05 main loop (core): one thread issues the mma of tiles in shared memory, and the sums
are in tensor memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import MMA_K_BYTES, TMEM_LANES
from tcir.passes.emit.builders import mma, of_pair
from tcir.passes.emit.index import Index
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import Accumulate, Source, accumulator, kernel, loop
from tcir.passes.kernels.product import Accumulated, Load, Step, Tile, TilePlace


@dataclass(frozen=True)
class OfTensorMemory:
    """Kernels that compute tiles of `count` adjacent accumulators of `n_tile` columns each in
    tensor memory."""

    n_tile: int
    count: int = 1

    @property
    def tile(self) -> Tile:
        """A tile that has one row per lane."""
        return Tile(TMEM_LANES, self.count * self.n_tile)

    def kernel(self, source: Source, tiles: OutputTiles) -> AbstractContextManager[list[ir.Value]]:
        """Builds a kernel with the warp map that the source function names, or with the default
        warp map."""
        return kernel(source, tiles.grid, cluster=tiles.cluster_shape)

    def placed(
        self, sums: Sequence[ir.Value], place: TilePlace
    ) -> list[tuple[ir.Value, TilePlace]]:
        """The accumulators of the tile at `place`, each with its own position in the output."""
        return [(d, place.of_tile(number, self.n_tile)) for number, d in enumerate(sums)]


class Tcgen05(OfTensorMemory):
    """The tcgen05 main loop; each step's products are added to the accumulators."""

    def sums(self, product: Accumulated, place: TilePlace) -> list[tuple[ir.Value, TilePlace]]:
        """Emits the accumulators of the tile at `place`."""
        step = product.at(place)
        sums = [accumulator(self.n_tile, product.sums) for _ in range(self.count)]
        with loop(product.steps) as i:
            step(sums, i, Accumulate(i))
        return self.placed(sums, place)


def multiplied(
    load: Load,
    unsigned: tuple[int, int] = (0, 0),
    cta_group: int = 1,
    usage: Callable[[int], str] | None = None,
) -> Step:
    """Returns the step that loads a tile of A and its tiles of B by `load`, multiplies A by each
    tile of B, and adds the products to the sums, slice by slice.

    unsigned: whether i8 elements of A and of B are unsigned
    cta_group: 2 for CTA pairs
    usage: what the collector does with A in the mma of each tile
    """

    def step(sums: Sequence[ir.Value], number: Index, accumulate: Accumulate) -> None:
        a, tiles = load(number)
        k = a.type.shape[1] * tc.element_bytes(a.type.element)
        for j in range(k // MMA_K_BYTES):
            taken = accumulate.take()
            for tile, (d, b) in enumerate(zip(sums, tiles, strict=True)):
                op = mma(d, a, b, taken, j, unsigned=unsigned)
                if cta_group == PAIR:
                    of_pair(op)
                if usage is not None:
                    op.attributes["collector"] = ir.StringAttr.get(usage(tile))

    return step
