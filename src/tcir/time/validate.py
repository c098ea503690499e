"""Compares the model with public measurements, for every answer to each disputed constant: errors,
the order of the rows, and rows with large errors.

Rows from which a constant was determined are kept apart from held-out rows (`tcir.time.rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import mean, median

from tcir.target import DEFAULT_TARGET
from tcir.time.constants import Constants, alternatives
from tcir.time.rows import ROWS, Row

TARGET = DEFAULT_TARGET.name
MISS = 0.10
"""A relative error above this is a miss, which has an explanation."""
WHOLE = ("ladder", "end points")
"""Prefixes of the groups that are times of whole kernels."""


@dataclass(frozen=True)
class PredictedTime:
    """A row of `tcir.time.rows` with the prediction of the model."""

    row: Row
    predicted: float

    @property
    def error(self) -> float:
        """Error of the prediction, relative to the measurement."""
        return self.predicted / self.row.measured - 1

    @property
    def missed(self) -> bool:
        return abs(self.error) > MISS

    @property
    def whole_kernel(self) -> bool:
        return self.row.group.startswith(WHOLE)


def validate(constants: Constants | None = None, rows: Iterable[Row] = ROWS) -> list[PredictedTime]:
    """Predicts the time of each measurement in `rows`. `constants` may choose one ``clock`` for all
    rows; if it does not, each row is predicted with the clock of the source that it comes from.
    """
    chosen = dict(constants.choices) if constants else {}
    return [
        PredictedTime(row, row.predict(Constants(TARGET, {"clock": row.clock, **chosen})))
        for row in rows
    ]


@dataclass(frozen=True)
class Summary:
    """Summary of the errors of some rows."""

    rows: int
    median: float
    maximum: float
    misses: int

    @classmethod
    def of(cls, outcomes: Sequence[PredictedTime]) -> Summary:
        errors = [abs(outcome.error) for outcome in outcomes]
        misses = sum(outcome.missed for outcome in outcomes)
        return cls(len(errors), median(errors), max(errors), misses)


def ranks(values: Sequence[float]) -> list[float]:
    """Returns ranks from 1 up; equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [mean(i + 1 for i, o in enumerate(ordered) if o == value) for value in values]


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Returns Spearman's rank correlation, with ties; 0 if all values of one side are equal."""
    a, b = ranks(left), ranks(right)
    middle = mean(a)
    spread = [sum((x - middle) ** 2 for x in side) for side in (a, b)]
    both = sum((x - middle) * (y - middle) for x, y in zip(a, b, strict=True))
    return both / (spread[0] * spread[1]) ** 0.5 if all(spread) else 0.0


def inversions(group: Sequence[PredictedTime]) -> list[tuple[str, str]]:
    """Returns the pairs of rows whose order by the model differs from their measured order; equal
    values are no inversion.
    """
    return [
        (one.row.name, other.row.name)
        for number, one in enumerate(group)
        for other in group[number + 1 :]
        if (one.row.measured - other.row.measured) * (one.predicted - other.predicted) < 0
    ]


def groups(outcomes: Iterable[PredictedTime]) -> dict[str, list[PredictedTime]]:
    """Collects predictions by the group of their row, in order."""
    found: dict[str, list[PredictedTime]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.row.group, []).append(outcome)
    return found


def _correlation(group: Sequence[PredictedTime]) -> float:
    return rank_correlation([o.row.measured for o in group], [o.predicted for o in group])


def table(outcomes: Iterable[PredictedTime]) -> list[str]:
    """Returns a Markdown table of measured and modelled values."""
    lines = ["| group | row | unit | measured | modelled | error |", "|---|---|---|---|---|---|"]
    for group, members in groups(outcomes).items():
        for number, o in enumerate(members):
            error = f"**{o.error:+.0%}**" if o.missed else f"{o.error:+.1%}"
            lines.append(
                f"| {group if not number else ''} | {o.row.name} | {o.row.unit} | "
                f"{o.row.measured:.4g} | {o.predicted:.4g} | {error} |"
            )
    return lines


def _summaries(parts: Iterable[tuple[str, list[PredictedTime]]]) -> list[str]:
    lines = ["| rows | number | median error | maximum | misses |", "|---|---|---|---|---|"]
    for name, outcomes in parts:
        s = Summary.of(outcomes)
        lines.append(f"| {name} | {s.rows} | {s.median:.1%} | {s.maximum:.0%} | {s.misses} |")
    return lines


def _under(outcomes: Sequence[PredictedTime]) -> list[str]:
    """Returns a table of the held-out rows' errors under each answer to each disputed constant."""
    lines = [
        "| under | micro-benchmarks, median | maximum | whole kernels, median | maximum "
        "| pairs out of order |",
        "|---|---|---|---|---|---|",
    ]
    default, idle = [o.predicted for o in outcomes], []
    for constants in alternatives(TARGET):
        name = ", ".join(f"{k}={v}" for k, v in constants.choices.items()) or "defaults"
        results = validate(constants, [o.row for o in outcomes])
        if constants.choices and [o.predicted for o in results] == default:
            idle.append(f"`{name}`")
            continue
        small = Summary.of([o for o in results if not o.whole_kernel])
        whole = Summary.of([o for o in results if o.whole_kernel])
        wrong = sum(
            len(inversions(members))
            for group, members in groups(results).items()
            if group.startswith("ladder")
        )
        lines.append(
            f"| {name} | {small.median:.1%} | {small.maximum:.0%} | {whole.median:.1%} | "
            f"{whole.maximum:.0%} | {wrong} |"
        )
    return [*lines, "", f"These answers change no row: {', '.join(idle)}."]


def report() -> str:
    """Returns a Markdown report: summaries, held-out rows, the order of the rows, rows with large
    errors, other answers to disputed constants, fit rows.
    """
    outcomes = validate()
    held = [o for o in outcomes if not o.row.fit]
    fit = [o for o in outcomes if o.row.fit]
    lines = _summaries(
        [
            ("fit", fit),
            ("held out: micro-benchmarks", [o for o in held if not o.whole_kernel]),
            ("held out: whole kernels", [o for o in held if o.whole_kernel]),
            ("held out: all", held),
        ]
    )
    lines += ["", "### Held out", "", *table(held), "", "### Orderings", ""]
    lines += ["| rows | rank correlation | pairs out of order |", "|---|---|---|"]
    for group, members in groups(held).items():
        if len(members) > 2:
            wrong = "; ".join(" and ".join(pair) for pair in inversions(members)) or "none"
            lines.append(f"| {group} | {_correlation(members):.2f} | {wrong} |")
    lines += ["", "### Misses", "", "| rows | why |", "|---|---|"]
    reasons: dict[str, list[str]] = {}
    for o in outcomes:
        if o.missed:
            reasons.setdefault(o.row.why, []).append(f"{o.row.group}, {o.row.name}")
    lines += [f"| {'; '.join(names)} | {why} |" for why, names in reasons.items()]
    lines += ["", "### Under other answers", "", *_under(held)]
    lines += ["", "### Fit", "", *table(fit)]
    return "\n".join(lines) + "\n"
