"""Executor with processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tcir.sweep.executor import lost
from tcir.sweep.work import Job, SweepProgram, SweepRow, work
from tcir.workers import Forks, Lost


@dataclass(frozen=True)
class LocalProcesses:
    """Runs jobs in `count` forks of this process, see `tcir.workers.Forks`."""

    count: int

    def run(
        self, programs: Sequence[SweepProgram], jobs: Sequence[Job]
    ) -> Iterator[tuple[Job, SweepRow]]:
        """See `tcir.sweep.executor.JobExecutor`."""

        spare = self.count // max(len(jobs), 1)

        def row(job: Job) -> SweepRow:
            if spare > 1 and job.settings.orders > 1:  # whose report is that of one process
                own = replace(job, settings=replace(job.settings, jobs=spare))
                return work(programs[job.program], own)
            return work(programs[job.program], job)

        for job, found in Forks(self.count).run(row, jobs):
            yield job, lost(job, found.how) if isinstance(found, Lost) else found
