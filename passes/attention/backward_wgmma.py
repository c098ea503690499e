"""Gradients of attention on targets with wgmma: scores and sums are in registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.dialect.fragments import DEFAULT_ATOM
from tcir.passes.attention.backward import (
    Backward,
    ColumnBlock,
    GradientTile,
    gradient,
    transposed,
    weight,
)
from tcir.passes.attention.tiles import LongestFirst, matrix_of_heads
from tcir.passes.attention.wgmma import warpgroup_kernel
from tcir.passes.emit import index
from tcir.passes.emit.builders import tails
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.tile_kernel import Source


def tile_by_warpgroups(source: Source, of: Backward, target: str) -> None:
    """Replaces the source function by the program of one CTA, in program order."""
    rows = of.blocks.rows
    order = LongestFirst.of(of.heads, rows)
    made = warpgroup_kernel(source, rows, order.grid, target)
    with made as arguments, of.tile(order) as place:
        tile = _RegisterTile(of, arguments, place)
        tile.store(tile.sums(), arguments[len(source.function.arguments) :])


class _RegisterTile(GradientTile):
    """A tile whose scores and sums are in registers."""

    def __init__(
        self, of: Backward, arguments: Sequence[ir.Value], place: tuple[Index, Index, Index]
    ) -> None:
        super().__init__(of, arguments, place)
        size, block, element = of.blocks.rows, of.blocks.keys, of.op.element
        f32, atom = ir.F32Type.get(), DEFAULT_ATOM[str(element)]
        self.scores = tc.FragmentType.build([size, block], f32, "C", atom)
        self.factor = tc.FragmentType.build([size, block], element, "A", atom)
        self.kinds = [tc.FragmentType.build([size, each], f32, "C", atom) for each in of.widths]
        outside = of.heads["m"] % size != 0, of.blocks.count % block != 0
        self.past = ir.StringAttr.get(tails(*outside))

    def sums(self) -> list[ir.Value]:
        """Emits the loop over all blocks of columns; returns the unscaled gradients of the rows."""
        count = len(self.kinds)

        def start(place: list[Index]) -> list[ir.Value]:
            return [*(tc.ZeroFragmentOp(kind).fragment for kind in self.kinds), *self._fetch(place)]

        def body(block: ColumnBlock, carried: list[ir.Value]) -> list[ir.Value]:
            found, numbers = carried[:count], carried[count:]
            for number, factor in self._factors(block, numbers):
                if number == 0 and not self.of.op.of_queries:
                    numbers = self._fetch(block.following())
                c, b = found[number], transposed(block.tiles[number])
                found[number] = tc.WgmmaFragmentOp(factor, b, c, c.type).d
            return [*found, *numbers]

        return self.blocks(start, body)[:count]

    def _factors(
        self, block: ColumnBlock, numbers: Sequence[ir.Value]
    ) -> Iterator[tuple[int, ir.Value]]:
        """Yields the numbers of gradients, and their factors of a block: p of values, ds of others.

        numbers: lse and delta of the queries
        """
        of, place, (lse, delta) = self.of, index.values(block.place), numbers
        scores, gradients = (
            tc.WgmmaProductOp(a, b, self.scores).d
            for a, b in zip(self.rows, block.tiles, strict=True)
        )
        if of.blocks.masked:
            at = index.values([*place[2:], of.blocks.count])
            masked = tc.MaskFragmentOp(scores, *at, self.scores)
            of.blocks.band.give(masked)
            scores = masked.masked
        p = self._computed(scores, place, [lse], weight(of.op.factor))
        if not of.op.of_queries:
            yield 1, tc.FragmentAsAOp(p, self.factor).a
        ds = self._computed(gradients, place, [p, delta], gradient)
        yield 0, tc.FragmentAsAOp(ds, self.factor).a

    def _fetch(self, place: list[Index]) -> list[ir.Value]:
        """lse and delta of the queries, beside the scores of a block. They are loaded a block
        ahead, and with queries in rows once."""
        of_queries, blocks = self.of.op.of_queries, self.of.blocks
        *rows, column = place
        if not isinstance(column, int):  # where a tile has no block, its first one is none
            last = (ceil_div(blocks.count, blocks.keys) - 1) * blocks.keys
            column = arith.minui(column, index.value(last))
        dims = [ir.AffineExpr.get_dim(n) for n in (0, 1, 2 if of_queries else 3)]
        of_query = ir.AffineMapAttr.get(ir.AffineMap.get(4, 0, dims))
        at = index.values([*rows, column])
        return [
            tc.FetchFragmentOp(each, at, of_query, self.past, self.scores).fragment
            for each in (self.lse, self.delta)
        ]

    def _computed(
        self,
        sums: ir.Value,
        place: list[ir.Value],
        beside: Sequence[ir.Value],
        body: Callable[..., ir.Value],
    ) -> ir.Value:
        """`body` of each element of `sums`, and of those of fragments `beside` it."""
        made = tc.FragmentEpilogueOp(sums, place, self.past, self.scores)
        block = made.body.blocks.append(self.scores.element, arg_locs=[made.location])
        same = ir.AffineMapAttr.get(ir.AffineMap.get_identity(4))
        with ir.InsertionPoint(block):
            read = [tc.ElementOp(each, same, self.scores.element).value for each in beside]
            tc.YieldOp(body(block.arguments[0], *read))
        return made.out

    def store(self, sums: Sequence[ir.Value], outs: Sequence[ir.Value]) -> None:
        """Emits the stores of the gradients of the rows. Gradients that are sums over ds are
        multiplied by the scale of the scores."""
        of, (batch, head, row) = self.of, self.place
        past = ir.StringAttr.get(tails(of.heads["m"] % of.blocks.rows != 0, False))
        for number, (each, out) in enumerate(zip(sums, outs, strict=True)):
            matrix, at = matrix_of_heads(out, of.layouts[0], batch, head, row)
            if number == 0:
                factor = tc.FillRowsOp(ir.FloatAttr.get_f32(of.op.factor), self._row()).rows
                each = tc.ScaleFragmentOp(each, factor, each.type).scaled
            tc.StoreFragmentOp(each, matrix, at, past)

    def _row(self) -> tc.FragmentType:
        f32 = ir.F32Type.get()
        return tc.FragmentType.build([self.of.blocks.rows, 1], f32, "row", self.scores.atom)
