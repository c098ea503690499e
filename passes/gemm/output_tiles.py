"""Which tiles of the output a CTA computes: one, or several one after another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tcir._mlir import arith, ir
from tcir.dialect.cta_pair import PAIR
from tcir.passes.build import index
from tcir.passes.build.index import Index
from tcir.passes.build.limits import ceil_div, round_up
from tcir.passes.build.tile_kernel import block_id, counting_loop, loop

GROUP = 8
"""Rows of tiles in a group. The CTAs that run at a time have consecutive tiles; in groups they read
fewer rows of A and columns of B from memory, the rest from L2 (DeepGEMM takes 8 or 16)."""


@dataclass(frozen=True)
class OutputTiles:
    """The tiles of an output: `m` by `n`, times `batch` if there is one.

    ctas: CTAs that share the tiles out, one tile of them after another; None: one CTA per tile
    taken_over: one CTA per tile, in a loop of one turn that `cluster-launch-control` makes one over
                the CTAs taken over
    pairs: whether two CTAs that are next to each other along x have tiles of the same columns
    """

    m: int
    n: int
    batch: int | None
    ctas: int | None = None
    taken_over: bool = False
    pairs: bool = False

    @property
    def count(self) -> int:
        """All of them."""
        return self.m * self.n * (self.batch or 1)

    @property
    def grid(self) -> list[int]:
        """CTAs along x, y and z."""
        if self.ctas is not None:
            return [self.ctas, 1, 1]
        rows = round_up(self.m, PAIR) if self.pairs else self.m
        return [rows, self.n, self.batch or 1]

    @property
    def cluster(self) -> list[int] | None:
        """CTAs of a cluster along x, y and z, if there are clusters."""
        return [PAIR, 1, 1] if self.pairs else None

    @contextmanager
    def each(self) -> Iterator[tuple[Index, Index, Index | None]]:
        """Where the CTA's next tile is: its number along m, along n, and in the batch.

        A persistent CTA c has the tiles c, c + ctas, … in the order of `_place`.
        """
        if self.ctas is None:
            yield block_id("x"), block_id("y"), None if self.batch is None else block_id("z")
            return
        if self.taken_over:
            with counting_loop(0, 1, self.count):
                yield self._place(block_id("x"))
            return
        cta, most = block_id("x"), ceil_div(self.count, self.ctas)
        if self.count % self.ctas:
            behind = index.div(index.sub(self.count - 1, cta), self.ctas)
            turns = counting_loop(0, index.add(behind, 1), most)
        else:
            turns = loop(most)
        with turns as turn:
            yield self._place(index.add(index.mul(turn, self.ctas), cta))

    def _place(self, number: Index) -> tuple[Index, Index, Index | None]:
        """Tile `number` of the grouped order: down the rows of a group, then the next column."""
        batch = None
        if self.batch is not None:
            batch, number = index.div(number, self.m * self.n), index.rem(number, self.m * self.n)
        rows, last = min(GROUP, self.m), self.m % min(GROUP, self.m)
        group, inside = index.div(number, rows * self.n), index.rem(number, rows * self.n)

        def of_rows(rows: int, first: Index) -> tuple[Index, Index]:
            return index.add(first, index.rem(inside, rows)), index.div(inside, rows)

        place = of_rows(rows, index.mul(group, rows))
        if last:
            whole = self.m - last
            short = of_rows(last, whole)
            is_short = arith.cmpi(arith.CmpIPredicate.uge, number, index.value(whole * self.n))
            place = _select(is_short, short[0], place[0]), _select(is_short, short[1], place[1])
        return *place, batch


def _select(condition: ir.Value, then: Index, otherwise: Index) -> Index:
    return arith.select(condition, index.value(then), index.value(otherwise))
