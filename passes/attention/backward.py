"""Gradients of attention: tiles of rows, blocks of columns, and the numbers computed from each
score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tcir._mlir import arith, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.loops import MOST_TRIPS
from tcir.dialect.ops.attention import LOG2_E, Band
from tcir.passes.analysis.strided import strided
from tcir.passes.attention.tiles import Blocks, HeadShape, HeadTiles, LongestFirst
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.functions.f32 import constant, fma
from tcir.passes.emit.index import Index
from tcir.passes.emit.tile_kernel import argument


@dataclass(frozen=True)
class Backward:
    """How a gradient of attention divides the scores into tiles, and which operands the rows and
    columns of a tile belong to.

    rows, columns: letters of the operands and gradients that belong to rows and to columns: queries
        and keys, or the reverse
    blocks: blocks of columns for tiles of rows
    heads: heads of the rows
    group: number of heads of columns for each head of rows
    """

    op: tc.AttentionBackwardOp
    layouts: tuple[str, str]
    blocks: Blocks
    heads: HeadShape
    group: int

    @staticmethod
    def of(op: tc.AttentionBackwardOp, rows: int, block: int) -> Backward:
        """The tiling of an op's scores into tiles of `rows` rows and blocks of `block` columns."""
        of, band, bytes_ = op.extents(), op.band, tc.element_bytes(op.element)
        q, kv = (string(op, f"{name}_layout") for name in ("q", "kv"))
        if op.of_queries:
            heads = HeadShape(of, q, kv, q, of["n"], band, bytes_)
            return Backward(op, (q, kv), heads.blocks(rows, block), heads, 1)
        first, last = (None if each is None else -each for each in (band.last, band.first))
        swapped = {**of, "h": of["g"], "m": of["n"], "n": of["m"]}
        heads = HeadShape(swapped, kv, q, kv, of["m"], Band(first, last), bytes_)
        return Backward(op, (kv, q), heads.blocks(rows, block), heads, of["h"] // of["g"])

    @property
    def widths(self) -> list[int]:
        """Number of elements per row of each gradient that belongs to the rows."""
        return [self.heads["d"], self.heads["e"]][: 1 if self.op.of_queries else 2]

    @contextmanager
    def tile(self, order: LongestFirst) -> Iterator[tuple[Index, Index, Index]]:
        """The batch, the head and the first row of a CTA's tile, from its place in the order of
        tiles."""
        with order.each() as (last, head, batch):
            number = last
            if not self.op.of_queries:  # early keys have the most queries
                number = index.sub(order.rows - 1, last)
            yield batch, head, index.mul(number, self.blocks.rows)


@dataclass(frozen=True)
class ColumnBlock:
    """A block of columns.

    place: place of its scores: batch, query head, row and column
    number: number of the block
    tiles: the tiles from which scores s and their gradients dp are computed
    following: emits the place of the next block, or of this block if it is the last
    """

    place: list[Index]
    number: ir.Value
    tiles: tuple[ir.Value, ir.Value]
    following: Callable[[], list[Index]]


class GradientTile:
    """A tile of rows.

    rows: the tiles from which scores s and their gradients dp are computed
    place: batch, head and first row
    """

    def __init__(
        self, of: Backward, arguments: Sequence[ir.Value], place: tuple[Index, Index, Index]
    ) -> None:
        op, self.of, self.place = of.op, of, place
        pairs = [(op.q, op.dout), (op.k, op.v)]
        rows, columns = pairs if op.of_queries else reversed(pairs)

        def tiles(tensors: Sequence[ir.Value], layout: str, count: int) -> list[HeadTiles]:
            return [
                HeadTiles.create(arguments, strided(each), layout, count, "d") for each in tensors
            ]

        maps = tiles(rows, of.layouts[0], of.blocks.rows)
        self.columns = tiles(columns, of.layouts[1], of.blocks.keys)
        self.lse, self.delta = (argument(arguments, each) for each in (op.lse, op.delta))
        first, second = (each.load(*place) for each in maps)
        self.rows = first, second

    def blocks(
        self,
        start: Callable[[list[Index]], Sequence[ir.Value]],
        body: Callable[[ColumnBlock, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """Emits the loop over all blocks of columns.

        start: emits the loop's initial values; it receives the place of the first block
        body: emits a block; returns the values that the loop carries
        """
        of, (batch, head, row) = self.of, self.place
        before, visited = of.blocks.visited(row, 0, of.blocks.count)

        def at(step: Index) -> list[Index]:
            """The place of the scores of the block in loop iteration `step`."""
            column = index.mul(index.add(index.div(step, of.group), before), of.blocks.keys)
            own = index.add(index.mul(head, of.group), index.rem(step, of.group))
            return [batch, head if of.op.of_queries else own, row, column]

        first = start(at(0))
        if not first and not isinstance(visited, int):  # the first block makes the sums zeros
            visited = arith.maxui(visited, index.value(1))
        end = index.value(index.mul(visited, of.group))
        loop = scf.ForOp(index.value(0), end, index.value(1), first)
        if not isinstance(visited, int):
            loop.attributes[MOST_TRIPS] = i64(of.blocks.most * of.group)
        with ir.InsertionPoint(loop.body):
            step = loop.induction_variable

            def following() -> list[Index]:
                last = index.value(index.sub(end, 1))
                return at(arith.minui(index.value(index.add(step, 1)), last))

            _, own, _, column = place = at(step)
            other = of.heads.keys_of(head) if of.op.of_queries else own
            third, fourth = (each.load(batch, other, column) for each in self.columns)
            block = ColumnBlock(place, step, (third, fourth), following)
            scf.YieldOp(body(block, list(loop.inner_iter_args)))
        return list(loop.results)


def transposed(tile: ir.Value) -> ir.Value:
    """The transpose of a tile, in the same bytes."""
    kind = tile.type
    turned = tc.SmemType.build(kind.shape[::-1], kind.element, "MN", kind.swizzle)
    return tc.SmemTransposedOp(tile, turned).transposed


def weight(scale: float) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """Emits ``exp(scale * score - lse)``, or 0 where lse is -inf: an fma, which computes the
    exponent of 2, and an ex2."""

    def body(score: ir.Value, lse: ir.Value) -> ir.Value:
        kind = score.type
        none, c, log2_e = (
            constant(kind, each) for each in (float("-inf"), scale * LOG2_E, -LOG2_E)
        )
        dead = arith.cmpf(arith.CmpFPredicate.OEQ, lse, none)
        shift = arith.select(dead, none, arith.mulf(lse, log2_e))
        exponent = fma(score, c, shift)
        return ir.Operation.create("math.exp2", results=[kind], operands=[exponent]).result

    return body


def gradient(dp: ir.Value, p: ir.Value, delta: ir.Value) -> ir.Value:
    """Emits the gradient of a scaled score, from dp, the probability p and delta."""
    return arith.mulf(p, arith.subf(dp, delta))
