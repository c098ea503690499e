"""A command of a RUN line by the server (`command_server.py`) is that of a process of its own."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_server import start

OWN = [sys.executable, "-m", "tcir.tools.tc_opt"]
FUNCTION = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"


@pytest.fixture(scope="module")
def served() -> list[str]:
    """What runs a command by a server."""
    return shlex.split(start({}))


@pytest.mark.parametrize(
    ("words", "text", "status"),
    [
        (["-", "--canonicalize"], FUNCTION, 0),
        (["-", "--canonicalize"], FUNCTION.replace("%x :", "%y :"), 3),
        (["-", "--nothing"], FUNCTION, 3),
        (["here.mlir", "--cse"], "", 0),
        (["missing.mlir"], "", 3),
    ],
)
def test_streams_and_status(
    words: list[str], text: str, status: int, served: list[str], tmp_path: Path
) -> None:
    (tmp_path / "here.mlir").write_text(FUNCTION)
    ways = [
        subprocess.run([*way, *words], input=text, capture_output=True, text=True, cwd=tmp_path)
        for way in (OWN, [*served, "tc-opt"])
    ]
    own, other = ((way.returncode, way.stdout, way.stderr) for way in ways)
    assert own == other
    assert other[0] == status


def test_filecheck(served: list[str], tmp_path: Path) -> None:
    file = tmp_path / "checks"
    file.write_text("CHECK: there\n")
    command = [*served, "filecheck", str(file)]
    found = [
        subprocess.run(command, input=text, text=True, capture_output=True).returncode
        for text in ("there\n", "elsewhere\n")
    ]
    assert found == [0, 1]


def test_clients_that_go(served: list[str]) -> None:
    """One asks for nothing, another does not wait for the end of its command."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(served[-1])
    gone = subprocess.Popen([*served, "tc-opt", "-", "--cse"], stdin=subprocess.PIPE)
    time.sleep(0.5)
    gone.kill()
    gone.communicate(FUNCTION.encode())  # the command reads on, and ends
    time.sleep(0.5)
    assert (
        subprocess.run([*served, "tc-opt", "-"], input=b"", stdout=subprocess.PIPE).returncode == 0
    )


def test_without_a_server(tmp_path: Path) -> None:
    client = Path(__file__).parents[1] / "run_served.py"
    done = subprocess.run(
        [sys.executable, "-I", "-S", client, tmp_path / "nobody", "tc-opt"], capture_output=True
    )
    assert done.returncode == 1 and b"No such file" in done.stderr
