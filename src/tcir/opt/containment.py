"""Crashes of native libraries, contained: the work runs in a child process that may die.

Before each pass the child notes which one it is and the program it starts from; when a signal ends
the child, the parent names the pass and saves the program as a reproducer.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tcir.errors import InputError


@dataclass(frozen=True)
class Checkpoint:
    """What the child is doing: the pass (or step), the program before it, the passes still to run.

    `source` names the input file.
    """

    name: str
    module: str
    pipeline: str
    source: str

    def reproducer(self) -> str:
        """MLIR text that ``tc-opt --run-reproducer`` (and mlir-opt's) runs again."""
        pipeline = self.pipeline.replace("\\", "\\\\").replace('"', '\\"')
        return (
            f"// Stopped in '{self.name}', from {self.source}.\n"
            "// Again: tc-opt --run-reproducer FILE\n"
            f"{self.module.rstrip()}\n\n"
            "{-#\n  external_resources: {\n    mlir_reproducer: {\n"
            f'      pipeline: "{pipeline}",\n'
            "      disable_threading: true,\n      verify_each: true\n    }\n  }\n#-}\n"
        )


class Notes:
    """The child's note of its present step, readable by the parent after the child died."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as this)

    def write(self, checkpoint: Checkpoint) -> None:
        """Replaces the note."""
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps(vars(checkpoint)).encode())
        self._file.flush()

    def read(self) -> Checkpoint | None:
        """The last note, None when there is none (or it was cut short by the crash)."""
        self._file.seek(0)
        try:
            return Checkpoint(**json.loads(self._file.read()))
        except ValueError:
            return None


def run_contained(work: Callable[[Notes], int], reproducer: str | None) -> int:
    """Runs `work` in a child and returns its exit status; 4 when a signal ended it.

    reproducer: where the program before the crash is saved; None = beside the system's other
    temporary files.
    """
    notes = Notes()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        status = 4
        try:
            status = work(notes)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of our output went away
            status = 0
        except KeyboardInterrupt:
            status = 130
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            atexit._run_exitfuncs()
            os._exit(status)
    try:
        _, wait_status = os.waitpid(child, 0)
    except KeyboardInterrupt:
        os.waitpid(child, 0)
        return 130
    if not os.WIFSIGNALED(wait_status):
        return os.waitstatus_to_exitcode(wait_status)
    number = os.WTERMSIG(wait_status)
    if number == signal.SIGINT:
        return 130
    print(_crash_message(number, notes.read(), reproducer), file=sys.stderr)
    return 4


def _crash_message(number: int, checkpoint: Checkpoint | None, reproducer: str | None) -> str:
    name = signal.Signals(number).name
    if checkpoint is None:
        return f"error: ended by {name} before the first pass"
    if reproducer is None:
        handle, reproducer = tempfile.mkstemp(prefix="tc-opt-crash-", suffix=".mlir")
        os.close(handle)
    text = f"{checkpoint.source}: error: '{checkpoint.name}' was ended by {name} in native code"
    try:
        write_atomic(reproducer, checkpoint.reproducer().encode())
    except InputError as error:
        return f"{text}\nerror: {error}"
    return f"{text}\nnote: the program before it was saved: tc-opt --run-reproducer {reproducer}"


def write_atomic(path: str | Path, data: bytes) -> None:
    """Writes a file whole or not at all: to a temporary name beside it, then renamed."""
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
