"""Tiles of a kernel's output, and the interface of the products that kernels compute."""

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
    """A part of the output, of `rows` by `columns`, that a CTA computes at a time. per_sm: number
    of CTAs that run on an SM at the same time"""

    rows: int
    columns: int
    per_sm: int = 1

    def count(self, rows: int, columns: int) -> int:
        """Number of tiles along the rows and along the columns of an output of this size."""
        return ceil_div(rows, self.rows) * ceil_div(columns, self.columns)

    def past(self, tiles: OutputTiles, rows: int, columns: int) -> str:
        """The dimensions in which `tiles` tiles of this size extend past the output."""
        m, n = round_up(tiles.m, tiles.cluster.m), round_up(tiles.n, tiles.cluster.n)
        return tails(m * self.rows != rows, n * self.columns != columns)


@dataclass(frozen=True)
class TilePlace:
    """The place of a tile in the output: its numbers along m and n, its first row and column, its
    matrix of the batch, and its part of K.

    layout: the order of rows and columns in the output
    number: number of the matrix, counted over all parts
    group: number of the tile's group
    end: row after the last row of the group; None if tiles end only at the end of the output
    """

    row_tile: Index
    column_tile: Index
    row: Index
    column: Index
    batch: Index | None = None
    layout: str = "mn"
    part: Index | None = None
    number: Index | None = None
    group: Index | None = None
    end: Index | None = None

    @staticmethod
    def of(op: ir.OpView, numbers: tuple[Index, Index, Index | None], tile: Tile) -> TilePlace:
        """The place of a `tile`. numbers: the tile's numbers along m and n, and in the batch and
        the parts of the product `op`"""
        row_tile, column_tile, batch = numbers
        row, column = index.mul(row_tile, tile.rows), index.mul(column_tile, tile.columns)
        place = TilePlace(row_tile, column_tile, row, column, batch, out_layout(op), number=batch)
        if batch is None or k_part(op) is None:
            return place
        a = op.operation.operands[0].type
        if a.rank != 3:
            return replace(place, batch=None, part=batch)
        part, matrix = index.div(batch, a.shape[0]), index.rem(batch, a.shape[0])
        return replace(place, part=part, batch=matrix)

    def of_tile(self, number: int, n_tile: int) -> TilePlace:
        """The place of tile `number` among adjacent tiles of `n_tile` columns."""
        return replace(self, column=index.add(self.column, number * n_tile))

    @property
    def outer(self) -> list[Index]:
        """The indices that precede those of row and column."""
        return [each for each in (self.part, self.batch) if each is not None]

    def dim(self, letter: str) -> int:
        """The output's dimension for rows (``m``) or columns (``n``)."""
        return self.layout.index(letter) + len(self.outer)

    def indices(self, quarter: Index) -> Callable[[Index], list[Index]]:
        """Returns a function that gives, for a column of the tile, the indices in the output of
        lane 0 of a sub-partition."""
        row = index.add(self.row, index.mul(quarter, QUARTER_LANES))

        def at(column: Index) -> list[Index]:
            places = {"m": row, "n": index.add(self.column, column)}
            return [*self.outer, *(places[letter] for letter in self.layout)]

        return at


Stored: TypeAlias = "Callable[[ir.Value, TilePlace], None]"
"""``stored(sums, place)`` applies what follows to sums at `place` in the output, and stores it."""
Store: TypeAlias = "Callable[[TilePlace], Stored]"
"""``store(place)``, called after the main loop of a tile, returns the function that stores its
sums."""
Elements: TypeAlias = "tuple[Mapping[ir.Value, ir.Value], Sequence[ir.AffineMap]]"
"""The kernel's memrefs for the tensors that an epilogue reads, and for each the map from row and
column to indices, if it differs from the op's."""
Load: TypeAlias = "Callable[[Index], tuple[ir.Value, Sequence[ir.Value]]]"
"""``load(number)`` loads the tile of A, and those of B, of step `number` of a tile."""
Step: TypeAlias = "Callable[[Sequence[ir.Value], Index, Accumulate], None]"
"""``step(sums, number, accumulate)`` loads step `number` of a tile and adds its product to `sums`,
an accumulator for each tile of B."""


class Product(Protocol):
    """The main loop of one kind of product.

    steps: number of iterations that cover K
    sums: element type of the accumulator
    """

    @property
    def steps(self) -> int: ...

    @property
    def sums(self) -> ir.Type: ...

    def output(self, memory: ir.Value) -> ir.Value:
        """The kernel's output as a matrix with the rows and columns of the tiles."""


class Accumulated(Product, Protocol):
    """A product whose sums are in tensor memory."""

    def at(self, place: TilePlace) -> Step:
        """Returns the steps of the tile at `place`; called before the loop over the steps is
        emitted."""

    def finish(self, epilogue: Epilogue) -> Epilogue:
        """Applies `epilogue` to the accumulator; called after the loop over the steps has been
        emitted."""

    def reads(self, source: Source, place: TilePlace) -> Places | None:
        """Indices of the output's tensor that the epilogue of `source` uses for each lane, at the
        first column of the tile at `place`; None if it uses the indices of the output's matrix."""


class TileProduct(Product, Protocol):
    """A product whose steps are tiles of A and B in shared memory; tcgen05 and wgmma can both
    multiply them."""

    def loads(self, place: TilePlace) -> Load:
        """Returns a function that loads the operands of a step of the tile at `place`; called
        before the loop over the steps is emitted."""

    def elements(self, after: tc.EpilogueOp, arguments: Sequence[ir.Value]) -> Elements:
        """The tensors that `after` reads, in a kernel with these `arguments`."""


class OfMatrices:
    """A product whose sums have the rows and columns of the output matrix."""

    def finish(self, epilogue: Epilogue) -> Epilogue:
        """Returns `epilogue` unchanged."""
        return epilogue

    def output(self, memory: ir.Value) -> ir.Value:
        """The kernel's output."""
        return memory

    def reads(self, source: Source, place: TilePlace) -> Places | None:
        """Returns None: the epilogue reads other tensors at the indices of the results."""
        return None

    def elements(self, after: tc.EpilogueOp, arguments: Sequence[ir.Value]) -> Elements:
        """Maps the tensors that `after` reads to the kernel's arguments."""
        return {each.tensor: argument(arguments, each.tensor) for each in after.elements}, ()
