"""The errors of tcir. The message of an error names the value, the allowed values, and a way out if
there is one.

Each class has the exit status that `tc-opt` returns for it: 0 if everything requested passed (no
error), 1 different, 2 incomplete, 3 bad input, 4 internal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Error(Exception):
    """Base class of all errors that tcir raises on purpose.

    report: for an error of a pass or of the code generator that `tcir.compile` or `tcir.validate`
        raises, the `tcir.Report` of the passes that ran before; otherwise None
    """

    exit_code = 4
    report: Any = None  # rooms below validation import these errors, and may not import it


class InputError(Error):
    """The caller's program, option, file or array cannot be used."""

    exit_code = 3


class LaunchError(InputError, ValueError):
    """Launch sizes, arguments or options that cannot be used, or do not fit the kernel."""


def check_flags(function: str = "", **flags: object) -> None:
    """Raises LaunchError for a value that is neither True nor False (of Python or of numpy)."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            import numpy as np

            if not isinstance(flag, np.bool_):
                where = f"{function}: {name}" if function else name
                raise LaunchError(f"{where}: expected True or False, got {flag!r:.80}")


class UnknownNameError(InputError):
    """A pass, pipeline, option or target that does not exist; the message suggests similar
    names."""


class PassError(InputError):
    """A pass rejected its input. The location, where known, precedes the message."""

    def __init__(self, message: str, location: object | None = None, pass_name: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.pass_name = pass_name

    def __str__(self) -> str:
        where = format_location(self.location)
        return f"{where}{self.message}"


class InvalidIRError(PassError):
    """A pass produced a module that fails verification: always a bug in the pass."""


class IncompleteError(Error):
    """A part of the work could not be executed or checked; such a result never counts as
    success.
    """

    exit_code = 2


class MissingDependencyError(IncompleteError):
    """A required package or tool is missing (for example ptxas on this platform)."""


class VerdictError(Error):
    """A report's verdict is not success; raised by the report's `check`, with its exit status."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class InternalError(Error):
    """A bug in tcir or in one of its libraries, found in a child process; nothing was lost."""


class NativeCrashError(Error):
    """A native library crashed on this input; the program that caused it was saved."""

    exit_code = 4


def format_location(location: object | None) -> str:
    """Formats an MLIR location as ``file:line:col: ``; "" for none or an unknown one."""
    text = str(location) if location is not None else ""
    if text.startswith("loc(") and text.endswith(")"):
        text = text[4:-1]
    if not text or text == "unknown":
        return ""
    return text.replace('"', "").removesuffix(":0:0") + ": "


def check_names(owner: str, options: Iterable[str], allowed: type) -> None:
    """Raises `UnknownNameError` for an option that is not a key of the TypedDict `allowed`."""
    known = allowed.__annotations__
    for name in options:
        if name not in known:
            raise UnknownNameError(
                f"{owner}: expected one of the options {', '.join(known)}, got '{name}'"
            )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggests the most similar known name (``; did you mean 'x'?``), or lists all known names if
    none is similar.
    """
    import difflib

    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; known: {', '.join(names)}" if names else ""
