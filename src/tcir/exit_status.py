"""Turns an exception that a command raised into a message and an exit status."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from tcir.errors import Error, InputError

INTERRUPTED, TERMINATED = 130, 143
"""Exit statuses after SIGINT and after SIGTERM."""
_NO_MEMORY = ("failed to map segment", "annot allocate memory", "start new thread")
"""Parts of the messages of the loader, the C library and Python about a lack of memory."""


def exit_status(work: Callable[[], int]) -> int:
    """Runs `work` and returns its exit status; an exception becomes one line on standard error."""
    try:
        status = _ended(work)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of our output went away
        return 0
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it may come twice, from the terminal too
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except Exception as error:
        if os.environ.get("TCIR_TRACEBACK"):
            traceback.print_exc()
        text, status = explain(error)
        print(f"error: {text}", file=sys.stderr)
        return status


def _ended(work: Callable[[], int]) -> int:
    try:
        return work()
    except SystemExit as end:  # argparse's --help and --version
        return end.code if isinstance(end.code, int) else 0


def explain(error: Exception) -> tuple[str, int]:
    """Message and exit status of an exception that is not one of tcir's errors."""
    for cause in reversed(list(_causes(error))):
        words = " ".join(str(cause).split())
        lost = isinstance(cause, SystemError) and limit()  # native code hides that it got none
        if (
            isinstance(cause, MemoryError)
            or lost
            or any(words.find(each) >= 0 for each in _NO_MEMORY)
        ):
            said = f"out of memory{': ' if words else ''}{words}{limit()}"
            return said, InputError.exit_code
    if isinstance(error, OSError) and error.errno is not None:
        name = f"{error.filename}: " if error.filename is not None else ""
        few = " (ulimit -n, ulimit -u)" if error.errno in (errno.EMFILE, errno.EAGAIN) else ""
        return f"{name}{error.strerror or error}{few}", InputError.exit_code
    return internal_error(error), Error.exit_code


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def limit() -> str:
    """A remark for a message if the address space of this process is limited; otherwise ""."""
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return ""
    return f" (the address space of this process is limited to {most >> 20} MiB: ulimit -v)"


def internal_error(error: Exception) -> str:
    """Message of an internal error; if the error occurred in a plugin, with the line in the
    plugin's file.
    """
    place = plugin_line(error)
    shows = "more" if place else "where"
    what = f"{type(error).__name__}: {error}"
    return f"{place or 'internal: '}{what} (TCIR_TRACEBACK=1 shows {shows})"


def plugin_line(error: Exception) -> str:
    """``FILE:LINE: `` of the last call in a file that is neither tcir's nor Python's; "" if there
    is none."""
    own = (Path(__file__).parent, Path(sys.prefix), Path(sys.base_prefix))
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if file.is_absolute() and not any(root in file.parents for root in own):
            return f"{file}:{frame.lineno}: "
    return ""
