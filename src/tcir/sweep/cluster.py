"""Workers of a dask cluster (package ``distributed``), on any number of machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcir.cache import digest
from tcir.errors import InputError, MissingDependencyError
from tcir.sweep.executor import WorkersError
from tcir.sweep.work import Job, SweepProgram, SweepRow, work

if TYPE_CHECKING:
    import distributed

TIMEOUT = 15
"""Seconds within which a scheduler must answer."""


@dataclass(frozen=True)
class DaskCluster:
    """Runs jobs on the workers of the dask scheduler at an address such as
    ``tcp://10.0.0.1:8786``.
    """

    scheduler: str

    def run(
        self, programs: Sequence[SweepProgram], jobs: Sequence[Job]
    ) -> Iterator[tuple[Job, SweepRow]]:
        """See `tcir.sweep.executor.JobExecutor`."""
        _check_package()
        from distributed import as_completed

        with _client(self.scheduler) as client:
            # A task, not scattered data: a scheduler makes what died with a worker again.
            held = [
                client.submit(_itself, program, key=f"tcir-program-{digest(program)}")
                for program in programs
            ]
            futures = {
                client.submit(
                    work,
                    held[job.program],
                    job,
                    key=f"tcir-{job.kind}-{job.key}-{number}",
                    pure=False,
                ): job
                for number, job in enumerate(jobs)
            }
            try:
                for future in as_completed(list(futures)):
                    job = futures.pop(future)
                    yield job, _row(future, job, self)
            finally:
                client.cancel(list(futures))


def _itself(program: SweepProgram) -> SweepProgram:
    return program


def _row(future: distributed.Future, job: Job, cluster: DaskCluster) -> SweepRow:
    from distributed import KilledWorker

    if future.status == "finished":
        found: SweepRow = future.result()
        return found
    error = future.exception() if future.status == "error" else None
    if isinstance(error, KilledWorker):
        return SweepRow(str(job), "failed", f"workers died on this job: {error}")
    if error is None:
        raise WorkersError(
            f"lost the connection to the scheduler at {cluster.scheduler}; completed rows are "
            "kept: run the same command again, with the same --results"
        )
    return SweepRow(str(job), "failed", f"on a worker: {type(error).__name__}: {error}")


def _check_package() -> None:
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise MissingDependencyError(
            "--scheduler needs the package distributed: pip install 'tcir[cluster]'"
        ) from None


def _client(address: str) -> distributed.Client:
    from distributed import Client

    try:
        return Client(address, timeout=TIMEOUT)
    except (OSError, TimeoutError, ValueError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"--scheduler={address}: expected the address of a dask scheduler, such as "
            f"tcp://127.0.0.1:8786, got no answer ({why}); `dask scheduler` starts one"
        ) from None
