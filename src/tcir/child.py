"""Runs commands in a child process, so that a crash in native code ends only the child. The child
also ends when its parent ends.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from tcir.errors import Error, InputError
from tcir.exit_status import INTERRUPTED, exit_status, limit

FORWARDED = (signal.SIGINT, signal.SIGTERM)
"""Signals to this process that are forwarded to its child."""
_PATIENCE = 3.0
"""Seconds after which a child that received a signal receives it again, and then is killed: Python
drops an interrupt raised in a finaliser or in a function that native code calls."""
_SAID = 64
"""Offset of the exit statuses that the child sets itself, to distinguish them from those that
native code sets."""
_LOADER = 127
"""Exit status of a process that glibc's loader ends because thread-local data needs more memory
than is available."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class End:
    """How a child process ended: its exit status, or its crash in native code."""

    status: int = Error.exit_code
    crash: str = ""
    """Signal name such as ``SIGSEGV``; "" for a child that exited by itself or on request."""


def run_in_child(load: Callable[[], Callable[[], int]]) -> int:
    """Loads the code of a command in a child and runs it there; returns its exit status."""
    end = in_child(lambda: _load(load)())
    if end.crash:
        print(f"error: ended by {end.crash} in native code{limit()}", file=sys.stderr)
    return end.status


def _load(load: Callable[[], Callable[[], int]]) -> Callable[[], int]:
    """Loads a command. An interrupt ends the child meanwhile, since it could leave numpy partly
    imported."""
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = load()
    signal.signal(signal.SIGINT, before)
    return command


def in_child(work: Callable[[], int]) -> End:
    """Runs `work` in a child process. Signals that would end this process are forwarded to the
    child.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # until they can be forwarded
    child = os.fork()
    if child == 0:
        _run_and_exit(work, parent, kept)

    told: list[int] = []

    def forward(number: int, _: object) -> None:
        told.append(number)
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(child, number)
        signal.signal(signal.SIGALRM, insist)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE)

    def insist(*_: object) -> None:
        forward(told[0] if len(told) == 1 else signal.SIGTERM, None)

    heard = [number for number in FORWARDED if signal.getsignal(number) != signal.SIG_IGN]
    if threading.current_thread() is not threading.main_thread():
        heard = []  # only the main thread has handlers
    alarm = signal.getsignal(signal.SIGALRM)
    handlers = [(number, signal.signal(number, forward)) for number in heard]
    signal.pthread_sigmask(signal.SIG_SETMASK, kept)
    try:
        return _end(os.waitpid(child, 0)[1], told)
    finally:
        for number, handler in handlers:
            signal.signal(number, handler)
        if told:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, alarm)


def _end(wait_status: int, told: list[int]) -> End:
    code = os.waitstatus_to_exitcode(wait_status)
    if code >= _SAID and code != _LOADER:
        return End(code - _SAID)
    if -code == signal.SIGTERM and told:
        code = -told[0]
    if -code in FORWARDED:
        print(f"error: ended by {signal.Signals(-code).name}", file=sys.stderr)
        return End(128 - code)
    return End(crash=signal.Signals(-code).name if code < 0 else f"exit({code})")


def _run_and_exit(
    work: Callable[[], int], parent: int, mask: set[int | signal.Signals]
) -> NoReturn:
    """Runs `work` in this process, which is the child, and exits."""
    status = Error.exit_code
    try:
        die_with(parent)
        status = exit_status(lambda: _listening(work, mask))
        sys.stderr.flush()
        atexit._run_exitfuncs()
    except KeyboardInterrupt:  # a second one, while the first was told
        status = INTERRUPTED
    except MemoryError:  # a second one, too
        os.write(2, b"error: out of memory\n")
        status = InputError.exit_code
    finally:
        os._exit(_SAID + status)


def _listening(work: Callable[[], int], mask: set[int | signal.Signals]) -> int:
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return work()


def die_with(parent: int) -> None:
    """Makes Linux kill this process when the process `parent` ends, because nothing would read its
    output after that.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before that
        os._exit(_SAID + Error.exit_code)
