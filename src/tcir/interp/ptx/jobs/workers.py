"""Forks of this process that compute something and send it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import TypeVar, cast

from tcir.interp.ptx.jobs.part import TogetherError

_PR_SET_PDEATHSIG = 1

Result = TypeVar("Result")
Tell = Callable[[int], None]
"""Says how far a worker has come."""


def in_workers(works: Sequence[Callable[[Tell], Result]], tell: Tell) -> list[Result]:
    """What each of `works` returns, a worker each; tell: gets the sum of what they tell.

    Raises `TogetherError` if one of them raises, or dies; the others are ended.
    """
    workers: dict[Connection, tuple[int, int]] = {}
    results: dict[int, Result] = {}
    done = [0] * len(works)
    parent = os.getpid()
    try:
        for number, work in enumerate(works):
            here, there = Pipe(duplex=False)
            pid = os.fork()
            if not pid:
                _work(work, there, parent)
            there.close()
            workers[here] = number, pid
        left = set(workers)
        while left:
            for here in cast("list[Connection]", wait(left)):
                number, _ = workers[here]
                try:
                    what, value = here.recv()
                except EOFError:
                    raise TogetherError("a worker ended early") from None
                if what == "raised":
                    raise TogetherError(value)
                if what == "told":
                    done[number] = value
                    tell(sum(done))
                else:
                    results[number] = value
                    left.remove(here)
        return [results[number] for number in range(len(works))]
    finally:
        for here, (_, pid) in workers.items():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            here.close()


def _work(work: Callable[[Tell], Result], there: Connection, parent: int) -> None:
    """The life of a worker, which dies with its parent."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            there.send(_outcome(work, lambda done: there.send(("told", done))))
            status = 0
    finally:
        os._exit(status)


def _outcome(work: Callable[[Tell], Result], tell: Tell) -> tuple[str, object]:
    try:
        return "is", work(tell)
    except TogetherError as why:
        return "raised", str(why)
    except Exception as error:  # a mistake: one process will show it
        return "raised", f"{type(error).__name__}: {error}"
