"""Compiles in child processes: if native code crashes or hangs there, this process raises an error.

The doors compile programs that an importer generated. These exercise parts of MLIR and LLVM that
hand-written programs do not. Each child runs one compiler; `Compilers` has as many children as
there are processors, at most `MOST_CHILDREN`.
"""

from __future__ import annotations

import atexit
import os
import queue
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

from tcir.codegen.worker import Worker
from tcir.errors import Error, InputError, InternalError, NativeCrashError
from tcir.kernel import Kernel

MOST_CHILDREN = 8
PATIENCE = 900.0
"""Maximum duration of a compilation, in seconds."""


class Compilers:
    """Child processes that compile, started when they are needed. A context manager, which ends
    the processes."""

    def __init__(
        self,
        count: int | None = None,
        main: str = "tcir.session._apart_main",
        suffix: str = ".mlir",
    ) -> None:
        """Prepares `count` children; none is started.

        main:   name of the module with the children's main function
        suffix: suffix of files that are saved for reports
        """
        self.suffix = suffix
        self.count = min(count or os.cpu_count() or 1, MOST_CHILDREN)
        self._free: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._all = [Worker(main) for _ in range(self.count)]
        for worker in self._all:
            self._free.put(worker)

    def __enter__(self) -> Compilers:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the child that receives the next request (returns at once), so that it imports the
        compiler while the caller prepares the request; does nothing if that child is running."""
        with self._worker() as worker:
            worker.start()

    def stop(self) -> None:
        """Ends the children."""
        for worker in self._all:
            worker.stop()

    def linalg(self, torch_text: str) -> str:
        """Lowers a module of the dialect `torch` to `linalg`. Raises `Error` if that fails."""
        return str(self.ask("linalg", torch_text))

    def compile(self, mlir: str, pipeline: str, target: str) -> Kernel:
        """Compiles a program as `tcir.compile` does; returns its kernel.

        Raises `Error` if the pipeline rejects the program, and `InternalError`, which names a file
        to report, for a fault of the compiler: an exception, a crash of native code, a duration of
        more than `PATIENCE` seconds.
        """
        kernel = self.ask("compile", mlir, pipeline=pipeline, target=target)
        assert isinstance(kernel, Kernel)
        return kernel

    def lower(
        self, torch_text: str, pipeline: str, target: str, frozen: Sequence[int] = ()
    ) -> tuple[str, Kernel]:
        """Compiles a module of the dialect torch; returns its `linalg` and its kernel. Raises the
        errors of `linalg` and `compile`, with the location that the text gives the op.

        frozen: numbers of the arguments that are the same at each call
        """
        pair = self.ask("lower", torch_text, pipeline=pipeline, target=target, frozen=frozen)
        assert isinstance(pair, tuple)
        return pair

    def takes(self, torch_text: str, pipeline: str, target: str) -> None:
        """Runs the pipeline's passes on a module of the dialect `torch`, without code generation.
        Raises the errors of `linalg` and `compile` if the pipeline rejects the module."""
        self.ask("takes", torch_text, pipeline=pipeline, target=target)

    def ask(self, function: str, text: str, **options: object) -> object:
        """Calls a function in a child and returns its result; raises the errors of `compile`.

        text: program that is saved to be reported
        """
        with self._worker() as worker:
            late = threading.Timer(PATIENCE, worker.kill)
            late.daemon = True
            late.start()
            try:
                kind, result = worker.call(
                    function,
                    text,
                    self.suffix,
                    way_out="please report it with that file",
                    **options,  # type: ignore[arg-type]  # none is called step
                )
            except NativeCrashError as error:
                raise InternalError(str(error)) from error
            finally:
                late.cancel()
        if kind == "refused":
            raise InputError(result)
        if kind == "rejected":
            raise Error(result)
        if kind == "internal":
            why, said = result
            raise InternalError(f"{why}; {kept(text, said, self.suffix)}")
        return result

    @contextmanager
    def _worker(self) -> Iterator[Worker]:
        worker = self._free.get()
        try:
            yield worker
        finally:
            self._free.put(worker)


C = TypeVar("C", bound=Compilers)


def one_per_process(made: Callable[[], C]) -> Callable[[], C]:
    """Function that creates an object with children once per process, ends the children with the
    process, and creates another object after a fork."""

    @cache
    def found() -> C:
        one = made()
        atexit.register(one.stop)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=found.cache_clear)
        return one

    return found


compilers = one_per_process(Compilers)
"""Compilers of this process."""


def kept(text: str, said: str, suffix: str = ".mlir") -> str:
    """Saves a program and the traceback `said` to a file; returns a sentence for an error message,
    which names the file."""
    with tempfile.NamedTemporaryFile(
        "w", prefix="tcir-internal-", suffix=suffix, delete=False
    ) as file:
        file.write("".join(f"// {line}\n" for line in said.splitlines()) + text)
    return f"please report it with the program, which is in {Path(file.name)}"
