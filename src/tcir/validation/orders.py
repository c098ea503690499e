"""Tries the completion orders of one state, one after the other or in several processes.

Every order is drawn from its own seed and judged separately, so the process that executes it does
not matter. The results are merged in the sequence of the orders, up to the first failure.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

from tcir.validation.report import Line
from tcir.workers import Forks, Lost

WORTH = 0.3
"""Seconds that several processes have to save: a fork takes a few hundredths, and what lockstep
leaves (`tcir.run_options.RunOptions.repeats`) often makes further orders as cheap as that."""


@dataclass(frozen=True)
class Tried:
    """Outcome of one completion order.

    line:      the report line with its verdict
    work:      counters; those of a sample are extrapolated to all CTAs
    ctas:      number of CTAs executed
    followers: number of CTAs that replayed another CTA of their class
    """

    line: Line
    work: Mapping[str, int]
    ctas: int = 0
    followers: int = 0


def tried(
    orders: Sequence[int], jobs: int, attempt: Callable[[int], Tried]
) -> Generator[Tried, None, None]:
    """Results of `attempt` for each order, in sequence. The duration of the first order predicts
    the durations of the others. jobs: number of forks of this process that may share the other
    orders; orders that forks cannot execute are executed in this process
    """
    if not orders:
        return
    started = time.perf_counter()
    first = attempt(orders[0])
    seconds, others = time.perf_counter() - started, orders[1:]
    yield first
    count = min(jobs, len(others))
    if not hasattr(os, "fork") or count < 2 or seconds * len(others) * (1 - 1 / count) < WORTH:
        yield from map(attempt, others)
        return
    known: dict[int, Tried] = {}
    for order, found in Forks(count).run(attempt, others):
        known[order] = attempt(order) if isinstance(found, Lost) else found
        while others and others[0] in known:
            yield known.pop(others[0])
            others = others[1:]
