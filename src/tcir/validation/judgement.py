"""Judges the results of one execution by comparisons with the results of the input program and of
the previous state.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tcir.interp import Outcome
from tcir.interp.types import Array
from tcir.validation import compare
from tcir.validation.against_f64 import Precise
from tcir.validation.draws import Bound, Draw
from tcir.validation.faults import rules_of
from tcir.validation.report import Line
from tcir.validation.settings import Settings


@dataclass(frozen=True)
class Judge:
    """Judges executions of one state on the inputs of `draw`.

    outputs: results of the previous state
    sites:   for each result, a function that finds the op that wrote an element
    """

    settings: Settings
    draw: Draw
    outputs: list[Array]
    sites: Mapping[int, Any]

    def fill(self, line: Line, outcome: Outcome) -> None:
        """Compares the results of one execution, and writes the verdict into `line`, which already
        has the findings.
        """
        self._compare(line, outcome)
        if outcome.executed and line.verdict in ("equal", "within bound"):
            how = "" if line.verdict == "equal" else "within bound, "
            line.verdict = "sampled"
            total = outcome.counters.get("ctas", 0)
            line.compared = f"{how}{outcome.executed} of {total} CTAs: {line.compared}"

    def _compare(self, line: Line, outcome: Outcome) -> None:
        got, rules = outcome.outputs, rules_of(outcome.level)
        as_before = compare.same_bits(self.outputs, got)
        if compare.same_bits(self.draw.reference, got):
            line.verdict = "equal"
            line.compared = f"{rules}, bit for bit with the input" + (
                "" if as_before else "; the result before was within bound only"
            )
            return
        if self.draw.precise is not None:
            self._against_f64(line, outcome, self.draw.precise)
            return
        bound, why = bound_of(self.draw, self.settings)
        errors = bound.errors if bound else None
        difference = compare.first_difference(self.draw.reference, got, errors)
        before = "bit for bit as before the pass" if as_before else "not bit for bit as before"
        if bound is not None:
            error, ratio = compare.largest_ratio(self.draw.reference, got, bound.errors)
            line.max_error, line.max_error_over_bound = error, ratio
            if difference is None and (excess := self._excess(line, got, bound)):
                why, difference = excess, compare.first_difference(self.draw.reference, got)
        if difference is None:
            line.verdict = "within bound"
            line.compared = (
                f"{rules}, error <= {line.max_error:.3g}, "
                f"{line.max_error_over_bound:.3g} of its bound, "
                f"rms {line.rms_error_over_bound:.3g} of its; {before}"
            )
            return
        line.verdict = "different"
        line.compared = f"{rules}, {why}; {before}"
        line.difference = self._with_site(difference, outcome.sites)

    def _against_f64(self, line: Line, outcome: Outcome, precise: Precise) -> None:
        """Judges results without a bound by their errors against f64."""
        compared = precise.compared(outcome.outputs)
        worst = max(range(len(compared)), key=lambda n: compared[n].excess)
        found = compared[worst]
        line.max_error_over_bound = max(each.ratio for each in compared)
        line.rms_error_over_bound = max(each.rms for each in compared)
        line.verdict = "different" if found.excess > 1 else "within bound"
        line.compared = f"{rules_of(outcome.level)}, no worst-case bound; {found.failure or found}"
        if found.excess > 1:
            difference = precise.difference(worst, outcome.outputs)
            line.difference = self._with_site(difference, outcome.sites)

    def _excess(self, line: Line, got: Sequence[Array], bound: Bound) -> str:
        """How far the rms error is beyond its bound, or nothing; fills in the line's ratio."""
        means = compare.mean_squares(self.draw.reference, got, bound.squares)
        ratios = [math.sqrt(mean / limit) for mean, limit in zip(means, bound.limits, strict=True)]
        line.rms_error_over_bound = max(ratios, default=0.0)
        if line.rms_error_over_bound <= 1:
            return ""
        return f"rms error {line.rms_error_over_bound:.3g} times its bound"

    def _with_site(
        self, difference: compare.Difference, sites: Mapping[int, Any]
    ) -> compare.Difference:
        """Adds the writer of the element at this level, and its value at the level before."""
        index, output = difference.index, difference.output
        words = [str(sites[output](index))] if output in sites else []
        if output in self.sites:
            value = str(self.outputs[output][index])
            words.append(f"before the pass {value}, {self.sites[output](index)}")
        return dataclasses.replace(difference, site="; ".join(words))


def bound_of(draw: Draw, settings: Settings) -> tuple[Bound | None, str]:
    """Returns the bound on the results of `draw`, or None, and the words that say why a wrong
    result is wrong. A result is wrong if it exceeds the bound or, without a bound, if it differs.
    """
    if draw.bound is not None:
        return draw.bound, "beyond the bound"
    if settings.inputs == "integers":
        return None, draw.no_bound or "exact inputs must agree bit for bit"
    return None, draw.no_bound or "no bound is known for a program of this level"
