"""Gradients of attention on targets with tcgen05: scores and sums are in tensor memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from tcir._mlir import arith, ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer_type
from tcir.dialect.limits import QUARTER_LANES
from tcir.passes.attention.backward import (
    Backward,
    ColumnBlock,
    GradientTile,
    gradient,
    transposed,
    weight,
)
from tcir.passes.attention.tcgen05 import COLUMNS, ROWS, lanes_of, multiply, quarters, store_words
from tcir.passes.attention.tiles import LongestFirst
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64
from tcir.passes.emit.functions.f32 import constant as number
from tcir.passes.emit.index import Index, constant
from tcir.passes.emit.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    kernel,
    load_registers,
    loop,
)


def tile_in_tensor_memory(source: Source, of: Backward, target: str) -> None:
    """Replaces the source function by the program of one CTA, in program order."""
    order = LongestFirst.of(of.heads, of.blocks.rows)
    with kernel(source, order.grid, target=target) as arguments, of.tile(order) as place:
        tile = _TensorTile(of, arguments, place)
        tile.sum()
        tile.store(arguments[len(source.function.arguments) :])


class _TensorTile(GradientTile):
    """A tile in tensor memory: s and dp of a block, their factors ds and p, and the sums."""

    def __init__(
        self, of: Backward, arguments: Sequence[ir.Value], place: tuple[Index, Index, Index]
    ) -> None:
        super().__init__(of, arguments, place)
        block, count = of.blocks.keys, len(of.widths)
        self.scores, self.gradients = accumulator(block), accumulator(block)
        kind = tc.TmemType.build([ROWS, block], of.op.element)
        self.factors = [tc.TmemTileOp(kind).tile for _ in range(count)]
        self.sums = [accumulator(width) for width in of.widths]

    def sum(self) -> None:
        """Emits the loop over all blocks of columns, which sums up the gradients of the rows."""

        def body(block: ColumnBlock, _: list[ir.Value]) -> list[ir.Value]:
            never = constant(0, integer_type(1))
            for d, a, b in zip((self.scores, self.gradients), self.rows, block.tiles, strict=True):
                multiply(d, a, b, never)
            quarters(lambda quarter: self._weigh(block, quarter), [])
            for d, a, b in zip(self.sums, self.factors, block.tiles, strict=False):
                multiply(d, a, transposed(b), Accumulate(block.number).take())
            return []

        self.blocks(lambda _: [], body)

    def _weigh(self, block: ColumnBlock, quarter: ir.Value) -> list[ir.Value]:
        """Stores the factors of a block, of the rows of a sub-partition."""
        of, (batch, head, row, column) = self.of, block.place
        row = index.add(row, lanes_of(quarter))
        s = load_registers(self.scores, quarter, index.value(0), of.blocks.keys)
        if of.blocks.masked:
            masked = tc.MaskRowsOp(s, *index.values([row, column, of.blocks.count]), s.type)
            of.blocks.band.give(masked)
            s = masked.masked
        query = row if of.op.of_queries else column
        lse, delta = (
            self._loaded(each, [batch, head, query], s.type) for each in (self.lse, self.delta)
        )
        p = weight(of.op.factor)(s, lse)
        if not of.op.of_queries:
            store_words(p, self.factors[1], quarter)
        dp = load_registers(self.gradients, quarter, index.value(0), of.blocks.keys)
        store_words(gradient(dp, p, delta), self.factors[0], quarter)
        return []

    def _loaded(self, tensor: ir.Value, place: list[Index], kind: ir.VectorType) -> ir.Value:
        """Numbers of the queries of a register tile, in its rows or in its columns."""
        loaded = tc.LoadRowsOp(tensor, index.values(place), kind)
        along = "row_dim" if self.of.op.of_queries else "column_dim"
        loaded.attributes[along] = i64(len(place) - 1)
        return loaded.value

    def store(self, outs: Sequence[ir.Value]) -> None:
        """Emits the stores of the gradients: threads store their rows. Gradients that are sums over
        ds are multiplied by the scale of the scores."""
        quarters(lambda quarter: self._stored(outs, quarter), [])

    def _stored(self, outs: Sequence[ir.Value], quarter: ir.Value) -> list[ir.Value]:
        batch, head, row = self.place
        layout = self.of.layouts[0]
        letter = next(each for each in layout if each in "mn")
        names = {"b": batch, "h": head, letter: index.add(row, lanes_of(quarter))}
        for first, (sums, out) in enumerate(zip(self.sums, outs, strict=True)):
            width = sums.type.shape[1]
            count = gcd(width, COLUMNS)
            with loop(width, count) as column:
                found = load_registers(sums, quarter, column, count)
                if first == 0:
                    found = arith.mulf(found, number(found.type, self.of.op.factor))
                kind = ir.VectorType.get([QUARTER_LANES, count], out.type.element_type)
                at = index.values([column if each == "d" else names[each] for each in layout])
                lines = i64(QUARTER_LANES)
                tc.StoreRowsOp(arith.truncf(kind, found), out, at, lines, i64(layout.index(letter)))
        return []
