"""Containment of crashes in native libraries: the work runs in a child process.

Before each pass the child records its name; if a signal kills the child, the parent names the pass,
and another child reruns the passes before it to save the program as a reproducer.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from tcir.errors import InputError
from tcir.streams import cannot_write

FORWARDED = (signal.SIGINT, signal.SIGTERM)
"""Signals to tc-opt that its child gets too."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Checkpoint:
    """The child's progress: in the pass (or step) called `name`, after `done` passes.

    They began with the module `text`, from the file `source`. broken: the summary of the report if
    one of them changed the result. report: the JSON report if this step fails, without the reason.
    """

    name: str
    done: int
    text: str
    source: str
    broken: str = ""
    report: dict[str, Any] | None = None

    def reproducer(self, program: str, pipeline: str) -> str:
        """MLIR text that ``tc-opt --run-reproducer`` (and mlir-opt's) runs again.

        program, pipeline: as the pass found it, and the passes still to run
        """
        pipeline = pipeline.replace("\\", "\\\\").replace('"', '\\"')
        return (
            f"// Stopped in '{self.name}', from {self.source}.\n"
            "// Again: tc-opt --run-reproducer FILE\n"
            f"{program.rstrip()}\n\n"
            "{-#\n  external_resources: {\n    mlir_reproducer: {\n"
            f'      pipeline: "{pipeline}",\n'
            "      disable_threading: true,\n      verify_each: true\n    }\n  }\n#-}\n"
        )


class Notes:
    """The child's record of its current step, readable by the parent after the child died."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as this)

    def write(self, checkpoint: Checkpoint) -> None:
        """Replaces the record."""
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps(vars(checkpoint)).encode())
        self._file.flush()

    def read(self) -> Checkpoint | None:
        """The last record; None if there is none or the crash truncated it."""
        self._file.seek(0)
        try:
            return Checkpoint(**json.loads(self._file.read()))
        except ValueError:
            return None


def run_contained(
    work: Callable[[Notes], int],
    save: Callable[[Checkpoint, str], int],
    reproducer: str | None,
    report: str | None = None,
) -> int:
    """Runs `work` in a child and returns its exit status; 4 if a signal killed it, or 1 if a pass
    had changed the result before.

    save:       writes the program before the crash to a file, in a child too; its exit status
    reproducer: that file; None: among the system's temporary files
    report:     the file for the JSON report, which names the pass; None: there is none
    """
    notes = Notes()
    wait_status = _in_child(lambda: work(notes))
    number = os.WTERMSIG(wait_status) if os.WIFSIGNALED(wait_status) else 0
    if not number:
        return os.waitstatus_to_exitcode(wait_status)
    if number in FORWARDED:
        return 128 + number
    name, checkpoint = signal.Signals(number).name, notes.read()
    if checkpoint is None:
        print(f"error: ended by {name} before the first pass", file=sys.stderr)
        return 4
    why = f"'{checkpoint.name}' was ended by {name} in native code"
    print(f"{checkpoint.source}: error: {why}", file=sys.stderr)
    if report and checkpoint.report is not None:
        _save_report(report, checkpoint.report, why)
    if reproducer is None:
        handle, reproducer = tempfile.mkstemp(prefix="tc-opt-crash-", suffix=".mlir")
        os.close(handle)
    path = reproducer
    if _in_child(lambda: save(checkpoint, path)) == 0:
        said = f"the program before it was saved: tc-opt --run-reproducer {path}"
    else:
        said = "the program before it could not be saved"
    print(f"note: {said}", file=sys.stderr)
    if checkpoint.broken:
        print(checkpoint.broken, file=sys.stderr)
        return 1
    return 4


def _save_report(path: str, whole: dict[str, Any], why: str) -> None:
    """Writes the report of a run whose last step failed, of its last module if it has several."""
    whole.get("reports", [whole])[-1]["error"] = why
    try:
        write_json(path, whole)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)


def _in_child(work: Callable[[], int]) -> int:
    """The `os.waitpid` status of a child that exits with the result of `work`.

    The child gets the signals that ask this process to end, and dies with it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # until they can be forwarded
    child = os.fork()
    if child == 0:
        _run_and_exit(work, parent, kept)

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(child, number)

    heard = [number for number in FORWARDED if signal.getsignal(number) != signal.SIG_IGN]
    if threading.current_thread() is not threading.main_thread():
        heard = []  # only the main thread has handlers
    handlers = [(number, signal.signal(number, forward)) for number in heard]
    signal.pthread_sigmask(signal.SIG_SETMASK, kept)
    try:
        return os.waitpid(child, 0)[1]
    finally:
        for number, handler in handlers:
            signal.signal(number, handler)


def _run_and_exit(
    work: Callable[[], int], parent: int, mask: set[int | signal.Signals]
) -> NoReturn:
    """Runs `work` in the child that this process is, and ends it."""
    status = 4
    try:
        try:
            _die_with(parent)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            status = work()
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of our output went away
            status = 0
        except OSError as error:  # the output is closed, or its disk is full
            status = cannot_write(error)
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # it may come twice, from the terminal too
            status = 130
        except BaseException:
            sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        atexit._run_exitfuncs()
    finally:
        os._exit(status)


def _die_with(parent: int) -> None:
    """Has Linux kill this process when `parent` ends: nobody is left to read what it makes."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(4)


def write_json(path: str | Path, data: object) -> None:
    """Writes a JSON file atomically."""
    write_atomic(path, (json.dumps(data, indent=2) + "\n").encode())


def write_atomic(path: str | Path, data: bytes) -> None:
    """Writes a file atomically: to a temporary name in the same folder, then renamed."""
    target = Path(path)
    if target.exists() and not target.is_file():  # /dev/null, a pipe: nothing to rename over
        try:
            target.write_bytes(data)
        except OSError as error:
            raise InputError(f"cannot write '{path}': {error.strerror or error}") from error
        return
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from error
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
