"""Index of a row's largest or smallest element, by reductions whose order does not matter."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import arith, ir, linalg, tensor
from tcir.passes.analysis.contraction import n_loops, value
from tcir.passes.emit.builders import i64
from tcir.passes.emit.diagnostics import is_op
from tcir.passes.emit.generic import generic
from tcir.passes.emit.tensor_functions import functions_with_body

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
    ``argmax``, by three reductions and a choice, so that groups of threads share a row.

    The op updates both where an element is larger than all before, so a NaN ends the search: the
    first NaN, the largest before it, and the first place of that one. If no element is larger than
    the one from which it starts, that one's index stays.
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
    op, (combine, nothing) = found.op, CHOSEN[found.key]
    x, first, start = op.operands
    of_x, of_row, _ = linalg.get_indexing_maps(op)
    loops = ["reduction" if n == found.dim else "parallel" for n in range(n_loops(of_x))]
    kind, number = x.type.element_type, start.type.element_type
    last = ir.IntegerAttr.get(number, (1 << number.width - 1) - 1)
    unordered, equal, exceeds = (
        getattr(arith.CmpFPredicate, name) for name in ("UNO", "OEQ", found.key[1].upper())
    )

    def nowhere() -> ir.Value:
        return arith.ConstantOp(number, last).result

    def here() -> ir.Value:
        index = ir.Operation.create(
            "linalg.index", results=[ir.IndexType.get()], attributes={"dim": i64(found.dim)}
        )
        return arith.index_cast(number, index.result)

    def chosen(holds: ir.Value, total: ir.Value) -> ir.Value:
        return arith.minsi(total, arith.select(holds, here(), nowhere()))

    def before(nan: ir.Value) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.slt, here(), nan)

    def larger(element: ir.Value, nan: ir.Value, total: ir.Value) -> ir.Value:
        never = arith.ConstantOp(kind, ir.FloatAttr.get(kind, nothing)).result
        return combine(arith.select(before(nan), element, never), total)

    def placed(e: ir.Value, nan: ir.Value, largest: ir.Value, total: ir.Value) -> ir.Value:
        among = arith.select(before(nan), here(), nowhere())
        same = arith.cmpf(equal, e, largest)
        return arith.minsi(total, arith.select(same, among, nowhere()))

    empty = tensor.EmptyOp(start.type.shape, number).result
    far = linalg.fill(nowhere(), outs=[empty])
    nan = generic(
        [x],
        far,
        [of_x, of_row],
        loops,
        lambda e, total: chosen(arith.cmpf(unordered, e, e), total),
    )
    largest = generic([x, nan], first, [of_x, of_row, of_row], loops, larger)
    place = generic([x, nan, largest], far, [of_x, *[of_row] * 3], loops, placed)
    same = ir.AffineMapAttr.get(ir.AffineMap.get_identity(start.type.rank))
    return generic(
        [largest, first, place, start],
        empty,
        [same] * 5,
        ["parallel"] * start.type.rank,
        lambda m, v, i, j, _: arith.select(arith.cmpf(exceeds, m, v), i, j),
    )
