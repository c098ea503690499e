"""The tiles of the output that a CTA computes: one tile, or several one after another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

from tcir._mlir import arith, ir
from tcir.passes.emit import index
from tcir.passes.emit.cluster import ALONE, ClusterShape
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.tile_kernel import block_id, counting_loop, loop

GROUP = 8
"""Rows of tiles in a group. The CTAs that run at a time have consecutive tiles; in groups they read
fewer rows of A and columns of B from memory, the rest from L2 (DeepGEMM takes 8 or 16)."""


@dataclass(frozen=True)
class OutputTiles:
    """The tiles of an output: `m` by `n` tiles, for each element of the batch if there is a batch.

    ctas: CTAs that divide the tiles among them; None: one CTA per tile. The CTAs of a cluster
    compute neighbouring tiles at the same time
    taken_over: one CTA per tile, in a loop of one iteration that `cluster-launch-control` turns
    into a loop over the CTAs, or pairs of CTAs, taken over
    cluster: CTAs that have neighbouring tiles; the two of a pair have tiles of the same columns
    group: rows of tiles in a group
    """

    m: int
    n: int
    batch: int | None
    ctas: int | None = None
    taken_over: bool = False
    cluster: ClusterShape = ALONE
    group: int = GROUP

    @property
    def count(self) -> int:
        """Number of tiles, including the tiles that are added to fill up clusters."""
        m, n = round_up(self.m, self.cluster.m), round_up(self.n, self.cluster.n)
        return m * n * (self.batch or 1)

    @property
    def grid(self) -> list[int]:
        """CTAs along x, y and z."""
        if self.ctas is not None:
            return [self.ctas, 1, 1]
        m, n = round_up(self.m, self.cluster.m), round_up(self.n, self.cluster.n)
        return [m, n, self.batch or 1]

    @property
    def cluster_shape(self) -> list[int] | None:
        """Numbers of CTAs of a cluster along x, y and z, if there are clusters."""
        if self.cluster == ALONE:
            return None
        if self.ctas is not None:
            return [self.cluster.ctas, 1, 1]
        return [self.cluster.m, self.cluster.n, 1]

    def shared_by(self, ctas: int) -> Self:
        """Divides these tiles among at most `ctas` CTAs, in whole clusters."""
        together = self.cluster.ctas
        return replace(self, ctas=min(self.count, ctas // together * together))

    def launched_each(self) -> Self:
        """These tiles with one CTA for each, which the hardware launches or a running CTA takes
        over."""
        return replace(self, ctas=self.count, taken_over=True)

    def fewest_ctas(self, most: int) -> int:
        """Fewest CTAs that compute all tiles in as many rounds as `most` CTAs would.

        A round is the time in which each CTA computes one tile. A round takes equally long on fewer
        SMs, and an idle SM leaves its power to the other SMs: on an H200, matrix products of 4096³
        to 8192³ are 1 % faster with 128 CTAs than with 132 CTAs, in the same number of rounds.
        """
        together = self.cluster.ctas
        tiles = self.count // together
        return ceil_div(tiles, ceil_div(tiles, most // together)) * together

    @contextmanager
    def each(self) -> Iterator[tuple[Index, Index, Index | None]]:
        """Position of the CTA's next tile along m, along n, and in the batch.

        A persistent CTA c computes the tiles c, c + ctas, … in the order of `place`. If there are
        clusters, clusters of CTAs compute clusters of tiles in the same way.
        """
        if self.ctas is None:
            yield block_id("x"), block_id("y"), None if self.batch is None else block_id("z")
            return
        group = self.cluster.ctas
        if self.taken_over:
            with counting_loop(0, 1, self.count // group):
                yield self.place(index.div(block_id("x"), group))
            return
        count, sharing = self.count // group, self.ctas // group
        number, most = index.div(block_id("x"), group), ceil_div(count, sharing)
        if count % sharing:
            behind = index.div(index.sub(count - 1, number), sharing)
            turns = counting_loop(0, index.add(behind, 1), most)
        else:
            turns = loop(most)
        with turns as turn:
            yield self.place(index.add(index.mul(turn, sharing), number))

    def place(self, number: Index) -> tuple[Index, Index, Index | None]:
        """The position of tile `number` in the grouped order: down the rows of a group, then on to
        the next column.

        With clusters, `number` counts clusters of tiles, and the tile is the one that this CTA
        computes.
        """
        batch, m, n = None, ceil_div(self.m, self.cluster.m), ceil_div(self.n, self.cluster.n)
        if self.batch is not None:
            batch, number = index.div(number, m * n), index.rem(number, m * n)
        rows = min(self.group // self.cluster.m, m)
        last = m % rows
        group, inside = index.div(number, rows * n), index.rem(number, rows * n)

        def of_rows(rows: int, first: Index) -> tuple[Index, Index]:
            return index.add(first, index.rem(inside, rows)), index.div(inside, rows)

        place = of_rows(rows, index.mul(group, rows))
        if last:
            whole = m - last
            short = of_rows(last, whole)
            is_short = arith.cmpi(arith.CmpIPredicate.uge, number, index.value(whole * n))
            place = _select(is_short, short[0], place[0]), _select(is_short, short[1], place[1])
        row, column = place
        if self.cluster != ALONE:
            row = index.add(index.mul(row, self.cluster.m), self.cluster.along_m())
            column = index.add(index.mul(column, self.cluster.n), self.cluster.along_n())
        return row, column, batch


def _select(condition: ir.Value, then: Index, otherwise: Index) -> Index:
    return arith.select(condition, index.value(then), index.value(otherwise))
