"""Block-scaled matrix products on CUDA cores, decoded in software."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from tcir._mlir import arith, func, ir, scf, tensor
from tcir.dialect import tc
from tcir.dialect.attributes import defining, integer, integer_type, string
from tcir.dialect.limits import WARP
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES, ELEMENT_BITS
from tcir.passes.emit import simt
from tcir.passes.emit.diagnostics import (
    SMALLEST_BLOCK_SCALED,
    check_whole_rows,
    match_failure,
)
from tcir.passes.emit.element_epilogue import check_elements, check_not_quantised, number_at, store
from tcir.passes.emit.gpu_module import buffer_numbers, launch_order, target_of
from tcir.passes.emit.limits import ceil_div
from tcir.passes.simt.decode import (
    dot4,
    doubled_e2m1,
    doubled_tables,
    floats,
    parts_e2m1,
    scale_factors,
    words_of,
)
from tcir.target import targets_with

MOST_COLUMNS = 8
"""Columns of B processed by a warp at once."""

MOST_COLUMNS_OF_PARTS = 2
"""Columns up to which A in two parts (`parts_e2m1`), cheaper to decode, is worth twice the dp4a."""

NAME = "convert-to-simt"
"""Name of the pass, for errors."""

WHOLE = 0x4B400000
"""The bits of 1.5 * 2^23 in f32: adding a small integer to the bits adds it to the number."""


def convert(module: ir.Module, function: func.FuncOp, rows: int, warps: int) -> None:
    """Turns a function of ``tc.block_scaled_matmul`` into a kernel without tensor cores.

    rows:  rows of A per warp; each decoded piece of B serves all of them
    warps: warps per CTA

    Before::

        %c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16, …}

    After (`llvm.func @f` in ``gpu.module @kernels``, one warp per `rows` rows)::

        load chunk %lane                                  // 32 k of every row: 16 bytes of fp4
        scf.for %next = %lane + 32 to K / 32 step 32 {
          decode; per block: sum of its products; total += sum * sa * sb, one rounding
          load chunk %next
        }
        the same for the last chunk
        butterfly of shuffles; times alpha; round, or the body of a tc.epilogue; store

    Products of two e2m1 are summed exactly, as integers (dp4a on doubled values). Products of other
    formats are summed by fma in f32, in order of k; their chunks are not loaded ahead, because
    their decoded values need the registers. Preserves the value of every element up to the order of
    the f32 sums, which is fixed: k within a block, chunks of a lane, then the shuffles from
    distance 16 down to 1. A block's sum times its scales is rounded once, with `total`, and is
    infinite or zero only if f32 cannot hold it.
    """
    ops = list(function.regions[0].blocks[0]) if function.regions[0].blocks else []
    found = [op for op in ops if isinstance(op, tc.BlockScaledMatmulOp)]
    quantise = next((op for op in ops if isinstance(op, tc.QuantiseBlocksOp)), None)
    if found:
        check_not_quantised(quantise, NAME)
    after = next((op for op in ops if isinstance(op, tc.EpilogueOp)), None)
    ours = [] if after is None or [after.sums] != [op.out for op in found] else [after]
    if len(found) != 1 or list(ops[-1].operands) != [[*found, *ours][-1].out]:
        names = ", ".join(op.operation.name for op in ops) or "nothing"
        raise match_failure(
            function,
            "expected a function that returns one tc.block_scaled_matmul, or a "
            f"tc.epilogue of it, got {names} (run raise-block-scaled first)",
            SMALLEST_BLOCK_SCALED,
        )
    check_whole_rows(found[0], NAME)
    if after is not None:
        check_elements(after, f"in {NAME}", "take pipeline gemm")
    for option, value, most in (("rows", rows, 8), ("warps", warps, 32)):
        if not 1 <= value <= most:
            raise match_failure(
                found[0],
                f"expected {option} of 1 to {most}, got {value} (registers and threads of a CTA)",
            )
    _Kernel(module, function, found[0], after, rows, warps).build()


_Scales: TypeAlias = "list[tuple[ir.Value, ...]]"
"""Block scales, each as the factors of `scale_factors`."""

_Chunk: TypeAlias = "tuple[list[tuple[ir.Value, ...]], _Scales]"
"""Values of k, each word of int8 as its parts (`parts_e2m1`), and their block scales."""

_Load: TypeAlias = "Callable[[ir.Value], list[ir.Value]]"
_Add: TypeAlias = "Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]]"


@dataclass(frozen=True)
class _Side:
    """One operand: its buffers, element type, rows, and the layout of its scales."""

    elements: ir.Value
    scales: ir.Value
    element: str
    scale: str
    rows: int
    k: int
    block: int
    layout: str

    def row(self, batch: ir.Value, row: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Addresses of a row of elements and of its scales. If scales are in blocks, the second
        address is the address of all scales of the batch."""
        whole = simt.add(simt.mul(simt.wide(batch), self.rows), simt.wide(row))
        pitch = self.k * ELEMENT_BITS[self.element] // 8
        elements = simt.at(self.elements, simt.mul(whole, pitch))
        if self.layout == "row_major":
            return elements, simt.at(self.scales, simt.mul(whole, self.k // self.block))
        across = ceil_div(self.k // self.block, BLOCK_SCALES)
        size = ceil_div(self.rows, BLOCK_ROWS) * across * BLOCK_BYTES
        first = simt.add(
            simt.mul(simt.divide(row, BLOCK_ROWS), across * BLOCK_BYTES),
            simt.add(
                simt.mul(simt.rest(row, 32), 16),
                simt.mul(simt.divide(simt.rest(row, BLOCK_ROWS), 32), BLOCK_SCALES),
            ),
        )
        offset = simt.add(simt.mul(simt.wide(batch), size), simt.wide(first))
        return elements, simt.at(self.scales, offset)

    def load(self, row: tuple[ir.Value, ir.Value], chunk: ir.Value, count: int) -> list[ir.Value]:
        """Loads the words of `count` values of k, and a word with the codes of their scales."""
        elements, scales = row
        words = words_of(self.element, count)
        where = simt.at(elements, simt.mul(simt.wide(chunk), 4 * words))
        loaded = simt.load_words(where, words)
        return [*loaded, self._load_scales(scales, chunk, count // self.block)]

    def _load_scales(self, scales: ir.Value, chunk: ir.Value, count: int) -> ir.Value:
        first = simt.mul(chunk, count)
        if self.layout != "row_major":
            first = simt.add(
                simt.mul(simt.divide(first, BLOCK_SCALES), BLOCK_BYTES),
                simt.rest(first, BLOCK_SCALES),
            )
        where = simt.at(scales, simt.wide(first))
        if count == 1:
            return simt.load_byte(where)
        return arith.ExtUIOp(integer_type(32), simt.load(where, integer_type(16))).result


class _Kernel:
    """The kernel of one op."""

    def __init__(
        self,
        module: ir.Module,
        function: func.FuncOp,
        op: ir.OpView,
        after: tc.EpilogueOp | None,
        rows: int,
        warps: int,
    ) -> None:
        self.module, self.function, self.op, self.after = module, function, op, after
        self.warps = warps
        self.vector = op.b.type.rank < op.a.type.rank
        *batch, self.m, self.k = op.a.type.shape
        self.n = 1 if self.vector else op.b.type.shape[-2]
        self.batch = batch[0] if batch else 1
        self.rows, self.columns = min(rows, self.m), min(self.n, MOST_COLUMNS)
        self.block = integer(op, "block")
        self.count = 32 if self.k % 32 == 0 else 16
        self.exact = all(str(v.type.element_type) == "f4E2M1FN" for v in (op.a, op.b))

    def build(self) -> None:
        """Adds the kernel to the gpu.module."""
        op = self.op
        values = [op.a, op.a_scales, op.b, op.b_scales]
        values += [v for v in (op.a_global, op.b_global) if v is not None]
        known = buffer_numbers(self.function, len(self.function.arguments) + 1)
        numbers = [known[_source_argument(value)] for value in values]
        elements = self.after.elements if self.after else []
        beside = {each.tensor: known[_source_argument(each.tensor)] for each in elements}
        result = known[-1]
        grid = (
            ceil_div(self.m, self.rows * self.warps),
            ceil_div(self.n, self.columns),
            self.batch,
        )
        target = target_of(self.module)
        legal = targets_with("fp8")
        if target not in legal:
            raise match_failure(
                op,
                f"expected target {' or '.join(legal)} (fp8 conversions need sm_89), got {target}",
            )
        shape = simt.Shape(grid, self.warps * WARP, target, launch_order(self.function))
        name = self.function.name.value
        buffers = sorted({*numbers, *beside.values(), result})
        with simt.simt_kernel(self.module, name, buffers, shape, op.location) as pointers:
            a, sa, b, sb, *factors = (pointers[n] for n in numbers)
            self.beside = {value: pointers[number] for value, number in beside.items()}
            sides = [
                _Side(
                    elements, scales, str(v.type.element_type), str(s.type.element_type), rows,
                    self.k, self.block, string(op, f"{side}_scale_layout"),
                )
                for side, elements, scales, v, s, rows in (
                    ("a", a, sa, op.a, op.a_scales, self.m),
                    ("b", b, sb, op.b, op.b_scales, self.n),
                )
            ]  # fmt: skip
            self._body(sides[0], sides[1], factors, pointers[result])

    def _body(self, a: _Side, b: _Side, factors: list[ir.Value], out: ir.Value) -> None:
        thread = simt.thread_index()
        lane, warp = simt.both_bits(thread, WARP - 1), simt.right(thread, 5)
        tile = simt.add(simt.mul(simt.block_index(0), self.warps), warp)
        row0, column0 = simt.mul(tile, self.rows), simt.mul(simt.block_index(1), self.columns)
        batch = simt.block_index(2)
        # Beyond the last row (column) it is read again; what comes of it is not stored.
        rows = [a.row(batch, simt.smaller(simt.add(row0, r), self.m - 1)) for r in range(self.rows)]
        columns = [
            b.row(batch, simt.smaller(simt.add(column0, c), self.n - 1))
            for c in range(self.columns)
        ]
        self.tables = doubled_tables() if self.exact else None
        lines = [*((b, column) for column in columns), *((a, row) for row in rows)]

        def load(chunk: ir.Value) -> list[ir.Value]:
            return [word for side, line in lines for word in side.load(line, chunk, self.count)]

        def add(words: list[ir.Value], totals: list[ir.Value]) -> list[ir.Value]:
            return self._add(a, b, iter(words), totals)

        totals = [simt.sum_of_lanes(total) for total in self._sums(lane, load, add)]
        self._store(lane, totals, factors, out, (batch, row0, column0))

    def _sums(self, lane: ir.Value, load: _Load, add: _Add) -> list[ir.Value]:
        """Sums over this lane's chunks, which are every 32nd."""
        chunks = self.k // self.count
        end, step = simt.constant(chunks), simt.constant(WARP)
        totals = [simt.number(0.0)] * (self.rows * self.columns)
        if not self.exact or chunks <= WARP:
            loop = scf.ForOp(lane, end, step, totals)
            with ir.InsertionPoint(loop.body):
                chunk, *totals = loop.body.arguments
                scf.YieldOp(add(load(chunk), totals))
            return list(loop.results)
        # Every lane has a chunk; the next is in flight while one is added.
        words = load(lane)
        loop = scf.ForOp(simt.add(lane, WARP), end, step, [*totals, *words])
        count = len(totals)
        with ir.InsertionPoint(loop.body):
            chunk, *carried = loop.body.arguments
            sums = add(carried[count:], carried[:count])
            scf.YieldOp([*sums, *load(chunk)])
        results = list(loop.results)
        return add(results[count:], results[:count])

    def _add(
        self, a: _Side, b: _Side, words: Iterator[ir.Value], totals: list[ir.Value]
    ) -> list[ir.Value]:
        """`totals` plus the products of a chunk."""
        right = [self._decode(b, words) for _ in range(self.columns)]
        if self.exact:  # products of doubled values; B's scales serve all rows
            right = [(values, _times(scales, 0.25)) for values, scales in right]
        places = iter(totals)
        result = []
        for _ in range(self.rows):
            left = self._decode(a, words, in_parts=self.columns <= MOST_COLUMNS_OF_PARTS)
            result += [self._accumulate(left, column, next(places)) for column in right]
        return result

    def _decode(self, side: _Side, words: Iterator[ir.Value], in_parts: bool = False) -> _Chunk:
        """Values (int8 by four, in parts if wanted, or f32) and scales of the next row."""
        mine = list(islice(words, words_of(side.element, self.count)))
        scales = scale_factors(next(words), self.count // side.block, side.scale)
        if self.tables is None:
            return [(value,) for value in floats(mine, side.element, self.count)], scales
        if in_parts:
            return [four for word in mine for four in parts_e2m1(word, self.tables)], scales
        return [(four,) for word in mine for four in doubled_e2m1(word, self.tables)], scales

    def _accumulate(self, left: _Chunk, right: _Chunk, total: ir.Value) -> ir.Value:
        """`total` plus the chunk's products, block by block."""
        (values, a_scales), (others, b_scales) = left, right
        per_block = len(values) // len(a_scales)
        for n, (sa, sb) in enumerate(zip(a_scales, b_scales, strict=True)):
            pairs = list(zip(values, others, strict=True))[n * per_block : (n + 1) * per_block]
            if self.exact:
                plus = minus = simt.constant(WHOLE)
                for (x, *negative), (y,) in pairs:
                    plus = dot4(x, y, plus)
                    for z in negative:
                        minus = dot4(z, y, minus)
                part = arith.SubFOp(simt.as_f32(plus), simt.as_f32(minus)).result
            else:
                part = simt.number(0.0)
                for (x,), (y,) in pairs:
                    part = simt.fma(x, y, part)
            *early, last = [
                arith.MulFOp(x, y).result for x, y in zip(sa, reversed(sb), strict=True)
            ]
            for factor in early:
                part = arith.MulFOp(part, factor).result
            total = simt.fma(part, last, total)
        return total

    def _store(
        self,
        lane: ir.Value,
        totals: list[ir.Value],
        factors: list[ir.Value],
        out: ir.Value,
        origin: tuple[ir.Value, ...],
    ) -> None:
        """Lane n stores total n: rows are consecutive if there is one column."""
        batch, row0, column0 = origin
        mine = totals[0]
        for n, total in enumerate(totals[1:], start=1):
            mine = arith.SelectOp(simt.equal(lane, n), total, mine).result
        row = simt.add(row0, simt.divide(lane, self.columns))
        column = simt.add(column0, simt.rest(lane, self.columns))
        inside = simt.both_bits(simt.less(row, self.m), simt.less(column, self.n))
        inside = simt.both_bits(inside, simt.less(lane, len(totals)))
        with simt.only_if(inside):
            if factors:
                loaded = [simt.load(factor, ir.F32Type.get()) for factor in factors]
                alpha = loaded[0]
                for factor in loaded[1:]:
                    alpha = arith.MulFOp(alpha, factor).result
                mine = arith.MulFOp(mine, alpha).result
            kind = self.op.out.type.element_type
            if mine.type != kind:
                mine = arith.TruncFOp(kind, mine).result
            if self.after is not None:
                at = [*([batch] if self.op.a.type.rank == 3 else []), row]
                at += [] if self.vector else [column]
                mine = number_at(self.after, self.beside.__getitem__, at, mine)
                kind = self.after.out.type.element_type
            whole = simt.add(simt.mul(simt.wide(batch), self.m), simt.wide(row))
            place = simt.add(simt.mul(whole, self.n), simt.wide(column))
            store(out, place, mine, kind)


def _times(scales: _Scales, number: float) -> _Scales:
    return [(*early, arith.MulFOp(last, simt.number(number)).result) for *early, last in scales]


def _source_argument(operand: ir.Value) -> int:
    """The number of the function argument that `operand` is, collapsed or not."""
    while not isinstance(operand, ir.BlockArgument):
        made = defining(operand, tensor.CollapseShapeOp)
        if made is None:
            raise match_failure(
                operand.owner,
                "expected a function argument, or one collapsed, got the result of "
                f"{operand.owner.name}; make it an argument",
                SMALLEST_BLOCK_SCALED,
            )
        operand = made.operands[0]
    return int(operand.arg_number)
