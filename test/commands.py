"""The commands run from tests as from a shell: a forked process, its streams, limits and signals.

Forking saves the imports, which take longer than most commands.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO

from tcir import _mlir
from tcir.opt.arguments import make_parser
from tcir.passmanager.discovery import import_all
from tcir.program.source import mlir_context

CLOSED = "closed"
UNREAD = "unread"
"""A pipe whose reader has gone."""


_LOADED = ("tcir.opt.invocation", "tcir.opt.listing", "tcir.ptxrun.command", "tcir.viz.command",
           "tcir.debug.command", "tcir.viz.pictures", "tcir.sweep.command", "tcir.opt.expected",
           "tcir.validation.validator", "tcir._mlir_dialects.gpu")  # fmt: skip
"""Before the fork, beside all passes and pipelines."""


@dataclass(frozen=True)
class Ended:
    """How a command ended. orphans: processes that it left behind."""

    status: int
    out: str
    err: str
    seconds: float
    hung: bool
    orphans: int


@dataclass(frozen=True)
class Setting:
    """Around a command. A stream is a path, `CLOSED`, or `UNREAD`; None: a file that is read.

    limits: of `resource.setrlimit`. headroom: bytes of memory beside those of the imports.
    send: a signal, and after how many seconds it comes
    """

    stdin: str = os.devnull
    stdout: str | None = None
    stderr: str | None = None
    limits: Mapping[int, int] = field(default_factory=dict)
    headroom: int | None = None
    send: tuple[int, float] | None = None
    seconds: float = 120


def run(words: Sequence[str], folder: Path, setting: Setting | None = None) -> Ended:
    """Runs ``tc-opt …``, ``tc-run …``, ``tcir.cuda …`` in `folder`, in a session of its own."""
    setting = setting or Setting()
    preload()
    main = main_of(words[0])
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.monotonic()
        kept = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
        child = os.fork()
        if child == 0:
            become(main, words, folder, setting, (out, err))
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)
        status, hung = _wait(child, start, setting)
        seconds = time.monotonic() - start
        left = orphans(child)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Ended(os.waitstatus_to_exitcode(status), *texts, seconds, hung, left)


def limit(limits: Mapping[int, int]) -> None:
    """Limits this process. If its files are limited, it writes no bytecode from now on, because
    CPython 3.11 keeps bytecode that was cut off."""
    if resource.RLIMIT_FSIZE in limits:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for name, most in limits.items():
        resource.setrlimit(name, (most, most))


def preload() -> None:
    """Imports what commands need, once for all forks."""
    for module in (*_LOADED, *_mlir.modules()):
        import_module(module)
    for package in ("passes", "pipelines"):
        import_all(package)
    make_parser()  # compiles argparse's expressions
    with mlir_context():  # declares the dialect
        pass


def main_of(name: str) -> Callable[[], int]:
    """Returns the main function of ``tc-opt``, or of ``tcir.cuda``, which is `python -m
    tcir.cuda`."""
    if "." not in name:
        main: Callable[[], int] = import_module(f"tcir.tools.{name.replace('-', '_')}").main
        return main
    module = import_module(f"{name}.__main__")
    streams, status = import_module("tcir.streams"), import_module("tcir.exit_status")

    def door() -> int:
        streams.guard_streams()
        ended: int = status.exit_status(module.main)
        return ended

    return door


def become(
    main: Callable[[], int],
    words: Sequence[str],
    folder: Path,
    setting: Setting,
    files: tuple[IO[bytes], IO[bytes]],
) -> None:
    """The command, in the child that this process is."""
    status = 99
    try:
        atexit._clear()  # what is to be done when the tests end
        faulthandler.disable()  # pytest's, which would write into pytest's own streams
        os.setsid()
        os.chdir(folder)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(
                number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            )
        _open(0, setting.stdin, None)
        _open(1, setting.stdout, files[0])
        _open(2, setting.stderr, files[1])
        sys.stdin = None if setting.stdin == CLOSED else os.fdopen(0, closefd=False)
        sys.stdout = None if setting.stdout == CLOSED else os.fdopen(1, "w", closefd=False)
        sys.stderr = None if setting.stderr == CLOSED else os.fdopen(2, "w", 1, closefd=False)
        sys.argv = list(words)
        limit(setting.limits)
        if setting.headroom is not None:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            most = pages * resource.getpagesize() + setting.headroom
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
        status = main()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except KeyboardInterrupt:  # before the command listened
        status = 130
        os.write(2, b"interrupted\n")
    except BaseException:
        sys.excepthook(*sys.exc_info())  # a traceback is what the tests look for
    finally:
        os._exit(status)


def _open(number: int, place: str | None, file: IO[bytes] | None) -> None:
    if place == CLOSED:
        os.close(number)
    elif place == UNREAD:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, number)
    elif place is not None:
        os.dup2(os.open(place, os.O_RDONLY if number == 0 else os.O_WRONLY), number)
    elif file is not None:
        os.dup2(file.fileno(), number)


def _wait(child: int, start: float, setting: Setting) -> tuple[int, bool]:
    """The wait status, and whether the command had to be killed."""
    sent, hung, pause = setting.send is None, False, 0.001
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status, hung
        passed = time.monotonic() - start
        if not sent and setting.send is not None and passed >= setting.send[1]:
            os.kill(child, setting.send[0])
            sent = True
        if passed > setting.seconds and not hung:
            os.killpg(child, signal.SIGKILL)
            hung = True
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def orphans(session: int) -> int:
    """Processes of a session that go on; they are ended. One that is being killed has a second."""
    deadline = time.monotonic() + 2
    while (left := _members(session)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for each in left:
        os.kill(each, signal.SIGKILL)
    return len(left)


def _members(session: int) -> list[int]:
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[3]) == session and fields[0] not in "ZX":
                found.append(int(entry.name))
    return found
