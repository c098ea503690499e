"""Processes of this machine: forks, each of which does one job at a time."""

from __future__ import annotations

import contextlib
import os
import signal
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait
from typing import NoReturn, cast

from tcir.child import die_with
from tcir.sweep.executor import ATTEMPTS, lost
from tcir.sweep.work import Job, Program, Row, work

JOBS_OF_A_WORKER = 200
"""A fresh fork takes over then, so that what libraries never free does not add up."""


@dataclass
class _Worker:
    """A fork and the job that it has."""

    pid: int
    job: Job | None = None
    done: int = 0


@dataclass(frozen=True)
class LocalProcesses:
    """`count` forks of this process, which should have loaded what they need and no threads."""

    count: int

    def run(self, program: Program, jobs: Sequence[Job]) -> Iterator[tuple[Job, Row]]:
        """See `tcir.sweep.executor.Executor`."""
        todo, deaths = deque(jobs), Counter[Job]()
        workers: dict[Connection, _Worker] = {}
        try:
            while todo or any(worker.job for worker in workers.values()):
                while len(workers) < min(self.count, len(todo) + _busy(workers)):
                    _start(program, workers)
                for here, worker in list(workers.items()):
                    if worker.job is None and todo:
                        _give(here, worker, todo)
                for here in cast("list[Connection]", wait(list(workers))):
                    worker = workers[here]
                    job = worker.job
                    try:
                        row = here.recv()
                    except (EOFError, ConnectionResetError):
                        how = _end(here, workers)
                        if job is None:
                            continue
                        deaths[job] += 1
                        if deaths[job] < ATTEMPTS:
                            todo.appendleft(job)
                        else:
                            yield job, lost(job, how)
                        continue
                    assert job is not None
                    worker.job, worker.done = None, worker.done + 1
                    if worker.done == JOBS_OF_A_WORKER:
                        _end(here, workers)
                    yield job, row
        finally:
            for here in list(workers):
                _end(here, workers)


def _busy(workers: dict[Connection, _Worker]) -> int:
    return sum(worker.job is not None for worker in workers.values())


def _give(here: Connection, worker: _Worker, todo: deque[Job]) -> None:
    job = todo.popleft()
    worker.job = job  # a worker that cannot take it has died: `wait` says so
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        here.send(job)


def _start(program: Program, workers: dict[Connection, _Worker]) -> None:
    here, there = Pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        for other in (here, *workers):  # else their workers would not see that we end
            other.close()
        _serve(program, there, parent)
    there.close()
    workers[here] = _Worker(pid)


def _end(here: Connection, workers: dict[Connection, _Worker]) -> str:
    """Ends a worker; in words, how it had ended before."""
    pid = workers.pop(here).pid
    here.close()
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f" ({signal.Signals(-code).name})" if code < 0 else f" (exit status {code})"


def _serve(program: Program, there: Connection, parent: int) -> NoReturn:
    """The life of a worker, which dies with its parent."""
    status = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's, which ends its workers
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        die_with(parent)
        while True:
            there.send(work(program, there.recv()))
    except EOFError:
        status = 0
    finally:
        os._exit(status)
