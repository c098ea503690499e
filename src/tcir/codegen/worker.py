"""A child process for the native libraries that may die on bad input.

Translating an operation MLIR has no translation for, or selecting an intrinsic that the PTX
version lacks, ends the process it runs in (a segmentation fault, ``LLVM ERROR: Cannot select``). So
both run in one long-lived child: a death is noticed and reported with the program that caused it
saved in a file, and the next request starts a new child. `start` may be called early to hide the
start-up time.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

from tcir.errors import Error, NativeCrashError

_HEADER = struct.Struct("<Q")
_MAIN = "import sys; sys.path[:] = sys.argv[1:]; from tcir.codegen._worker_main import main; main()"


def send(stream: IO[bytes], message: object) -> None:
    """Writes one length-prefixed message."""
    data = pickle.dumps(message)
    stream.write(_HEADER.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Reads one message of `send`; `EOFError` when the other side is gone."""
    header = stream.read(_HEADER.size)
    if len(header) < _HEADER.size:
        raise EOFError
    (size,) = _HEADER.unpack(header)
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return pickle.loads(data)


class Worker:
    """One child process, started on demand and again after a death."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None

    def start(self) -> None:
        """Starts the child (returns at once); does nothing when it runs."""
        with self._lock:
            self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._close()
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
            )
        return self._process

    def forget(self) -> None:
        """In a forked process: the child is the parent's, leave it alone."""
        self._lock = threading.Lock()
        process, self._process, self._stderr = self._process, None, None
        if process is not None:
            process.returncode = 0  # not ours to wait for
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()

    def stop(self) -> None:
        """Ends the child, if any."""
        with self._lock:
            self._close()

    def _close(self) -> str:
        """Ends the child; returns what it wrote to stderr."""
        process, stderr = self._process, self._stderr
        self._process = self._stderr = None
        said = ""
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):  # unsent input of a dead child
                        stream.close()
        if stderr is not None:
            stderr.seek(0)
            said = stderr.read().decode(errors="replace")
            stderr.close()
        return said

    def call(self, function: str, text: str, suffix: str, **options: Any) -> Any:
        """Result of ``function(text, **options)`` of `_worker_main`, run in the child.

        Raises `Error` with the library's message when it refuses `text`, and `NativeCrashError`
        when the child dies; `text` is then saved in a file that ends in `suffix`.
        """
        with self._lock:
            process = self._start()
            assert process.stdin is not None and process.stdout is not None
            try:
                send(process.stdin, (function, text, options))
                accepted, result = receive(process.stdout)
            except (EOFError, BrokenPipeError) as error:
                status = process.wait()
                said = self._close().strip()
                raise NativeCrashError(_crash(function, status, said, text, suffix)) from error
        if not accepted:
            raise Error(f"{function}: {result}")
        return result


def _crash(function: str, status: int, said: str, text: str, suffix: str) -> str:
    with tempfile.NamedTemporaryFile(
        "w", prefix="tcir-crash-", suffix=suffix, delete=False
    ) as file:
        file.write(text)
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    first = next((line for line in said.splitlines() if "ERROR" in line or "error" in line), "")
    return (
        f"{function}: the native library died ({how})"
        + (f": {first.strip()}" if first else "")
        + f"; the program that caused it is in {Path(file.name)}"
    )


WORKER = Worker()
"""The child of this process."""

atexit.register(WORKER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKER.forget)
