"""tile-attention-backward: gradients of attention, a tile of rows or keys of a head per CTA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import arith, ir, scf
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.fragments import DEFAULT_ATOM
from tcir.dialect.limits import WGMMA_N
from tcir.dialect.loops import MOST_TRIPS
from tcir.dialect.ops.attention import LOG2_E, Band
from tcir.dialect.warp_map import CONSUMER, WARP_MAP, WARP_MAPS
from tcir.errors import InputError
from tcir.passes.analysis.strided import strided
from tcir.passes.attention.tiles import (
    Blocks,
    HeadShape,
    HeadTiles,
    LongestFirst,
    matrix_of_heads,
)
from tcir.passes.attention.wgmma import MAPS
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64, i64s, tails
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.functions.f32 import constant
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.index import Index
from tcir.passes.emit.kernel_ops import CTAS_PER_SM
from tcir.passes.emit.limits import BACKWARD_HEADS
from tcir.passes.emit.tile_kernel import Source, argument, find_sources, kernel
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.target import TARGETS

ROWS, BLOCK = 128, 64
"""Rows of a tile: two warpgroups have registers for both sums of 128 elements; rows of a block."""


@register_pass
@dataclass(frozen=True)
class TileAttentionBackward(Pass):
    """Turns ``tc.attention_backward`` into the sequential program of one CTA.

    rows:  queries of a tile, or keys of a tile of dk and dv: 64 for each of one to three
           warpgroups; 0 chooses
    block: keys of a block, or queries; 0 chooses

    Before::

        %dk, %dv = "tc.attention_backward"(%q, %k, %v, %dout, %lse, %delta) {of = "kv", …}

    After (`func.func @f(%q: memref, …) attributes {tc.kernel, tc.grid, …}`)::

        %tk, %tv = the tile's keys and values
        %dk, %dv = scf.for %j = 0 to query heads of the group * ceil(m / 64) iter_args(0, 0) {
          %tq, %to = a block of queries and of the results' gradients
          %s = "tc.wgmma_product"(%tk, %tq); %dp = "tc.wgmma_product"(%tv, %to)
          %p = "tc.fragment_epilogue"(%s) of lse: exp2(fma(s, c, -lse log2 e))
          %ds = "tc.fragment_epilogue"(%dp) of %p, delta: p * (dp - delta)
          %dv1 = "tc.wgmma_fragment"("tc.fragment_as_a"(%p), "tc.smem_transposed"(%to), %dv)
          %dk1 = "tc.wgmma_fragment"("tc.fragment_as_a"(%ds), "tc.smem_transposed"(%tq), %dk)
          scf.yield %dk1, %dv1
        }
        "tc.store_fragment"(%dk * scale, …); "tc.store_fragment"(%dv, …)

    With ``of = "q"`` rows are queries and blocks are of keys: ``s = q k^T``, ``dp = dout v^T``, and
    only ``dq += ds k``. So scores are those of rows with columns either way, and become A of the
    next product in the same registers. With a mask scores go through ``tc.mask_fragment``, with its
    offsets exchanged for keys in rows, and blocks outside it are not visited. Each sum has one
    order, and no CTA adds to the sums of another one, so results do not depend on timing.

    Rounds p and ds to the type of the operands, as the op says; preserves the location of the op on
    every op.
    """

    name: ClassVar[str] = "tile-attention-backward"
    rows: int = 0
    block: int = 0

    def __post_init__(self) -> None:
        if self.rows not in (0, *MAPS):
            raise InputError(
                f"expected rows to be one of {', '.join(map(str, MAPS))}, or 0 to choose, got "
                f"{self.rows}: a warpgroup has 64, and an SM registers for three; take rows={ROWS}"
            )
        if self.block < 0 or self.block % 16 or self.block and self.block not in WGMMA_N:
            raise InputError(
                f"expected block to be a multiple of 16 (K of the second product) up to 256, or 0 "
                f"to choose, got {self.block}; take block={BLOCK}"
            )

    def run(self, module: ir.Module) -> None:
        target = target_of(module)
        for source in find_sources(module, tc.AttentionBackwardOp, self.name, others=True):
            op = source.op
            if not TARGETS[target].wgmma:
                raise match_failure(
                    op,
                    f"expected a target with wgmma, got {target}: scores and their gradients are "
                    "multiplied from registers; take sm_90a",
                )
            extents = op.extents()
            for name in "de":
                if extents[name] not in BACKWARD_HEADS:
                    raise match_failure(
                        op,
                        f"expected heads to be {BACKWARD_HEADS}, got {extents[name]} "
                        f"({BACKWARD_HEADS.source}); pad them with zeros",
                    )
            _Backward.of(op, self.rows or ROWS, self.block or BLOCK).tile(source, target)


@dataclass(frozen=True)
class _Backward:
    """The rows and columns of the scores of a tile.

    rows, columns: the letters of their operands and gradients: queries and keys, or the other way
                   round
    blocks: blocks of columns for tiles of rows; heads: the rows' heads
    group:  heads of columns that a head of rows has
    """

    op: tc.AttentionBackwardOp
    layouts: tuple[str, str]
    blocks: Blocks
    heads: HeadShape
    group: int

    @staticmethod
    def of(op: tc.AttentionBackwardOp, rows: int, block: int) -> _Backward:
        """The tiles of an op, of `rows` rows and blocks of `block` columns."""
        of, band, bytes_ = op.extents(), op.band, tc.element_bytes(op.element)
        q, kv = (string(op, f"{name}_layout") for name in ("q", "kv"))
        if op.of_queries:
            heads = HeadShape(of, q, kv, q, of["n"], band, bytes_)
            return _Backward(op, (q, kv), heads.blocks(rows, block), heads, 1)
        first, last = (None if each is None else -each for each in (band.last, band.first))
        swapped = {**of, "h": of["g"], "m": of["n"], "n": of["m"]}
        heads = HeadShape(swapped, kv, q, kv, of["m"], Band(first, last), bytes_)
        return _Backward(op, (kv, q), heads.blocks(rows, block), heads, of["h"] // of["g"])

    def tile(self, source: Source, target: str) -> None:
        """Replaces the source function by the sequential program of a CTA."""
        rows = self.blocks.rows
        source.function.attributes[WARP_MAP] = ir.StringAttr.get(MAPS[rows])
        source.function.attributes[CTAS_PER_SM] = i64(1)
        order = LongestFirst.of(self.heads, rows)
        with kernel(source, order.grid, target=target) as arguments:
            function = ir.InsertionPoint.current.block.owner
            warps = len(WARP_MAPS[MAPS[rows]][CONSUMER].warps)
            function.attributes["tc.warps"] = i64s([warps, 1])
            with order.each() as (last, head, batch):
                number = last
                if not self.op.of_queries:  # early keys have the most queries
                    number = index.sub(order.rows - 1, last)
                tile = _Tile(self, arguments, batch, head, index.mul(number, rows))
                tile.store(tile.sums(), arguments[len(source.function.arguments) :])


class _Tile:
    """A tile of rows: its loads, its loop over blocks of columns, and its stores."""

    def __init__(
        self,
        of: _Backward,
        arguments: Sequence[ir.Value],
        batch: Index,
        head: Index,
        row: Index,
    ) -> None:
        op, self.of, self.place = of.op, of, (batch, head, row)
        pairs = [(op.q, op.dout), (op.k, op.v)]
        rows, columns = pairs if op.of_queries else reversed(pairs)
        size, block = of.blocks.rows, of.blocks.keys

        def tiles(tensors: Sequence[ir.Value], layout: str, count: int) -> list[HeadTiles]:
            return [
                HeadTiles.create(arguments, strided(each), layout, count, "d") for each in tensors
            ]

        self.rows = tiles(rows, of.layouts[0], size)
        self.columns = tiles(columns, of.layouts[1], block)
        self.lse, self.delta = (argument(arguments, each) for each in (op.lse, op.delta))
        f32, atom = ir.F32Type.get(), DEFAULT_ATOM[str(op.element)]
        self.scores = tc.FragmentType.build([size, block], f32, "C", atom)
        self.factor = tc.FragmentType.build([size, block], op.element, "A", atom)
        widths = [of.heads["d"], of.heads["e"]][: 1 if op.of_queries else 2]
        self.kinds = [tc.FragmentType.build([size, each], f32, "C", atom) for each in widths]
        outside = of.heads["m"] % size != 0, of.blocks.count % block != 0
        self.past = ir.StringAttr.get(tails(*outside))

    def sums(self) -> Sequence[ir.Value]:
        """The loop over all blocks of columns; returns the unscaled gradients of the rows."""
        of, (batch, head, row) = self.of, self.place
        first, second = (each.load(batch, head, row) for each in self.rows)
        before, visited = of.blocks.visited(row, 0, of.blocks.count)
        start = [tc.ZeroFragmentOp(kind).fragment for kind in self.kinds]
        end = index.value(index.mul(visited, of.group))
        loop = scf.ForOp(index.value(0), end, index.value(1), start)
        if not isinstance(visited, int):
            loop.attributes[MOST_TRIPS] = i64(of.blocks.most * of.group)
        with ir.InsertionPoint(loop.body):
            step, other = loop.induction_variable, of.heads.keys_of(head)
            if not of.op.of_queries:
                other = index.add(index.mul(head, of.group), index.rem(step, of.group))
            column = index.mul(index.add(index.div(step, of.group), before), of.blocks.keys)
            third, fourth = (each.load(batch, other, column) for each in self.columns)
            rows, columns, found = (first, second), (third, fourth), list(loop.inner_iter_args)
            for number, factor in self._factors(rows, columns, other, column):
                c = found[number]
                b = _transposed(columns[number])
                found[number] = tc.WgmmaFragmentOp(factor, b, c, c.type).d
            scf.YieldOp(found)
        return list(loop.results)

    def _factors(
        self,
        rows: tuple[ir.Value, ir.Value],
        columns: tuple[ir.Value, ir.Value],
        other: Index,
        column: Index,
    ) -> Iterator[tuple[int, ir.Value]]:
        """Yields the numbers of gradients, and their factors of a block: p of values, ds of others.

        rows, columns: the tiles of s and of dp; other: head of the columns
        """
        of, (batch, head, row) = self.of, self.place
        place = index.values([batch, head if of.op.of_queries else other, row, column])
        lse, delta = (self._fetched(each, place) for each in (self.lse, self.delta))
        scores, gradients = (
            tc.WgmmaProductOp(a, b, self.scores).d for a, b in zip(rows, columns, strict=True)
        )
        if of.blocks.masked:
            at = index.values([row, column, of.blocks.count])
            masked = tc.MaskFragmentOp(scores, *at, self.scores)
            of.blocks.band.give(masked)
            scores = masked.masked
        p = self._computed(scores, place, [lse], _weight(of.op.factor))
        if not of.op.of_queries:
            yield 1, tc.FragmentAsAOp(p, self.factor).a
        ds = self._computed(gradients, place, [p, delta], _gradient)
        yield 0, tc.FragmentAsAOp(ds, self.factor).a

    def _fetched(self, tensor: ir.Value, place: list[ir.Value]) -> ir.Value:
        """A number of each query, [b, h, m], beside the scores."""
        dims = [ir.AffineExpr.get_dim(n) for n in (0, 1, 2 if self.of.op.of_queries else 3)]
        of_query = ir.AffineMapAttr.get(ir.AffineMap.get(4, 0, dims))
        return tc.FetchFragmentOp(tensor, place, of_query, self.past, self.scores).fragment

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
        """Stores the gradients: those of scores times the scale, and of values."""
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


def _transposed(tile: ir.Value) -> ir.Value:
    kind = tile.type
    turned = tc.SmemType.build(kind.shape[::-1], kind.element, "MN", kind.swizzle)
    return tc.SmemTransposedOp(tile, turned).transposed


def _weight(scale: float) -> Callable[[ir.Value, ir.Value], ir.Value]:
    """``exp(scale * score - lse)``, 0 where lse is -inf: an fma of powers of two, and ex2."""

    def body(score: ir.Value, lse: ir.Value) -> ir.Value:
        kind = score.type
        none, c, log2_e = (
            constant(kind, each) for each in (float("-inf"), scale * LOG2_E, -LOG2_E)
        )
        dead = arith.cmpf(arith.CmpFPredicate.OEQ, lse, none)
        shift = arith.select(dead, none, arith.mulf(lse, log2_e))
        return _function("math.exp2", _function("math.fma", score, c, shift))

    return body


def _function(name: str, *operands: ir.Value) -> ir.Value:
    return ir.Operation.create(name, results=[operands[0].type], operands=operands).result


def _gradient(dp: ir.Value, p: ir.Value, delta: ir.Value) -> ir.Value:
    """Gradient of a scaled score."""
    return arith.mulf(p, arith.subf(dp, delta))
