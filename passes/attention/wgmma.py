"""Attention on targets with wgmma: scores, exponentials and sums are in registers, and the
exponentials are operand A of the second product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.fragments import DEFAULT_ATOM
from tcir.dialect.limits import FP8, WGMMA_M
from tcir.dialect.warp_map import (
    CONSUMER,
    WARP_MAP,
    WARP_MAPS,
    WGMMA_ATTENTION,
    WGMMA_ONE,
    WGMMA_PROMOTED,
)
from tcir.passes.attention.scaled import ScaledHeads
from tcir.passes.attention.tiles import (
    Blocks,
    HeadShape,
    HeadTiles,
    LongestFirst,
    Softmax,
    TileRows,
    Turns,
    each_tile,
    kernel_tensors,
    matrix_of_heads,
)
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64, i64s, tails
from tcir.passes.emit.epilogue import fragment_epilogue
from tcir.passes.emit.index import Index
from tcir.passes.emit.kernel_ops import CTAS_PER_SM
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import Source, argument, kernel
from tcir.target import TARGETS

MAPS = {WGMMA_M: WGMMA_ONE, 2 * WGMMA_M: WGMMA_PROMOTED, 3 * WGMMA_M: WGMMA_ATTENTION}
"""Warp map by the queries of a tile, 64 for each warpgroup."""
TILE_CYCLES = {2 * WGMMA_M: 100, 3 * WGMMA_M: 123}
"""How long tiles take relative to each other, of heads of 64 elements: measured on an H200."""
KEYS, START_BLOCKS = 128, 1
"""Keys of a block, and the blocks whose time the start and the end of a tile take."""
NARROW_HEAD = 64
"""Most elements of a head whose scores, sums and exponentials three warpgroups have registers for;
in 8 bits a block's sums are others than those of all blocks, and there are none for both."""
SHARED_HEAD = 128
"""Most elements of a head of whose queries two tiles fit beside two of keys and of values."""


def choose_rows(of: HeadShape, sms: int) -> int:
    """Chooses the number of rows of a tile. It is the number with which the SM that has the most
    tiles finishes earliest or, if tiles have different numbers of keys, the number with the least
    total work."""
    if of["m"] <= WGMMA_M:
        return WGMMA_M
    if max(of["d"], of["e"]) > NARROW_HEAD or of.power_bytes == 1:
        return 2 * WGMMA_M

    def cost(rows: int) -> float:
        heads, tiles = of["b"] * of["h"], of.row_tiles(rows)
        if of.band.last is None:
            return ceil_div(heads * tiles, sms) * TILE_CYCLES[rows]
        blocks = of.blocks(rows, KEYS)
        visited = sum(blocks.of_tile(tile) + START_BLOCKS for tile in range(tiles))
        return heads * visited * TILE_CYCLES[rows]

    return min(TILE_CYCLES, key=cost)


@contextmanager
def warpgroup_kernel(
    source: Source, rows: int, grid: list[int], target: str
) -> Iterator[list[ir.Value]]:
    """Builds the kernel of a CTA with tiles of `rows` rows; yields the kernel's arguments."""
    source.function.attributes[WARP_MAP] = ir.StringAttr.get(MAPS[rows])
    source.function.attributes[CTAS_PER_SM] = i64(1)
    with kernel(source, grid, target=target) as arguments:
        function = ir.InsertionPoint.current.block.owner
        warps = len(WARP_MAPS[MAPS[rows]][CONSUMER].warps)
        function.attributes["tc.warps"] = i64s([warps, 1])
        yield arguments


def tile_by_warpgroups(
    source: Source, of: HeadShape, blocks: Blocks, softmax: Softmax, ctas: int, target: str
) -> None:
    """Replaces the source function by the program of one CTA, in program order
    (`TileAttention`)."""
    rows, op = blocks.rows, source.op
    tiles = _tiles(of, blocks, bool(op.elements), ctas, TARGETS[target].sms)
    with warpgroup_kernel(source, rows, tiles.grid, target) as arguments:
        queries, operands, limits, (out, *lse) = kernel_tensors(source, of, blocks, arguments, rows)
        read = {each.tensor: argument(arguments, each.tensor) for each in op.elements}
        of_tile = _Rows(op, blocks, softmax, read)

        def tile(place: tuple[Index, Index, Index], turns: Turns) -> ir.Value:
            mine = of.rows_of(blocks, place, limits)
            loaded = queries.load(mine.batch, mine.head, mine.first)
            over = of_tile.over(mine, loaded, operands, of.keys_of(mine.head), turns)
            sums, most, total = over.results
            inverse = tc.InvertRowsOp(total, total.type)
            softmax.set_times(inverse)
            result = tc.ScaleFragmentOp(sums, inverse.inverse, sums.type).scaled
            end = None if mine.end is None else index.value(mine.end)
            matrix, at = matrix_of_heads(out, of.out, mine.every, mine.head, mine.first)
            if end is None:
                past = ir.StringAttr.get(tails(of["m"] % rows != 0, False))
                tc.StoreFragmentOp(result, matrix, at, past)
            else:
                tc.StoreFragmentGroupOp(result, matrix, end, at, ir.StringAttr.get(""))
            if lse:
                logarithm = tc.LogSumRowsOp(most, total, of_tile.scale, total.type).logarithm
                at = index.values([mine.every, mine.head, mine.first])
                tc.StoreFragmentRowsOp(logarithm, lse[0], at, end=end)
            return over.upperBound

        each_tile(tiles, tile)


def _tiles(
    of: HeadShape, blocks: Blocks, reads: bool, ctas: int, sms: int
) -> OutputTiles | LongestFirst:
    """Row tiles of heads, of a batch. Where all tiles have as many blocks, or those that a causal
    mask or a window leaves, CTAs go through several: the queries and keys of the next one are
    loaded while this one is stored. reads: whether scores read other tensors"""
    narrow = max(of["d"], of["e"]) <= SHARED_HEAD
    if blocks.band.last is not None or ctas and not blocks.alike:
        longest = LongestFirst.of(of, blocks.rows)
        alone = not (reads or of.lengths or of.sequences) and of.parts == 1
        if ctas or alone and narrow and longest.count > sms:
            return longest.shared_by(ctas or sms)
        return longest
    rows = of.row_tiles(blocks.rows)
    tiles = OutputTiles(rows, of["h"], of["b"] * of.parts, group=rows)
    if ctas:
        return tiles.shared_by(ctas)
    if not blocks.alike or tiles.count <= sms or not narrow:
        return tiles
    return tiles.shared_by(tiles.fewest_ctas(sms))


class _Rows:
    """The rows of a tile: the types of their fragments, and the loop over blocks of keys."""

    def __init__(
        self,
        op: tc.AttentionOp,
        blocks: Blocks,
        softmax: Softmax,
        tensors: Mapping[ir.Value, ir.Value],
    ) -> None:
        """tensors: the kernel's values for the tensors that the op's body reads"""
        rows, keys, self.blocks = blocks.rows, blocks.keys, blocks
        self.op, self.tensors = op, tensors
        outside = op.extents()["m"] % rows != 0, blocks.count % keys != 0
        self.past = ir.StringAttr.get(tails(*outside))
        f32 = ir.F32Type.get()
        self.softmax, powers = softmax, ir.Type.parse(op.powers)
        atom = DEFAULT_ATOM[op.powers]
        width = op.extents()["e"]
        self.scores = tc.FragmentType.build([rows, keys], f32, "C", atom)
        self.sums = tc.FragmentType.build([rows, width], f32, "C", atom)
        self.row = tc.FragmentType.build([rows, 1], f32, "row", atom)
        self.factor = tc.FragmentType.build([rows, keys], powers, "A", atom)
        self.scale, self.tau = softmax.attributes

    def over(
        self,
        mine: TileRows,
        queries: ir.Value,
        tiles: Sequence[HeadTiles | ScaledHeads],
        shared: Index,
        turns: Turns,
    ) -> scf.ForOp:
        """Emits the loop over all blocks of a part of the keys. Its results are the sums of values,
        the maxima of scores and the sums of exponentials.

        shared: head of the keys
        """
        f32, blocks = ir.F32Type.get(), self.blocks
        start = [
            tc.ZeroFragmentOp(self.sums).fragment,
            tc.FillRowsOp(ir.FloatAttr.get(f32, float("-inf")), self.row).rows,
            tc.FillRowsOp(ir.FloatAttr.get(f32, 0.0), self.row).rows,
        ]
        loop, _, first = blocks.loop(mine, start, turns=turns)
        with ir.InsertionPoint(loop.body):
            k, v = (
                each.load(mine.batch, shared, index.add(mine.key, first), apart=bool(number))
                for number, each in enumerate(tiles)
            )
            scores = tc.WgmmaProductOp(queries, k, self.scores).d
            if self.op.modified:
                at = index.values([mine.batch, mine.head, mine.first, first])
                scores = fragment_epilogue(self.op, self.tensors, scores, at, self.past)
            if blocks.masked:
                at = index.values([mine.number, first, mine.keys])
                masked = tc.MaskFragmentOp(scores, *at, self.scores)
                blocks.band.give(masked)
                scores = masked.masked
            scf.YieldOp(self._block(scores, v, *loop.inner_iter_args))
        return loop

    def _block(
        self, scores: ir.Value, v: ir.Value, sums: ir.Value, most: ir.Value, total: ir.Value
    ) -> list[ir.Value]:
        """The three after a block of `scores` and its values."""
        now = tc.OnlineMaxOp(scores, most, self.scale, self.tau, self.row, self.row, self.row)
        self.softmax.set_below(now)
        powers = tc.ExpFragmentOp(scores, now.reference, self.scale, self.scores).powers
        total = tc.AddRowSumsOp(total, now.alpha, powers, self.row).now
        factor = tc.FragmentAsAOp(powers, self.factor).a
        scaled = tc.ScaleFragmentOp(sums, now.alpha, self.sums).scaled
        if self.op.powers in FP8:  # of which wgmma keeps 13 bits: a block at a time
            block = tc.WgmmaFragmentProductOp(factor, v, self.sums).d
            return [tc.AddFragmentOp(scaled, block, self.sums).c, now.now, total]
        return [tc.WgmmaFragmentOp(factor, v, scaled, self.sums).d, now.now, total]
