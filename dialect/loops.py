"""Trip counts of the loops of a kernel."""

from __future__ import annotations

from math import inf

from tcir._mlir import ir
from tcir.dialect.attributes import constant_of, optional_integer

MOST_TRIPS = "tc.most_trips"
"""Attribute of a loop with dynamic bounds: an upper bound on the iterations of all its executions
together. Its induction variable starts at 0 and continues from one execution to the next in steps
of 1."""

EXCHANGES = "tc.exchanges"
"""Unit attribute of a loop in which roles access tiles in tensor memory in turn: place-barriers
sets it."""


def executions(op: ir.OpView) -> float:
    """Number of times that `op` is executed by the loops around it, or an upper bound of that
    number; infinity if no bound is known."""
    count, around = 1, op.operation.parent
    while around is not None and around.name in ("scf.for", "scf.while"):
        loop = around.opview
        most = optional_integer(loop, MOST_TRIPS)
        if most is not None:
            return count * most
        if around.name == "scf.while":
            return inf
        first, end, step = (constant_of(v) for v in (loop.lowerBound, loop.upperBound, loop.step))
        if first is None or end is None or step is None:
            return inf
        count *= len(range(first, end, step))
        around = around.parent
    return count
