"""Products with few rows or columns, in which each element of the large matrix is read once from
memory to registers."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from tcir._mlir import arith, func, ir, nvvm, scf
from tcir.dialect import tc
from tcir.dialect.fragments import DEFAULT_ATOM, PTX_TYPE, ROW_BYTES, WORD_BYTES
from tcir.dialect.limits import WARP
from tcir.layout.atoms import mma_atom
from tcir.passes.analysis.few_rows import has_few_rows
from tcir.passes.emit import simt
from tcir.passes.emit.element_epilogue import check_elements, number_at, store
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import ceil_div, round_up
from tcir.passes.emit.mma_sync import mma_sync
from tcir.passes.emit.tensor_functions import tensor_bytes
from tcir.passmanager.remarks import remark
from tcir.target import TARGETS

COLUMNS = 8
"""Columns of an mma.sync, and rows of half of one: a thread has rows r and r + 8."""
BLOCK = 4 * ROW_BYTES
"""Bytes of K that a warp loads at once: each of the four threads with a row 16, the factors of two
mma.sync."""
WARPS, WARPS_OF_SEVERAL = 8, 4
"""Warps of a CTA that has an SM to itself, and of one that shares it."""
ALONE = 8
"""Loads of the matrix that a thread has in flight, with which 8 warps take most registers of an
SM, so that 172 CTAs on 132 SMs are two rounds."""
SHARING = 2
"""CTAs of 4 warps that then have an SM together, whatever their registers: groups are chosen so
that every SM has as many, and all are resident at once."""
LOADS, BLOCKS = 16, 4
"""Loads of the matrix that a thread has in flight, and the most blocks of a chunk: with those each
thread also loads the few rows'."""
IDLE = 8
"""SMs that may be without a CTA of many rows."""
GROUPS = (8, 4)
"""Groups of 8 rows of the matrix that a CTA has, where all SMs have a CTA: the more, the less often
the few rows are read."""


def convert(module: ir.Module, function: func.FuncOp, unwritten: Set[ir.Value]) -> bool:
    """Turns a function of one ``tc.matmul`` with at most 16 rows, or at most 16 columns, into a
    kernel whose warps divide K among them. Other functions stay as they are.

    Before::

        func.func @f(%x: tensor<4x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<4x4096xf16> {
          %c = "tc.matmul"(%x, %w) {a_layout = "mk", b_layout = "nk"}

    After (`llvm.func @f` in ``gpu.module @kernels``; a CTA has 16, 32 or 64 rows of %w)::

        scf.for %chunk = %warp to 32 step 8 iter_args(%words, %sums) {
          %next = 16 bytes of rows %lane / 4 and %lane / 4 + 8 of %w, and of row %lane / 4 of %x
          %sums = mma.sync(%words, %sums) …
        }
        llvm.store %sums, %partials[%warp]; barrier; the sum of the warps' %partials; %out[…] = …

    An mma.sync may sum over K in any order as long as both factors have the same order. So a thread
    loads 16 contiguous bytes directly to registers, without shared memory. Each element of the
    matrix is read once. The read bypasses L1 if the matrix is one of `unwritten`, the arguments
    that no launch writes. The order of a sum is fixed: first the chunks of a warp, then the warps.
    The reference has another order, so sums of floats are not equal to its sums but within the
    error bound; the passes after this one preserve every bit.
    """
    op, *others = function.entry_block
    if TARGETS[target_of(module)].tcgen05 or not isinstance(op, tc.MatmulOp):
        return False  # tcgen05 takes the matrix as its rows (swap-operands)
    if not has_few_rows(op) or not has_epilogue(others):
        return False
    StreamedKernel.of(module, function, op, unwritten).build()
    return True


def has_epilogue(others: Sequence[ir.OpView]) -> bool:
    """Whether the product is the end of its function, or is followed only by an epilogue that
    threads can compute element by element."""
    *before, _ = others
    if not before:
        return True
    if len(before) > 1 or not isinstance(before[0], tc.EpilogueOp):
        return False
    *_, m, n = before[0].sums.type.shape
    if before[0].gated and (before[0].gate_block != COLUMNS or m > n):
        return False  # a thread has rows r and r + 8 of the matrix
    check_elements(before[0], "of a product with few rows", "take pipeline gemm", gated=True)
    return True


@dataclass(frozen=True)
class FactorRows:
    """A factor of the product: its address in memory and its number of rows."""

    pointer: ir.Value
    rows: int
    row_bytes: int

    def row(self, batch: ir.Value, number: ir.Value) -> ir.Value:
        """Address of a row; if `number` is beyond the last row, the address of the last row."""
        number = simt.smaller(number, self.rows - 1)
        whole = simt.add(simt.mul(simt.wide(batch), self.rows), simt.wide(number))
        return simt.at(self.pointer, simt.mul(whole, self.row_bytes))


@dataclass(frozen=True)
class Lines:
    """The rows of both factors that a thread loads.

    rows: addresses of the thread's rows of the matrix, two for each tile
    numbers: numbers of these rows
    columns: addresses of the thread's rows of the factor with few rows
    warp: number of the thread's warp
    member: the thread's number among the threads that load the same rows
    """

    rows: Sequence[ir.Value]
    columns: Sequence[ir.Value]
    numbers: Sequence[ir.Value]
    warp: ir.Value
    member: ir.Value


def groups_of(op: tc.MatmulOp, target: str) -> int:
    """Number of groups of 8 rows per CTA: the largest of `GROUPS` that leaves at most `IDLE` SMs
    without a CTA, because fewer CTAs read the factor with few rows less often; otherwise 2."""
    many, sms = max(op.out.type.shape[-2:]), TARGETS[target].sms - IDLE
    return next((n for n in GROUPS if many >= n * COLUMNS * sms), 2)


def epilogue_of(function: func.FuncOp) -> tc.EpilogueOp | None:
    """The epilogue that follows the product in its function."""
    ops = (each for each in function.entry_block if isinstance(each, tc.EpilogueOp))
    return next(ops, None)


def blocks_of(blocks: int, groups: int) -> int:
    """Number of blocks of K in a chunk, chosen so that every warp has a chunk."""
    each = min(BLOCKS, max(1, LOADS // groups))
    while each > 1 and blocks < each * WARPS:
        each //= 2
    return each


def warps_of(chunks: int, most: int = WARPS) -> int:
    """Number of warps that divide the chunks of K among them, a power of two."""
    return 1 << min(most, chunks).bit_length() - 1


@dataclass(frozen=True)
class StreamedKernel:
    """The kernel of one op whose factors are in memory.

    unwritten: arguments that no launch writes
    groups: number of groups of 8 rows of the matrix that a CTA has
    blocks: number of blocks of K in a chunk
    chunks: number of chunks of K
    warps: number of warps, which take the chunks in turn
    sharing: whether several CTAs share an SM
    """

    module: ir.Module
    function: func.FuncOp
    op: tc.MatmulOp
    unwritten: Set[ir.Value]
    groups: int
    blocks: int
    chunks: int
    warps: int
    sharing: bool

    @staticmethod
    def of(
        module: ir.Module,
        function: func.FuncOp,
        op: tc.MatmulOp,
        unwritten: Set[ir.Value],
    ) -> StreamedKernel:
        """Chooses the sizes of the kernel."""
        blocks = ceil_div(op.a.type.shape[-1] * tc.element_bytes(op.a.type.element_type), BLOCK)
        every = ceil_div(max(op.out.type.shape[-2:]), COLUMNS)
        groups, sms = groups_of(op, target_of(module)), TARGETS[target_of(module)].sms
        each = blocks_of(blocks, groups)
        several = ceil_div(every, groups) > sms and groups * each >= ALONE
        if several:
            groups = min(GROUPS[0], ceil_div(every, SHARING * sms))
            each = blocks_of(blocks, groups)
        chunks = ceil_div(blocks, each)
        warps = warps_of(chunks, WARPS_OF_SEVERAL if several else WARPS)
        how = groups, each, chunks, warps, several
        return StreamedKernel(module, function, op, unwritten, *how)

    @property
    def after(self) -> tc.EpilogueOp | None:
        """The epilogue that follows the op."""
        return epilogue_of(self.function)

    @property
    def rows(self) -> int:
        """Number of rows of the matrix that a CTA has."""
        return COLUMNS * self.groups

    @property
    def tiles(self) -> int:
        """Number of tiles of 16 rows (the M of mma.sync) that a CTA computes; half of the last tile
        is absent if `groups` is odd.
        """
        return ceil_div(self.groups, 2)

    @property
    def transposed(self) -> bool:
        """Whether the factor with few rows gives the columns of the result."""
        m, n = self.op.out.type.shape[-2:]
        return bool(m > n)

    @property
    def factors(self) -> tuple[ir.Value, ir.Value]:
        """The arguments that hold the matrix and the factor with few rows."""
        return (self.op.a, self.op.b) if self.transposed else (self.op.b, self.op.a)

    def load_row(self, address: ir.Value) -> list[ir.Value]:
        """Loads four words of a row of the matrix."""
        if self.factors[0] in self.unwritten:
            return simt.load_words_once(address)
        return simt.load_words(address, ROW_BYTES // WORD_BYTES)

    @property
    def _reserved(self) -> int:
        """Bytes of shared memory with which no more CTAs fit on an SM than `SHARING`: a launch that
        starts early could crowd them on the SMs that the previous one left first."""
        return self.sharing * (TARGETS[target_of(self.module)].smem_per_sm // (SHARING + 1))

    @property
    def _many(self) -> int:
        return int(self.op.out.type.shape[-2 if self.transposed else -1])

    @property
    def _few(self) -> int:
        return int(self.op.out.type.shape[-1 if self.transposed else -2])

    @property
    def _pitch(self) -> int:
        """Bytes of a row of partial sums in shared memory: rows begin in other banks."""
        return WORD_BYTES * (round_up(self._few, COLUMNS) + 2)

    def build(self) -> None:
        """Appends the kernel to the ``gpu.module``."""
        op = self.op
        *batch, _, _ = op.out.type.shape
        factors = self.factors
        grid = (ceil_div(self._many, self.rows), 1, batch[0] if batch else 1)
        remark(
            op,
            f"{self._few} {'columns' if self.transposed else 'rows'}: {grid[0] * grid[2]} CTAs "
            f"of {self.rows} rows of the matrix, {self.warps} warps share K; "
            f"{tensor_bytes(factors[0].type)} bytes are read once"
            + (", past L1" if factors[0] in self.unwritten else ""),
        )
        threads = self.warps * WARP
        smem = max(self.warps * self.rows * self._pitch, self._reserved)
        kernel = simt.kernel_of(self.module, self.function, grid, threads, op.location, smem=smem)
        with kernel as (*inputs, out):
            many, few = (
                FactorRows(
                    inputs[ir.BlockArgument(each).arg_number],
                    each.type.shape[-2],
                    each.type.shape[-1] * tc.element_bytes(each.type.element_type),
                )
                for each in factors
            )
            self._body(many, few, inputs, out)

    def _body(
        self, many: FactorRows, few: FactorRows, inputs: Sequence[ir.Value], out: ir.Value
    ) -> None:
        thread = simt.thread_index()
        lane, warp = simt.both_bits(thread, WARP - 1), simt.right(thread, 5)
        group, member = simt.right(lane, 2), simt.both_bits(lane, 3)
        batch = simt.block_index(2)
        first = simt.mul(simt.block_index(0), self.rows)
        numbers, rows = list[ir.Value](), list[ir.Value]()
        for n in range(self.groups):
            numbers.append(simt.add(simt.add(first, group), COLUMNS * n))
            rows.append(many.row(batch, numbers[-1]))
        columns = [
            few.row(batch, simt.add(group, COLUMNS * n) if n else group)
            for n in range(ceil_div(few.rows, COLUMNS))
        ]
        lines = Lines(rows, columns, numbers, warp, member)
        sums = self.sums(lines, many.row_bytes, inputs)
        self._store(sums, (lane, warp, thread), (batch, first), inputs, out)

    # --- sums --------------------------------------------------------------------------------

    def sums(
        self, given: Lines, row_bytes: int, inputs: Sequence[ir.Value]
    ) -> list[list[ir.Value]]:
        """Emits the thread's four sums of each tile of rows and columns, over the part of K that
        its warp has.

        row_bytes: bytes of a row of the matrix
        inputs: pointers to the function's arguments
        """
        lines, warp, member = [*given.rows, *given.columns], given.warp, given.member
        sums: list[ir.Value] = [simt.number(0.0)] * (4 * self.tiles * len(given.columns))
        words = self._load(lines, warp, member, row_bytes)
        loop = scf.ForOp(
            simt.add(warp, self.warps),
            simt.constant(self.chunks),
            simt.constant(self.warps),
            [*sums, *words],
        )
        with ir.InsertionPoint(loop.body):
            chunk, *carried = loop.body.arguments
            now, before = carried[: len(sums)], carried[len(sums) :]
            following = self._load(lines, chunk, member, row_bytes)
            scf.YieldOp([*self._multiply(before, now, len(lines)), *following])
        found = list(loop.results)
        found = self._multiply(found[len(sums) :], found[: len(sums)], len(lines))
        return [found[n : n + 4] for n in range(0, len(found), 4)]

    def _load(
        self, lines: Sequence[ir.Value], chunk: ir.Value, member: ir.Value, row_bytes: int
    ) -> list[ir.Value]:
        """Four words of each block of a chunk and each line; zeros beyond K."""
        words: list[ir.Value] = []
        per = ROW_BYTES // WORD_BYTES
        whole = self.chunks * self.blocks * BLOCK == row_bytes
        for block in range(self.blocks):
            place = simt.add(simt.mul(chunk, self.blocks * BLOCK), simt.mul(member, ROW_BYTES))
            place = simt.add(place, block * BLOCK) if block else place
            inside = None if whole else simt.less(place, row_bytes)
            if inside is not None:
                place = simt.smaller(place, row_bytes - ROW_BYTES)
            for number, line in enumerate(lines):
                address = simt.at(line, simt.wide(place))
                of_matrix = number < self.groups
                found = self.load_row(address) if of_matrix else simt.load_words(address, per)
                if inside is not None:
                    zero = simt.constant(0)
                    found = [arith.SelectOp(inside, word, zero).result for word in found]
                words += found
        return words

    def _multiply(
        self, words: Sequence[ir.Value], sums: Sequence[ir.Value], lines: int
    ) -> list[ir.Value]:
        """`sums` plus the products of a chunk."""
        found = list(sums)
        per = ROW_BYTES // WORD_BYTES
        for block in range(self.blocks):
            first = block * lines * per
            loaded = [words[first + per * n : first + per * (n + 1)] for n in range(lines)]
            found = self.products(loaded[: self.groups], loaded[self.groups :], found)
        return found

    def products(
        self,
        rows: Sequence[Sequence[ir.Value]],
        columns: Sequence[Sequence[ir.Value]],
        sums: Sequence[ir.Value],
    ) -> list[ir.Value]:
        """Emits `sums` plus the products of a block of K, given the block's words of each row and
        column."""
        found = list(sums)
        element = str(self.op.a.type.element_type)
        shape, kind = mma_atom(DEFAULT_ATOM[element]).shape, PTX_TYPE[element]
        for half in range(0, len(rows[0]), 2):
            for tile in range(self.tiles):
                low, *other = rows[2 * tile : 2 * tile + 2]
                high = other[0] if other else [simt.constant(0)] * len(low)
                a = [low[half], high[half], low[half + 1], high[half + 1]]
                for number, column in enumerate(columns):
                    at = 4 * (tile * len(columns) + number)
                    b = column[half : half + 2]
                    found[at : at + 4] = mma_sync(shape, (kind, kind), a, b, found[at : at + 4])
        return found

    # --- results -----------------------------------------------------------------------------

    def _store(
        self,
        sums: Sequence[Sequence[ir.Value]],
        own: tuple[ir.Value, ir.Value, ir.Value],
        origin: tuple[ir.Value, ir.Value],
        inputs: Sequence[ir.Value],
        out: ir.Value,
    ) -> None:
        """Adds the sums of the warps, several results per thread, and stores the results computed
        from them."""
        lane, warp, thread = own
        shared = simt.shared(self.module)
        few, pitch, rows = self._few, self._pitch, self.rows
        base = simt.add(
            simt.mul(warp, rows * pitch),
            simt.add(
                simt.mul(simt.right(lane, 2), pitch),
                simt.mul(simt.both_bits(lane, 3), 2 * WORD_BYTES),
            ),
        )
        across = ceil_div(few, COLUMNS)
        for number, (c0, c1, c2, c3) in enumerate(sums):
            tile, column = divmod(number, across)
            pairs = ((c0, c1), (c2, c3))
            for group, pair in enumerate(pairs[: self.groups - 2 * tile], 2 * tile):
                offset = COLUMNS * (group * pitch + column * WORD_BYTES)
                simt.store_run(simt.at(shared, simt.add(base, offset)), pair)
        nvvm.barrier()
        gates = 2 if self.after is not None and self.after.gated else 1
        many, rows = self._many // gates, rows // gates
        first = simt.right(origin[1], 1) if gates > 1 else origin[1]
        total = rows * few
        for start in range(0, total, self.warps * WARP):
            number = simt.add(thread, start) if start else thread
            row, column = (
                (simt.divide(number, few), simt.rest(number, few))
                if self.transposed
                else (simt.rest(number, rows), simt.divide(number, rows))
            )
            inside = simt.less(simt.add(first, row), many)
            if start + self.warps * WARP > total:
                inside = simt.both_bits(inside, simt.less(number, total))
            with simt.only_if(inside):
                place = simt.add(simt.mul(row, pitch), simt.mul(column, WORD_BYTES))
                if gates > 1:  # 8 gates, then as many values
                    block = simt.mul(simt.right(row, 3), COLUMNS * pitch)
                    place = simt.add(place, block)
                values = [
                    self._summed(shared, simt.add(place, n * COLUMNS * pitch) if n else place)
                    for n in range(gates)
                ]
                long = simt.add(first, row)
                at = (long, column) if self.transposed else (column, long)
                self._store_one(values, origin[0], at, inputs, out)

    def _summed(self, shared: ir.Value, place: ir.Value) -> ir.Value:
        """The sum of the warps' partial sums from byte `place` on."""
        value: ir.Value | None = None
        for each in range(self.warps):
            at = simt.at(shared, simt.add(place, each * self.rows * self._pitch))
            part = simt.load(at, ir.F32Type.get())
            value = part if value is None else arith.AddFOp(value, part).result
        assert value is not None
        return value

    def _store_one(
        self,
        values: Sequence[ir.Value],
        batch: ir.Value,
        at: tuple[ir.Value, ir.Value],
        inputs: Sequence[ir.Value],
        out: ir.Value,
    ) -> None:
        kind = self.op.out.type.element_type
        if values[0].type != kind:
            values = [arith.TruncFOp(kind, each).result for each in values]
        value = values[0]
        *outer, m, n = self.op.out.type.shape
        if self.after is not None:
            indices = [*([batch] if outer else []), *at]
            value = number_at(
                self.after,
                lambda each: inputs[ir.BlockArgument(each).arg_number],
                indices,
                *values,
            )
            kind, n = self.after.out.type.element_type, self.after.out.type.shape[-1]
        place = simt.linear([batch, *at], [1, m, n])
        store(out, place, value, kind)
