"""Products with few rows or columns whose large matrix is computed from int8, int4 or fp8
numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain, islice

from tcir._mlir import func, ir, scf
from tcir.dialect import tc
from tcir.dialect.fragments import ROW_BYTES, WORD_BYTES
from tcir.dialect.ops.highlevel import out_layout
from tcir.passes.analysis.computed import Computed, Read
from tcir.passes.analysis.digits import COLUMN, ROW, Digit
from tcir.passes.analysis.few_rows import MEMBERS, narrow_matrix
from tcir.passes.emit import narrow, simt
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.simt.dequantise import Beside, Dequantise
from tcir.passes.simt.streamed import (
    BLOCK,
    WARPS,
    Lines,
    StreamedKernel,
    groups_of,
    has_epilogue,
    warps_of,
)

AGAIN = 2
"""Bytes of the few rows for each byte of the matrix that CTAs of one tile may read: they read them
from L2. With more, a CTA has several tiles."""
LOADS, LOADS_OF_TILES = 16, 8
"""Loads of the matrix that a thread has in flight, with one tile and with several, which take
registers for their sums."""
WARPS_OF_ONE = 16
"""Warps of a CTA with one tile, which convert while others wait for memory; several tiles take the
registers of as many warps."""


def convert(module: ir.Module, function: func.FuncOp, unwritten: Set[ir.Value]) -> bool:
    """Turns a function that computes a matrix from narrower numbers (`fuse-operands`), and
    multiplies it by at most 32 rows or columns, into a kernel like that of `streamed.convert`.
    Other functions stay as they are.

    Before::

        func.func @f(%x: tensor<4x4096xf16>, %w: tensor<4096x2048xi8>, %s: tensor<4096x32xf16>)
            -> tensor<4x4096xf16> {
          %e = … %w & 15, %w >> 4 … arith.uitofp … arith.subf … arith.mulf …
          %c = "tc.matmul"(%x, %e) {a_layout = "mk", b_layout = "nk"}

    After (`llvm.func @f` in ``gpu.module @kernels``)::

        scf.for %chunk = %warp to 16 step 8 iter_args(%numbers, %scales, %sums) {
          %next = 16 bytes of rows %lane / 4 and %lane / 4 + 8 of %w, their scales of %s
          %few = the elements of row %lane / 4 of %x by which those are multiplied
          %words = bits of %numbers, less 8, times %scales: two f16 in a word
          %sums = mma.sync(%words, %few, %sums) …
        }

    A thread computes the elements that it multiplies by the ops of the function, so the elements
    have the same bits as in the function; only the order of the sums differs.
    """
    ops = list(function.entry_block)
    place = next((n for n, each in enumerate(ops) if isinstance(each, tc.MatmulOp)), None)
    if place is None or (how := narrow_matrix(ops[place])) is None:
        return False
    if not has_epilogue(ops[place + 1 :]):
        return False
    _NarrowKernel.computing(module, function, ops[place], unwritten, how).build()
    return True


@dataclass(frozen=True)
class _NarrowKernel(StreamedKernel):
    """The kernel of one op; how: the computation of its matrix."""

    how: Computed

    @staticmethod
    def computing(
        module: ir.Module,
        function: func.FuncOp,
        op: tc.MatmulOp,
        unwritten: Set[ir.Value],
        how: Computed,
    ) -> _NarrowKernel:
        """Chooses the sizes of the kernel: whole chunks of K, and one tile of rows, unless the
        factor with few rows has many."""
        blocks = how.k // how.count * tc.element_bytes(how.stored.element) // BLOCK
        few, bits = min(op.out.type.shape), 8 * tc.element_bytes(how.stored.element) // how.count
        one = few <= AGAIN * bits  # a tile of 16 rows of `bits`, and rows of 16 bits
        groups = 2 if one else groups_of(op, target_of(module))
        each = max(1, (LOADS if one else LOADS_OF_TILES) // groups)
        most = WARPS_OF_ONE if groups == 2 else WARPS
        while each > 1 and (blocks % each or blocks < each * most):
            each //= 2
        chunks = blocks // each
        warps = warps_of(chunks, most)
        sizes = groups, each, chunks, warps, False
        return _NarrowKernel(module, function, op, unwritten, *sizes, how)

    @property
    def _ahead(self) -> bool:
        """Whether the few rows are loaded a chunk ahead, too: several tiles convert bytes while
        they wait for them; codes of 4 bits leave no registers, and 16 warps hide the time."""
        return self.groups > 2 and self.how.count == 1

    @property
    def _matrix_is_a(self) -> bool:
        return not isinstance(self.op.a, ir.BlockArgument)

    @property
    def transposed(self) -> bool:
        """Whether the factor with few rows gives the columns of the result."""
        return self._matrix_is_a == (out_layout(self.op) == "mn")

    @property
    def factors(self) -> tuple[ir.Value, ir.Value]:
        """The arguments that hold the stored numbers and the factor with few rows."""
        return self.how.stored.argument, self.op.b if self._matrix_is_a else self.op.a

    def sums(
        self, given: Lines, row_bytes: int, inputs: Sequence[ir.Value]
    ) -> list[list[ir.Value]]:
        """Emits the thread's four sums for each tile of rows and, in it, for each tile of columns,
        over the part of K that its warp has."""
        beside = _Scales(self.how, given, inputs)
        sums: list[ir.Value] = [simt.number(0.0)] * (4 * self.tiles * len(given.columns))
        first = self._fetch(given, beside, given.warp)
        loop = scf.ForOp(
            simt.add(given.warp, self.warps),
            simt.constant(self.chunks),
            simt.constant(self.warps),
            [*sums, given.warp, *first],
        )
        with ir.InsertionPoint(loop.body):
            chunk, *carried = loop.body.arguments
            following = self._fetch(given, beside, chunk)
            scf.YieldOp([*self._multiplied(given, beside, carried), chunk, *following])
        found = self._multiplied(given, beside, list(loop.results))
        return [found[n : n + 4] for n in range(0, len(found), 4)]

    def _unit(self, chunk: ir.Value, block: int, member: ir.Value) -> ir.Value:
        """Number of a thread's 16 bytes of a row."""
        first = simt.add(simt.mul(chunk, self.blocks * MEMBERS), member)
        return simt.add(first, block * MEMBERS) if block else first

    def _fetch(self, given: Lines, beside: _Scales, chunk: ir.Value) -> list[ir.Value]:
        """For each block of a chunk and each row, the words of stored numbers, and what is beside
        them for their group of k; for each block, the few rows' words if those are loaded now."""
        found: list[ir.Value] = []
        for block in range(self.blocks):
            unit = self._unit(chunk, block, given.member)
            place = simt.wide(simt.mul(unit, ROW_BYTES))
            for row in range(len(given.rows)):
                found += self.load_row(simt.at(given.rows[row], place))
                found += beside.of_group(row, unit)
            if self._ahead:
                found += chain.from_iterable(self._few_words(given, chunk, block))
        return found

    def _few_words(self, given: Lines, chunk: ir.Value, block: int) -> list[list[ir.Value]]:
        """For each of the few rows, the words of the elements that a thread's 16 bytes multiply."""
        size = self._made.elements * tc.element_bytes(self.how.element)
        place = simt.wide(simt.mul(self._unit(chunk, block, given.member), size))
        return [simt.load_words(simt.at(each, place), size // WORD_BYTES) for each in given.columns]

    @property
    def _made(self) -> Dequantise:
        return Dequantise(self.how)

    def _multiplied(
        self, given: Lines, beside: _Scales, carried: Sequence[ir.Value]
    ) -> list[ir.Value]:
        """The sums plus the products of a chunk; carried: both, as the loop carries them."""
        made, count = self._made, 4 * self.tiles * len(given.columns)
        sums, chunk, fetched = list(carried[:count]), carried[count], iter(carried[count + 1 :])
        for block in range(self.blocks):
            few = [] if self._ahead else self._few_words(given, chunk, block)
            rows = []
            for row in range(len(given.rows)):
                stored = [next(fetched) for _ in range(ROW_BYTES // WORD_BYTES)]
                rows.append(made.words(stored, beside.given(row, fetched)))
            if self._ahead:
                few = [list(islice(fetched, made.elements // 2)) for _ in given.columns]
            sums = self.products(rows, [made.alike(each) for each in few], sums)
        return sums


class _Scales:
    """Scales and zero points of a thread's rows."""

    def __init__(self, how: Computed, given: Lines, inputs: Sequence[ir.Value]) -> None:
        """Loads those of whole rows."""
        self.how, self.inputs = how, inputs
        self.numbers = [simt.smaller(each, how.rows - 1) for each in given.numbers]
        self.grouped = [each for each in how.beside if _has_groups(each)]
        whole = [each for each in how.beside if not _has_groups(each)]
        zero = simt.constant(0)
        self.of_row = [
            {(each.argument, each.at): self._load(each, row, zero) for each in whole}
            for row in self.numbers
        ]

    def of_group(self, row: int, unit: ir.Value) -> list[ir.Value]:
        """Loads the scales and zero points of a row for one group of k, in the order of `grouped`.
        unit: number of the thread's 16 bytes"""
        column = simt.mul(unit, self.how.columns)
        return [self._load(each, self.numbers[row], column) for each in self.grouped]

    def given(self, row: int, loaded: Iterator[ir.Value]) -> Beside:
        """All scales and zero points of a row. loaded: the result of `of_group`"""
        return {
            **self.of_row[row],
            **{(each.argument, each.at): next(loaded) for each in self.grouped},
        }

    def _load(self, read: Read, row: ir.Value, column: ir.Value) -> ir.Value:
        place = [_digit(each, row, column) for each in read.at]
        linear = simt.linear(place, [each.extent for each in read.at])
        pointer = self.inputs[ir.BlockArgument(read.argument).arg_number]
        return narrow.load(pointer, linear, read.element)


def _has_groups(read: Read) -> bool:
    return any(each.dim == COLUMN for each in read.at)


def _digit(digit: Digit, row: ir.Value, column: ir.Value) -> ir.Value:
    """A digit of an index at a row and a stored number."""
    if digit.dim is None:
        return simt.constant(digit.step)
    of = row if digit.dim == ROW else column
    at = simt.divide(of, digit.step) if digit.step > 1 else of
    return simt.rest(at, digit.extent)
