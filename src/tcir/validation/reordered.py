"""Bounds on the difference between sums of the same elements in different orders.

The reference adds the elements of a row one after the other; step k rounds the partial sum s_k. Let
u be half a unit in the last place of 1, and S the sum of magnitudes. The reference errs by at most
u times the sum of all |s_k|. Another order of n additions errs by at most u n S, because no partial
sum exceeds S (Higham, Accuracy and Stability of Numerical Algorithms, 4.2).

For the mean square, roundings of f32 are nearly independent, so their squares add up: u² s_k² for
each step of the reference, and u² S² for each level of a tree. Steps that add the same number to
partial sums of one exponent round alike, however. Where a row has equal elements, as in layer norms
of whole numbers, the errors themselves add up, not their squares. In f16 and bf16 small elements
vanish beside a large partial sum, all in the same direction, so the mean square error is taken to
be the square of the largest error. A sum that is not rounded in any order is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log2
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from tcir.interp.types import Array, is_float
from tcir.validation.rules import Known, overflow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcir._mlir import ir

_ROWS = 64
"""Number of rows in which equal elements are counted."""
_ROOM = 1 + 2.0**-7
"""Factor for the roundings of the sums of magnitudes."""


@dataclass
class AnyOrder:
    """A sum that a reduction may compute in any order, and the sizes of its terms and partial sums.

    element:  the value in the op's body that is added; None: the caller passes each element to
              `add`
    sizes:    the sum of the magnitudes of the elements
    partial:  the sum of the magnitudes of the partial sums
    squares:  the sum of the squares of the partial sums
    quantum:  the largest power of two of which all elements are multiples
    first:    the elements of the first `_ROWS` rows, one array per step
    """

    element: ir.Value | None = None
    sizes: Array = field(default_factory=lambda: np.zeros(()))
    partial: Array = field(default_factory=lambda: np.zeros(()))
    squares: Array = field(default_factory=lambda: np.zeros(()))
    quantum: float = np.inf
    count: int = 0
    first: list[Array] = field(default_factory=list)

    @staticmethod
    def of(op: ir.Operation, number: int) -> AnyOrder | None:
        """Returns the sum that is result number `number` of an op; None unless the op's body adds
        one element to the total.
        """
        from tcir._mlir import ir

        block = op.regions[0].blocks[0]
        total = block.arguments[len(op.operands) - len(op.results) + number]
        last = list(block)[-1].operation.operands[number]
        if isinstance(last, ir.BlockArgument) or last.owner.name != "arith.addf":
            return None
        added = [each for each in last.owner.operands if each != total]
        if len(added) != 1:
            return None
        return AnyOrder(added[0])

    def step(self, known: Mapping[ir.Value, Known], total: Known) -> None:
        """Adds the element of one point of the loops. total: the partial sum after this element"""
        assert self.element is not None, "a sum of a body"
        self.add(known[self.element], total)

    def add(self, added: Known, total: Known) -> None:
        """Adds an element. total: the partial sum after this element"""
        element = added.finite()
        self.sizes = self.sizes + element.size
        reached = np.abs(total.finite().wide)
        self.partial, self.squares = self.partial + reached, self.squares + reached**2
        self.quantum = min(self.quantum, quantum_of(element.value))
        self.first.append(np.ravel(element.wide)[:_ROWS].copy())
        self.count += 1

    def widened(self, total: Known, start: Known) -> Known:
        """Returns the sum with the errors of any order of additions. start: the initial value of
        the sum
        """
        dtype = np.asarray(total.value).dtype
        if self.count < 2 or not is_float(dtype):
            return total
        info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        unit, bits = float(info.eps) / 2, int(info.nmant) + 1
        begin = start.finite()
        sizes = (self.sizes + begin.size) * _ROOM
        quantum = min(self.quantum, quantum_of(begin.value))
        over = ~(sizes + total.error < overflow(dtype))
        if (sizes <= quantum * 2.0**bits).all() and not over.any():
            return total
        error = unit * (self.partial + self.count * sizes) * _ROOM
        steps = np.minimum(2 * _equal(self.first) * self.squares, self.partial**2)
        square = unit**2 * (steps + (1 + log2(self.count)) * sizes**2)
        if dtype.itemsize < 4:
            square = error**2
        wider = Known(total.value, total.error + error, total.square + square)
        certain = np.isnan(total.wide) & ~total.open
        return wider.opened((total.open | over) & ~certain)


def _equal(steps: list[Array]) -> float:
    """Number of elements of a row that are equal to one of its elements, itself included: the mean
    of a row, the largest of all rows."""
    rows = np.stack(np.broadcast_arrays(*steps), 1)
    counts = (np.unique(row, return_counts=True)[1] for row in rows)
    return max(float(np.mean(np.repeat(each, each))) for each in counts)


def quantum_of(array: Array) -> float:
    """Largest power of two that divides all elements; infinite if all elements are zero."""
    wide = np.asarray(array, np.float64)
    fractions, exponents = np.frexp(wide[wide != 0])
    whole = np.ldexp(np.abs(fractions), 53).astype(np.int64)
    return float(np.ldexp((whole & -whole).astype(np.float64), exponents - 53).min(initial=np.inf))
