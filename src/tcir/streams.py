"""Standard input, output and error of a command. They may be closed, and output may be unable to
take more data.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any

from tcir.errors import InputError
from tcir.files import read_all


class OutputError(InputError):
    """Standard output cannot be written."""


class _Output(io.FileIO):
    """Standard output. After a failed write, further output is discarded."""

    failed = False

    def write(self, data: Any, /) -> int:
        try:
            return len(data) if self.failed else super().write(data)
        except BrokenPipeError:  # the reader of our output went away
            self.failed = True
            raise
        except OSError as error:
            self.failed = True
            raise OutputError(f"cannot write standard output: {error.strerror}") from error


class _Messages(io.FileIO):
    """Standard error. Output that cannot be written is discarded."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def guard_streams() -> None:
    """Replaces streams that are closed: writes to standard error are then discarded; use of the
    other streams fails.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY))
    output = os.open(os.devnull, os.O_RDONLY) if sys.stdout is None else sys.stdout.fileno()
    messages = os.open(os.devnull, os.O_WRONLY) if sys.stderr is None else sys.stderr.fileno()
    sys.stdout = _text(_Output(output, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Messages(messages, "w", closefd=False), sys.stderr)
    sys.stderr.reconfigure(line_buffering=True)


def kept_messages() -> io.TextIOWrapper:
    """The current standard error; the returned stream stays valid if standard error is redirected
    later.
    """
    kept = _text(_Messages(os.dup(sys.stderr.fileno()), "w"), sys.stderr)
    kept.reconfigure(line_buffering=True)
    return kept


def _text(raw: io.FileIO, before: Any) -> io.TextIOWrapper:
    """A text stream with the encoding of `before`; characters that it lacks are replaced."""
    encoding = getattr(before, "encoding", "utf-8")
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, errors="replace", line_buffering=raw.isatty()
    )


def read_input() -> bytes:
    """All of standard input. Raises InputError if it cannot be read."""
    try:
        return read_all(sys.stdin.buffer, "standard input")
    except OSError as error:
        raise InputError(f"cannot read standard input: {error.strerror or error}") from error


def write_output(data: bytes) -> None:
    """Writes to standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
