"""Interface of the processes that run a sweep's jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tcir.errors import Error
from tcir.sweep.work import Job, SweepProgram, SweepRow
from tcir.workers import ATTEMPTS


class WorkersError(Error):
    """Raised if the worker processes were lost; completed rows are kept."""

    exit_code = 2


class JobExecutor(Protocol):
    """Processes on this machine or on others."""

    def run(
        self, programs: Sequence[SweepProgram], jobs: Sequence[Job]
    ) -> Iterator[tuple[Job, SweepRow]]:
        """Yields each job with its row as it completes. If a worker dies, another one repeats its
        job."""


def lost(job: Job, how: str) -> SweepRow:
    """The row of a job at which workers died."""
    why = f"{ATTEMPTS} workers died on this job{how}; the others continued"
    return SweepRow(str(job), "failed", why)
