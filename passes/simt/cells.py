"""Reductions by groups of threads, where a group reduces one row, or several columns side by
side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from math import prod

from tcir._mlir import arith, func, ir, linalg, nvvm, scf
from tcir.dialect.limits import WARP
from tcir.passes.analysis.reductions import Combined, combined, loop_sizes
from tcir.passes.analysis.row_chain import Atom, RowChain, is_single
from tcir.passes.emit import narrow, simt
from tcir.passes.emit.element_epilogue import place_of
from tcir.passes.emit.neutral import neutral
from tcir.passes.simt.elements import ThreadElements, digits
from tcir.passes.simt.group import ThreadGroup
from tcir.passes.simt.slices import Index
from tcir.passmanager.remarks import remark


@dataclass(frozen=True)
class Piece:
    """The part of a row that a thread has in registers at a time: the indices of its columns, in
    runs of adjacent columns, and masks of the columns that are inside the row (None: all columns
    are)."""

    columns: list[Index]
    inside: ir.Value | None


def convert(
    module: ir.Module,
    function: func.FuncOp,
    results: Sequence[ir.Value],
    chain: RowChain,
    group: ThreadGroup,
) -> None:
    """Turns a function with the attribute ``tc.simt`` into a kernel with a group of threads per
    row. If the function has several results, the group stores one element of each.

    Before::

        func.func @f(%x: tensor<64x4096xf32>) -> tensor<64xf32> attributes {tc.simt} {
          %t = linalg.reduce ins(%x) outs(%zeros) dimensions = [1] … arith.addf …

    After (128 threads for a row of 4096, a thread takes 4 columns at a time)::

        %v:4 = llvm.load %x[%row, 4 * %tid], … of 8 pieces of the row
        %t = (%v0 + %v1) + (%v2 + %v3) …; shuffles from distance 1 up to 16
        llvm.store %t, %partials[%warp]; barrier; the sum of the warps' %partials; %out[%row] = …

    If memory is contiguous from row to row, adjacent lanes of a warp have different rows. A row
    that fits registers (`ThreadGroup.rounds` is 1) is loaded once, however many reductions there
    are; a longer row is read again by each reduction. The order of a sum is fixed: a tree over a
    thread's elements of a round, the rounds in order, the shuffles, a tree over the warps. The
    reference has another order, so sums of floats are within its bound; the passes after this one
    preserve every bit.
    """
    _Kernel(module, function, results, chain, group).build()


@dataclass
class _Kernel:
    module: ir.Module
    function: func.FuncOp
    results: Sequence[ir.Value]
    chain: RowChain
    group: ThreadGroup

    def build(self) -> None:
        group, chain = self.group, self.chain
        owner = self.results[0].owner
        remark(owner.opview, group.words(chain))
        place = self.module, self.function, (group.ctas, 1, 1), group.threads, owner.location
        smem = group.bytes_of(len(chain.sums))
        with simt.kernel_of(*place, smem=smem) as pointers:
            block = self.function.entry_block
            self.elements = ThreadElements(dict(zip(block.arguments, pointers)))
            self.outs = pointers[len(block.arguments) :]
            self._begin()
            if chain.own and group.waits:
                self._load_ahead()
            for number, (total, dims) in enumerate(chain.sums):
                self._total(number, total, dims)
            self._store()

    def _begin(self) -> None:
        """Computes the thread's cell, its number in the group, and its row."""
        group = self.group
        thread = simt.thread_index()
        self.lane = simt.both_bits(thread, WARP - 1)
        self.warp = simt.right(thread, 5)
        if group.across:
            self.member = simt.divide(thread, group.side)
            inside = simt.rest(thread, group.side)
            cell = simt.add(simt.mul(simt.block_index(0), group.side), inside)
        else:
            self.member = simt.rest(thread, group.size)
            inside = simt.divide(thread, group.size)
            cell = simt.add(simt.mul(simt.block_index(0), group.side), inside)
        self.inside = inside
        self.valid: ir.Value | None = None
        if group.cells % group.side:
            self.valid = simt.less(cell, group.cells)
            cell = simt.smaller(cell, group.cells - 1)
        shape = self.results[0].type.shape
        sizes = [shape[dim] for dim in self.chain.rows]
        if group.across:
            sizes[-1] //= group.run
        found = list(digits(cell, sizes)) if sizes else []
        self.lasts: tuple[ir.Value, ...] = ()
        if group.across:
            first = simt.mul(found[-1], group.run) if group.run > 1 else found[-1]
            self.lasts = self.elements.run(first, group.run)
            found[-1] = first
        self.row: dict[int, ir.Value] = dict(zip(self.chain.rows, found, strict=True))
        self.zero = simt.constant(0)
        self.pieces = self._pieces(self.elements, simt.constant(0)) if group.rounds == 1 else []

    def _load_ahead(self) -> None:
        """Loads what the result reads along the row, such as a weight, before the first reduction
        waits."""
        known = [(each, at) for each, at in self.chain.loads if all(map(is_single, at))]
        for column in (each for piece in self.pieces for each in piece.columns):
            own: dict[Atom, ir.Value] = {("c", n): index for n, index in enumerate(column)}
            own |= {("d", dim): index for dim, index in self.row.items()}
            for tensor, at in known:
                self.elements.element(tensor, tuple(own[s[0]] if s else self.zero for s in at))

    def _rows(self) -> list[dict[int, ir.Value]]:
        """The rows that the thread has: one, or as many as are side by side in a run."""
        if not self.group.across:
            return [self.row]
        return [{**self.row, self.chain.rows[-1]: last} for last in self.lasts]

    # --- the columns -----------------------------------------------------------------------------

    def _pieces(self, elements: ThreadElements, turn: ir.Value) -> list[Piece]:
        """The thread's pieces in round `turn`."""
        group, found = self.group, []
        run = 1 if group.across else group.run
        count = prod(self.chain.columns) // run
        for n in range(group.pieces):
            begin = simt.add(simt.mul(turn, group.pieces * group.size), n * group.size)
            number = simt.add(begin, self.member)
            inside: ir.Value | None = None
            if group.rounds * group.pieces * group.size > count and (
                group.rounds > 1 or (n + 1) * group.size > count
            ):
                inside = simt.less(number, count)
                number = simt.smaller(number, count - 1)
            if not self.chain.columns:
                found.append(Piece([()], inside))
                continue
            sizes = [*self.chain.columns[:-1], self.chain.columns[-1] // run]
            *outer, last = digits(number, sizes)
            first = simt.mul(last, run) if run > 1 else last
            columns = [(*outer, each) for each in elements.run(first, run)]
            found.append(Piece(columns, inside))
        return found

    @contextmanager
    def _rounds(self, starts: Sequence[ir.Value]) -> Iterator[_Round]:
        """The body of the loop over rounds of pieces, if there are several: else just it."""
        if self.group.rounds == 1:
            yield (found := _Round(self.elements, self.pieces, list(starts)))
            self.reduced = found.totals
            return
        bounds = (simt.constant(n) for n in (0, self.group.rounds, 1))
        loop = scf.ForOp(*bounds, list(starts))
        with ir.InsertionPoint(loop.body):
            elements = self.elements.within()
            pieces = self._pieces(elements, loop.induction_variable)
            yield (found := _Round(elements, pieces, list(loop.inner_iter_args)))
            scf.YieldOp(found.totals)
        self.reduced = list(loop.results)

    # --- reductions ------------------------------------------------------------------------------

    def _total(self, number: int, total: ir.Value, dims: Sequence[int | None]) -> None:
        """Computes a reduction by the group, and remembers it."""
        op = total.owner
        result = list(op.results).index(total)
        how = combined(op, result)
        assert how is not None, "a chain has no other reductions"
        rows = self._rows()
        ats = [tuple(self.zero if d is None else row[d] for d in dims) for row in rows]
        kind = narrow.register(total.type)
        with op.location:
            nothing = neutral(how.combine, kind)
            with self._rounds([nothing] * len(rows)) as each:
                for n, at in enumerate(ats):
                    values = self._contributions(each, op, result, how, at, nothing)
                    value = tree(how, values)
                    if self.group.rounds > 1:
                        value = how_of(how, each.totals[n], value)
                    each.totals[n] = value
            sums = self._of_group(number, how, self.reduced)
            for at, value in zip(ats, sums, strict=True):
                outputs = len(op.operands) - len(op.results)
                start = self.elements.element(op.operands[outputs + result], at)
                self.elements.learn(total, at, how_of(how, value, start))

    def _contributions(
        self,
        each: _Round,
        op: ir.Operation,
        result: int,
        how: Combined,
        at: Index,
        nothing: ir.Value,
    ) -> list[ir.Value]:
        """Values that the thread's columns of a round contribute to the reduction at `at`."""
        maps = [ir.AffineMapAttr(m).value for m in linalg.get_indexing_maps(op)]
        out = maps[len(op.operands) - len(op.results) + result].results
        loops = {e.position: i for e, i in zip(out, at) if isinstance(e, ir.AffineDimExpr)}
        sizes = loop_sizes(op, maps)
        reduced = [dim for dim in sorted(sizes) if dim not in loops]
        values = []
        for piece in each.pieces:
            for column in piece.columns:
                given = iter(column)
                here = {dim: self.zero if sizes[dim] == 1 else next(given) for dim in reduced}
                (value,) = each.elements.numbers(op, maps, {**loops, **here}, [how.element], {})
                if piece.inside is not None:
                    value = arith.SelectOp(piece.inside, value, nothing).result
                values.append(value)
        return values

    def _of_group(self, number: int, how: Combined, values: Sequence[ir.Value]) -> list[ir.Value]:
        """The threads' values together, in each of them; where only the result is left, in the one
        that stores it."""
        group, kind = self.group, values[0].type
        found = list(values)
        for distance in group.distances:
            found = [how_of(how, each, simt.from_lane(each, distance)) for each in found]
        if group.warps == 1:
            return found
        shared = simt.shared(self.module)
        words = [word for each in found for word in simt.words_of(each)]
        place = group.slot(self.inside, self.warp, number)
        writes = simt.less(self.lane, group.writers)
        with simt.only_if(writes):
            for n, word in enumerate(words):
                simt.store(simt.at(shared, simt.add(place, 4 * n)), word)
        nvvm.barrier()

        def of_warps() -> list[ir.Value]:
            parts: list[list[ir.Value]] = []
            for warp in range(group.warps):
                begin = group.slot_of(self.inside, warp, number)
                read = [
                    simt.load(simt.at(shared, simt.add(begin, 4 * n)), words[0].type)
                    for n in range(len(words))
                ]
                each = len(words) // len(found)
                part = [read[n * each : (n + 1) * each] for n in range(len(found))]
                parts.append([simt.of_words(each, kind) for each in part])
            return [tree(how, [part[n] for part in parts]) for n in range(len(found))]

        if self.chain.own or number + 1 < len(self.chain.sums):
            return of_warps()
        stores = scf.IfOp(simt.equal(self.member, 0), [kind] * len(found), has_else=True)
        with ir.InsertionPoint(stores.then_block):
            scf.YieldOp(of_warps())
        with ir.InsertionPoint(stores.else_block):
            scf.YieldOp(found)
        return list(stores.results)

    # --- the result ------------------------------------------------------------------------------

    def _store(self) -> None:
        if not self.chain.own:
            for result, out in zip(self.results, self.outs, strict=True):
                self._store_element(result, out)
            return
        (result,), (out,) = self.results, self.outs
        with self._rounds([]) as each:
            for piece in each.pieces:
                ats = [self._at(row, column) for row in self._rows() for column in piece.columns]
                values = [each.elements.element(result, at) for at in ats]
                self._store_piece(result, out, ats[0], values, piece.inside)

    def _store_element(self, result: ir.Value, out: ir.Value) -> None:
        """The first thread of a group stores the result's element of its rows."""
        sized = [dim for dim, size in enumerate(result.type.shape) if size != 1]
        ats = []
        for row in self._rows():
            own = dict(zip(sized, (row[dim] for dim in self.chain.rows), strict=True))
            ats.append(tuple(own.get(dim, self.zero) for dim in range(result.type.rank)))
        values = [self.elements.element(result, at) for at in ats]
        first = None if self.group.size == 1 else simt.equal(self.member, 0)
        self._store_piece(result, out, ats[0], values, first)

    def _store_piece(
        self,
        result: ir.Value,
        out: ir.Value,
        at: Index,
        values: Sequence[ir.Value],
        allowed: ir.Value | None,
    ) -> None:
        """Stores elements side by side from `at` on, in valid cells, where `allowed` holds."""
        element = result.type.element_type

        def store() -> None:
            place = place_of(result.type, at)
            if len(values) > 1 and narrow.has_runs(element):
                narrow.store_run(out, place, values, element)
                return
            for n, value in enumerate(values):
                narrow.store(out, simt.add(place, n) if n else place, [value], element)

        conditions = [each for each in (self.valid, allowed) if each is not None]
        if not conditions:
            store()
            return
        with simt.only_if(reduce(simt.both_bits, conditions)):
            store()

    def _at(self, row: dict[int, ir.Value], column: Index) -> Index:
        """The index of an element of a result along the row."""
        own = dict(zip(self.chain.own, column)) | row
        return tuple(own.get(dim, self.zero) for dim in range(self.results[0].type.rank))


@dataclass
class _Round:
    """One round of pieces: the values known in it, the pieces, and the partial reductions."""

    elements: ThreadElements
    pieces: list[Piece]
    totals: list[ir.Value]


def how_of(how: Combined, a: ir.Value, b: ir.Value) -> ir.Value:
    """Combines two partial results by the op `how`."""
    return narrow.computed(how.combine, [a, b])


def tree(how: Combined, values: Sequence[ir.Value]) -> ir.Value:
    """Combines all partial results in a tree, neighbours first."""
    found = list(values)
    while len(found) > 1:
        pairs = [how_of(how, *found[n : n + 2]) for n in range(0, len(found) - 1, 2)]
        found = [*pairs, *found[len(found) - len(found) % 2 :]]
    return found[0]
