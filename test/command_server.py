"""Runs commands of RUN lines as forks of one process: most take less time than their imports.

`start` begins it; a RUN line asks it through `run_served.py`. It ends with the process that began
it.
"""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from commands import Setting, become, main_of, preload
from filecheck.main import main as filecheck

HERE = Path(__file__).parent
_BEGUN: list[subprocess.Popen[bytes]] = []
"""Kept: a server ends when nobody holds the other end of its standard input."""


def start(environment: Mapping[str, str]) -> str:
    """Begins a server; what runs a command by it, to be followed by the command's words."""
    folder = tempfile.mkdtemp(prefix="tcir-")
    path = os.path.join(folder, "commands")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        _BEGUN.append(
            subprocess.Popen(
                [sys.executable, __file__, path, str(listener.fileno())],
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                env={**os.environ, **environment},
            )
        )
    return shlex.join([sys.executable, "-I", "-S", str(HERE / "run_served.py"), path])


def serve(listener: socket.socket) -> None:
    """Answers until standard input ends."""
    commands = {"tc-opt": main_of("tc-opt"), "filecheck": _filecheck}
    preload()
    waking, woken = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)  # which wakes it
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listener, waking, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        if listener in ready:
            connection, _ = listener.accept()
            _, streams, _, _ = socket.recv_fds(connection, 1, 3)
            if streams:  # else the client has gone
                running[_start(connection, streams, commands)] = connection
        if waking in ready:
            waking.recv(1 << 10)
            for child in list(running):
                found, status = os.waitpid(child, os.WNOHANG)
                if found:
                    with running.pop(child) as connection, suppress(BrokenPipeError):
                        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _start(
    connection: socket.socket, streams: list[int], commands: Mapping[str, Callable[[], int]]
) -> int:
    """Begins the command that a connection asks for, with these streams; its process."""
    stdin, *others = streams
    message = os.fsdecode(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
    count, *parts = message.split("\0")
    words, (folder, *environment) = parts[: int(count)], parts[int(count) :]
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        connection.close()
        os.environ.clear()
        os.environ.update(pair.split("=", 1) for pair in environment)
        out, err = (os.fdopen(number, "wb") for number in others)
        become(
            commands[words[0]], words, Path(folder), Setting(stdin=f"/dev/fd/{stdin}"), (out, err)
        )
    for number in (stdin, *others):
        os.close(number)
    return child


def _filecheck() -> int:
    try:
        filecheck()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


if __name__ == "__main__":
    try:
        serve(socket.socket(fileno=int(sys.argv[2])))
    finally:
        shutil.rmtree(os.path.dirname(sys.argv[1]), ignore_errors=True)
