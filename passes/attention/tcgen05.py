"""Attention whose scores, exponentials and sums are in tensor memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd

from tcir._mlir import arith, ir, scf, vector
from tcir.dialect import tc
from tcir.dialect.attributes import integer_type
from tcir.dialect.limits import (
    MMA_K_BYTES,
    QUARTER_LANES,
    QUARTERS,
    TMEM_COLUMNS,
    TMEM_LANES,
    Legal,
)
from tcir.passes.attention.tiles import Blocks, HeadShape, HeadTiles, Softmax
from tcir.passes.emit import index
from tcir.passes.emit.builders import flag, i64, mma
from tcir.passes.emit.index import Index, constant
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    block_id,
    kernel,
    load_registers,
    loop,
)

ROWS = TMEM_LANES
"""Queries of a tile, a row in each lane."""
KEYS = Legal((16, 32, 64, 128), "", "columns of one tcgen05.ld, PTX ISA 9.7.16.8")
"""Keys of a block: a warp loads the scores of one at a time."""
COLUMNS = 32
"""Most columns of the sums that a warp scales, or stores, at a time."""


def choose_keys(of: HeadShape) -> int:
    """The most keys of a block with which two CTAs fit an SM: one has its softmax under the
    products of the other. Scores take a column a key, exponentials half of one, sums one an
    element. Where none do, the most keys."""
    fitting = [keys for keys in (128, 64) if keys + keys // 2 + of["e"] <= TMEM_COLUMNS // 2]
    return max(fitting, default=128)


def tile_in_tensor_memory(
    source: Source, of: HeadShape, blocks: Blocks, softmax: Softmax, target: str
) -> None:
    """Replaces the source function by the sequential program of a CTA, see `TileAttention`."""
    op, keys = source.op, blocks.keys
    grid = [ceil_div(of["m"], ROWS), of["h"], of["b"]]
    with kernel(source, grid, target=target) as (q, k, v, out, *lse):
        queries = HeadTiles.create(q, of.q, ROWS, "K")
        tiles = HeadTiles.create(k, of.kv, keys, "K"), HeadTiles.create(v, of.kv, keys, "MN")
        number, head, batch = block_id("x"), block_id("y"), block_id("z")
        if blocks.offset is not None:  # the longest first
            number = index.value(index.sub(grid[0] - 1, number))
        row = index.mul(number, ROWS)
        rows = _Rows(blocks, of["e"], op.v.type.element_type, *softmax.attributes)
        tile = queries.load(batch, head, row)
        result = rows.over(row, tile, tiles, (batch, of.keys_of(head)))
        rows.store(result, out, of.out, (batch, head, row), lse)


@dataclass(frozen=True)
class _Sums:
    """What is known of the rows after some blocks: sums of values in tensor memory, maxima of
    scores and sums of exponentials in registers."""

    values: ir.Value
    largest: ir.Value
    total: ir.Value


@dataclass(frozen=True)
class _Rows:
    """The rows of a tile. width: elements of a result; element: type of factors."""

    blocks: Blocks
    width: int
    element: ir.Type
    scale: ir.FloatAttr
    tau: ir.FloatAttr

    def over(
        self,
        row: Index,
        queries: ir.Value,
        tiles: tuple[HeadTiles, HeadTiles],
        place: tuple[Index, Index],
    ) -> _Sums:
        """The sums over all blocks of keys."""
        keys = self.blocks.keys
        scores, sums = accumulator(keys), accumulator(self.width)
        powers = tc.TmemTileOp(tc.TmemType.build([ROWS, keys], self.element)).tile
        start = [_lane_numbers(float("-inf")), _lane_numbers(0.0)]
        over = self.blocks.loop(row, start, least=1)  # the first is what makes the sums zeros
        with ir.InsertionPoint(over.body):
            step = over.induction_variable
            first = index.mul(step, keys)
            k, v = (
                each.load(*place, first, apart=bool(number)) for number, each in enumerate(tiles)
            )
            _multiply(scores, queries, k, constant(0, integer_type(1)))
            state = self._weigh(scores, powers, sums, (row, first, step), over.inner_iter_args)
            _multiply(sums, powers, v, Accumulate(step).take())
            scf.YieldOp(state)
        return _Sums(sums, *over.results)

    def _weigh(
        self,
        scores: ir.Value,
        powers: ir.Value,
        sums: ir.Value,
        at: tuple[Index, Index, ir.Value],
        state: list[ir.Value],
    ) -> list[ir.Value]:
        """Makes factors of a block's scores, and rescales the sums of the blocks before."""
        row, first, step = at

        def weigh(quarter: ir.Value, largest: ir.Value, total: ir.Value) -> list[ir.Value]:
            rows = load_registers(scores, quarter, index.value(0), self.blocks.keys)
            if self.blocks.masked:
                rows = self._masked(rows, index.add(row, _lanes(quarter)), first)
            before = tc.RowNumbersOp(largest, quarter).mine
            now = tc.RowOnlineMaxOp(before, tc.RowMaxOp(rows).largest, self.scale, self.tau)
            p = tc.RowExponentialsOp(rows, now.reference, self.scale, rows.type).powers
            self._store_powers(p, powers, quarter)
            so_far = tc.RowNumbersOp(total, quarter).mine
            added = _fma(so_far, now.alpha, tc.RowSumOp(p).total)
            later = arith.cmpi(arith.CmpIPredicate.ne, step, index.value(0))
            changed = tc.RowsDifferOp(now.alpha, ir.FloatAttr.get(ir.F32Type.get(), 1.0)).differ
            rescales = arith.andi(later, changed)
            with ir.InsertionPoint(scf.IfOp(rescales).then_block):
                with loop(self.width, self._columns) as column:
                    new = self._scaled(sums, quarter, column, now.alpha)
                    tc.TmemStOp(new, sums, quarter, column)
                scf.YieldOp([])
            return [
                tc.SetRowNumbersOp(largest, quarter, now.after).new,
                tc.SetRowNumbersOp(total, quarter, added).new,
            ]

        return _quarters(weigh, state)

    def _masked(self, rows: ir.Value, row: Index, first: Index) -> ir.Value:
        masked = tc.MaskRowsOp(
            rows, index.value(row), index.value(first), i64(self.blocks.count), rows.type
        )
        self.blocks.limit(masked)
        return masked.masked

    def _store_powers(self, p: ir.Value, powers: ir.Value, quarter: ir.Value) -> None:
        """In 16 bits, two keys a word: A of the product with values."""
        narrow = arith.truncf(ir.VectorType.get(p.type.shape, self.element), p)
        words = ir.VectorType.get([QUARTER_LANES, self.blocks.keys // 2], integer_type(32))
        tc.TmemStWordsOp(
            vector.bitcast(words, narrow), powers, quarter, index.value(0),
            ir.StringAttr.get("32x32b"), flag(False), flag(False),
        )  # fmt: skip

    @property
    def _columns(self) -> int:
        return gcd(self.width, COLUMNS)

    def _scaled(
        self, sums: ir.Value, quarter: ir.Value, column: ir.Value, factors: ir.Value
    ) -> ir.Value:
        """Some columns of the sums, each row by its factor."""
        old = load_registers(sums, quarter, column, self._columns)
        return arith.mulf(old, vector.broadcast(old.type, factors))

    def store(
        self,
        result: _Sums,
        out: ir.Value,
        layout: str,
        place: tuple[Index, Index, Index],
        lse: list[ir.Value],
    ) -> None:
        """Stores the sums of values over those of exponentials, and the logarithms of these."""
        batch, head, row = place
        element = out.type.element_type

        def store(quarter: ir.Value) -> list[ir.Value]:
            total = tc.RowNumbersOp(result.total, quarter).mine
            inverse = tc.RowInverseSumOp(total).inverse
            first = index.add(row, _lanes(quarter))
            with loop(self.width, self._columns) as column:
                value = self._scaled(result.values, quarter, column, inverse)
                if element != value.type.element_type:
                    value = arith.truncf(ir.VectorType.get(value.type.shape, element), value)
                names = {"b": batch, "h": head, "m": first, "d": column}
                at = index.values([names[each] for each in layout])
                tc.StoreRowsOp(value, out, at, i64(QUARTER_LANES), i64(layout.index("m")))
            for tensor in lse:
                largest = tc.RowNumbersOp(result.largest, quarter).mine
                logarithm = tc.RowLogSumOp(largest, total, self.scale).lse
                at = index.values([batch, head, first])
                stored = tc.StoreRowsOp(logarithm, tensor, at, i64(QUARTER_LANES), i64(2))
                stored.attributes["column_dim"] = i64(1)
            return []

        _quarters(store, [])


def _multiply(d: ir.Value, a: ir.Value, b: ir.Value, accumulate: ir.Value) -> None:
    """The product of two tiles, slice by slice."""
    for j in range(b.type.shape[1] * tc.element_bytes(b.type.element) // MMA_K_BYTES):
        mma(d, a, b, constant(1, integer_type(1)) if j else accumulate, j)


def _lane_numbers(value: float) -> ir.Value:
    return tc.LaneNumbersOp(ir.FloatAttr.get(ir.F32Type.get(), value)).numbers


def _lanes(quarter: ir.Value) -> Index:
    """The first lane of a sub-partition."""
    return index.mul(quarter, QUARTER_LANES)


def _quarters(body: Callable[..., list[ir.Value]], state: list[ir.Value]) -> list[ir.Value]:
    """Loops over the four sub-partitions, one for each warp; returns `state` after them."""
    over = scf.ForOp(index.value(0), index.value(QUARTERS), index.value(1), state)
    with ir.InsertionPoint(over.body):
        scf.YieldOp(body(over.induction_variable, *over.inner_iter_args))
    return list(over.results)


def _fma(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """``a * b + c``, rounded once."""
    return ir.Operation.create("math.fma", results=[a.type], operands=[a, b, c]).result
