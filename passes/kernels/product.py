"""Tiles of a kernel's output, and what a kind of product has to say about one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from tcir._mlir import ir
from tcir.dialect.limits import QUARTER_LANES, TMEM_LANES
from tcir.passes.emit import index
from tcir.passes.emit.epilogue import Epilogue
from tcir.passes.emit.index import Index
from tcir.passes.emit.tile_kernel import Accumulate, Places, Source


@dataclass(frozen=True)
class Place:
    """Where a tile is in the output: its number along m and n, the first row and column of it, and
    its matrix of a batch, its part of K. `layout`: the order of rows and columns in the output."""

    row_tile: Index
    column_tile: Index
    row: Index
    column: Index
    batch: Index | None = None
    layout: str = "mn"
    part: Index | None = None

    @staticmethod
    def of(
        row_tile: Index, column_tile: Index, batch: Index | None, n_tile: int, layout: str = "mn"
    ) -> Place:
        """The tile of 128 rows and `n_tile` columns with these numbers."""
        row, column = index.mul(row_tile, TMEM_LANES), index.mul(column_tile, n_tile)
        return Place(row_tile, column_tile, row, column, batch, layout)

    def of_part(self, batches: int | None) -> Place:
        """The place whose `batch` counts the matrices of all parts, `batches` in each of them."""
        assert self.batch is not None
        if batches is None:
            return replace(self, batch=None, part=self.batch)
        both = index.div(self.batch, batches), index.rem(self.batch, batches)
        return replace(self, part=both[0], batch=both[1])

    def of_tile(self, number: int, n_tile: int) -> Place:
        """The place of tile `number` of several of `n_tile` columns next to each other."""
        return replace(self, column=index.add(self.column, number * n_tile))

    @property
    def outer(self) -> list[Index]:
        """The indices before row and column."""
        return [each for each in (self.part, self.batch) if each is not None]

    def dim(self, letter: str) -> int:
        """The output's dimension that rows (``m``) or columns (``n``) go along."""
        return self.layout.index(letter) + len(self.outer)

    def indices(self, quarter: Index) -> Callable[[Index], list[Index]]:
        """Indices in the output of lane 0 of a sub-partition, by the tile's column."""
        row = index.add(self.row, index.mul(quarter, QUARTER_LANES))

        def at(column: Index) -> list[Index]:
            places = {"m": row, "n": index.add(self.column, column)}
            return [*self.outer, *(places[letter] for letter in self.layout)]

        return at


Step: TypeAlias = "Callable[[Sequence[ir.Value], Index, Accumulate], None]"
"""``step(sums, number, accumulate)`` loads step `number` of a tile and adds its product to `sums`,
an accumulator for each tile of B."""


class Product(Protocol):
    """The main loop of a kind of product.

    steps: iterations that cover K; sums: element type of the accumulator
    """

    @property
    def steps(self) -> int: ...

    @property
    def sums(self) -> ir.Type: ...

    def at(self, place: Place) -> Step:
        """The steps of the tile at `place`; called before the loop over them."""

    def finish(self, epilogue: Epilogue) -> Epilogue:
        """Applies `epilogue` to the accumulator; called after that loop."""

    def output(self, memory: ir.Value) -> ir.Value:
        """The kernel's output as a matrix of the tiles' rows and columns."""

    def reads(self, source: Source, place: Place) -> Places | None:
        """Indices in the output's tensor, of each lane and the first column, that the epilogue of
        `source` has in the tile at `place`; None: those of the output's matrix."""


class OfMatrices:
    """A product whose sums are the output, a matrix, as they are."""

    def finish(self, epilogue: Epilogue) -> Epilogue:
        """`epilogue` of the sums."""
        return epilogue

    def output(self, memory: ir.Value) -> ir.Value:
        """The kernel's output."""
        return memory

    def reads(self, source: Source, place: Place) -> Places | None:
        """None: the epilogue has the places of the results."""
        return None
