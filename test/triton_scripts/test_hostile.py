"""Wrong launches and commands: each ends with an error that says why, without our traceback."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path

import pytest

from .command import SCRIPTS, needs_triton, run

sys.path.insert(0, str(Path(__file__).parents[1]))
from hostile import Hostile, all_complaints, hostile_script


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_launches_drawn_at_random(seed: int) -> None:
    ended = run(SCRIPTS / "hostile.py", seed, 500)
    assert ended.returncode in (0, 1) and "wrong" not in ended.stdout, ended.stdout
    counts = ast.literal_eval(ended.stdout.splitlines()[-1])
    assert set(counts) == {"ran", "refused", "Triton", "no launch"} and min(counts.values()) > 10


@needs_triton
@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ("(-1,)", "grid.x: expected 1..2147483647, got -1"),
        ("(1 << 31,)", "grid.x: expected 1..2147483647, got 2147483648"),
        ("(1 << 30,)", "grid: expected at most 16777216 CTAs on this machine, got 1073741824"),
        ("(1.0,)", "grid: expected one to three integers"),
    ],
)
def test_a_grid_that_no_launch_has(grid: str, words: str, tmp_path: Path) -> None:
    """Its scratch memory is not even asked for."""
    script = tmp_path / "s.py"
    source = (SCRIPTS / "matmul.py").read_text()
    script.write_text(source.replace("by_own_descriptors[grid]", f"by_own_descriptors[{grid}]"))
    ended = run(script)
    assert ended.returncode == 3 and f"error: {words}" in ended.stderr, ended.stderr


def _command(seed: int) -> Hostile:
    script = (SCRIPTS / "vector_add.py").read_bytes()
    return hostile_script("tcir.triton", script, seed)


@needs_triton
@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(0, 80, 20))
def test_commands_drawn_at_random(first: int) -> None:
    """`python -m tcir.triton`: files, flags, places, streams and signals."""
    found = all_complaints(range(first, first + 20), _command)
    assert not found, "\n".join(found)


@needs_triton
@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(80, 1000, 92))
def test_commands_that_find_triton_imported(first: int) -> None:
    """Which takes most of the time of those above."""
    for name in ("torch", "triton.runtime", "tcir.triton.driver", "tcir.triton.cuda"):
        importlib.import_module(name)
    found = all_complaints(range(first, first + 92), _command)
    assert not found, "\n".join(found)
