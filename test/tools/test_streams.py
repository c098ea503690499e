"""Closed and full streams, and signals: documented exit statuses, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }\n"
SLEEPS = """
import os, time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
import tcir

@tcir.register_pass
@dataclass(frozen=True)
class Sleeps(tcir.Pass):
    name: ClassVar[str] = "test-sleeps"

    def run(self, module) -> None:
        Path(os.environ["STARTED"]).write_text(str(os.getpid()))
        time.sleep(float(os.environ["SECONDS"]))
"""


def shell(words: str) -> subprocess.CompletedProcess[str]:
    """A command of bash, which opens and closes streams."""
    command = words.replace("tc-opt", f"{sys.executable} -m tcir.tools.tc_opt").replace(
        "tc-run", f"{sys.executable} -m tcir.tools.tc_run"
    )
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
    )


CANNOT = "error: cannot write standard output: "


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        ("tc-opt --list-passes > /dev/null", 0, ""),
        ("tc-opt --list-passes >&-", 3, CANNOT + "Bad file descriptor"),
        ("tc-opt --list-passes > /dev/full", 3, CANNOT + "No space left on device"),
        ("tc-opt FILE --canonicalize > /dev/full", 3, CANNOT + "No space left on device"),
        ("tc-opt FILE --canonicalize -o /dev/null >&- 2>&-", 0, ""),
        ("tc-opt FILE --nothing 2>&-", 3, ""),
        ("tc-run --list-assumptions > /dev/full", 3, CANNOT + "No space left on device"),
        ("tc-run --list-assumptions >&-", 3, CANNOT + "Bad file descriptor"),
        ("tc-run --list-assumptions | head -c 1", 0, ""),
        (
            "tc-opt FILE --seed=-1 --validate-each",
            3,
            "error: expected a seed of at least 0, got -1",
        ),
        ("tc-run examples/saxpy.ptx --grid 1 --block 32 --seed=-1", 3, "tc-run: "),
        (
            "tc-run examples/saxpy.ptx --grid 1 --block 32 --arg zeros=f32,99999999999999",
            3,
            "tc-run: out of memory: ",
        ),
    ],
)
def test_streams(tmp_path: Path, words: str, status: int, error: str) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(MODULE)
    ended = shell(words.replace("FILE", str(path)))
    assert ended.returncode == status, ended.stderr
    assert ended.stderr.startswith(error) and "Traceback" not in ended.stderr
    assert "internal" not in ended.stderr and (error or not ended.stderr)


def sleeping(folder: Path, seconds: float) -> tuple[subprocess.Popen[str], int]:
    """tc-opt in a pass that sleeps, and the process that runs the pass."""
    started = folder / "started"
    (folder / "f.mlir").write_text(MODULE)
    (folder / "sleeps.py").write_text(SLEEPS)
    process = subprocess.Popen(
        [
            sys.executable, "-m", "tcir.tools.tc_opt", str(folder / "f.mlir"),
            "--load-pass-plugin", str(folder / "sleeps.py"), "--test-sleeps",
            "-o", str(folder / "out.mlir"),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "STARTED": str(started), "SECONDS": str(seconds)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (started.exists() and started.read_text()):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.05)
    return process, int(started.read_text())


def running(process: int) -> bool:
    """Whether it is there and not a zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="prctl and /proc are Linux's")
@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_a_signal_to_tc_opt_alone_ends_its_child(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    process, child = sleeping(tmp_path, 60)
    assert child != process.pid and running(child)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == status, err
    assert "Traceback" not in err
    deadline = time.monotonic() + 10
    while running(child) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running(child)
    assert not (tmp_path / "out.mlir").exists()


def test_without_a_signal_it_ends_by_itself(tmp_path: Path) -> None:
    process, _ = sleeping(tmp_path, 0.1)
    process.communicate(timeout=60)
    assert process.returncode == 0 and (tmp_path / "out.mlir").exists()
