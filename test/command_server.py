"""Runs commands of RUN lines as forks of one process: most take less time than their imports.

`start` begins it; a RUN line asks it through `run_served.py`. It ends with the process that began
it.
"""

from __future__ import annotations

import json
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
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that answer
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return
        connection, _ = listener.accept()
        if os.fork() == 0:
            try:
                _answer(connection, commands)
            finally:
                os._exit(1)  # without an answer the client says so
        connection.close()


def _answer(connection: socket.socket, commands: Mapping[str, Callable[[], int]]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _, (stdin, *others), _, _ = socket.recv_fds(connection, 1, 3)
    words, folder, environment = json.loads(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
    child = os.fork()
    if child == 0:
        connection.close()
        os.environ.clear()
        os.environ.update(environment)
        out, err = (os.fdopen(number, "wb") for number in others)
        become(
            commands[words[0]], words, Path(folder), Setting(stdin=f"/dev/fd/{stdin}"), (out, err)
        )
    for number in (stdin, *others):
        os.close(number)
    _, status = os.waitpid(child, 0)
    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


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
