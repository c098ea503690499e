"""Processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tcir.sweep.executor import lost
from tcir.sweep.work import Job, Program, Row, work
from tcir.workers import Forks, Lost


@dataclass(frozen=True)
class LocalProcesses:
    """`count` forks of this process, see `tcir.workers.Forks`."""

    count: int

    def run(self, programs: Sequence[Program], jobs: Sequence[Job]) -> Iterator[tuple[Job, Row]]:
        """See `tcir.sweep.executor.Executor`."""

        def row(job: Job) -> Row:
            return work(programs[job.program], job)

        for job, found in Forks(self.count).run(row, jobs):
            yield job, lost(job, found.how) if isinstance(found, Lost) else found
