"""Tiles of queries, keys and values in shared memory, and the part of an attention that one CTA
computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import gcd
from typing import TypeAlias

from tcir._mlir import arith, ir, memref, scf
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.limits import GRID, SWIZZLE_OF_SPAN
from tcir.dialect.loops import MOST_TRIPS
from tcir.dialect.ops.attention import Band
from tcir.dialect.ops.grouped import most_tiles
from tcir.dialect.ops.tma import APART
from tcir.passes.analysis.head_maps import MapDim, map_dims, row_of
from tcir.passes.analysis.strided import Strided, strided
from tcir.passes.attention.scaled import ScaledHeads, scores_of
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, i64, make_tensor_map, tma_load
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.scaled_shape import ScaledShape
from tcir.passes.emit.tile_kernel import Source, argument, block_id

HEAD, ROW, KEY = 1, 2, 3
"""Dimensions of scores, which are ``[b, h, m, n]``."""


@dataclass(frozen=True)
class TileRows:
    """Rows of a tile, and the keys that they may have.

    batch, head: numbers of the batch and the head of the queries
    every:  number of the batch, counted over all parts of the keys
    first:  first row in the tensors
    number: number of the first row in the band (`Band`)
    part:   number of the part of the keys
    keys:   number of all keys
    key:    first key in the tensors
    end:    row after the last row that is stored; None: all rows are stored
    """

    batch: Index
    every: Index
    head: Index
    first: Index
    number: Index
    part: Index
    keys: Index
    key: Index = 0
    end: Index | None = None

    def after(self, count: int) -> TileRows:
        """Returns the rows that begin `count` rows after these."""
        first, number = (index.add(each, count) for each in (self.first, self.number))
        return replace(self, first=first, number=number)


RESIDENT = 32 << 20
"""Bytes of keys and values of the heads that CTAs compute at a time: they stay in L2 (50 MB)."""


@dataclass(frozen=True)
class LongestFirst:
    """An order of tiles: within a group of heads the tiles with the most keys come first.

    The last CTAs then have the shortest tiles, and all SMs finish at about the same time. If CTAs
    computed one head after another, a long tile of the last head would begin late; with 4096 rows
    and a causal mask that costs up to a tenth of the kernel's time.

    rows: row tiles of a head; heads: heads of a batch; batch: number of batches times parts of the
          keys; together: heads of a group, a divisor of `heads`
    ctas: number of CTAs that divide the tiles of all heads among them; None: a CTA for each tile
    """

    rows: int
    heads: int
    batch: int
    together: int
    ctas: int | None = None

    @staticmethod
    def of(shape: HeadShape, rows: int) -> LongestFirst:
        """Returns the order of tiles of `rows` rows, in groups of heads whose keys and values stay
        in L2."""
        heads, batch = shape["h"], shape["b"] * shape.parts
        most = max(RESIDENT // shape.key_bytes, 1) * shape.group
        together = max(
            each
            for each in range(1, heads + 1)
            if heads % each == 0 and (each <= most or each == 1 or batch * heads > GRID[2])
        )
        return LongestFirst(shape.row_tiles(rows), heads, batch, together)

    def shared_by(self, ctas: int) -> LongestFirst:
        """Divides these tiles among at most `ctas` CTAs."""
        return replace(self, ctas=min(ctas, self.count))

    @property
    def count(self) -> int:
        """Number of tiles."""
        return self.rows * self.heads * self.batch

    @property
    def grid(self) -> list[int]:
        """CTAs along x, y and z: heads of a group, tiles, groups of all batches."""
        if self.ctas is not None:
            return [self.ctas, 1, 1]
        return [self.together, self.rows, self.batch * self.heads // self.together]

    @contextmanager
    def each(self) -> Iterator[tuple[Index, Index, Index]]:
        """Yields the CTA's tile, head and batch, like `OutputTiles.each`."""
        groups = self.heads // self.together
        batch, group = index.div(block_id("z"), groups), index.rem(block_id("z"), groups)
        head = index.add(index.mul(group, self.together), block_id("x"))
        yield index.sub(self.rows - 1, block_id("y")), head, batch

    def turns(self) -> tuple[scf.ForOp, int]:
        """Emits the loop of a persistent CTA over its tiles, which carries an index that starts at
        0. Also returns the largest number of tiles of a CTA.

        CTA c of C has the tiles c, 2 C - 1 - c, 2 C + c, …: in every other turn the order of CTAs
        is reversed, so that no CTA has the longest tile of every turn.
        """
        assert self.ctas is not None
        whole, rest = divmod(self.count, self.ctas)
        turns: Index = whole
        if rest:
            place = self._turned(whole)
            more = arith.cmpi(arith.CmpIPredicate.ult, index.value(place), index.value(rest))
            turns = arith.select(more, index.value(whole + 1), index.value(whole))
        zero = index.value(0)
        loop = scf.ForOp(zero, index.value(turns), index.value(1), [zero])
        if rest:
            loop.attributes[MOST_TRIPS] = i64(whole + 1)
        return loop, whole + bool(rest)

    def of_turn(self, turn: ir.Value) -> tuple[Index, Index, Index]:
        """The tile, head and batch that a persistent CTA computes in a turn; tiles are counted over
        all heads."""
        assert self.ctas is not None
        odd = arith.cmpi(arith.CmpIPredicate.ne, index.value(index.rem(turn, 2)), index.value(0))
        mine = arith.select(odd, index.value(self._turned(1)), index.value(self._turned(0)))
        number = index.add(index.mul(turn, self.ctas), mine)
        heads = self.heads * self.batch
        head = index.rem(number, heads)
        tile = index.sub(self.rows - 1, index.div(number, heads))
        return tile, index.rem(head, self.heads), index.div(head, self.heads)

    def _turned(self, turn: int) -> Index:
        """The CTA's place in a turn."""
        assert self.ctas is not None
        return index.sub(self.ctas - 1, block_id("x")) if turn % 2 else block_id("x")


Turns: TypeAlias = tuple[Index, int]
"""Of a persistent CTA: the blocks of its earlier tiles, and the most tiles."""


def each_tile(
    tiles: OutputTiles | LongestFirst,
    body: Callable[[tuple[Index, Index, Index], Turns], ir.Value],
) -> None:
    """Emits the tiles of a CTA.

    body: emits the tile with this number, head and batch; returns the end of its loop over blocks
        of keys
    """
    if isinstance(tiles, OutputTiles) or tiles.ctas is None:
        with tiles.each() as (number, head, batch):
            assert batch is not None
            body((number, head, batch), (0, 1))
        return
    turns, most = tiles.turns()
    with ir.InsertionPoint(turns.body):
        (since,) = turns.inner_iter_args
        scf.YieldOp([body(tiles.of_turn(turns.induction_variable), (since, most))])


@dataclass(frozen=True)
class HeadTiles:
    """Tiles of whole rows of one head in shared memory.

    The dimension that is innermost in memory (the elements or the rows of a head) is divided into
    columns of one swizzle span each; one TMA box fills one column. The tile is K-major if a product
    sums over that dimension.
    """

    type: tc.SmemType
    map: ir.Value
    layout: str
    dims: tuple[MapDim, ...]
    pages: Pages | None = None

    @staticmethod
    def create(
        arguments: Sequence[ir.Value],
        heads: Strided,
        layout: str,
        rows: int,
        summed: str,
        pages: Pages | None = None,
    ) -> HeadTiles:
        """Describes tiles of `rows` rows of `heads`, a view of an argument of the source function,
        and builds the tensor map from the kernel's `arguments`. layout: letters of the heads'
        dimensions

        summed: letter of the dimension that the product sums over
        """
        tensor = argument(arguments, heads.base)
        element = tensor.type.element_type
        bytes_, dims = tc.element_bytes(element), map_dims(heads, layout)
        extents = {"d": heads.shape[layout.index("d")], row_of(layout): rows}
        inner, (other,) = dims[0].letter, (each for each in extents if each != summed)
        box = extents if pages is None else extents | {row_of(layout): gcd(rows, pages.size)}
        span = max(each for each in SWIZZLE_OF_SPAN if box[inner] * bytes_ % each == 0)
        shape, major = [extents[other], extents[summed]], "K" if inner == summed else "MN"
        tile = tc.SmemType.build(shape, element, major, SWIZZLE_OF_SPAN[span])
        box = box | {inner: span // bytes_}
        made = make_tensor_map(
            tensor,
            TmaBox([box.get(each.letter, 1) for each in dims]),
            dims=[each.start + each.size for each in dims],
            strides=[each.stride * bytes_ for each in dims[1:]],
            swizzle=tile.swizzle,
        )
        return HeadTiles(tile, made, layout, tuple(dims), pages)

    def load(self, batch: Index, head: Index, row: Index, apart: bool = False) -> ir.Value:
        """Loads a tile of rows from `row` on. apart: whether the load has mbarriers of its own (see
        place-barriers)"""
        tile = tc.SmemTileOp(self.type).tile
        outer, inner = self.type.shape[:: 1 if self.type.major == "K" else -1]
        columns, letter = self.type.span // tc.element_bytes(self.type.element), self.dims[0].letter
        across = letter == row_of(self.layout)  # whether a column of the tile is some of the rows
        rows = inner if across else outer
        box = columns if across else gcd(rows, self.pages.size) if self.pages else rows
        for first in range(0, rows, box):
            place = batch, index.add(row, first)
            if self.pages is not None:
                place = self.pages.place(*place)
            at = {"b": place[0], "h": head, row_of(self.layout): place[1]}
            for column in [first // columns] if across else range(inner // columns):
                at["d"] = 0 if across else column * columns
                coords = index.values([each.coordinate(at[each.letter]) for each in self.dims])
                begin, lines = (column * outer, outer) if across else (column * outer + first, box)
                load = tma_load(self.map, coords, tile, begin, lines * self.type.span)
                if apart:
                    load.attributes[APART] = ir.UnitAttr.get()
        return tile


@dataclass(frozen=True)
class Pages:
    """Pages of keys and values.

    table: the kernel's argument that holds, for each batch, how many keys it has and the indices of
        its pages; size: number of keys in a page; count: number of pages
    """

    table: ir.Value
    size: int
    count: int

    def place(self, batch: Index, key: Index) -> tuple[Index, Index]:
        """Returns the page of a batch's key, and the key's number in that page. Keys beyond the
        table are given a page that does not exist, so TMA fills them with zeros. Their weight is 0,
        but values of another page could be infinite, and 0 times infinity is NaN."""
        last = index.value(self.table.type.shape[-1] - 1)
        number = index.value(index.add(index.div(key, self.size), 1))
        inside = arith.cmpi(arith.CmpIPredicate.ule, number, last)
        place = index.values([batch, arith.minui(number, last)])
        page = tc.LoadIndexOp(self.table, place).value
        page = arith.select(inside, page, index.value(self.count))
        return page, index.rem(key, self.size)


@dataclass(frozen=True)
class HeadShape:
    """The heads of an attention as a kernel sees them.

    extents: b, h, m, d of queries, g, n of keys, e of values
    q, kv, out: layouts of the queries, of keys and values, and of the results
    keys: number of keys of the last row; band: keys of each row
    packed: whether the query heads of a group are rows of one head
    power_bytes: bytes of an exponential that multiplies values
    parts, part: number of parts of the keys, whose results are separate, and keys per part
    lengths: whether each batch has its own number of keys
    sequences: number of sequences; 0: there are none; aligned_ends: whether the last row of a
               sequence has the number of its last key
    scaled: scores as block-scaled products; None: queries and keys have no scales
    """

    extents: dict[str, int]
    q: str
    kv: str
    out: str
    keys: int
    band: Band
    power_bytes: int
    packed: bool = False
    parts: int = 1
    part: int | None = None
    lengths: bool = False
    sequences: int = 0
    aligned_ends: bool = False
    scaled: ScaledShape | None = None

    @staticmethod
    def of(op: tc.AttentionOp) -> HeadShape:
        """Reads the heads of an op, without joining the heads of a group."""
        q, kv, out = (string(op, f"{name}_layout") for name in ("q", "kv", "out"))
        extents = op.extents()
        parts, lengths = (op.parts, op.key_part), op.lengths is not None
        bytes_ = tc.element_bytes(ir.Type.parse(op.powers))
        return HeadShape(
            extents, q, kv, out, extents["n"], op.band, bytes_, False, *parts, lengths,
            op.sequences, op.aligned_ends, scores_of(op),
        )  # fmt: skip

    def together(self, elements: Sequence[ir.OpView]) -> HeadShape:
        """The shape in which the query heads of a group, which read the same keys, become rows of
        one head. It is used if each head has a single row: a decoding step then reads its keys
        once. Otherwise returns this shape.

        elements: reads of other tensors by the scores, which must not depend on head or row
        """
        last, first = self.band.last, self.band.first or 0
        keys = self.keys if last is None else min(self.keys, last + 1)
        alike = all(HEAD not in each.dims and ROW not in each.dims for each in elements)
        several = self["m"] > 1 or self.sequences > 0 or self.scaled is not None
        if several or self.group == 1 or keys < 1 or not alike or first > 0:
            return self
        rows = {**self.extents, "h": self["g"], "m": self.group}
        return replace(
            self, extents=rows, q="bhmd", out="bhmd", keys=keys, band=Band(), packed=True
        )

    @property
    def group(self) -> int:
        """Number of query heads that read the same keys."""
        return self["h"] // self["g"]

    @property
    def key_bytes(self) -> int:
        """Bytes of the keys and values of one head."""
        return self["n"] * (self["d"] + self["e"]) * self.power_bytes

    @property
    def visited(self) -> int:
        """Largest number of keys that a CTA visits."""
        return min(self.keys, self.part or self.keys)

    def keys_of(self, head: Index) -> Index:
        """The head of keys and values that a head of queries reads."""
        return index.div(head, self.group)

    def blocks(self, rows: int, keys: int) -> Blocks:
        """Divides the keys into blocks of `keys` keys, for tiles of `rows` rows."""
        return Blocks(rows, keys, self.keys, self.band, self.parts, self.part, self.lengths)

    def row_tiles(self, rows: int) -> int:
        """Largest number of tiles of `rows` rows that a head can have; each sequence begins with a
        new tile."""
        return most_tiles(self["m"], max(self.sequences, 1), rows)

    def rows_of(
        self, blocks: Blocks, place: tuple[Index, Index, Index], limits: Sequence[ir.Value]
    ) -> TileRows:
        """The rows of a tile.

        place: number of the tile, the head, and the batch, which is counted over all parts
        limits: the kernel's tensors with numbers of keys
        """
        number, head, every = place
        if self.sequences:
            return self._rows_of_sequence(blocks, number, head, limits)
        part, batch = self.part_of(every)
        row, keys = index.mul(number, blocks.rows), blocks.counted(limits, batch)
        return TileRows(batch, every, head, row, row, part, keys)

    def _rows_of_sequence(
        self, blocks: Blocks, tile: Index, head: Index, limits: Sequence[ir.Value]
    ) -> TileRows:
        """Rows of a tile of one of the sequences; if no sequence has the tile, none of its rows
        is stored, and it has no keys."""
        found = tc.FindGroupOp(limits[0], index.value(tile))
        found.attributes["tile_rows"] = i64(blocks.rows)
        found.attributes["ends"] = ir.UnitAttr.get()
        after = index.add(found.group, 1)
        (row, row_end), (key, key_end) = (
            [tc.LoadIndexOp(each, [index.value(at)]).value for at in (found.group, after)]
            for each in limits
        )
        # ends that are none of the tensor's rows store nothing outside of it
        first = arith.minui(found.first, index.value(self["m"]))
        size, number = index.sub(key_end, key), index.sub(first, row)
        if self.aligned_ends:
            number = index.add(number, index.sub(size, index.sub(row_end, row)))
        none = arith.cmpi(arith.CmpIPredicate.eq, found.count, index.value(0))
        keys = arith.select(none, index.value(0), blocks.at_most_all(index.value(size)))
        end = arith.minui(index.value(index.add(first, found.count)), index.value(self["m"]))
        return TileRows(0, 0, head, first, number, 0, keys, key, end)

    def part_of(self, batch: Index) -> tuple[Index, Index]:
        """Splits the number of a batch, counted over all parts of the keys, into the part and the
        batch."""
        if self.part is None:
            return 0, batch
        return index.div(batch, self["b"]), index.rem(batch, self["b"])

    def queries(self, tensor: ir.Value) -> Strided:
        """View of the queries in memory as heads with the rows that this shape has."""
        found = strided(tensor).reshaped([self[letter] for letter in self.q])
        assert found is not None  # see `no_map`: rows that become others have one stride
        return found

    def results(self, array: ir.Value) -> ir.Value:
        """View of results or logarithms in memory as heads with the rows that this shape has. The
        batches of one part follow those of the previous part."""
        if self.part is None:
            return self._together(array, self["b"], list(array.type.shape)[3:])
        first, second, *rest = array.type.shape
        kind = ir.MemRefType.get([first * second, *rest], array.type.element_type)
        groups = [[0, 1], *([n] for n in range(2, 2 + len(rest)))]
        return self._together(memref.collapse_shape(kind, array, groups), kind.shape[0], rest[2:])

    def _together(self, array: ir.Value, batches: int, last: list[int]) -> ir.Value:
        """An array with the rows that heads have here; last: dimensions after rows and heads."""
        if not self.packed:
            return array
        element = array.type.element_type
        flat = ir.MemRefType.get([batches * self["h"] * self["m"], *last], element)
        groups = [[0, 1, 2], [3]] if last else [[0, 1, 2]]
        collapsed = memref.collapse_shape(flat, array, groups)
        shape = [batches, self["h"], self["m"], *last]
        expanded = ir.MemRefType.get(shape, element)
        return memref.ExpandShapeOp(expanded, collapsed, groups, [], shape).result

    def __getitem__(self, letter: str) -> int:
        return self.extents[letter]


@dataclass(frozen=True)
class Blocks:
    """The blocks of keys that a tile of rows visits.

    rows: rows per tile; keys: keys per block; count: number of all keys; band: keys of each row
    parts, part: number of parts of the keys, and keys per part, in whole blocks; None: one part
    lengths: whether batches may have fewer keys than `count`; the kernel then reads their numbers
        at run time
    """

    rows: int
    keys: int
    count: int
    band: Band
    parts: int = 1
    part: int | None = None
    lengths: bool = False

    @property
    def most(self) -> int:
        """Largest number of blocks that a tile visits."""
        every, (first, last) = ceil_div(self.count, self.keys), (self.band.first, self.band.last)
        if self.part is not None:
            every = min(every, self.part // self.keys)
        if first is None or last is None:
            return every
        return min(every, ceil_div(self.rows + last - first, self.keys) + 1)

    @property
    def alike(self) -> bool:
        """Whether all tiles visit the same number of blocks."""
        return not self.band.limits and self.part is None and not self.lengths

    @property
    def masked(self) -> bool:
        """Whether a block may have scores that must be masked."""
        empty = self.part is not None and (self.parts - 1) * self.part >= self.count
        return self.band.limits or self.lengths or self.count % self.keys != 0 or empty

    def of_tile(self, number: int) -> int:
        """Number of blocks that contain a key of a row of tile `number`."""
        row, (first, last) = self.rows * number, (self.band.first, self.band.last)
        end = self.count if last is None else min(self.count, max(row + self.rows + last, 0))
        start = 0 if first is None else max(row + first, 0)
        return max(ceil_div(end, self.keys) - start // self.keys, 0)

    def counted(self, limits: Sequence[ir.Value], batch: Index) -> Index:
        """Number of keys of a batch, read from the tensor in `limits`; all keys if `limits` is
        empty."""
        if not limits:
            return self.count
        (lengths,) = limits
        place = [batch] if lengths.type.rank == 1 else [batch, 0]
        return self.at_most_all(tc.LoadIndexOp(lengths, index.values(place)).value)

    def at_most_all(self, keys: ir.Value) -> ir.Value:
        """`keys`, clamped to the range from 0 to the number of all keys."""
        return arith.minsi(arith.maxsi(keys, index.value(0)), index.value(self.count))

    def loop(
        self,
        rows: TileRows,
        start: Sequence[ir.Value],
        least: int = 0,
        turns: Turns = (0, 1),
    ) -> tuple[scf.ForOp, Index, Index]:
        """Emits a loop over the blocks of a part of the keys that contain a key of one of the rows.
        Returns the loop, the number of the current block, counted from 0, and the number of the
        block's first key.

        start: initial values of the loop-carried variables
        least: smallest number of iterations if tiles differ in their number of blocks
        turns: a pair: the number of blocks of the CTA's earlier tiles, and the largest number of
            tiles of a CTA. If tiles differ in their number of blocks, the loop counts from the
            first of these numbers
        """
        before, visited = self.visited(rows.number, rows.part, rows.keys)
        since, most = turns
        if isinstance(visited, int):
            since = 0
        elif least:
            visited = arith.maxui(visited, index.value(least))
        end = index.value(index.add(since, visited))
        loop = scf.ForOp(index.value(since), end, index.value(1), start)
        if not isinstance(visited, int):
            loop.attributes[MOST_TRIPS] = i64(self.most * most)
        with ir.InsertionPoint(loop.body):
            step = index.sub(loop.induction_variable, since)
            first = index.mul(index.add(step, before), self.keys)
        return loop, step, first

    def visited(self, row: Index, part: Index, keys: Index) -> tuple[Index, Index]:
        """The range of blocks, among those of one part of the keys, that contain a key of any of
        the tile's rows, of which `row` is the first. Returns the number of blocks before the range,
        and the number of blocks in it. An empty range comes after all blocks."""
        first, last = self.band.first, self.band.last
        every = index.div(index.add(keys, self.keys - 1), self.keys)
        before: Index = 0
        end = every
        if last is not None:
            key = index.value(index.add(row, self.rows + last + self.keys - 1))
            blocks = arith.divui(arith.maxsi(key, index.value(0)), index.value(self.keys))
            end = arith.minui(blocks, index.value(end))
        if first is not None:
            key = arith.maxsi(index.value(index.add(row, first)), index.value(0))
            before = arith.divui(key, index.value(self.keys))
        if self.part is not None:
            blocks = self.part // self.keys
            start = index.value(index.mul(part, blocks))
            before = start if before == 0 else arith.maxui(before, start)
            end = arith.minui(index.value(end), index.value(index.add(start, blocks)))
        if isinstance(before, int) and before == 0:
            return 0, end
        visited = arith.maxsi(arith.subi(index.value(end), index.value(before)), index.value(0))
        if self.part is not None:
            none = arith.cmpi(arith.CmpIPredicate.eq, visited, index.value(0))
            before = arith.select(none, index.value(every), index.value(before))
        return before, visited


@dataclass(frozen=True)
class Softmax:
    """Parameters of a softmax.

    scale: scale of the scores, times log2(e)
    tau: growth of exponents up to which sums are not rescaled
    polynomial: number of exponentials of every 16 keys that a polynomial computes
    lift: log2 of the largest exponential
    times: factor of the results
    """

    scale: float
    tau: float
    polynomial: int = 0
    lift: int = 0
    times: float = 1.0

    def set_below(self, op: ir.OpView) -> None:
        """Sets the attribute ``below`` of `op`, which computes the reference that exponents are
        relative to."""
        if self.lift:
            op.attributes["below"] = ir.FloatAttr.get_f32(self.lift / self.scale)

    def set_times(self, op: ir.OpView) -> None:
        """Sets the attribute ``times`` of `op`, which computes the factor of the results."""
        if self.times != 1:
            op.attributes["times"] = ir.FloatAttr.get_f32(self.times)

    @property
    def attributes(self) -> tuple[ir.FloatAttr, ir.FloatAttr]:
        """The attributes ``scale`` and ``tau``."""
        f32 = ir.F32Type.get()
        return ir.FloatAttr.get(f32, self.scale), ir.FloatAttr.get(f32, self.tau)


KernelTensors: TypeAlias = tuple[
    HeadTiles | ScaledHeads,
    tuple[HeadTiles | ScaledHeads, HeadTiles],
    "list[ir.Value]",
    "list[ir.Value]",
]
"""What `kernel_tensors` returns."""


def kernel_tensors(
    source: Source, of: HeadShape, blocks: Blocks, arguments: Sequence[ir.Value], rows: int
) -> KernelTensors:
    """Returns four descriptions for a kernel: its tiles of `rows` queries, its tiles of a block of
    keys and of a block of values, the op's limits, and the results.

    arguments: arguments of the kernel
    """
    op = source.op
    pages = None
    if op.lengths is not None and op.page is not None:
        count = op.k.type.shape[of.kv.index("b")]
        pages = Pages(argument(arguments, op.lengths), op.page, count)
    queries: HeadTiles | ScaledHeads
    keys: HeadTiles | ScaledHeads
    if isinstance(op, tc.BlockScaledAttentionOp) and of.scaled is not None:
        queries, keys = ScaledHeads.both(op, of.scaled, arguments, blocks.keys)
    else:
        queries = HeadTiles.create(arguments, of.queries(op.q), of.q, rows, "d")
        keys = HeadTiles.create(arguments, strided(op.k), of.kv, blocks.keys, "d", pages)
    return (
        queries,
        (
            keys,
            HeadTiles.create(arguments, strided(op.v), of.kv, blocks.keys, row_of(of.kv), pages),
        ),
        [argument(arguments, each) for each in op.limits],
        [of.results(each) for each in arguments[len(source.function.arguments) :]],
    )


def matrix_of_heads(
    out: ir.Value, layout: str, batch: Index, head: Index, row: Index
) -> tuple[ir.Value, list[ir.Value]]:
    """A tensor of heads as a batch of matrices, and the indices of a head's row in it."""
    first, second, third, width = out.type.shape
    if layout[HEAD] == "h":
        groups, shape = [[0, 1], [2], [3]], [first * second, third, width]
        at = [index.add(index.mul(batch, second), head), row, 0]
    else:
        groups, shape = [[0], [1], [2, 3]], [first, second, third * width]
        at = [batch, row, index.mul(head, width)]
    kind = ir.MemRefType.get(shape, out.type.element_type)
    return memref.collapse_shape(kind, out, groups), index.values(at)
