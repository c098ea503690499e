"""Standard output and error of a command line that may be closed or full."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence

from tcir.errors import InputError


def run_command(command: Callable[[Sequence[str]], int], words: Sequence[str]) -> int:
    """Runs a command line; its exit status, or 3 when its output could not be written."""
    open_closed()
    try:
        status = command(words)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output went away
        drop_output()
        return 0
    except OSError as error:
        drop_output()
        return cannot_write(error)
    return status


def open_closed() -> None:
    """Gives a closed stream a file: errors go nowhere, output fails when it is written."""
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (lives as long as the process)
    for stream in (sys.stdout, sys.stderr):  # an encoding may lack a letter of a message
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def write_output(data: bytes) -> None:
    """Writes to standard output; InputError where that cannot be done."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InputError(f"cannot write standard output: {error.strerror or error}") from error


def drop_output() -> None:
    """Lets what is buffered go nowhere, so that the end of the process is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def cannot_write(error: OSError) -> int:
    """Says that standard output cannot be written; the exit status."""
    print(f"error: cannot write standard output: {error.strerror or error}", file=sys.stderr)
    return 3
