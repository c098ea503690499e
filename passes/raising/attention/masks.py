"""Masks of scores that depend only on row and key, evaluated for all rows and keys."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tcir.dialect.ops.attention import Band
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, dtype_of
from tcir.passes.analysis.digits import Number, size_of
from tcir.passes.analysis.element_graph import NotRaised
from tcir.passes.raising.attention.constant_tensors import evaluated, is_constant
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
HEADS = 64
"""Most batches and heads for which a mask is evaluated."""
LEAST = -(2.0**100)
"""Numbers below this have no weight next to any score of f16."""


@dataclass(frozen=True)
class ScoreMask:
    """Numbers that an op of the program adds to scores, or writes in their place where `condition`
    has the value `where`. op: this op, for remarks"""

    op: Expression
    numbers: Expression
    condition: Expression | None = None
    where: bool = True

    @property
    def loops(self) -> set[object]:
        """Loops that the mask depends on."""
        return loops_of(self.numbers) | (
            set() if self.condition is None else loops_of(self.condition)
        )

    @property
    def fixed(self) -> bool:
        """Whether the mask depends only on loops and constants."""
        return is_fixed(self.numbers) and (self.condition is None or is_fixed(self.condition))

    def added(self, loops: Mapping[object, Array]) -> Array:
        """Returns the numbers that the mask adds; where it replaces a score, NaN stands for a
        replacement by 0."""
        grid = _Grid(loops)
        numbers = np.asarray(grid.of(self.numbers), np.float64)
        if self.condition is None:
            return numbers
        chosen = np.asarray(grid.of(self.condition), bool) == self.where
        return np.where(chosen, np.where(numbers == 0, np.nan, numbers), 0.0)


def loops_of(element: Expression) -> set[object]:
    """Loops that an element depends on."""
    found = {digit.dim for index in element.index for digit in index}
    found |= {d.dim for _, at in element.places[:1] for index in at for d in index}
    return found.union(*map(loops_of, element.operands))


def values_of(element: Expression, loops: Mapping[object, Array]) -> Array:
    """Returns the values of a fixed element for arrays of loop numbers; raises `NotRaised` if it
    depends on a loop that is not given."""
    return _Grid(loops).of(element)


def is_fixed(element: Expression) -> bool:
    """Whether an element depends only on loops and constants."""
    if element.name in (LEAF, REDUCTION, SOFTMAX):
        return any(is_constant(tensor) for tensor, _ in element.places)
    return all(map(is_fixed, element.operands))


@dataclass(frozen=True)
class Kept:
    """Keys that a mask keeps.

    band: keys that each row keeps
    sentinel: whether the scores of the other keys become a very negative number instead of -inf
    """

    band: Band
    sentinel: bool = False

    def both(self, other: Kept) -> Kept:
        """The keys that both masks keep."""
        a, b = self.band, other.band
        firsts = [each for each in (a.first, b.first) if each is not None]
        lasts = [each for each in (a.last, b.last) if each is not None]
        band = Band(max(firsts, default=None), min(lasts, default=None))
        return Kept(band, self.sentinel or other.sentinel)


def kept_by(mask: ScoreMask, scores: Sequence[Number], *, narrow: bool) -> Kept:
    """Returns the keys that a mask keeps. Raises `NotRaised` unless these keys form one band that
    is the same in all batches and heads.

    scores: indices of batch, head, row and key; narrow: whether queries are f16, in which case any
        very negative number acts as -inf
    """
    *outer, rows, keys = scores
    sizes = {d.dim: d.step * d.extent for index in outer for d in index if d.dim in mask.loops}
    if prod(sizes.values()) > HEADS:
        raise NotRaised(mask.op.op, "expected a mask of row and key, the same for all heads")
    first: Kept | None = None
    for numbers in itertools.product(*map(range, sizes.values())):
        loops = {loop: np.full((1, 1), n) for loop, n in zip(sizes, numbers, strict=True)}
        kept = _kept_of(mask, loops, rows, keys, narrow)
        if first not in (None, kept):
            words = (
                "expected a mask that is the same for all batches and heads, got one that is not"
            )
            raise NotRaised(mask.op.op, words)
        first = kept
    assert first is not None
    return first


def _kept_of(
    mask: ScoreMask, outer: Mapping[object, Array], rows: Number, keys: Number, narrow: bool
) -> Kept:
    """The keys that a mask keeps in the batch and head that `outer` gives."""
    m, n = size_of(rows), size_of(keys)
    ends: list[Array] = []
    sentinel = False
    for first in range(0, m, step := max(1, AT_ONCE // n)):
        some = np.arange(first, min(m, first + step), dtype=np.int64)
        loops = {**outer, keys[0].dim: np.arange(n, dtype=np.int64)[None, :]}
        loops |= {rows[0].dim: some[:, None]} if rows else {}
        added = np.broadcast_to(mask.added(loops), (len(some), n))
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
        kept = added == 0
        ends.append(_ends(mask, kept, first))
    return Kept(_band(mask, np.concatenate(ends), n), sentinel)


def rows_without_keys(band: Band, rows: int, keys: int) -> int:
    """Returns the number of rows that have no key in the band."""
    first, last = _range(band, rows, keys)
    return int((first >= last).sum())


def _range(band: Band, rows: int, keys: int) -> tuple[Array, Array]:
    """The first key of each row, and the one after its last."""
    row = np.arange(rows)
    first = np.zeros_like(row) if band.first is None else np.clip(row + band.first, 0, keys)
    end = np.full_like(row, keys) if band.last is None else np.clip(row + band.last + 1, 0, keys)
    return first, end


def _ends(mask: ScoreMask, kept: Array, first: int) -> Array:
    """The first key of each row and the one after its last, [rows, 2]; (0, 0) without keys."""
    n = kept.shape[1]
    some = kept.any(axis=1)
    start = np.where(some, kept.argmax(axis=1), 0)
    end = np.where(some, n - kept[:, ::-1].argmax(axis=1), 0)
    key = np.arange(n)
    _check(mask, kept, (key >= start[:, None]) & (key < end[:, None]), first)
    return np.stack([start, end], axis=1)


def _band(mask: ScoreMask, ends: Array, keys: int) -> Band:
    """Returns the band in which each row keeps the keys that `ends` gives."""
    rows, (start, end) = np.arange(len(ends)), ends.T
    some = np.flatnonzero(end > start)
    if not len(some):
        return Band(last=-len(ends))
    lasts = [int(end[i] - 1 - i) for i in (*np.flatnonzero((end < keys) & (end > 0)), *some)[:1]]
    firsts = [int(start[i] - i) for i in (*np.flatnonzero(start > 0), some[-1])[:1]]
    for last in (None, *lasts):
        for first in (None, *firsts):
            low, high = _range(Band(first, last), len(ends), keys)
            empty = high <= low
            if (np.where(empty, 0, low) == start).all() and (np.where(empty, 0, high) == end).all():
                return Band(first, last)
    low, high = _range(Band(None, lasts[0]), len(ends), keys)
    row = int(np.flatnonzero((low != start) | (high != end))[0])
    raise _another(mask, f"row {rows[row]} has the keys from {start[row]} to {end[row] - 1}")


def _check(mask: ScoreMask, kept: Array, expected: Array, first: int) -> None:
    """Checks that the keys of each row are neighbours."""
    wrong = np.argwhere(kept != expected)
    if len(wrong):
        row, key = (int(each) for each in wrong[0])
        raise _another(mask, f"row {first + row} does not have key {key}, but some on either side")


def _another(mask: ScoreMask, what: str) -> NotRaised:
    return NotRaised(
        mask.op.op,
        "expected a causal mask or a window, whose first and last key go on by one from row to "
        f"row, got another: {what}",
    )


class _Grid:
    """Evaluates elements for arrays of loop numbers."""

    def __init__(self, loops: Mapping[object, Array]) -> None:
        self.loops = loops
        self.known: dict[Expression, Array] = {}

    def of(self, element: Expression) -> Array:
        """Returns the values of an element at all points of the grid."""
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
        if element.name not in (LEAF, REDUCTION, SOFTMAX):
            (result,) = evaluate[op.name](Interpreter(), op.opview, *operands)
            return np.asarray(result)
        tensor, indices = next(each for each in element.places if is_constant(each[0]))
        at = tuple(self._number(index, element) for index in indices)
        return np.asarray(evaluated(tensor)[at])

    def _number(self, index: Number, element: Expression) -> Array:
        number: Array = np.zeros((1, 1), np.int64)
        for digit in index:
            if digit.dim not in self.loops:
                raise NotRaised(
                    element.op, "expected a mask of row and key, the same for all heads"
                )
            number = number * digit.extent + self.loops[digit.dim] // digit.step % digit.extent
        return number
