"""Divides an extreme (maximum or minimum) of few long rows, and a reduction relative to it, into
parts that are computed separately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tcir._mlir import arith, ir, linalg, tensor
from tcir.dialect.upstream import MAXIMA, RESHAPES, names
from tcir.passes.analysis.contraction import value
from tcir.passes.analysis.element_graph import Dims, ElementGraph, NotRaised, Number
from tcir.passes.analysis.reductions import is_reduction
from tcir.passes.emit.diagnostics import is_op
from tcir.passes.emit.generic import generic, loop_index
from tcir.passes.emit.neutral import neutral, neutral_attribute
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import functions_with_body
from tcir.passes.module.rewrites.long_rows import Divided, division_of, partial_of, whole_of

WITH_NAN = names(arith.MaximumFOp, arith.MinimumFOp)
"""Ops for which NaN is an extreme."""
EXTREMES = WITH_NAN | names(
    arith.MaxNumFOp, arith.MinNumFOp, arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp
)
"""Ops that find an extreme element."""
REPEATABLE = names(arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp)
"""Ops of places for which an element counts once, however often it is given."""
CASTS = names(arith.IndexCastOp, arith.TruncIOp, arith.ExtSIOp)
"""Ops that change the type of an index."""


def divide_long_pairs(module: ir.Module) -> None:
    """Divides an extreme of few long rows, and a reduction that reads it, into parts of the rows;
    each part is read once for both. This is done for a maximum with the sum of exponentials of the
    differences from it, and for an extreme with its place.

    Before::

        %m = linalg.generic ins(%x : tensor<4x4194304xf32>) … arith.maximumf
        %s = linalg.generic ins(%e) … arith.addf     // %e = exp(%x - %m)

    After::

        %mp = linalg.generic ins(%p : tensor<4x256x16384xf32>) … arith.maximumf
        %sp = linalg.generic ins(%p, %mp) … arith.addf of exp(%p - %mp)
        %m = linalg.generic ins(%mp) … arith.maximumf
        %s = linalg.generic ins(%mp, %sp, %m) … arith.addf of %sp exp(%mp - %m)

    One launch computes %mp and %sp, and another launch computes %m and %s. If all elements of a
    part are -inf, 0 is used as their maximum, so that the part's sum is 0; the sum of a row of -inf
    is NaN, as before. For a place ``select(%x == %m, %index, %none)``, only parts that have the
    row's extreme contribute.
    """
    for function in functions_with_body(module):
        for op in [each.operation for each in function.entry_block]:
            if (pair := _pair_of(op)) is not None:
                made = pair.extreme.results[pair.division.number], pair.total
                with ir.InsertionPoint(pair.extreme), pair.extreme.location:
                    for old, new in zip(made, pair.divided(), strict=True):
                        old.replace_all_uses_with(reshape(new, old.type.shape))
                op.erase()
                pair.extreme.erase()


@dataclass(frozen=True)
class _Form:
    """What a reduction combines of an element and the extreme.

    element: the element, a number
    extreme: the extreme, a number
    ops:     extremes of which it is valid
    part:    of an element, the extreme and the index in the row
    whole:   of a part's extreme, its result, and the row's extreme
    """

    element: Number
    extreme: Number
    ops: frozenset[str]
    part: Callable[[ir.Value, ir.Value, Callable[[], ir.Value]], ir.Value]
    whole: Callable[[ir.Value, ir.Value, ir.Value], ir.Value]


@dataclass(frozen=True)
class _Pair:
    """An extreme, how it is divided, the tensor whose rows it is of, and the reduction that reads
    it."""

    extreme: ir.Operation
    division: Divided
    rows: ir.Value
    total: ir.Value
    combine: ir.OpView
    form: _Form

    def divided(self) -> tuple[ir.Value, ir.Value]:
        """Builds both reductions in parts; returns the extreme and the result of the other
        reduction."""
        op, division = self.extreme, self.division
        start = division.start(op)
        parts = partial_of(op, division)
        whole = whole_of(op, division, parts, start)
        rank = start.type.rank
        every = ir.AffineMap.get_identity(rank + 1)
        row = ir.AffineMap.get(rank + 1, 0, list(every.results)[:rank])
        maps = [ir.AffineMapAttr.get(each) for each in (every, every, row, row)]

        def joined(
            extreme: ir.Value, of_part: ir.Value, of_row: ir.Value, so_far: ir.Value
        ) -> ir.Value:
            return self._combined(self.form.whole(extreme, of_part, of_row), so_far)

        loops = ["parallel"] * rank + ["reduction"]
        given = [parts, self._of_parts(parts), whole]
        return whole, generic(given, self._nothing(start.type.shape), maps, loops, joined)

    def _of_parts(self, parts: ir.Value) -> ir.Value:
        """The other reduction of each part."""
        loop, count = self.division.loop, self.division.parts
        shape = list(self.rows.type.shape)
        rank, length = len(shape), shape[loop] // count
        part, inner = ir.AffineDimExpr.get(rank), ir.AffineDimExpr.get(loop)
        places = [ir.AffineDimExpr.get(n) for n in range(rank)]
        places[loop : loop + 1] = [part, inner]
        shape[loop : loop + 1] = [count, length]
        out = value(list(linalg.get_indexing_maps(self.extreme))[-1])
        maps = [places, [*out.results, part], [*out.results, part]]
        kind = self.total.type.element_type

        def index() -> ir.Value:
            begin = arith.index_cast(kind, loop_index(rank))
            begin = arith.muli(begin, arith.ConstantOp(kind, length).result)
            return arith.addi(begin, arith.index_cast(kind, loop_index(loop)))

        return generic(
            [reshape(self.rows, shape), parts],
            self._nothing(parts.type.shape),
            [ir.AffineMapAttr.get(ir.AffineMap.get(rank + 1, 0, each)) for each in maps],
            ["reduction" if n == loop else "parallel" for n in range(rank + 1)],
            lambda e, m, so_far: self._combined(self.form.part(e, m, index), so_far),
        )

    def _combined(self, number: ir.Value, so_far: ir.Value) -> ir.Value:
        return ir.Operation.create(
            self.combine.operation.name, results=[number.type], operands=[number, so_far]
        ).result

    def _nothing(self, shape: list[int]) -> ir.Value:
        """The tensor with which the other reduction begins."""
        kind = self.total.type.element_type
        empty = tensor.EmptyOp(shape, kind).result
        return linalg.fill(neutral(self.combine, kind), outs=[empty])


# --- what is a pair --------------------------------------------------------------------------


@dataclass
class _Elements:
    """Elements of tensors as expressions of those in memory, of reductions, and of indices.

    leaves: tensors and their indices, by the number
    places: indices, by the number
    """

    rank: int
    leaves: dict[Number, tuple[ir.Value, Dims]] = field(default_factory=dict)
    places: dict[Number, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.graph = ElementGraph(self.rank, (0, 0), self._leaf)

    def _leaf(self, tensor: ir.Value, dims: Dims) -> Number | None:
        if isinstance(tensor, ir.BlockArgument) or _is_opaque(tensor.owner):
            found = Number(None, name="element")
            self.leaves[found] = tensor, dims
            return found
        if (dim := _index_of(tensor.owner)) is not None:
            found = Number(None, name="index")
            self.places[found] = dims[dim]
            return found
        return None


def _is_opaque(op: ir.Operation) -> bool:
    """Whether an op's elements are not functions of others at indices of their own: those of a
    reduction, or of a tensor whose rows are joined or split."""
    if not isinstance(op.opview, RESHAPES):
        return is_reduction(op)
    before, after = ([n for n in each.type.shape if n != 1] for each in (op.operands[0], op.result))
    return before != after


def _index_of(op: ir.Operation) -> int | None:
    """The dimension whose index an op writes into each element; None if it writes others."""
    if op.name != "linalg.generic" or len(op.operands) != 1:
        return None
    (out,) = map(value, linalg.get_indexing_maps(op))
    (number,) = list(op.regions[0].blocks[0])[-1].operands
    while not isinstance(number, ir.BlockArgument) and number.owner.name in CASTS:
        number = number.owner.operands[0]
    if out != ir.AffineMap.get_identity(out.n_dims) or not is_op(number, "linalg.index"):
        return None
    return int(ir.IntegerAttr(number.owner.attributes["dim"]).value)


def _pair_of(op: ir.Operation) -> _Pair | None:
    """The extreme that a reduction reads, if parts of both can be combined."""
    if not op.name.startswith("linalg.") or (division := division_of(op)) is None:
        return None
    start, combine = division.start(op), division.how.combine
    nothing = neutral_attribute(combine, start.type.element_type)
    begins = is_op(start, "linalg.fill") and _constant(start.owner.operands[0]) == nothing
    if not begins or not _reads_alone(op, division):
        return None
    rank = op.operands[0].type.rank
    elements, dims = _Elements(rank), tuple(range(rank))
    try:
        number = elements.graph.of(op.operands[0], dims)
        form = _power(number) if combine.operation.name == "arith.addf" else None
        if combine.operation.name in REPEATABLE:
            form = _place(number, elements, division.loop)
        return None if form is None else _extreme_of(op, division, elements, form)
    except NotRaised:
        return None


def _extreme_of(
    reader: ir.Operation, division: Divided, elements: _Elements, form: _Form
) -> _Pair | None:
    """The pair of a reduction that reads an extreme of the same rows in this form."""
    found, at = elements.leaves.get(form.extreme, (None, ()))
    if found is None or isinstance(found, ir.BlockArgument):
        return None
    op, shape = found.owner, reader.operands[0].type.shape
    mine = division_of(op)
    dims = tuple(range(len(shape)))
    if (
        mine is None
        or (mine.loop, mine.parts) != (division.loop, division.parts)
        or mine.how.combine.operation.name not in form.ops
        or op.results[mine.number] != found
        or not _reads_alone(op, mine)
        or op.operands[0].type.shape != shape
        or elements.graph.of(op.operands[0], dims) is not form.element
    ):
        return None
    rows = [dim for dim in dims if dim != mine.loop and shape[dim] != 1]
    if [dim for dim in at if dim is not None and shape[dim] != 1] != rows:
        return None
    total, combine = reader.results[division.number], division.how.combine
    return _Pair(op, mine, op.operands[0], total, combine, form)


def _power(number: Number) -> _Form | None:
    """An exponential of the difference from the maximum."""
    if _name(number) != "math.exp" or _name(number.operands[0]) != "arith.subf":
        return None

    element, largest = number.operands[0].operands

    def of_part(number: ir.Value, largest: ir.Value, _: object) -> ir.Value:
        kind = number.type
        infinite = arith.ConstantOp(kind, ir.FloatAttr.get(kind, -float("inf")))
        none = arith.cmpf(arith.CmpFPredicate.OEQ, largest, infinite)
        zero = arith.ConstantOp(kind, ir.FloatAttr.get(kind, 0.0)).result
        return _exp(arith.subf(number, arith.select(none, zero, largest)))

    def of_row(largest: ir.Value, total: ir.Value, of_row: ir.Value) -> ir.Value:
        return arith.mulf(total, _exp(arith.subf(largest, of_row)))

    return _Form(element, largest, MAXIMA, of_part, of_row)


def _exp(number: ir.Value) -> ir.Value:
    return ir.Operation.create("math.exp", results=[number.type], operands=[number]).result


def _place(number: Number, elements: _Elements, loop: int) -> _Form | None:
    """The index along `loop` where the element is the extreme, or also where it is NaN; elsewhere
    a constant."""
    if _name(number) != "arith.select":
        return None
    condition, index, none = number.operands
    conditions = condition.operands if _name(condition) == "arith.ori" else (condition,)
    equal = [each for each in conditions if _compares(each, "OEQ", "eq")]
    nan = [each for each in conditions if _compares(each, "UNE", "") or _compares(each, "UNO", "")]
    if len(equal) != 1 or len(equal) + len(nan) != len(conditions):
        return None
    element, extreme = equal[0].operands
    alone = all(each is element for other in nan for each in other.operands)
    nothing = None if none.op is None else _constant(none.op.results[0])
    if elements.places.get(index, -1) != loop or not alone or nothing is None:
        return None

    def chosen(number: ir.Value, extreme: ir.Value, place: ir.Value) -> ir.Value:
        nowhere = arith.ConstantOp(place.type, nothing).result
        return arith.select(_holds(bool(nan), number, extreme), place, nowhere)

    return _Form(
        element,
        extreme,
        WITH_NAN if nan else EXTREMES,
        lambda e, m, index: chosen(e, m, index()),
        lambda m, place, of_row: chosen(m, of_row, place),
    )


def _holds(nan: bool, number: ir.Value, extreme: ir.Value) -> ir.Value:
    """Whether a number is the extreme; nan: NaN is one."""
    if not isinstance(number.type, ir.FloatType):
        return arith.cmpi(arith.CmpIPredicate.eq, number, extreme)
    equal, unordered = arith.CmpFPredicate.OEQ, arith.CmpFPredicate.UNE
    found = arith.cmpf(equal, number, extreme)
    return arith.ori(found, arith.cmpf(unordered, number, number)) if nan else found


def _compares(number: Number, floats: str, integers: str) -> bool:
    """Whether a number compares two others by this predicate."""
    if number.op is None or number.op.name not in ("arith.cmpf", "arith.cmpi"):
        return False
    predicate = ir.IntegerAttr(number.op.attributes["predicate"]).value
    if number.op.name == "arith.cmpi":
        return bool(integers) and predicate == int(getattr(arith.CmpIPredicate, integers))
    return bool(predicate == int(getattr(arith.CmpFPredicate, floats)))


def _constant(number: ir.Value) -> ir.Attribute | None:
    """The number in all elements of a constant; None for anything else."""
    if not is_op(number, "arith.constant"):
        return None
    found = number.owner.attributes["value"]
    if isinstance(found, ir.DenseElementsAttr):
        return found.get_splat_value() if found.is_splat else None
    return found


def _name(number: Number) -> str:
    return "" if number.op is None else number.op.name


def _reads_alone(op: ir.Operation, division: Divided) -> bool:
    """Whether a reduction combines the elements of one tensor as they are, each once."""
    maps = [value(each) for each in linalg.get_indexing_maps(op)]
    argument = op.regions[0].blocks[0].arguments[0]
    one = len(op.operands) == 1 + len(op.results) and division.how.element == argument
    return one and maps[0] == ir.AffineMap.get_identity(maps[0].n_dims)
