"""Validates many modules with one pipeline: each module is executed after every pass.

If a module is executed in many completion orders, the orders are divided among several jobs. Each
job also executes the order of issue, which makes its other orders cheap. The findings of the jobs
are merged into those that one process would have reported.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import zip_longest

from tcir.sweep.engine import Tell, key_of, perform
from tcir.sweep.executor import JobExecutor
from tcir.sweep.results import Results
from tcir.sweep.space import Combination
from tcir.sweep.work import Job, SweepProgram, SweepRow
from tcir.validation.compare import Difference
from tcir.validation.coverage import Coverage
from tcir.validation.report import Line, Report, Unchanged
from tcir.validation.settings import Settings

ORDERS_OF_A_JOB = 16
"""Completion orders per job, besides the order of issue. Each job compiles the module again."""


@dataclass(frozen=True)
class SweepValidation:
    """The modules to validate, their pipeline, the settings of the execution, and the executor.

    modules: the programs; for a module that cannot be read, its result row instead
    """

    modules: Sequence[SweepProgram | SweepRow]
    pipeline: Combination
    settings: Settings
    executor: JobExecutor

    def run(self, results: Results, tell: Tell) -> list[SweepRow]:
        """Validates the modules; returns the rows in the order of the modules."""
        programs = [module for module in self.modules if isinstance(module, SweepProgram)]
        parts = [self._jobs(number, program) for number, program in enumerate(programs)]
        jobs = [job for each in parts for job in each]
        found = perform(self.executor, programs, jobs, results, tell)
        rows = iter([together([found[job] for job in each]) for each in parts])
        return [
            next(rows) if isinstance(module, SweepProgram) else module for module in self.modules
        ]

    def _jobs(self, number: int, program: SweepProgram) -> list[Job]:
        jobs, drawn = [], self.settings.orders - 1
        for skip in range(0, max(drawn, 1), ORDERS_OF_A_JOB):
            orders = 1 + min(drawn - skip, ORDERS_OF_A_JOB)
            settings = replace(self.settings, orders=orders, skip=skip)
            key = key_of(program, self.pipeline, (program.name, settings))
            jobs.append(Job(key, "report", self.pipeline, number, program.name, settings))
        return jobs


def together(rows: Sequence[SweepRow]) -> SweepRow:
    """Merges the rows of the jobs that shared the completion orders of one module, in the order of
    the jobs.
    """
    reports = [row.report for row in rows if row.report]
    different = any(row.verdict == "different" for row in rows)
    stopped = next((row for row in rows if not row.report), None)
    if stopped is not None and not different:
        return stopped
    report = joined(reports)
    whole = {**report.as_dict(), "roofline": json.loads(reports[0])["roofline"]}
    return SweepRow.of(rows[0].combination, report, json.dumps(whole))


def joined(reports: Sequence[str]) -> Report:
    """Merges the reports of jobs, each of which tried some of the completion orders of one module.

    As in one process, a state that failed in one order counts as not executed in later orders, and
    so do all states after a state with different results.
    """
    lines: list[Line] = []
    for states in zip_longest(*map(_lines, reports)):
        known = [line for line in states if line is not None]
        first = known[0]
        if not any(line.verdict == "different" for line in lines):
            lines.append(_of_all(known))
        elif first.level != "ptx":  # there is none of a broken program
            lines.append(Line(first.index, first.name, first.ops, first.pass_seconds))
    wholes = [json.loads(text) for text in reports]
    names = {field.name for field in fields(Report)} & wholes[0].keys() - {
        "passes",
        "unchanged",
        "roofline",
    }
    report = Report(**{name: wholes[0][name] for name in names}, passes=lines)
    report.unchanged = [Unchanged(**each) for each in wholes[0]["unchanged"]]
    if covered := wholes[0]["coverage"]:
        report.coverage = Coverage(covered["executed"], covered["small_numbers"] or "")
    report.orders = 1 + sum(whole["orders"] - 1 for whole in wholes)
    return report


def _of_all(states: Sequence[Line]) -> Line:
    """Merges the lines that jobs have for one state, each for some of its completion orders."""
    line, *others = states
    line.compared = line.compared.removesuffix(line.in_orders())
    for other in others:
        if line.verdict in ("different", "incomplete"):
            break
        other.compared = other.compared.removesuffix(other.in_orders())
        line.take(other)
        line.orders += other.orders - 1
        line.drawn, line.drawn_of = line.drawn + other.drawn, line.drawn_of + other.drawn_of
        line.pass_seconds += other.pass_seconds
        line.execute_seconds += other.execute_seconds
    line.compared += line.in_orders() if line.held else ""
    return line


def _lines(report: str) -> list[Line]:
    lines = [Line(**state) for state in json.loads(report)["passes"]]
    for line in lines:
        found = vars(line)["difference"]
        line.difference = None if found is None else Difference(**found)
    return lines
