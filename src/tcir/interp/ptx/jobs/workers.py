"""Runs functions in forks of this process, each of which computes one result on one core and sends
it back.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import pickle
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import IO, TypeVar, cast

import numpy as np

from tcir import blas
from tcir.interp.ptx.jobs.part import TogetherError

_PR_SET_PDEATHSIG = 1
ALL_PAGES: int = getattr(mmap, "MAP_POPULATE", 0)
"""Flag that maps all pages at once, since all are read."""

Result = TypeVar("Result")
Tell = Callable[[int], None]
"""Reports the progress of a worker."""


def in_workers(works: Sequence[Callable[[Tell], Result]], tell: Tell) -> list[Result]:
    """Results of `works`, each computed in a worker process. tell: function that receives the sum
    of the workers' progress

    Raises `TogetherError` if a worker raises or dies; the other workers are then terminated.
    """
    workers: dict[Connection, tuple[int, int]] = {}
    results: dict[int, Result] = {}
    arrays: list[IO[bytes]] = []
    done = [0] * len(works)
    parent = os.getpid()
    try:
        for number, work in enumerate(works):
            here, there = Pipe(duplex=False)
            arrays.append(_file())
            pid = os.fork()
            if not pid:
                _work(work, there, arrays[number], parent)
            there.close()
            workers[here] = number, pid
        left = set(workers)
        while left:
            for here in cast("list[Connection]", wait(left)):
                number, _ = workers[here]
                try:
                    what, value, sizes = here.recv()
                except EOFError:
                    raise TogetherError("a worker ended early") from None
                if what == "raised":
                    raise TogetherError(value)
                if what == "told":
                    done[number] = value
                    tell(sum(done))
                else:
                    results[number] = pickle.loads(value, buffers=_parts(arrays[number], sizes))
                    left.remove(here)
        return [results[number] for number in range(len(works))]
    finally:
        for file in arrays:
            file.close()
        for here, (_, pid) in workers.items():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            here.close()


def _file() -> IO[bytes]:
    """Opens a file without a name, in memory if the system supports it."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("tcir"), "w+b")
    return cast("IO[bytes]", tempfile.TemporaryFile())


def _parts(file: IO[bytes], sizes: Sequence[int]) -> list[memoryview]:
    """Maps the arrays of these sizes in a file."""
    if not sum(sizes):
        return [memoryview(b"") for _ in sizes]
    whole = memoryview(mmap.mmap(file.fileno(), sum(sizes), mmap.MAP_SHARED | ALL_PAGES))
    ends = np.cumsum(sizes).tolist()
    return [whole[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def _work(
    work: Callable[[Tell], Result], there: Connection, arrays: IO[bytes], parent: int
) -> None:
    """The life of a worker, which dies with its parent."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        blas.one_thread()
        if os.getppid() == parent:
            there.send(_outcome(work, lambda done: there.send(("told", done, ())), arrays))
            status = 0
    finally:
        os._exit(status)


def _outcome(
    work: Callable[[Tell], Result], tell: Tell, arrays: IO[bytes]
) -> tuple[str, object, Sequence[int]]:
    """The message to the parent, and the sizes of the arrays in the file."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        value = pickle.dumps(work(tell), protocol=5, buffer_callback=buffers.append)
        parts = [buffer.raw() for buffer in buffers]
        for part in parts:
            arrays.write(part)
        arrays.flush()
        return "is", value, [part.nbytes for part in parts]
    except TogetherError as why:
        return "raised", str(why), ()
    except Exception as error:  # a mistake: one process will show it
        return "raised", f"{type(error).__name__}: {error}", ()
