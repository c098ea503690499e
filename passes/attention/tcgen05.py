"""Attention on targets with tcgen05: scores, exponentials and sums are in tensor memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import TypeAlias

from tcir._mlir import arith, ir, memref, scf, vector
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
from tcir.dialect.ops.memory import SHARES
from tcir.dialect.walk import walk
from tcir.dialect.warp_map import (
    EPILOGUE,
    FOR_ROLE,
    SOFTMAX,
    TCGEN05_ATTENTION,
    WARP_MAP,
    role_of,
)
from tcir.passes.attention.scaled import ScaledHeads, multiply_tiles, scale_columns
from tcir.passes.attention.tiles import (
    KEY,
    ROW,
    Blocks,
    HeadShape,
    HeadTiles,
    KernelTensors,
    LongestFirst,
    Softmax,
    TileRows,
    Turns,
    each_tile,
    kernel_tensors,
)
from tcir.passes.emit import index, simt
from tcir.passes.emit.builders import flag, i64, mma
from tcir.passes.emit.epilogue import Epilogue, fused
from tcir.passes.emit.functions.f32 import fma
from tcir.passes.emit.index import Index, constant
from tcir.passes.emit.kernel_ops import BY_WARP, CTAS_PER_SM
from tcir.passes.emit.lanes import lane_index, spread
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passes.emit.scaled_tiles import ScaledTile
from tcir.passes.emit.staged_store import StagedStore, staged_tile
from tcir.passes.emit.tile_kernel import (
    Accumulate,
    Source,
    accumulator,
    argument,
    kernel,
    load_registers,
    loop,
)

ROWS = TMEM_LANES
"""Queries of a tile, a row in each lane. A CTA has one tile, or two."""
PERSISTENT = 2
"""CTAs of an SM with a tile each: one has its softmax while the other multiplies."""
TILES = Legal((ROWS, 2 * ROWS), "", "512 columns hold two tiles")
"""Queries of a CTA."""
KEYS = Legal((16, 32, 64, 128), "", "columns of one tcgen05.ld, PTX ISA 9.7.16.8")
"""Keys of a block: a warp loads the scores of one at a time."""
LONG = 2048
"""Keys from which on a CTA of two tiles is faster than two CTAs, modelled."""
ELEMENTS = 128
"""Most elements of the queries and keys of two tiles."""
FACTORS, TOTALS = 0, 2
"""Columns of the scores, once these are in registers, in which a softmax leaves numbers for the
epilogue: in each block, and after the last, when those of that block may not have been read yet."""
COLUMN_BYTES = 4
"""Bytes of a lane in a column of tensor memory (PTX ISA 9.7.16.1)."""
COLUMNS = 32
"""Most columns of the sums that a warp scales, or stores, at a time."""


def choose_keys(of: HeadShape, rows: int, modified: bool) -> int:
    """Largest number of keys in a block for which two tiles of queries fit on an SM, so that the
    softmax of one tile overlaps the products of the other. If two tiles never fit, the largest
    number for one tile. Two tiles of a CTA may share columns between scores and exponentials, but
    not with masks, lengths or `modified` scores, which need more registers."""
    shares = rows > ROWS and not (modified or of.band.limits or of.lengths)
    fitting = [keys for keys in (128, 64) if 2 * _columns_of(of, keys, shares) <= TMEM_COLUMNS]
    return max(fitting, default=128)


def choose_rows(of: HeadShape, keys: int, modified: bool) -> int:
    """Number of query rows of a CTA. It is two tiles, which share keys and values, if the cost
    model says that this is faster, else one tile. Two tiles need blocks of 128 keys, and enough
    blocks to outweigh the exposed products at both ends. Masks, `modified` scores (see
    `choose_keys`) and longer rows of elements exclude them, because there are too few registers.

    keys: keys in a block; 0: those of `choose_keys`
    """
    most = KEYS.values[-1]
    fit = keys in (0, most) and 2 * _columns_of(of, most, shares=True) <= TMEM_COLUMNS
    plain = not modified and not of.band.limits and not of.lengths and of["d"] <= ELEMENTS
    return 2 * ROWS if fit and plain and of["m"] > ROWS and of.visited >= LONG else ROWS


def _columns_of(of: HeadShape, keys: int, shares: bool = False) -> int:
    """Columns of tensor memory of a tile: scores take one a key, exponentials half of one, or in 8
    bits a quarter, unless they share those of the scores, sums one an element; scales of queries
    and keys those of their blocks."""
    scales = 0 if of.scaled is None else scale_columns(of.scaled, keys)
    return keys + (0 if shares else keys * of.power_bytes // COLUMN_BYTES) + of["e"] + scales


def tile_in_tensor_memory(
    source: Source,
    of: HeadShape,
    blocks: Blocks,
    softmax: Softmax,
    staged: bool,
    ctas: int,
    target: str,
) -> None:
    """Replaces the source function by the program of one CTA, in program order (`TileAttention`).

    staged: whether TMA stores the results; ctas: number of CTAs that divide the tiles among them;
            0: a CTA for each tile
    """
    op, keys = source.op, blocks.keys
    tiles_of = OutputTiles(of.row_tiles(blocks.rows), of["h"], of["b"] * of.parts)
    longest = LongestFirst.of(of, blocks.rows)
    order = tiles_of if blocks.band.last is None else longest
    if ctas:
        order = longest.shared_by(ctas)
        fits = TMEM_COLUMNS // _columns_of(of, keys)
        source.function.attributes[CTAS_PER_SM] = i64(min(fits, PERSISTENT))
    roles: tuple[str, ...] = (EPILOGUE,)
    if blocks.rows > ROWS:
        roles = SOFTMAX
        source.function.attributes[WARP_MAP] = ir.StringAttr.get(TCGEN05_ATTENTION)
        source.function.attributes[CTAS_PER_SM] = i64(1)
    with kernel(source, order.grid, target=target) as arguments:
        tensors = kernel_tensors(source, of, blocks, arguments, ROWS)
        modify = None
        if op.modified:
            modify = fused(op, [argument(arguments, x.tensor) for x in op.elements], ROW, KEY)
        rows = _Rows(blocks, of["e"], ir.Type.parse(op.powers), softmax, modify, of.scaled)
        shares = len(roles) * _columns_of(of, keys) > TMEM_COLUMNS
        out, stores = tensors[3][0], None
        if staged:
            tile, dim = staged_tile(of["e"], out.type.element_type), len(of.out) - 1
            stores = StagedStore.create(op, out, tile, 1, {}, dim - of.out.index("m"))
        columns = [rows.columns_of(number if shares else None) for number in range(len(roles))]
        of_roles = list(zip(roles, columns, strict=True))
        each_tile(order, partial(_tiles_of, rows, of, tensors, of_roles, stores))


def _tiles_of(
    rows: _Rows,
    of: HeadShape,
    tensors: KernelTensors,
    roles: Sequence[tuple[str, _Columns]],
    stores: StagedStore | None,
    place: tuple[Index, Index, Index],
    turns: Turns,
) -> ir.Value:
    """Emits the tiles of a CTA, one for each of `roles`, with its columns of tensor memory. Returns
    where the loop over blocks has ended.

    stores: stores by TMA; None: threads store
    place:  number of the tile, head, and batch among those of all parts
    """
    queries, operands, limits, (out, *lse) = tensors
    mine, tiles = of.rows_of(rows.blocks, place, limits), []
    for number, (role, columns) in enumerate(roles):
        own = mine.after(number * ROWS)
        loaded = queries.load(own.batch, own.head, own.first)
        tiles.append(_Tile(role, own, loaded, *columns))
    over = rows.over(mine, tiles, operands, of.keys_of(mine.head), turns)
    results = zip(over.results[0::2], over.results[1::2], strict=True)
    for tile, result in zip(tiles, results, strict=True):
        rows.store(tile, result, (out, *lse), of.out, stores)
    return over.upperBound


_Columns: TypeAlias = tuple[ir.Value, ir.Value, ir.Value]
"""Scores, exponentials and sums of a tile, in tensor memory."""


@dataclass(frozen=True)
class _Tile:
    """A tile of rows.

    role: of the warps that have its rows
    queries: in shared memory; scores, powers, sums: in tensor memory
    """

    role: str
    rows: TileRows
    queries: ir.Value | list[ScaledTile]
    scores: ir.Value
    powers: ir.Value
    sums: ir.Value

    @property
    def corrected(self) -> bool:
        """Whether separate epilogue warps rescale and store the sums. They find two numbers of each
        row in the first columns of the scores, after the softmax warps have loaded the scores to
        registers."""
        return self.role != EPILOGUE

    def numbers(self, value: float) -> ir.Value:
        """A register vector that holds ``value`` for each row."""
        made = tc.LaneNumbersOp(ir.FloatAttr.get(ir.F32Type.get(), value))
        self.executes(made)
        return made.numbers

    def quarters(
        self, body: Callable[..., list[ir.Value]], state: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Emits a loop over the four sub-partitions, one for each warp, that carries `state`;
        returns `state` after the loop."""
        over = quarters(body, state)
        self.executes(over)
        return list(over.results)

    def hand_over(self, first: ir.Value, second: ir.Value, quarter: ir.Value, column: int) -> None:
        """Stores two numbers of each row in columns of the scores, for the epilogue warps."""
        (rows, _), element = first.type.shape, first.type.element_type
        both = ir.Operation.create(
            "vector.interleave", [ir.VectorType.get([rows, 2], element)], [first, second]
        ).result
        tc.TmemStOp(both, self.scores, quarter, index.value(column))

    def handed_over(self, quarter: ir.Value, column: int) -> list[ir.Value]:
        """Loads the two numbers that `hand_over` stored."""
        both = load_registers(self.scores, quarter, index.value(column), 2)
        one = ir.VectorType.get([both.type.shape[0], 1], both.type.element_type)
        return list(ir.Operation.create("vector.deinterleave", [one, one], [both]).results)

    def executes(self, made: ir.OpView) -> None:
        """Assigns the ops in `made` to the epilogue warps of this tile."""
        for op in walk(made):
            if role_of(op) == EPILOGUE != self.role:
                op.attributes[FOR_ROLE] = ir.StringAttr.get(self.role)


@dataclass(frozen=True)
class _Rows:
    """The rows of tiles.

    width: elements of a result; element: type of factors; modify: scores of sums, if other
    scaled: scores as block-scaled products, if they are
    """

    blocks: Blocks
    width: int
    element: ir.Type
    softmax: Softmax
    modify: Epilogue | None
    scaled: ScaledShape | None

    @property
    def scale(self) -> ir.FloatAttr:
        """The attribute ``scale``."""
        return self.softmax.attributes[0]

    def columns_of(self, number: int | None) -> _Columns:
        """Allocates the tensor-memory columns of a tile.

        number: if given, exponentials share the columns of the scores under this number, because
            the scores have been loaded to registers by then
        """
        kind = tc.TmemType.build([ROWS, self.blocks.keys], self.element)
        scores, powers = accumulator(self.blocks.keys), tc.TmemTileOp(kind).tile
        if number is not None:
            for each in (scores, powers):
                each.owner.attributes[SHARES] = i64(number)
        return scores, powers, accumulator(self.width)

    def over(
        self,
        mine: TileRows,
        tiles: Sequence[_Tile],
        operands: tuple[HeadTiles | ScaledHeads, HeadTiles],
        shared: Index,
        turns: Turns,
    ) -> scf.ForOp:
        """Emits the loop over all blocks of keys that the rows `mine` visit. Its results are, for
        each tile's rows, the maxima of the scores and the sums of exponentials. shared: head of the
        keys"""
        start = [tile.numbers(value) for tile in tiles for value in (float("-inf"), 0.0)]
        # the first block is what makes the sums zeros
        over, number, first = self.blocks.loop(mine, start, 1, turns)
        with ir.InsertionPoint(over.body):
            step = index.value(number)
            k, v = (
                each.load(mine.batch, shared, index.add(mine.key, first), apart=bool(number))
                for number, each in enumerate(operands)
            )
            state = list(over.inner_iter_args)
            for tile in tiles:
                self._score(tile, k)
            for number, tile in enumerate(tiles):
                own = slice(2 * number, 2 * number + 2)
                state[own] = self._weigh(tile, first, step, state[own])
                multiply(tile.sums, tile.powers, v, Accumulate(step).take())
            scf.YieldOp(state)
        return over

    def _score(self, tile: _Tile, keys: ir.Value | list[ScaledTile]) -> None:
        """Scores of a block of keys."""
        zero = constant(0, integer_type(1))
        if self.scaled is not None:
            multiply_tiles(tile.scores, tile.queries, keys, self.scaled, zero)
        else:
            multiply(tile.scores, tile.queries, keys, zero)

    def _weigh(
        self, tile: _Tile, key: Index, step: ir.Value, state: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """Makes factors of a block's scores, and rescales the sums of the blocks before.

        key: the first of the block
        """
        own = tile.rows

        def weigh(quarter: ir.Value, largest: ir.Value, total: ir.Value) -> list[ir.Value]:
            rows = load_registers(tile.scores, quarter, index.value(0), self.blocks.keys)
            lanes = lanes_of(quarter)
            if self.modify is not None:
                rows = self.modify(rows, [own.batch, own.head, index.add(own.first, lanes), key])
            if self.blocks.masked:
                rows = self._masked(rows, [index.add(own.number, lanes), key, own.keys])
            before = tc.RowNumbersOp(largest, quarter).mine
            now = tc.RowOnlineMaxOp(before, tc.RowMaxOp(rows).largest, *self.softmax.attributes)
            self.softmax.set_below(now)
            if tile.corrected:
                tile.hand_over(now.alpha, now.after, quarter, FACTORS)
            p = self._powers(rows, now.reference)
            if tile.corrected:
                store_words(p, tile.powers, quarter)
            summed = tc.RowSumOp(p).total
            if not tile.corrected:  # in an order of few registers: two CTAs share those of an SM
                store_words(p, tile.powers, quarter)
                self._rescale(tile, quarter, step, now.alpha)
            added = fma(tc.RowNumbersOp(total, quarter).mine, now.alpha, summed)
            return [
                tc.SetRowNumbersOp(largest, quarter, now.after).new,
                tc.SetRowNumbersOp(total, quarter, added).new,
            ]

        after = tile.quarters(weigh, state)
        if tile.corrected:
            quarters(lambda quarter: self._correct(tile, quarter, step), [])
        return after

    def _correct(self, tile: _Tile, quarter: ir.Value, step: ir.Value) -> list[ir.Value]:
        """Rescales the sums of the blocks before by factors that were handed over."""
        alpha, _ = tile.handed_over(quarter, FACTORS)
        self._rescale(tile, quarter, step, alpha)
        return []

    def _rescale(self, tile: _Tile, quarter: ir.Value, step: ir.Value, alpha: ir.Value) -> None:
        """Multiplies the sums of the blocks before by the factors of rows, where one is not 1."""
        later = arith.cmpi(arith.CmpIPredicate.ne, step, index.value(0))
        changed = tc.RowsDifferOp(alpha, ir.FloatAttr.get(ir.F32Type.get(), 1.0)).differ
        differ = arith.andi(later, changed)
        with simt.only_if(differ), loop(self.width, self.columns) as column:
            new = self._scaled(tile.sums, quarter, column, alpha)
            tc.TmemStOp(new, tile.sums, quarter, column)

    def _powers(self, rows: ir.Value, reference: ir.Value) -> ir.Value:
        """Exponentials of scores."""
        made = tc.RowExponentialsOp(rows, reference, self.scale, rows.type)
        if self.softmax.polynomial:
            made.attributes["polynomial"] = i64(self.softmax.polynomial)
        return made.powers

    def _masked(self, rows: ir.Value, place: list[Index]) -> ir.Value:
        masked = tc.MaskRowsOp(rows, *index.values(place), rows.type)
        self.blocks.band.give(masked)
        return masked.masked

    @property
    def columns(self) -> int:
        """Number of columns of the sums that a warp has in registers at a time."""
        return gcd(self.width, COLUMNS)

    def _scaled(
        self, sums: ir.Value, quarter: ir.Value, column: ir.Value, factors: ir.Value
    ) -> ir.Value:
        """Some columns of the sums, each row by its factor."""
        old = load_registers(sums, quarter, column, self.columns)
        return arith.mulf(old, vector.broadcast(old.type, factors))

    def store(
        self,
        tile: _Tile,
        result: tuple[ir.Value, ir.Value],
        tensors: Sequence[ir.Value],
        layout: str,
        stores: StagedStore | None,
    ) -> None:
        """Stores the results (the sums of values divided by the sums of exponentials), and the
        logarithms of the sums of exponentials.

        stores: the stores by TMA; None: threads store the results
        """
        out, *lse = tensors
        end = _End(self, tile, result, out, layout)
        if tile.corrected:
            tile.quarters(end.hand_over, [])
        if stores is not None:
            end.store_by_tma(stores)

        def store(quarter: ir.Value) -> list[ir.Value]:
            numbers, first = end.numbers(quarter), end.first(quarter)
            if stores is None:
                end.store_rows(quarter, first, numbers[0])
            for tensor in lse:
                end.store_logarithms(first, numbers, tensor)
            return []

        if stores is None or lse:
            over = quarters(store, [])
            if stores is not None:  # without an access to tensor memory that says so
                over.attributes[BY_WARP] = ir.UnitAttr.get()


@dataclass(frozen=True)
class _End:
    """What is stored of a tile: `result`, the maxima of scores and the sums of exponentials of its
    rows, and its sums of values to `out`, whose dimensions `layout` names."""

    rows: _Rows
    tile: _Tile
    result: tuple[ir.Value, ir.Value]
    out: ir.Value
    layout: str

    def _own(self, quarter: ir.Value) -> list[ir.Value]:
        return [tc.RowNumbersOp(each, quarter).mine for each in reversed(self.result)]

    def hand_over(self, quarter: ir.Value) -> list[ir.Value]:
        """Emits how a softmax warp passes its sums of exponentials and its maxima to the epilogue
        warps."""
        totals, maxima = self._own(quarter)
        self.tile.hand_over(totals, maxima, quarter, TOTALS)
        return []

    def numbers(self, quarter: ir.Value) -> list[ir.Value]:
        """Sums of exponentials and maxima of the rows of a sub-partition."""
        if self.tile.corrected:
            return self.tile.handed_over(quarter, TOTALS)
        return self._own(quarter)

    def _inverse(self, total: ir.Value) -> ir.Value:
        """Factors of rows."""
        inverse = tc.RowInverseSumOp(total)
        self.rows.softmax.set_times(inverse)
        return inverse.inverse

    def _scaled(self, sums: ir.Value, inverse: ir.Value) -> ir.Value:
        """Sums of values times the factors of rows, in the type of the results."""
        element = self.out.type.element_type
        value = arith.mulf(sums, vector.broadcast(sums.type, inverse))
        if element == value.type.element_type:
            return value
        return arith.truncf(ir.VectorType.get(value.type.shape, element), value)

    def first(self, quarter: Index) -> Index:
        """The first row of a sub-partition."""
        return index.add(self.tile.rows.first, lanes_of(quarter))

    def _place(self, first: Index, column: Index) -> list[ir.Value]:
        """Indices in the results of a row."""
        rows = self.tile.rows
        names = {"b": rows.every, "h": rows.head, "m": first, "d": column}
        return index.values([names[each] for each in self.layout])

    def _row_lanes(self, first: Index, end: Index, layout: str) -> list[ir.Value]:
        """Indices of the lanes' rows, by the letters of `layout`; from `end` on, none is one of a
        row."""
        rows, own = self.tile.rows, lane_index() + first
        kept = own.where(own.below(end), self.out.type.shape[self.layout.index("m")])
        names = {"b": spread(rows.every), "h": spread(rows.head), "m": kept}
        return [names[each].value for each in layout if each in names]

    def store_rows(self, quarter: ir.Value, first: Index, total: ir.Value) -> None:
        """Emits stores in which each thread stores its own row."""
        count, dim = self.rows.columns, i64(self.layout.index("m"))
        inverse, end = self._inverse(total), self.tile.rows.end
        lanes = [] if end is None else self._row_lanes(first, end, self.layout)
        with loop(self.rows.width, count) as column:
            sums = load_registers(self.tile.sums, quarter, column, count)
            value = self._scaled(sums, inverse)
            if lanes:
                tc.StoreLanesOp(value, self.out, lanes, index.value(column))
            else:
                place = self._place(first, column)
                tc.StoreRowsOp(value, self.out, place, i64(QUARTER_LANES), dim)

    def store_by_tma(self, stores: StagedStore) -> None:
        """Emits stores in which warps write their rows to shared memory, from where TMA stores
        them."""
        mine: list[Index] = []

        def indices(quarter: Index) -> Callable[[Index], list[ir.Value]]:
            mine[:] = [quarter]
            return partial(self._place, self.first(quarter))

        def epilogue(sums: ir.Value, _: Sequence[Index]) -> ir.Value:
            return self._scaled(sums, self._inverse(self.numbers(index.value(mine[0]))[0]))

        stores.store(self.tile.sums, indices, epilogue)

    def store_logarithms(self, first: Index, numbers: Sequence[ir.Value], tensor: ir.Value) -> None:
        """Emits stores in which each thread stores the logarithm of its row's sum of
        exponentials."""
        total, largest = numbers
        logarithm = tc.RowLogSumOp(largest, total, self.rows.scale).lse
        rows = self.tile.rows
        if rows.end is not None:
            shape = [*tensor.type.shape, 1]
            kind = ir.MemRefType.get(shape, tensor.type.element_type)
            column = memref.ExpandShapeOp(kind, tensor, [[0], [1], [2, 3]], [], shape).result
            lanes = self._row_lanes(first, rows.end, "bhm")
            tc.StoreLanesOp(logarithm, column, lanes, index.value(0))
            return
        at = index.values([rows.every, rows.head, first])
        stored = tc.StoreRowsOp(logarithm, tensor, at, i64(QUARTER_LANES), i64(2))
        stored.attributes["column_dim"] = i64(1)


def store_words(numbers: ir.Value, factors: ir.Value, quarter: ir.Value) -> None:
    """Stores numbers to tensor memory as operand A of a product, in the type of `factors`: two
    columns per 32-bit word if the type has 16 bits, four if it has 8."""
    element = factors.type.element
    bytes_, kind = tc.element_bytes(element), ir.VectorType.get(numbers.type.shape, element)
    narrow = tc.NarrowRowsOp(numbers, kind).narrow if bytes_ == 1 else arith.truncf(kind, numbers)
    count = numbers.type.shape[1] * bytes_ // COLUMN_BYTES
    words = ir.VectorType.get([QUARTER_LANES, count], integer_type(32))
    tc.TmemStWordsOp(
        vector.bitcast(words, narrow),
        factors,
        quarter,
        index.value(0),
        ir.StringAttr.get("32x32b"),
        flag(False),
        flag(False),
    )


def multiply(d: ir.Value, a: ir.Value, b: ir.Value, accumulate: ir.Value) -> None:
    """Emits the product of two tiles, one mma for each K slice."""
    for j in range(b.type.shape[1] * tc.element_bytes(b.type.element) // MMA_K_BYTES):
        mma(d, a, b, constant(1, integer_type(1)) if j else accumulate, j)


def quarters(body: Callable[..., list[ir.Value]], state: Sequence[ir.Value]) -> scf.ForOp:
    """Emits a loop over the four sub-partitions, one for each warp of the epilogue, that carries
    `state`."""
    over = scf.ForOp(index.value(0), index.value(QUARTERS), index.value(1), state)
    with ir.InsertionPoint(over.body):
        scf.YieldOp(body(over.induction_variable, *over.inner_iter_args))
    return over


def lanes_of(quarter: ir.Value) -> Index:
    """The first lane of a sub-partition."""
    return index.mul(quarter, QUARTER_LANES)
