"""A child process for native libraries that may crash on bad input.

MLIR and LLVM crash (with a segmentation fault or ``LLVM ERROR: Cannot select``) if MLIR has no
translation for an operation or the PTX version lacks an intrinsic, and possibly when they read a
program (see `rehearsal`). Therefore such code runs in one long-lived child process. If the child
crashes, an error reports it, the program that caused the crash is saved in a file, and the next
request starts a new child. `start` may be called early to hide the start-up time.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from typing import IO, Any, NoReturn

from tcir.codegen.crash import crashed
from tcir.errors import Error

_HEADER = struct.Struct("<Q")
GRACE = 5.0
"""Seconds that a child has to end by itself when its parent has gone."""
_MAIN = "import sys; sys.path[:] = sys.argv[1:]; from {} import main; main()"


def send(stream: IO[bytes], message: object) -> None:
    """Writes one length-prefixed message to an unbuffered pipe.

    A buffer has a lock, and a fork during another thread's write would copy the buffer to the child
    with its lock held.
    """
    data = pickle.dumps(message)
    rest = memoryview(_HEADER.pack(len(data)) + data)
    while rest:
        rest = rest[stream.write(rest) :]


def receive(stream: IO[bytes]) -> Any:
    """Reads one message that `send` wrote; raises `EOFError` if the other side is closed."""
    (size,) = _HEADER.unpack(_exactly(stream, _HEADER.size))
    return pickle.loads(_exactly(stream, size))


def end_with(stream: IO[bytes]) -> None:
    """Ends this process some time after the other side of a pipe was closed, even during a
    computation. A child thus does not outlive a parent that was killed.
    """

    def watch() -> None:
        closed = select.poll()
        closed.register(stream, 0)  # POLLHUP is reported in any case
        closed.poll()
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = stream.read(size - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


class ForkedChild:
    """A forked copy of this process that answers requests; a subset of `subprocess.Popen`."""

    def __init__(self, stderr: IO[bytes]) -> None:
        # `stderr` is the file, not its number: the child's `Worker.forget` lets go of it.
        request_end, requests = os.pipe()
        replies, reply_end = os.pipe()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os.close(requests)
            os.close(replies)
            _serve_and_exit(request_end, reply_end, stderr.fileno())
        os.close(request_end)
        os.close(reply_end)
        self.stdin: IO[bytes] | None = os.fdopen(requests, "wb", buffering=0)
        self.stdout: IO[bytes] | None = os.fdopen(replies, "rb", buffering=0)

    def _reap(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def poll(self) -> int | None:
        """The exit status, negative after a signal; None while the child runs."""
        return self._reap(os.WNOHANG)

    def wait(self) -> int:
        """Waits for the child to end; returns its exit status."""
        status = self._reap(0)
        assert status is not None
        return status

    def kill(self) -> None:
        """Kills the child."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


WAY_OUT = (
    "tc-opt --validate-each names the pass that produced it; if every pass passes, it is a bug of "
    "MLIR or LLVM: report it with that file"
)
"""Way out of a crash on IR that passes produced."""

Child = subprocess.Popen[bytes] | ForkedChild


def _serve_and_exit(requests: int, replies: int, stderr: int) -> NoReturn:
    """The main function of the forked child."""
    from tcir.codegen._worker_main import serve

    status = 1
    try:
        os.dup2(stderr, 2)
        os.dup2(2, 1)  # what a native library prints must not reach our standard output
        with (
            os.fdopen(requests, "rb", buffering=0) as reader,
            os.fdopen(replies, "wb", buffering=0) as writer,
        ):
            serve(reader, writer)
        status = 0
    except BaseException:
        traceback.print_exc()  # for `crashed`
    finally:
        sys.stderr.flush()
        os._exit(status)


class Worker:
    """One child process, started on demand and restarted after a crash.

    main: name of the module whose function `main` the child runs
    """

    def __init__(self, main: str = "tcir.codegen._worker_main") -> None:
        self._main = main
        self._lock = threading.Lock()
        self._process: Child | None = None
        self._stderr: IO[bytes] | None = None

    def start(self, *, fork: bool = False) -> None:
        """Starts the child (returns at once); does nothing if it is running.

        fork: whether the child is a copy of this process instead of a new interpreter
        """
        with self._lock:
            self._start(fork)

    def _start(self, fork: bool = False) -> Child:
        if self._process is None or self._process.poll() is not None:
            self._close()
            self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
            if fork:
                self._process = ForkedChild(self._stderr)
            else:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _MAIN.format(self._main), *sys.path],
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=self._stderr,
                )
        return self._process

    def forget(self) -> None:
        """Drops the child without ending it; to be called in a forked process, because the child
        belongs to the parent.
        """
        self._lock = threading.Lock()
        process, self._process, self._stderr = self._process, None, None
        if process is not None:
            process.returncode = 0  # not ours to wait for
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()

    def kill(self) -> None:
        """Kills the child during a `call`, which then reports a crash."""
        process = self._process
        if process is not None:
            process.kill()

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

    def call(
        self,
        function: str,
        text: str,
        suffix: str,
        *,
        step: str = "",
        way_out: str = WAY_OUT,
        **options: Any,
    ) -> Any:
        """Result of ``function(text, **options)`` of `_worker_main`, run in the child.

        step:    beginning of messages; default: `function`
        way_out: end of the message of a crash

        Raises `Error` with the library's message if it rejects `text`, and `NativeCrashError` if
        the child crashes; `text` is then saved in a file whose name ends in `suffix`.
        """
        step = step or function
        with self._lock:
            process = self._start()
            assert process.stdin is not None and process.stdout is not None
            try:
                send(process.stdin, (function, text, options))
                accepted, result = receive(process.stdout)
            except (EOFError, BrokenPipeError) as error:
                status = process.wait()
                said = self._close().strip()
                raise crashed(step, status, said, text, suffix, way_out) from error
        if not accepted:
            raise Error(f"{step}: {result}")
        return result


WORKER = Worker()
"""The child of this process."""

atexit.register(WORKER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKER.forget)
