"""Tiles of queries, keys and values in shared memory, and what a CTA computes of an attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tcir._mlir import arith, ir, memref, scf
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.limits import SWIZZLE_OF_SPAN
from tcir.dialect.loops import MOST_TRIPS
from tcir.dialect.ops.attention import Band
from tcir.dialect.ops.tma import APART
from tcir.passes.analysis.head_maps import MapDim, map_dims, row_of
from tcir.passes.analysis.strided import Strided, strided
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, i64, make_tensor_map, tma_load
from tcir.passes.emit.index import Index
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.tile_kernel import Source, argument

HEAD, ROW, KEY = 1, 2, 3
"""Dimensions of scores, which are ``[b, h, m, n]``."""


Rows: TypeAlias = tuple[Index, Index, Index]
"""Rows of a CTA: the first, the part of the keys, and the number of all keys."""


@dataclass(frozen=True)
class HeadTiles:
    """Rows of one head of a tensor in shared memory, every element of the head.

    A row of ``major`` K is a row of the tensor; of MN, a column of the tile. The elements of a head
    are columns of one swizzle span each, and a box of TMA fills one of them.
    """

    type: tc.SmemType
    map: ir.Value
    layout: str
    dims: tuple[MapDim, ...]

    @staticmethod
    def create(
        arguments: Sequence[ir.Value], heads: Strided, layout: str, rows: int, major: str
    ) -> HeadTiles:
        """Tiles of `rows` rows of `heads`, whose dimensions `layout` names and whose base is one of
        the source function's arguments; builds the map, of one of the kernel's `arguments`."""
        tensor = argument(arguments, heads.base)
        element = tensor.type.element_type
        width, bytes_ = heads.shape[layout.index("d")], tc.element_bytes(element)
        span = max(each for each in SWIZZLE_OF_SPAN if width * bytes_ % each == 0)
        shape = [rows, width] if major == "K" else [width, rows]
        tile = tc.SmemType.build(shape, element, major, SWIZZLE_OF_SPAN[span])
        box = {"d": span // bytes_, row_of(layout): rows}
        dims = map_dims(heads, layout)
        made = make_tensor_map(
            tensor,
            TmaBox([box.get(each.letter, 1) for each in dims]),
            dims=[each.start + each.size for each in dims],
            strides=[each.stride * bytes_ for each in dims[1:]],
            swizzle=tile.swizzle,
        )
        return HeadTiles(tile, made, layout, tuple(dims))

    def load(self, batch: Index, head: Index, row: Index, apart: bool = False) -> ir.Value:
        """Loads a tile of rows from `row` on. apart: whether it has barriers of its own, see place-
        barriers"""
        tile = tc.SmemTileOp(self.type).tile
        rows = self.type.shape[0 if self.type.major == "K" else 1]
        columns = self.type.span // tc.element_bytes(self.type.element)
        width = self.type.shape[1 if self.type.major == "K" else 0]
        for number in range(width // columns):
            at = {"b": batch, "h": head, row_of(self.layout): row, "d": number * columns}
            coords = index.values([each.coordinate(at[each.letter]) for each in self.dims])
            load = tma_load(self.map, coords, tile, number * rows, rows * self.type.span)
            if apart:
                load.attributes[APART] = ir.UnitAttr.get()
        return tile


@dataclass(frozen=True)
class HeadShape:
    """The heads of an attention as a kernel sees them.

    extents: b, h, m, d of queries, g, n of keys, e of values
    q, kv, out: layouts
    keys: number of keys of the last row; band: keys of each row
    packed: whether the query heads of a group are rows of one head
    parts, part: number of parts of the keys, whose results are separate, and keys per part
    lengths: whether each batch has its own number of keys
    """

    extents: dict[str, int]
    q: str
    kv: str
    out: str
    keys: int
    band: Band
    packed: bool = False
    parts: int = 1
    part: int | None = None
    lengths: bool = False

    @staticmethod
    def of(op: tc.AttentionOp) -> HeadShape:
        """The heads of an op as they are."""
        q, kv, out = (string(op, f"{name}_layout") for name in ("q", "kv", "out"))
        extents = op.extents()
        parts, lengths = (op.parts, op.key_part), op.lengths is not None
        return HeadShape(extents, q, kv, out, extents["n"], op.band, False, *parts, lengths)

    def together(self, elements: Sequence[ir.OpView]) -> HeadShape:
        """The shape in which the heads of a group, which read the same keys, are rows of one head,
        if each has a single row: a decoding step then reads its keys once. Else this shape.

        elements: reads of other tensors by the scores, which must not depend on head or row
        """
        last, first = self.band.last, self.band.first or 0
        keys = self.keys if last is None else min(self.keys, last + 1)
        alike = all(HEAD not in each.dims and ROW not in each.dims for each in elements)
        if self["m"] > 1 or self.group == 1 or keys < 1 or not alike or first > 0:
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
    def visited(self) -> int:
        """Largest number of keys that a CTA visits."""
        return min(self.keys, self.part or self.keys)

    def keys_of(self, head: Index) -> Index:
        """The head of keys and values that a head of queries reads."""
        return index.div(head, self.group)

    def blocks(self, rows: int, keys: int) -> Blocks:
        """The keys in blocks of `keys`, for tiles of `rows` rows."""
        return Blocks(rows, keys, self.keys, self.band, self.parts, self.part, self.lengths)

    def part_of(self, batch: Index) -> tuple[Index, Index]:
        """Splits a batch number of all parts into the part and the batch."""
        if self.part is None:
            return 0, batch
        return index.div(batch, self["b"]), index.rem(batch, self["b"])

    def queries(self, tensor: ir.Value) -> Strided:
        """Queries in memory, with the rows that heads have here."""
        found = strided(tensor).reshaped([self[letter] for letter in self.q])
        assert found is not None  # see `no_map`: rows that become others have one stride
        return found

    def results(self, array: ir.Value) -> ir.Value:
        """Results or logarithms in memory, with the rows that heads have here; the batches of the
        parts follow each other."""
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
    """Blocks of keys of a row tile.

    rows: rows per tile; keys: keys per block; count: number of all keys; band: keys of each row
    parts, part: number of parts of the keys, and keys per part, in whole blocks; None: one part
    lengths: whether batches have fewer keys than `count`, by a number read at run time
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
        """Largest number of blocks of a tile."""
        every, (first, last) = ceil_div(self.count, self.keys), (self.band.first, self.band.last)
        if self.part is not None:
            every = min(every, self.part // self.keys)
        if first is None or last is None:
            return every
        return min(every, ceil_div(self.rows + last - first, self.keys) + 1)

    @property
    def alike(self) -> bool:
        """Whether all tiles have as many blocks."""
        return not self.band.limits and self.part is None and not self.lengths

    @property
    def masked(self) -> bool:
        """Whether a block may have elements without a key."""
        empty = self.part is not None and (self.parts - 1) * self.part >= self.count
        return self.band.limits or self.lengths or self.count % self.keys != 0 or empty

    def counted(self, lengths: ir.Value | None, batch: Index) -> Index:
        """Number of keys of a batch, by the tensor `lengths`."""
        if lengths is None:
            return self.count
        loaded = tc.LoadIndexOp(lengths, index.values([batch])).value
        return arith.minsi(arith.maxsi(loaded, index.value(0)), index.value(self.count))

    def loop(
        self, rows: Rows, start: Sequence[ir.Value], least: int = 0
    ) -> tuple[scf.ForOp, Index]:
        """Emits a loop over those blocks of a part that contain a key of the rows, at least `least`
        blocks. The loop carries `start`. Also returns the first key of the current block."""
        before, visited = self._visited(*rows)
        if least and not isinstance(visited, int):
            visited = arith.maxui(visited, index.value(least))
        loop = scf.ForOp(index.value(0), index.value(visited), index.value(1), start)
        if not isinstance(visited, int):
            loop.attributes[MOST_TRIPS] = i64(self.most)
        with ir.InsertionPoint(loop.body):
            first = index.mul(index.add(loop.induction_variable, before), self.keys)
        return loop, first

    def _visited(self, row: Index, part: Index, keys: Index) -> tuple[Index, Index]:
        """The range of blocks of a part with a key of one of the rows from `row` on: the number of
        blocks before it, and its length. If it is empty, the former is that of all blocks."""
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
    """scale: of scores, times log2(e); tau: growth of exponents that rescales no sum; polynomial:
    exponentials of every 16 keys that a polynomial computes."""

    scale: float
    tau: float
    polynomial: int = 0

    @property
    def attributes(self) -> tuple[ir.FloatAttr, ir.FloatAttr]:
        """The attributes ``scale`` and ``tau``."""
        f32 = ir.F32Type.get()
        return ir.FloatAttr.get(f32, self.scale), ir.FloatAttr.get(f32, self.tau)


def kernel_tensors(
    source: Source, of: HeadShape, blocks: Blocks, arguments: Sequence[ir.Value], rows: int
) -> tuple[HeadTiles, tuple[HeadTiles, HeadTiles], ir.Value | None, list[ir.Value]]:
    """Tiles of `rows` queries, and of a block of keys and of values; the numbers of keys, if
    batches have their own; and the results, with heads as the source's op has them.

    arguments: the kernel's
    """
    op = source.op
    return (
        HeadTiles.create(arguments, of.queries(op.q), of.q, rows, "K"),
        (
            HeadTiles.create(arguments, strided(op.k), of.kv, blocks.keys, "K"),
            HeadTiles.create(arguments, strided(op.v), of.kv, blocks.keys, "MN"),
        ),
        argument(arguments, op.lengths) if blocks.lengths else None,
        [of.results(each) for each in arguments[len(source.function.arguments) :]],
    )
