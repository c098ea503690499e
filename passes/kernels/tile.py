"""Builds tensor-core kernels from a product, a main loop (core), tiles of the output and a
store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol, TypeAlias, TypeVar

from tcir._mlir import ir
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import Source
from tcir.passes.kernels.product import Store, Tile, TilePlace

Multiplied = TypeVar("Multiplied", contravariant=True)
"""The kind of product that a core multiplies."""
Made = TypeVar("Made")
Places: TypeAlias = "Callable[[list[ir.Value]], AbstractContextManager[TilePlace]]"
"""``places(arguments)`` emits, in a kernel with these arguments, the loop over a CTA's tiles."""

Stores: TypeAlias = "Callable[[list[ir.Value], Made], Store]"
"""``stores(arguments, product)`` makes the store of a kernel with these arguments."""


class Core(Protocol[Multiplied]):
    """The part of a kernel that multiplies: its warps, its main loop, and where the sums are.

    tile: the part of the output that a CTA computes at a time
    """

    @property
    def tile(self) -> Tile: ...

    def kernel(self, source: Source, tiles: OutputTiles) -> AbstractContextManager[list[ir.Value]]:
        """Replaces the source function by a kernel with these warps; yields the kernel's
        arguments."""

    def sums(self, product: Multiplied, place: TilePlace) -> list[tuple[ir.Value, TilePlace]]:
        """Emits the main loop of the tile at `place`; returns its sums in parts, each part with its
        place in the output."""


def tile(
    source: Source,
    create: Callable[[list[ir.Value]], Made],
    tiles: OutputTiles,
    core: Core[Made],
    stores: Stores[Made],
    places: Places | None = None,
) -> None:
    """Replaces the source function by a kernel.

    create: makes the product from the kernel's arguments
    stores: makes the store from the arguments and the product
    places: yields the tile places of a CTA from the kernel's arguments; None: the places follow
        from the numbers that `tiles` yields
    """

    @contextmanager
    def by_number(arguments: list[ir.Value]) -> Iterator[TilePlace]:
        with tiles.each() as numbers:
            yield TilePlace.of(source.op, numbers, core.tile)

    with core.kernel(source, tiles) as arguments:
        product = create(arguments)
        store = stores(arguments, product)
        with (places or by_number)(arguments) as place:
            sums = core.sums(product, place)
            stored = store(place)
            for each in sums:
                stored(*each)
