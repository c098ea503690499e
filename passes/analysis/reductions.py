"""Reductions on tensors: which elements they combine, and how their partial results can be
combined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcir._mlir import ir, linalg
from tcir.passes.analysis.contraction import is_contraction, value
from tcir.passes.analysis.scaled_contraction import is_scaled_contraction
from tcir.passes.emit.diagnostics import is_op
from tcir.passes.emit.neutral import NEUTRAL


@dataclass(frozen=True)
class Combined:
    """A reduction whose body is ``combine(element, total)``, where `element` does not depend on
    `total`. element: a value of the body, or a constant outside the body"""

    combine: ir.OpView
    element: ir.Value


def combined(op: ir.Operation, number: int) -> Combined | None:
    """Describes how result `number` of a reduction combines its elements; None if the result
    depends on the order of the elements."""
    block = op.regions[0].blocks[0]
    total = block.arguments[len(op.operands) - len(op.results) + number]
    last = list(block)[-1].operation.operands[number]
    if isinstance(last, ir.BlockArgument) or last.owner.name not in NEUTRAL:
        return None
    element = [each for each in last.owner.operands if each != total]
    if len(element) != 1 or _reads_totals(op, element[0]):
        return None
    return Combined(last.owner.opview, element[0])


def _reads_totals(op: ir.Operation, number: ir.Value) -> bool:
    """Whether a number of a body is made of elements so far."""
    block = op.regions[0].blocks[0]
    if isinstance(number, ir.BlockArgument):
        return number.owner == block and number.arg_number >= len(op.operands) - len(op.results)
    if number.owner.operation.block != block:
        return False
    return any(_reads_totals(op, each) for each in number.owner.operands)


def is_product(op: ir.Operation) -> bool:
    """Whether an op sums products of elements of two or more tensors."""
    return is_scaled_contraction(op) or len(set(map(element_of, factors_in(op)))) == 2


def reads_once(op: ir.Operation) -> bool:
    """Whether a sum of products reads each element of one factor once, as the product of a matrix
    and a vector does. Its time is then the time to read that factor."""
    if not is_product(op) or is_scaled_contraction(op):
        return False
    maps = [value(each) for each in linalg.get_indexing_maps(op)]
    return any(_covers(each, op, maps) for each in maps[:-1])


def _covers(index: ir.AffineMap, op: ir.Operation, maps: Sequence[ir.AffineMap]) -> bool:
    """Whether a tensor's dimensions are all loops of more than one iteration, each of them once."""
    sizes = loop_sizes(op, maps)
    if not all(isinstance(each, ir.AffineDimExpr) for each in index.results):
        return False
    return {each.position for each in index.results} >= {d for d, n in sizes.items() if n != 1}


def loop_sizes(op: ir.Operation, maps: Sequence[ir.AffineMap]) -> dict[int, int]:
    """Trip counts of those loops that are, on their own, the index of a tensor's dimension."""
    return {
        index.position: int(size)
        for operand, each in zip(op.operands, maps)
        for index, size in zip(each.results, getattr(operand.type, "shape", ()))
        if isinstance(index, ir.AffineDimExpr)
    }


def is_reduction(op: ir.Operation) -> bool:
    """Whether a ``linalg`` op has loops that do not index its results."""
    maps = linalg.get_indexing_maps(op) if op.name.startswith("linalg.") else None
    if maps is None or op.name == "linalg.fill":
        return False
    out = value(list(maps)[-1])
    return out.n_dims > sum(isinstance(each, ir.AffineDimExpr) for each in out.results)


def is_window(op: ir.Operation) -> bool:
    """Whether an op reduces windows of an image."""
    return is_reduction(op) and any(
        isinstance(index, ir.AffineAddExpr)
        for each in linalg.get_indexing_maps(op)
        for index in value(each).results
    )


def factors_in(op: ir.Operation) -> list[ir.Value]:
    """The two factors in the body of an op that sums products of its two inputs; empty for any
    other op."""
    if not is_contraction(op) or len(op.operands) != 3 or len(op.results) != 1:
        return []
    block = op.regions[0].blocks[0]
    (yielded,) = list(block)[-1].operands
    if not any(is_op(yielded, f"arith.add{kind}") for kind in "fi"):
        return []
    added = [each for each in yielded.owner.operands if each != block.arguments[2]]
    products = [each for each in added if any(is_op(each, f"arith.mul{kind}") for kind in "fi")]
    return list(products[0].owner.operands) if len(products) == 1 else []


def element_of(number: ir.Value) -> ir.Value:
    """The element of an input from which a factor in the body is computed."""
    while not isinstance(number, ir.BlockArgument) and len(number.owner.operands) == 1:
        number = number.owner.operands[0]
    return number
