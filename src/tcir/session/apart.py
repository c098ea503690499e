"""Compiles in child processes: if native code crashes or hangs in a child, this process raises an
error.

The front ends for PyTorch, ONNX and JAX compile programs that an importer generated. Such programs
use parts of MLIR and LLVM that programs written by hand do not use. Each child runs one compiler;
`Compilers` has as many children as there are processors, at most `MOST_CHILDREN`.
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
    """Child processes that compile; they are started when they are needed. As a context manager it
    ends them.
    """

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
        """Starts the child that will receive the next request, and returns at once; the child
        imports the compiler while the caller prepares the request. Does nothing if that child is
        running.
        """
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
        """Compiles a module of the dialect torch; returns its `linalg` program and its kernel.
        Raises the errors of `linalg` and `compile`, with the location that the text gives for the
        op.

        frozen: numbers of the arguments whose values are the same at each call
        """
        pair = self.ask("lower", torch_text, pipeline=pipeline, target=target, frozen=frozen)
        assert isinstance(pair, tuple)
        return pair

    def takes(self, torch_text: str, pipeline: str, target: str) -> None:
        """Checks whether a pipeline accepts a module of the dialect `torch`: runs its passes
        without code generation. Raises the errors of `linalg` and `compile` if the pipeline rejects
        the module.
        """
        self.ask("takes", torch_text, pipeline=pipeline, target=target)

    def ask(self, function: str, text: str, **options: object) -> object:
        """Calls a function in a child and returns its result; raises the errors of `compile`.

        text: the program, which is saved to a file if a fault of the compiler is to be reported
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
    """Decorator for a function that creates an object with child processes: the object is created
    once per process, its children end with the process, and a forked process creates an object of
    its own.
    """

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
    """Saves a program, and the traceback `said`, to a file; returns a sentence for an error message
    that names the file.
    """
    with tempfile.NamedTemporaryFile(
        "w", prefix="tcir-internal-", suffix=suffix, delete=False
    ) as file:
        file.write("".join(f"// {line}\n" for line in said.splitlines()) + text)
    return f"please report it with the program, which is in {Path(file.name)}"
