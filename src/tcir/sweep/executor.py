"""Interface of the processes that do a sweep's work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from tcir.errors import Error
from tcir.sweep.work import Job, Program, Row
from tcir.workers import ATTEMPTS


class WorkersError(Error):
    """The processes that did the work are gone; what they had done is kept."""

    exit_code = 2


class Executor(Protocol):
    """Processes, here or elsewhere."""

    def run(self, programs: Sequence[Program], jobs: Sequence[Job]) -> Iterator[tuple[Job, Row]]:
        """Each job with its row, as they complete. A worker that dies loses nothing: another one
        does its job again."""


def lost(job: Job, how: str) -> Row:
    """The row of a job at which workers died."""
    why = f"{ATTEMPTS} workers died at it{how}; the others went on"
    return Row(str(job), "failed", why)
