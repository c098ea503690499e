"""Checks one state (the program after one pass): executes it in every completion order, compares
the results, and judges them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tcir.interp import Outcome
from tcir.interp.types import Array
from tcir.validation import compare
from tcir.validation.draws import Draw, Draws
from tcir.validation.execution import Executions
from tcir.validation.faults import rules_of
from tcir.validation.judgement import Judge, bound_of
from tcir.validation.orders import Tried, tried
from tcir.validation.report import Line
from tcir.validation.work import Algorithm, Work

Execute = Callable[[Executions, Draw, int | None, Line], Outcome | None]
"""Executes a state on inputs, in an order (None: that of issue), and notes in the line what went
wrong."""

Stores = tuple[int, dict[int, Array]]
"""Number of CTAs of a sample, and the elements of each result that they stored."""


@dataclass(frozen=True)
class Baseline:
    """The last state that passed, with which the next state is compared.

    outputs:   its results
    sites:     for each result, a function that finds the op that wrote an element
    algorithm: work of the input program; None after the first state without tensors was compared
               with it
    """

    outputs: list[Array]
    work: Work
    algorithm: Algorithm | None = None
    sites: Mapping[int, Any] = field(default_factory=dict)
    stores: Stores = (0, {})


class StateCheck:
    """Checks one state.

    baseline: the previous state that passed; after the check, this state if it passed
    """

    def __init__(
        self, runs: Executions, draws: Draws, baseline: Baseline, execute: Execute, line: Line
    ) -> None:
        self.settings = runs.plan.settings
        self.runs = runs.after(baseline.work).of_one_state()
        self.draws, self.baseline, self.execute, self.line = draws, baseline, execute, line
        self._stores = baseline.stores

    def compare_orders(self, orders: int, levels: tuple[str, ...]) -> Outcome | None:
        """Executes every completion order and fills in the line. Returns the outcome in the order
        of issue if every order passed.
        """
        line = self.line
        if not self.draws.main.reference:
            line.verdict = "incomplete"
            line.compared = "the program as it came in gave no reference"
            return None
        started = time.perf_counter()
        last, outcome = self._attempt(None, line)
        if outcome is not None and line.held:
            # In the order of issue the first CTA does all that CTAs may take from each other.
            orders = max(orders, 2) if outcome.meets else orders
            last = self._try_others(orders, last)
        held = outcome is not None and line.held
        if outcome is not None and held:
            line.compared += line.in_orders()
            self._remark(outcome, Work(levels, last.work), alone=orders == 1)
            held = self._hold_alone()
        line.execute_seconds = time.perf_counter() - started
        return outcome if held else None

    def _remark(self, outcome: Outcome, work: Work, *, alone: bool) -> None:
        """Compares the work with the baseline, and makes this state the new baseline."""
        line, before, algorithm = self.line, self.baseline, self.baseline.algorithm
        line.remarks = [f"same result, more work: {j}" for j in before.work.jumps(work)]
        if algorithm is not None and "tensor" not in work.levels:
            more = algorithm.exceeded(work)
            line.remarks += [f"same result, more work than the input: {j}" for j in more]
            algorithm = None
        line.remarks += [f"all CTAs: {outcome.whole}"] * bool(outcome.whole)
        if outcome.together and alone:  # else the processes are for the orders
            line.remarks.append(f"one process: {outcome.together}")
        sites = dict(outcome.sites) or before.sites
        self.baseline = Baseline(outcome.outputs, work, algorithm, sites, self._stores)
        self.runs = self.runs.after(work)

    def _try_others(self, orders: int, issued: Tried) -> Tried:
        """Adds the orders after that of issue to the line; the last one tried."""
        line, settings = self.line, self.settings
        first = settings.seed + settings.skip + 1
        last, name = issued, (line.index, line.name)

        def attempt(order: int) -> Tried:
            return self._attempt(order, Line(*name))[0]

        seeds = range(first, first + orders - 1)
        with closing(tried(seeds, settings.jobs, attempt)) as others:
            for last in others:
                line.take(last.line)
                if not line.held:
                    break
                line.orders += 1
                line.drawn += last.ctas - last.followers
                line.drawn_of += last.ctas
        return last

    def _attempt(
        self, order: int | None, line: Line, execute: Execute | None = None
    ) -> tuple[Tried, Outcome | None]:
        """Executes and judges one order; fills in `line`."""
        outcome = (execute or self.execute)(self.runs, self.draws.main, order, line)
        if outcome is None:
            return Tried(line, {}), None
        if outcome.executed:
            stores = _complete(outcome, self.draws.main.reference, self._stores)
            self._stores = stores if order is None else self._stores
        before = self.baseline
        Judge(self.settings, self.draws.main, before.outputs, before.sites).fill(line, outcome)
        if line.verdict == "different" and order is not None:
            line.compared += f", completion order {order}"
        ctas = outcome.counters.get("ctas", 0)
        return Tried(line, dict(_of_all(outcome)), ctas, outcome.followers), outcome

    def _hold_alone(self) -> bool:
        """Whether the results on each further draw equal those of the input program."""
        line, counters = self.line, self.line.counters
        for draw in self.draws.more:
            outcome = self.execute(self.runs.on(draw), draw, None, line)
            line.counters = counters
            if outcome is None:
                line.compared += f"; inputs with {draw.words}"
                return False
            if outcome.executed:
                _complete(outcome, draw.reference, self._stores)
            known, why = bound_of(draw, self.settings)
            bound = known.errors if known else None
            difference = compare.first_difference(draw.reference, outcome.outputs, bound)
            if difference is not None:
                line.verdict = "different"
                line.compared = f"{rules_of(outcome.level)}, {why}; inputs with {draw.words}"
                site = outcome.sites.get(difference.output)
                words = str(site(difference.index)) if site else ""
                line.difference = dataclasses.replace(difference, site=words)
                return False
        return True

    def again(self, execute: Execute) -> None:
        """Executes the state twice more, each time on the memory contents that the previous
        execution left.
        """
        line = Line(self.line.index, self.line.name)
        for _ in range(2):
            self._attempt(None, line, execute)
        if not line.held:
            line.compared += ", the second time on the same memory"
        self.line.take(line)


def _complete(outcome: Outcome, reference: list[Array], before: Stores) -> Stores:
    """Completes a sample: gives elements that no CTA of it stores the values of the reference,
    unless the same CTAs did in the state before. Returns what they store."""
    stored = dict(outcome.stored)
    for number, mask in stored.items():
        known = before[1].get(number) if before[0] == outcome.executed else None
        compared = mask if known is None else mask | known
        got, expected = outcome.outputs[number], reference[number]
        outcome.outputs[number] = np.where(compared.reshape(got.shape), got, expected)
    return outcome.executed, stored


def _of_all(outcome: Outcome) -> Mapping[str, int]:
    """The counters; those of a sample, extrapolated to all CTAs."""
    if not outcome.executed:
        return outcome.counters
    total = outcome.counters.get("ctas", outcome.executed)
    scaled = {n: count * total // outcome.executed for n, count in outcome.counters.items()}
    return scaled | {"ctas": total}
