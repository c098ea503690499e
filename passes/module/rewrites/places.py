"""Finds the index of a row's largest or smallest element, by reductions whose order does not
matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tcir._mlir import arith, ir, linalg, tensor
from tcir.passes.analysis.contraction import value
from tcir.passes.emit.diagnostics import is_op
from tcir.passes.emit.generic import generic, loop_index
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import functions_with_body
from tcir.passes.module.rewrites.long_rows import parts_of

CHOSEN = {
    (arith.MaximumFOp, "ogt"): (arith.maximumf, -float("inf")),
    (arith.MinimumFOp, "olt"): (arith.minimumf, float("inf")),
}
"""By the op that carries the element, the comparison and its predicate: how two elements are
combined, and what an element that does not count is."""


@dataclass(frozen=True)
class _Place:
    """An op that finds the element and its index; dim: the loop of the index."""

    op: ir.Operation
    dim: int
    key: tuple[type[ir.OpView], str]


def spread_places(module: ir.Module) -> None:
    """Replaces an op that carries the largest element and its index, as an importer writes
    ``argmax``, by three reductions and a choice, so that groups of threads share a row. Few long
    rows are searched in parts, and then the largest elements of the parts (`parts_of`).

    The original op updates element and index whenever an element is larger than all elements before
    it, so a NaN ends the search. The new reductions find the first NaN, the largest element before
    it, and the first place of that element. If no element is larger than the initial element, the
    result is the initial index.
    """
    for function in functions_with_body(module):
        for found in [p for op in function.entry_block if (p := _place_of(op.operation))]:
            after = found.op.opview
            with ir.InsertionPoint.after(after), after.location:
                found.op.results[1].replace_all_uses_with(_spread(found))


def _place_of(op: ir.Operation) -> _Place | None:
    """The parts of an op that reads an index in this form; None for any other op."""
    if op.name != "linalg.generic" or len(op.operands) != 3 or len(op.results) != 2:
        return None
    block = op.regions[0].blocks[0]
    end = list(block)[-1].operation
    if any(isinstance(each, ir.BlockArgument) for each in end.operands):
        return None
    largest, chosen = (each.owner for each in end.operands)
    if chosen.name != "arith.select" or isinstance(chosen.operands[0], ir.BlockArgument):
        return None
    compared, index = chosen.operands[0].owner, chosen.operands[1]
    element, total, place = block.arguments
    if (
        compared.name != "arith.cmpf"
        or chosen.operands[2] != place
        or isinstance(index, ir.BlockArgument)
    ):
        return None
    predicate = arith.CmpFPredicate(ir.IntegerAttr(compared.attributes["predicate"]).value)
    key = (type(largest.opview), predicate.name.lower())
    if (
        key not in CHOSEN
        or list(compared.operands) != [element, total]
        or {*largest.operands} != {element, total}
        or index.owner.name != "arith.index_cast"
        or not is_op(index.owner.operands[0], "linalg.index")
        or not list(op.results[1].uses)
    ):
        return None
    dim = ir.IntegerAttr(index.owner.operands[0].owner.attributes["dim"]).value
    maps = [value(each) for each in linalg.get_indexing_maps(op)]
    kept = {e.position for e in maps[1].results if isinstance(e, ir.AffineDimExpr)}
    alone = {*range(maps[1].n_dims)} - kept == {dim} and maps[1] == maps[2]
    return _Place(op, dim, key) if alone else None


def _spread(found: _Place) -> ir.Value:
    """Builds the reductions and the choice. Few long rows have parts, each of them searched like a
    row; then the largest elements of the parts that begin before the first NaN are searched."""
    x, first, start = found.op.operands
    number, shape = start.type.element_type, list(start.type.shape)
    reads, row, _ = (value(each) for each in linalg.get_indexing_maps(found.op))
    loops = ["reduction" if n == found.dim else "parallel" for n in range(reads.n_dims)]
    rows = _Rows(x, None, reads, row, loops, ((found.dim, 1),), found.key, number)
    column = _column(reads, found.dim)
    parts = 1 if column is None else parts_of(x.type.shape[column], prod(shape))
    if column is None or parts == 1:
        nan = rows.first_nan(shape)
        largest, place = rows.extreme(nan, first)
    else:
        length = x.type.shape[column] // parts
        divided = rows.divided(column, parts)
        nans = divided.first_nan([*shape, parts])
        best, places = divided.extreme(nans, divided.never([*shape, parts]))
        every = ir.AffineMap.get_identity(len(shape) + 1)
        row = ir.AffineMap.get(len(shape) + 1, 0, list(every.results)[:-1])
        loops = ["parallel"] * len(shape) + ["reduction"]
        joined = _Rows(best, places, every, row, loops, ((len(shape), length),), found.key, number)
        nan = joined.least(nans, shape, lambda nan: nan)
        largest, place = joined.extreme(nan, first)
    same = ir.AffineMapAttr.get(ir.AffineMap.get_identity(len(shape)))
    exceeds = getattr(arith.CmpFPredicate, found.key[1].upper())
    return generic(
        [largest, first, place, start],
        tensor.EmptyOp(shape, number).result,
        [same] * 5,
        ["parallel"] * len(shape),
        lambda m, v, i, j, _: arith.select(arith.cmpf(exceeds, m, v), i, j),
    )


def _column(reads: ir.AffineMap, loop: int) -> int | None:
    """The dimension that a loop indexes, if loops alone index all; else None."""
    if not all(isinstance(e, ir.AffineDimExpr) for e in reads.results):
        return None
    return [e.position for e in reads.results].index(loop)


@dataclass(frozen=True)
class _Rows:
    """Rows to search.

    elements: tensor of the elements
    places:   tensor of their places, indexed alike; None: they are the indices in the row
    reads:    index of an element
    row:      index of a result
    at:       loops that make up the index in the row, and their steps
    key:      see `CHOSEN`
    number:   type of places
    """

    elements: ir.Value
    places: ir.Value | None
    reads: ir.AffineMap
    row: ir.AffineMap
    loops: Sequence[str]
    at: Sequence[tuple[int, int]]
    key: tuple[type[ir.OpView], str]
    number: ir.Type

    def divided(self, column: int, parts: int) -> _Rows:
        """Returns these rows divided into parts; each part becomes a row."""
        (loop, _), outer = self.at[0], len(self.loops)
        shape, index = list(self.elements.type.shape), list(self.reads.results)
        length = shape[column] // parts
        shape[column : column + 1] = [parts, length]
        part = ir.AffineDimExpr.get(outer)
        index[column : column + 1] = [part, index[column]]
        maps = (index, [*self.row.results, part])
        reads, row = (ir.AffineMap.get(outer + 1, 0, each) for each in maps)
        elements, loops = reshape(self.elements, shape), [*self.loops, "parallel"]
        at = ((outer, length), (loop, 1))
        return _Rows(elements, None, reads, row, loops, at, self.key, self.number)

    def first_nan(self, shape: Sequence[int]) -> ir.Value:
        """The place of each row's first NaN; if a row has no NaN, a place after all its
        elements."""
        unordered = arith.CmpFPredicate.UNO
        return self.least(
            self.elements,
            shape,
            lambda e: arith.select(arith.cmpf(unordered, e, e), self._here(), self._nowhere()),
        )

    def least(
        self, source: ir.Value, shape: Sequence[int], place: Callable[[ir.Value], ir.Value]
    ) -> ir.Value:
        """The smallest result of `place` over the elements of the tensor `source`, for each row."""
        given = source, self._far(shape)
        return self._reduced(given, 1, lambda e, total: arith.minsi(total, place(e)))

    def extreme(self, nan: ir.Value, first: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The extreme (largest or smallest) number out of `first` and the elements before a NaN,
        and the first place where it occurs."""
        combine, nothing = CHOSEN[self.key]
        kind = self.elements.type.element_type

        def larger(e: ir.Value, nan: ir.Value, total: ir.Value) -> ir.Value:
            never = arith.ConstantOp(kind, ir.FloatAttr.get(kind, nothing)).result
            return combine(arith.select(self._before(nan), e, never), total)

        def placed(e: ir.Value, *given: ir.Value) -> ir.Value:
            *place, nan, largest, total = given
            here = place[0] if place else self._here()
            among = arith.select(self._before(nan), here, self._nowhere())
            same = arith.cmpf(arith.CmpFPredicate.OEQ, e, largest)
            return arith.minsi(total, arith.select(same, among, self._nowhere()))

        largest = self._reduced((self.elements, nan, first), 1, larger)
        read = [self.elements, *([] if self.places is None else [self.places])]
        far = self._far(nan.type.shape)
        return largest, self._reduced((*read, nan, largest, far), len(read), placed)

    def never(self, shape: Sequence[int]) -> ir.Value:
        """A tensor filled with a number that can never become the result."""
        kind = self.elements.type.element_type
        number = arith.ConstantOp(kind, ir.FloatAttr.get(kind, CHOSEN[self.key][1])).result
        return linalg.fill(number, outs=[tensor.EmptyOp(shape, kind).result])

    def _reduced(
        self, given: Sequence[ir.Value], count: int, element: Callable[..., ir.Value]
    ) -> ir.Value:
        """A reduction of `count` tensors of elements; the others, and the start, are of rows."""
        maps = [self.reads] * count + [self.row] * (len(given) - count)
        *inputs, out = given
        return generic(inputs, out, list(map(ir.AffineMapAttr.get, maps)), self.loops, element)

    def _far(self, shape: Sequence[int]) -> ir.Value:
        empty = tensor.EmptyOp(shape, self.number).result
        return linalg.fill(self._nowhere(), outs=[empty])

    def _nowhere(self) -> ir.Value:
        last = ir.IntegerAttr.get(self.number, (1 << self.number.width - 1) - 1)
        return arith.ConstantOp(self.number, last).result

    def _here(self) -> ir.Value:
        """The index in the row: of an element, or the first of a part."""
        found = None
        for loop, step in self.at:
            number = arith.index_cast(self.number, loop_index(loop))
            if step != 1:
                number = arith.muli(number, arith.ConstantOp(self.number, step).result)
            found = number if found is None else arith.addi(found, number)
        assert found is not None, "a row has an index"
        return found

    def _before(self, nan: ir.Value) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.slt, self._here(), nan)
