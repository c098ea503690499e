"""Scores of an attention: the ops that a program applies to sums of products before the softmax.

The ops between a sum and the score are called steps: products with constants, masks, and other ops,
which are computed in the body of ``tc.attention``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from tcir._mlir import arith, ir
from tcir.dialect.ops.attention import ATTENTION_TYPES
from tcir.dialect.upstream import names
from tcir.passes.analysis.element_graph import NotRaised
from tcir.passes.raising.attention.elements import NUMBER, REDUCTION, Expression
from tcir.passes.raising.attention.masks import ScoreMask, is_fixed

ROUNDINGS = names(arith.ExtFOp, arith.TruncFOp)
INFINITY = float("inf")


@dataclass(frozen=True)
class Times:
    """A step that multiplies by a constant."""

    factor: float


@dataclass(frozen=True)
class Applied:
    """A step that applies another op to scores: `expression`, whose operand number `hole` is the
    result of the previous op."""

    expression: Expression
    hole: int


@dataclass(frozen=True)
class Masked:
    """A step that adds a mask or selects by a mask.

    masks: the parts of the mask; a key is kept if all parts keep it
    """

    applied: Applied
    masks: tuple[ScoreMask, ...]


Step: TypeAlias = Times | Applied | Masked


def steps_of(element: Expression) -> tuple[Expression, list[Step], bool]:
    """Returns the sum from which a score is computed, the steps from the sum to the score, and
    whether any step is rounded to 16 bits; raises `NotRaised`."""
    steps: list[Step] = []
    rounded, known = False, dict[Expression, bool]()
    while element.name != REDUCTION:
        rounded |= str(element.type) in ATTENTION_TYPES
        if element.name in ROUNDINGS:
            element = element.operands[0]
            continue
        if (found := multiple(element)) is not None:
            element, factor = found
            steps.insert(0, Times(factor))
            continue
        holes = [n for n, each in enumerate(element.operands) if _is_of_sums(each, known)]
        if len(holes) != 1 or not isinstance(element.type, ir.FloatType):
            words = f"expected products of queries and keys, scaled and masked, got {element.name}"
            raise NotRaised(element.op, words)
        applied = Applied(element, holes[0])
        if (apart := _mask_apart(applied)) is not None:
            masked, element = apart
            steps.insert(0, masked)
            continue
        masks = _masks(applied)
        steps.insert(0, Masked(applied, masks) if masks else applied)
        element = element.operands[holes[0]]
    return element, steps, rounded | (str(element.type) in ATTENTION_TYPES)


def multiple(element: Expression) -> tuple[Expression, float] | None:
    """Returns the other operand and the factor, if an element is a product with a constant or a
    quotient by a constant."""
    if element.name not in ("arith.mulf", "arith.divf"):
        return None
    a, b = element.operands
    if b.number:
        return a, b.number if element.name == "arith.mulf" else 1 / b.number
    return (b, a.number) if a.number and element.name == "arith.mulf" else None


def _is_of_sums(element: Expression, known: dict[Expression, bool]) -> bool:
    """Whether an element is made of a sum of products."""
    if element not in known:
        known[element] = (
            _sums_products(element)
            if element.name == REDUCTION
            else any(_is_of_sums(each, known) for each in element.operands)
        )
    return known[element]


def _sums_products(element: Expression) -> bool:
    assert element.op is not None
    return any(
        inner.operation.name == "arith.mulf"
        for region in element.op.regions
        for block in region
        for inner in block
    )


def _masks(applied: Applied) -> tuple[ScoreMask, ...]:
    """Returns the masks of a select or of an addition, including numbers added that depend on row
    and key alone."""
    op, hole = applied.expression, applied.hole
    if op.name == "arith.select":
        condition, *chosen = op.operands
        if hole == 0:
            return ()
        return _parts(op, condition, chosen[2 - hole], hole == 2)
    if op.name != "arith.addf":
        return ()
    added = op.operands[1 - hole]
    inner = added
    while inner.name in ROUNDINGS:
        inner = inner.operands[0]
    if inner.name == "arith.select":
        condition, *chosen = inner.operands
        for number, other in ((0, 1), (1, 0)):
            if chosen[other].number == 0:
                masks = _parts(op, condition, chosen[number], number == 0)
                if masks:
                    return masks
    return (ScoreMask(op, added),) if is_fixed(added) else ()


def _mask_apart(applied: Applied) -> tuple[Masked, Expression] | None:
    """Splits the addition of a number that is -inf where a condition is so: into a mask, and the
    addition of the other number."""
    op, hole = applied.expression, applied.hole
    added = op.operands[1 - hole] if op.name == "arith.addf" else op
    while added.name == "arith.extf":
        added = added.operands[0]
    if op.name != "arith.addf" or added.name != "arith.select":
        return None
    condition, *chosen = added.operands
    for masked in (0, 1):
        other = chosen[1 - masked]
        if chosen[masked].number != -INFINITY or other.number == 0:
            continue
        sums = _with(op, (op.operands[hole], other)[:: 1 - 2 * hole])
        minus = Expression(NUMBER, op.type, number=-INFINITY)
        places = (minus, sums) if masked == 0 else (sums, minus)
        select = replace(_with(added, (condition, *places)), type=op.type)
        masks = _parts(select, condition, minus, masked == 0)
        return Masked(Applied(select, 2 - masked), masks), sums
    return None


def _with(op: Expression, operands: tuple[Expression, ...]) -> Expression:
    """The op of other operands."""
    return Expression(op.name, op.type, op.op, lambda: operands)


def _parts(
    op: Expression, condition: Expression, number: Expression, where: bool
) -> tuple[ScoreMask, ...]:
    """Masks that give -inf, or another fixed number, where a condition is `where`."""
    whole = ScoreMask(op, number, condition, where)
    if number.number != -INFINITY:
        return (whole,) if whole.fixed else ()
    parts = [ScoreMask(op, number, part, is_) for part, is_ in _conditions(condition, where)]
    rest = [part for part in parts if not part.fixed]
    return tuple(parts) if len(rest) < 2 else (*(each for each in parts if each.fixed), whole)


def _conditions(condition: Expression, where: bool) -> list[tuple[Expression, bool]]:
    """Splits a condition into alternatives, each with a boolean; the condition is `where` exactly
    if one of them has its boolean."""
    a, b = condition.operands if len(condition.operands) == 2 else (condition, condition)
    if condition.name == "arith.xori":
        for one, other in ((a, b), (b, a)):
            if one.name == NUMBER and one.number:
                return _conditions(other, not where)
    if condition.name == ("arith.ori" if where else "arith.andi"):
        return [*_conditions(a, where), *_conditions(b, where)]
    return [(condition, where)]
