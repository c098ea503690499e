"""Masks of scores, evaluated for every row and key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, dtype_of
from tcir.passes.analysis.element_graph import NotRaised
from tcir.passes.raising.attention.digits import Index, size_of
from tcir.passes.raising.attention.elements import (
    LEAF,
    LOOP,
    NUMBER,
    REDUCTION,
    SOFTMAX,
    Expression,
)

AT_ONCE = 1 << 20
"""Elements of a mask that are computed at a time."""
LEAST = -(2.0**100)
"""Numbers below this have no weight next to any score of f16."""


@dataclass(frozen=True)
class ScoreMask:
    """An op that adds `numbers` to `masked`, or replaces it by them if `condition` is `where`."""

    op: Expression
    masked: Expression
    numbers: Expression
    condition: Expression | None = None
    where: bool = True

    @staticmethod
    def of(element: Expression) -> ScoreMask:
        """Returns the mask of an ``arith.addf`` or ``arith.select``; else raises `NotRaised`."""
        if element.name == "arith.addf":
            for a, b in (element.operands, element.operands[::-1]):
                if is_fixed(b) and not is_fixed(a):
                    return ScoreMask(element, a, b)
            got = "a tensor of numbers (a bias)"
        else:
            condition, a, b = element.operands
            if is_fixed(condition):
                for chosen, other, where in ((a, b, True), (b, a, False)):
                    if is_fixed(chosen) and not is_fixed(other):
                        return ScoreMask(element, other, chosen, condition, where)
            got = "a tensor of conditions"
        raise NotRaised(
            element.op,
            f"expected a mask made of the numbers of row and key alone, got {element.name} by "
            f"{got}: tc.attention has causal masks only",
        )

    @property
    def loops(self) -> set[object]:
        """Loops that the mask depends on."""
        return _loops(self.numbers) | (set() if self.condition is None else _loops(self.condition))

    def added(self, loops: Mapping[object, Array]) -> Array:
        """Returns the numbers that the mask adds; NaN where it replaces a score by 0."""
        grid = _Grid(loops)
        numbers = np.asarray(grid.of(self.numbers), np.float64)
        if self.condition is None:
            return numbers
        chosen = np.asarray(grid.of(self.condition), bool) == self.where
        return np.where(chosen, np.where(numbers == 0, np.nan, numbers), 0.0)


def _loops(element: Expression) -> set[object]:
    found = {digit.loop for index in element.index for digit in index}
    found |= {d.loop for _, at in element.places[:1] for index in at for d in index}
    return found.union(*map(_loops, element.operands))


def is_fixed(element: Expression) -> bool:
    """Whether an element depends on loops and constants alone."""
    if element.name == LEAF:
        return element.op is not None and element.op.name == "arith.constant"
    return element.name not in (REDUCTION, SOFTMAX) and all(map(is_fixed, element.operands))


def offset_of(masks: Sequence[ScoreMask], rows: Index, keys: Index, *, narrow: bool) -> int | None:
    """Returns the causal offset of all masks together; None if they mask nothing.

    narrow: whether queries are f16, so that any very negative number acts as -inf
    """
    if not masks:
        return None
    m, n = size_of(rows), size_of(keys)
    counts: list[Array] = []
    sentinel = False
    for first in range(0, m, step := max(1, AT_ONCE // n)):
        some = np.arange(first, min(m, first + step), dtype=np.int64)
        loops = {keys[0].loop: np.arange(n, dtype=np.int64)[None, :]}
        loops |= {rows[0].loop: some[:, None]} if rows else {}
        kept = np.ones((len(some), n), bool)
        for mask in masks:
            added = np.broadcast_to(mask.added(loops), kept.shape)
            finite = narrow & (added < LEAST) & np.isfinite(added)
            wrong = (added != 0) & ~np.isneginf(added) & ~finite
            if wrong.any():
                row, key = (int(each) for each in np.argwhere(wrong)[0])
                raise NotRaised(
                    mask.op.op,
                    f"expected a mask of 0 and -inf, got {added[row, key]:g} for row {first + row} "
                    f"and key {key} of {mask.op.name}",
                )
            sentinel |= bool(finite.any())
            kept &= added == 0
        counts.append(kept.sum(axis=1))
        _check(masks[0], kept, np.arange(n) < counts[-1][:, None], first)
    offset = _offset(masks[0], np.concatenate(counts), n)
    if sentinel and offset is not None and offset < 0:
        raise NotRaised(
            masks[0].op.op,
            "expected -inf where rows have no keys, got a finite number: it makes their weights "
            "equal, not zero",
        )
    return offset


def _offset(mask: ScoreMask, counts: Array, keys: int) -> int | None:
    """Returns the causal offset that gives each row its number of keys."""
    numbers = np.arange(len(counts))
    if (counts == keys).all():
        return None
    some = np.flatnonzero(counts > 0)
    offset = int(counts[some[0]] - 1 - some[0]) if len(some) else -len(counts)
    wrong = np.flatnonzero(counts != np.clip(numbers + offset + 1, 0, keys))
    if len(wrong):
        first, other = some[0] if len(some) else 0, wrong[0]
        words = f"row {first} has {counts[first]} keys and row {other} has {counts[other]}"
        raise _another(mask, words)
    return offset


def _check(mask: ScoreMask, kept: Array, expected: Array, first: int) -> None:
    """Checks that the keys of each row are the first ones."""
    wrong = np.argwhere(kept != expected)
    if len(wrong):
        row, key = (int(each) for each in wrong[0])
        has = "has" if kept[row, key] else "does not have"
        raise _another(mask, f"row {first + row} {has} key {key}")


def _another(mask: ScoreMask, what: str) -> NotRaised:
    return NotRaised(
        mask.op.op,
        "expected a causal mask, which gives every row the keys from the first on, and one more "
        f"than the row before, got another: {what}",
    )


class _Grid:
    """Evaluates elements for arrays of loop numbers."""

    def __init__(self, loops: Mapping[object, Array]) -> None:
        self.loops = loops
        self.known: dict[Expression, Array] = {}

    def of(self, element: Expression) -> Array:
        """Returns the values of an element."""
        if element not in self.known:
            self.known[element] = self._new(element)
        return self.known[element]

    def _new(self, element: Expression) -> Array:
        if element.name == LOOP:
            return self._number(element.index[0], element)
        if element.name == NUMBER:
            return np.asarray(element.number, dtype_of(element.type))
        op = element.op
        assert op is not None
        operands = [self.of(each) for each in element.operands]
        if element.name != LEAF:
            (result,) = evaluate[op.name](Interpreter(), op.opview, *operands)
            return np.asarray(result)
        (array,) = evaluate[op.name](Interpreter(), op.opview)
        at = tuple(self._number(index, element) for index in element.places[0][1])
        return np.asarray(array[at])

    def _number(self, index: Index, element: Expression) -> Array:
        number: Array = np.zeros((1, 1), np.int64)
        for digit in index:
            if digit.loop not in self.loops:
                raise NotRaised(
                    element.op, "expected a mask of row and key, the same for all heads"
                )
            number = number * digit.size + self.loops[digit.loop] // digit.step % digit.size
        return number
