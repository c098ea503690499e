"""Tiles of a kernel's output, and what a kind of product has to say about one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES
from tcir.dialect.ops.highlevel import k_part, out_layout
from tcir.passes.emit import index
from tcir.passes.emit.builders import tails
from tcir.passes.emit.epilogue import Epilogue
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import Accumulate, Places, Source, argument


@dataclass(frozen=True)
class Tile:
    """rows, columns: of the output, that a CTA computes at a time; per_sm: CTAs of an SM."""

    rows: int
    columns: int
    per_sm: int = 1

    def count(self, rows: int, columns: int) -> int:
        """Tiles of an output of this size."""
        return ceil_div(rows, self.rows) * ceil_div(columns, self.columns)

    def past(self, tiles: OutputTiles, rows: int, columns: int) -> str:
        """Dimensions in which `tiles` like this reach past an output of this size."""
        m, n = round_up(tiles.m, tiles.cluster.m), round_up(tiles.n, tiles.cluster.n)
        return tails(m * self.rows != rows, n * self.columns != columns)


@dataclass(frozen=True)
class Place:
    """Where a tile is in the output: its number along m and n, the first row and column of it, and
    its matrix of a batch, its part of K. `layout`: the order of rows and columns in the output;
    `number`: of the matrix among those of all parts."""

    row_tile: Index
    column_tile: Index
    row: Index
    column: Index
    batch: Index | None = None
    layout: str = "mn"
    part: Index | None = None
    number: Index | None = None

    @staticmethod
    def of(op: ir.OpView, numbers: tuple[Index, Index, Index | None], tile: Tile) -> Place:
        """The place of the `tile` with these numbers along m, n and, of the product `op`, in its
        batch and its parts."""
        row_tile, column_tile, batch = numbers
        row, column = index.mul(row_tile, tile.rows), index.mul(column_tile, tile.columns)
        place = Place(row_tile, column_tile, row, column, batch, out_layout(op), number=batch)
        if batch is None or k_part(op) is None:
            return place
        a = op.operation.operands[0].type
        if a.rank != 3:
            return replace(place, batch=None, part=batch)
        part, matrix = index.div(batch, a.shape[0]), index.rem(batch, a.shape[0])
        return replace(place, part=part, batch=matrix)

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


Stored: TypeAlias = "Callable[[ir.Value, Place], None]"
"""``stored(sums, place)`` stores what follows sums that are at `place` in the output."""
Store: TypeAlias = "Callable[[Place], Stored]"
"""``store(place)``, called after the main loop of a tile, makes what stores its sums."""
Elements: TypeAlias = "tuple[Mapping[ir.Value, ir.Value], Sequence[ir.AffineMap]]"
"""What a kernel has for the tensors that an epilogue reads, and by element the map from row and
column to where it reads them, if not where the op says."""
Load: TypeAlias = "Callable[[Index], tuple[ir.Value, Sequence[ir.Value]]]"
"""``load(number)`` loads the tile of A, and those of B, of step `number` of a tile."""
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

    def output(self, memory: ir.Value) -> ir.Value:
        """The kernel's output as a matrix of the tiles' rows and columns."""


class Accumulated(Product, Protocol):
    """A product whose sums are in tensor memory."""

    def at(self, place: Place) -> Step:
        """The steps of the tile at `place`; called before the loop over them."""

    def finish(self, epilogue: Epilogue) -> Epilogue:
        """Applies `epilogue` to the accumulator; called after that loop."""

    def reads(self, source: Source, place: Place) -> Places | None:
        """Indices in the output's tensor, of each lane and the first column, that the epilogue of
        `source` has in the tile at `place`; None: those of the output's matrix."""


class TileProduct(Product, Protocol):
    """A product whose steps are tiles of A and B in shared memory, which any core multiplies."""

    def loads(self, place: Place) -> Load:
        """What loads the steps of the tile at `place`; called before the loop over them."""

    def elements(self, after: tc.EpilogueOp, arguments: Sequence[ir.Value]) -> Elements:
        """What `after` reads, in a kernel of `arguments`."""


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

    def elements(self, after: tc.EpilogueOp, arguments: Sequence[ir.Value]) -> Elements:
        """The kernel's arguments, where `after` reads them."""
        return {each.tensor: argument(arguments, each.tensor) for each in after.elements}, ()
