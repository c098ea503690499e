"""Recognition of attention: a softmax of scaled, masked products, multiplied by values.

It works on expressions of elements (`elements`), so the form of the program does not matter:
reshapes, transposes, widening, and bodies with one op or with several. Masks are evaluated
(`masks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect.ops.attention import ATTENTION_TYPES
from tcir.dialect.upstream import MAXIMA
from tcir.passes.analysis.digits import Number, whole
from tcir.passes.analysis.element_graph import NotRaised
from tcir.passes.raising.attention.elements import (
    REDUCTION,
    SOFTMAX,
    ElementsOf,
    Expression,
    Reduced,
    same,
)
from tcir.passes.raising.attention.masks import ScoreMask
from tcir.passes.raising.attention.scores import (
    INFINITY,
    ROUNDINGS,
    Masked,
    Step,
    Times,
    multiple,
    steps_of,
)

LOWEST = -3e38
"""Largest start of a maximum of f32 that counts as -inf."""
ORDERED_EQUAL = 1
"""The predicate ``oeq``."""


@dataclass(frozen=True)
class Input:
    """An element of 16 bits, and the constant by which the program multiplies it."""

    element: Expression
    times: float

    @property
    def loops(self) -> set[object]:
        """The loops that the element's indices depend on."""
        return {digit.dim for _, at in self.element.places for each in at for digit in each}


@dataclass(frozen=True)
class Pattern:
    """Operands and facts of an attention whose result is the tensor `result`.

    dims:    indices of the result
    keys:    loop over the keys
    depth:   loop over the elements of a query
    steps:   the ops from sums of products to scores
    rounded: which of "scores" and "weights" the program computes in 16 bits or rounds to 16 bits
    guarded: whether rows whose scores are all -inf give 0, not NaN
    """

    result: ir.Value
    dims: tuple[Number, ...]
    q: Input
    k: Input
    v: Input
    keys: Number
    depth: Number
    steps: tuple[Step, ...]
    rounded: tuple[str, ...]
    guarded: bool

    @property
    def masks(self) -> list[ScoreMask]:
        """The masks that depend only on row and key."""
        found = [each for step in self.steps if isinstance(step, Masked) for each in step.masks]
        return [mask for mask in found if mask.fixed]

    def beside(self) -> Iterator[Expression]:
        """Yields the elements on which the scores depend, other than the sums of products."""
        steps = (step for step in self.steps if not isinstance(step, Times))
        applied = (step.applied if isinstance(step, Masked) else step for step in steps)
        left = [
            each for a in applied for n, each in enumerate(a.expression.operands) if n != a.hole
        ]
        seen = set[Expression]()
        while left:
            if (element := left.pop()) not in seen:
                seen.add(element)
                left += element.operands
                yield element


def patterns_of(op: ir.Operation) -> list[Pattern]:
    """Returns the attention that an op's sums are part of, once for each tensor that has the sums'
    numbers, in program order; empty if the op does not multiply a softmax. Raises `NotRaised` if a
    part of the pattern is not attention."""
    elements = ElementsOf()
    found = (_pattern(elements, *each) for each in _results(elements, op))
    return [each for each in found if each is not None]


def _results(elements: ElementsOf, op: ir.Operation) -> Iterator[tuple[ir.Value, Expression]]:
    """Yields the result of an op, and copies of it in other shapes, rounded or not."""
    result = op.results[0]
    while isinstance(result.type, ir.RankedTensorType) and result.type.has_static_shape:
        shape = result.type.shape
        element = elements.of(result, [whole((result, d), n) for d, n in enumerate(shape)])
        sums = element.operands[0] if element.name == "arith.truncf" else element
        if sums.name != REDUCTION or sums.op != op:
            return
        yield result, sums
        uses = list(result.uses)
        if len(uses) != 1 or len(uses[0].owner.operation.results) != 1:
            return
        result = uses[0].owner.operation.results[0]


def _pattern(elements: ElementsOf, result: ir.Value, sums: Expression) -> Pattern | None:
    outer = _product(elements, sums)
    if outer is None:
        return None
    a, b = outer.element.operands
    values, softmax = b, _softmax(elements, a, outer.over)
    if softmax is None:
        values, softmax = a, _softmax(elements, b, outer.over)
    if softmax is None:
        return None
    total, steps, in_half = steps_of(softmax.scores)
    products = _product(elements, total)
    if products is None:
        words = "expected scores that are sums of products of two elements over one loop, from zero"
        raise _refused(total, softmax.scores, words)
    v = _factor(values, sums)
    q, k = (_factor(each, sums) for each in products.element.operands)
    if outer.over[0].dim in q.loops:
        q, k = k, q
    rounded = [n for n, is_ in (("scores", in_half), ("weights", softmax.rounded)) if is_]
    if v.times != 1:
        raise _refused(values, sums, "expected unscaled values, got values times a number")
    dims = tuple(whole((result, d), n) for d, n in enumerate(result.type.shape))
    every = (Times(q.times * k.times), *steps)
    loops, guarded = (outer.over, products.over), softmax.guarded
    return Pattern(result, dims, q, k, v, *loops, every, tuple(rounded), guarded)


def _refused(element: Expression, instead: Expression, words: str) -> NotRaised:
    """instead: named if the element has no op"""
    return NotRaised(element.op or instead.op, words)


def _product(elements: ElementsOf, element: Expression) -> Reduced | None:
    """Returns the operands of a sum, from zero, of products over one loop; else None."""
    if element.name != REDUCTION:
        return None
    found = elements.reduced(element)
    product = found.combiner == "arith.addf" and found.element.name == "arith.mulf"
    return found if product and len(found.over) == 1 and elements.start(found) == 0 else None


# --- the softmax ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Softmax:
    """Scores, and whether weights are guarded and rounded (`Pattern`)."""

    scores: Expression
    guarded: bool
    rounded: bool


def _softmax(elements: ElementsOf, weights: Expression, keys: Number) -> _Softmax | None:
    """Returns the softmax over `keys` whose values are the weights; else None."""
    rounded, guard = False, None
    while weights.name in ROUNDINGS or _is_guard(weights):
        if _is_guard(weights):
            guard, weights = weights, weights.operands[2]
        else:
            rounded |= weights.name == "arith.truncf"
            weights = weights.operands[0]
    scores = _normalised(elements, weights, keys)
    if scores is None:
        return None
    if guard is not None and not _is_without_keys(elements, guard.operands[0], scores, keys):
        raise _refused(
            guard,
            weights,
            "expected zeros for rows whose scores are all -inf, got another condition",
        )
    return _Softmax(scores, guard is not None, rounded)


def _is_guard(weights: Expression) -> bool:
    return weights.name == "arith.select" and weights.operands[1].number == 0


def _normalised(elements: ElementsOf, weights: Expression, keys: Number) -> Expression | None:
    """Returns the scores if the weights are their exponentials divided by the sum of these."""
    if weights.name == SOFTMAX and weights.op is not None:
        dim = ir.IntegerAttr(weights.op.attributes["dimension"]).value
        return weights.operands[0] if weights.index[dim] == keys else None
    if weights.name not in ("arith.divf", "arith.mulf"):
        return None
    power, total = weights.operands
    if weights.name == "arith.mulf":
        power, total = (power, total) if power.name == "math.exp" else (total, power)
        if total.name != "arith.divf" or total.operands[0].number != 1:
            return None
        total = total.operands[1]
    if power.name != "math.exp" or power.operands[0].name != "arith.subf":
        return None
    scores, most = power.operands[0].operands
    if most.name in MAXIMA:  # with what it starts from
        most = next((each for each in most.operands if each.number != -INFINITY), most)
    sums = _combined(elements, total, ("arith.addf",))
    maxima = _combined(elements, most, MAXIMA)
    if sums is None or maxima is None:
        return None
    if not _is_of(sums, power, keys) or not _is_of(maxima, scores, keys):
        return None
    if str(power.type) != "f32":
        raise _refused(power, weights, f"expected exponentials of f32, got {power.type}")
    return scores


def _combined(
    elements: ElementsOf, element: Expression, combiners: Iterable[str]
) -> Reduced | None:
    """Returns the operands of a reduction over one loop, by one of the combiners, from its neutral
    element; else None."""
    if element.name != REDUCTION:
        return None
    found = elements.reduced(element)
    start = elements.start(found)
    if found.combiner not in combiners or start is None or len(found.over) != 1:
        return None
    neutral = {"arith.addf": start == 0, "arith.andi": bool(start)}
    return found if neutral.get(found.combiner, start <= LOWEST) else None


def _is_of(found: Reduced, element: Expression, keys: Number) -> bool:
    """Whether a reduction combines `element` over `keys`."""
    loops = {found.over[0].dim: keys[0].dim}
    return found.over[0].extent == keys[0].extent and same(found.element, element, loops)


def _is_without_keys(
    elements: ElementsOf, rows: Expression, scores: Expression, keys: Number
) -> bool:
    """Whether a condition is that all scores of a row are -inf."""
    found = _combined(elements, rows, ("arith.andi",))
    if found is None or found.element.name != "arith.cmpf" or found.element.op is None:
        return False
    score, number = found.element.operands
    while score.name == "arith.extf" and str(score.type) == "f64":
        score = score.operands[0]
    predicate = ir.IntegerAttr(found.element.op.attributes["predicate"]).value
    if predicate != ORDERED_EQUAL or number.number != -INFINITY:
        return False
    return same(score, scores, {found.over[0].dim: keys[0].dim})


# --- the products --------------------------------------------------------------------------------


def _factor(element: Expression, product: Expression) -> Input:
    times = 1.0
    while str(element.type) not in ATTENTION_TYPES:
        if element.name == "arith.extf":
            element = element.operands[0]
        elif (found := multiple(element)) is not None:
            element, number = found
            times *= number
        else:
            words = "expected queries, keys and values of f16 or bf16, got"
            raise _refused(element, product, f"{words} {element.type}")
    return Input(element, times)
