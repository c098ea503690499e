"""Interface of executors, which run a sweep's jobs in worker processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tcir.errors import Error
from tcir.sweep.work import Job, SweepProgram, SweepRow
from tcir.workers import ATTEMPTS


class WorkersError(Error):
    """Raised if the worker processes were lost; rows completed before are kept."""

    exit_code = 2


class JobExecutor(Protocol):
    """Runs jobs in worker processes, on this machine or on others."""

    def run(
        self, programs: Sequence[SweepProgram], jobs: Sequence[Job]
    ) -> Iterator[tuple[Job, SweepRow]]:
        """Yields each job with its row as soon as it is complete. If a worker process dies, another
        one repeats its job.
        """


def lost(job: Job, how: str) -> SweepRow:
    """Returns the row of a job during which workers died. how: how they died"""
    why = f"{ATTEMPTS} workers died on this job{how}; the others continued"
    return SweepRow(str(job), "failed", why)
