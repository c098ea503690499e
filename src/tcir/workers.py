"""Runs jobs in forks of this process. Each fork does one job at a time, on one core. Every job gets
a result, even if a fork dies.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import Generic, NoReturn, TypeVar, cast

from tcir import blas
from tcir.child import die_with

ATTEMPTS = 3
"""Number of workers that may die at the same job before it is abandoned, since the job may be what
kills them."""
JOBS_OF_A_WORKER = 200
"""Number of jobs after which a worker is replaced by a fresh fork, so that memory that libraries
never free does not add up."""

Job = TypeVar("Job", bound=Hashable)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Lost:
    """Result of a job for which `ATTEMPTS` workers died one after the other. how: describes how the
    last one died.
    """

    how: str


@dataclass
class _Worker(Generic[Job]):
    """A fork and its current job."""

    pid: int
    job: Job | None = None
    done: int = 0


_Workers = dict[Connection, _Worker[Job]]


@dataclass(frozen=True)
class Forks:
    """`count` forks of this process. Before they are created, the process should have loaded the
    modules that they need, and must not have started threads.
    """

    count: int

    def run(
        self, work: Callable[[Job], Result], jobs: Sequence[Job]
    ) -> Generator[tuple[Job, Result | Lost], None, None]:
        """Yields each job with the result of `work` as soon as it is complete; jobs are started in
        order.

        If a worker dies or raises an exception, another worker repeats its job. Closing the
        generator (``close``) ends the workers.
        """
        todo, deaths = deque(jobs), Counter[Job]()
        workers: _Workers[Job] = {}
        try:
            while todo or any(worker.job is not None for worker in workers.values()):
                while len(workers) < min(self.count, len(todo) + _busy(workers)):
                    _start(work, workers)
                for here, worker in list(workers.items()):
                    if worker.job is None and todo:
                        _give(here, worker, todo)
                for here in cast("list[Connection]", wait(list(workers))):
                    worker = workers[here]
                    job = worker.job
                    try:
                        result: Result = here.recv()
                    except (EOFError, ConnectionResetError):
                        how = _end(here, workers)
                        if job is None:
                            continue
                        deaths[job] += 1
                        if deaths[job] < ATTEMPTS:
                            todo.appendleft(job)
                        else:
                            yield job, Lost(how)
                        continue
                    assert job is not None
                    worker.job, worker.done = None, worker.done + 1
                    if worker.done == JOBS_OF_A_WORKER:
                        _end(here, workers)
                    yield job, result
        finally:
            for here in list(workers):
                _end(here, workers)


def _busy(workers: _Workers[Job]) -> int:
    return sum(worker.job is not None for worker in workers.values())


def _give(here: Connection, worker: _Worker[Job], todo: deque[Job]) -> None:
    job = todo.popleft()
    worker.job = job  # a worker that cannot take it has died: `wait` says so
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        here.send(job)


def _start(work: Callable[[Job], Result], workers: _Workers[Job]) -> None:
    here, there = Pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        for other in (here, *workers):  # else their workers would not see that we end
            other.close()
        _serve(work, there, parent)
    there.close()
    workers[here] = _Worker(pid)


def _end(here: Connection, workers: _Workers[Job]) -> str:
    """Kills a worker; returns text that says how it had died before."""
    pid = workers.pop(here).pid
    here.close()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f" ({signal.Signals(-code).name})" if code < 0 else f" (exit status {code})"


def _serve(work: Callable[[Job], Result], there: Connection, parent: int) -> NoReturn:
    """Main function of a worker, which dies with its parent."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's, which ends its workers
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        die_with(parent)
        blas.one_thread()
        while True:
            there.send(work(there.recv()))
    except EOFError:
        status = 0
    finally:
        os._exit(status)
