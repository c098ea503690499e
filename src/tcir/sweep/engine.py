"""Runs a sweep: sends the jobs whose results are not known to an executor, and validates the best
combinations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from tcir.cache import digest
from tcir.cache.tuned import Tuned
from tcir.errors import InputError
from tcir.sweep.executor import JobExecutor
from tcir.sweep.results import Results
from tcir.sweep.space import Combination
from tcir.sweep.work import Job, Kind, SweepProgram, SweepRow
from tcir.target import TARGETS

Tell = Callable[[int, int, SweepRow], None]
"""Callback after each job: the number of completed jobs, the number of all jobs, and the row."""


@dataclass(frozen=True)
class Sweep:
    """A program, the combinations of options with which it is compiled, and the executor.

    validate: number of the best combinations that are validated (executed after every pass)
    """

    program: SweepProgram
    combinations: Sequence[Combination]
    executor: JobExecutor
    validate: int = 0

    def run(self, results: Results, tell: Tell) -> list[SweepRow]:
        """Runs the sweep; returns the rows in the order of the combinations."""
        keys = [key_of(self.program, each) for each in self.combinations]
        measured = self._do("measure", range(len(keys)), keys, results, tell)
        rows = [measured[number] for number in range(len(keys))]
        best = sorted(legal(rows), key=lambda number: order(rows[number]))[: self.validate]
        for number, row in self._do("validate", best, keys, results, tell).items():
            rows[number] = rows[number].validated(row)
        return rows

    def _do(
        self, kind: Kind, numbers: Sequence[int], keys: Sequence[str], results: Results, tell: Tell
    ) -> dict[int, SweepRow]:
        """The rows of the combinations with these numbers, including rows that were known."""
        jobs = {Job(keys[number], kind, self.combinations[number]): number for number in numbers}
        found = perform(self.executor, [self.program], list(jobs), results, tell)
        return {jobs[job]: row for job, row in found.items()}


def perform(
    executor: JobExecutor,
    programs: Sequence[SweepProgram],
    jobs: Sequence[Job],
    results: Results,
    tell: Tell,
) -> dict[Job, SweepRow]:
    """Returns the result rows of jobs; a job whose row is known already is not executed again."""
    found = {job: row for job in jobs if (row := results.find(job))}
    missing = [job for job in jobs if job not in found]
    for job, row in executor.run(programs, missing) if missing else ():
        results.keep(job, row)
        found[job] = row
        tell(len(found), len(jobs), row)
    return found


def key_of(program: SweepProgram, combination: Combination, more: object = None) -> str:
    """Returns a hash of the program, the passes with their options, the target and the tool
    versions, and of `more`.
    """
    try:
        passes = combination.passes()
    except InputError as error:  # a value that a pass refuses: the row says so
        passes = f"{combination}: {error}"
    target = TARGETS.get(program.target)
    what = (program.text, program.entry, combination, passes, target, program.versions)
    return digest(*what) if more is None else digest(*what, more)


def legal(rows: Sequence[SweepRow]) -> list[int]:
    """Indices of the rows whose combination was compiled without an error."""
    return [number for number, row in enumerate(rows) if row.status == "ok"]


def order(row: SweepRow) -> tuple[float, ...]:
    """Sort key of rows: first the modelled time, then the number of registers, then the bytes of
    shared memory, with the smallest first.
    """
    time = inf if row.microseconds is None else row.microseconds
    return (time, row.registers or 0, row.shared_bytes or 0)


def fastest(combinations: Sequence[Combination], rows: Sequence[SweepRow]) -> Tuned | None:
    """The first combination, in the order of `order`, that passed validation or was not validated;
    None if there is none.
    """
    kept = [number for number in legal(rows) if rows[number].verdict in ("", "held")]
    if not kept:
        return None
    best = min(kept, key=lambda number: order(rows[number]))
    time = rows[best].microseconds
    assert time is not None
    return Tuned(dict(combinations[best].options), time, len(kept), rows[best].verdict)
