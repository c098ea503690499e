"""The command line of tc-viz: what it refuses, with exit status 3, and closed pipes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tcir.viz.command import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["scale-factors", "-o", "x.png"],
            "expected a name that ends in .svg, .html, .typ or .txt",
        ),
        (["scale-factors", "-o", "x.pdf"], "got .pdf"),
        (["fragment", "mma.m16n8k16", "--atoms", "1000,1000,1"], "expected 1 to 32 in all"),
        (["mma", "mma.m16n8k16", "--atoms", "100,100,1"], "the warps of a CTA, got 10000"),
        (["fragment", "mma.m16n8k16", "--atoms", "2,0,1"], "expected 1 to 32"),
        (["fragment", "mma.m16n8k16", "--tile", "4096,8,4096"], "at most 65536 elements"),
        (["fragment", "ldmatrix.x4", "--atoms", "2,2,1"], "--atoms, --tile: expected an mma"),
        (["--nothing"], "required: view"),
        ([], "required: view"),
    ],
)
def test_refused(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 3
    assert said in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_the_legend_of_elements_that_several_threads_hold(capsys: Any) -> None:
    assert main(["fragment", "mma.m16n8k16", "--atoms", "2,2,1"]) == 0
    assert "+1: that many more threads also hold it; element 0, 0 is in T0, T64" in (
        capsys.readouterr().out
    )
    assert main(["fragment", "mma.m16n8k16"]) == 0
    assert "that many more" not in capsys.readouterr().out


def test_a_closed_pipe_and_a_full_disk() -> None:
    command = f"{sys.executable} -m tcir.tools.tc_viz layout '(64,64):(64,1)'"
    for words, status in ((f"{command} | head -c 1", 0), (f"{command} > /dev/full", 3)):
        ended = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {words}"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode == status and "Traceback" not in ended.stderr, ended.stderr
