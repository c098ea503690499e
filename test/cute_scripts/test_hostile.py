"""1,000 runs of `python -m tcir.cute` that mean harm, and 1,000 launches in scripts.

Of the first 80 runs each imports torch itself, as a user's does; the others find it imported.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

if importlib.util.find_spec("cutlass") is None:
    pytest.skip("nvidia-cutlass-dsl is not installed", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parents[1]))
from hostile import ROOT, Hostile, all_complaints, hostile_script

SCRIPTS = Path(__file__).parent / "scripts"


def _command(seed: int) -> Hostile:
    script = (ROOT / "examples" / "cute_transpose.py").read_bytes()
    return hostile_script("tcir.cute", script, seed, around=0.5)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(0, 80, 20))
def test_commands_drawn_at_random(first: int) -> None:
    found = all_complaints(range(first, first + 20), _command)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(80, 1000, 92))
def test_commands_that_find_torch_imported(first: int) -> None:
    if importlib.util.find_spec("torch") is not None:
        importlib.import_module("torch")
    found = all_complaints(range(first, first + 92), _command)
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("seed", range(4))
def test_launches_drawn_at_random(seed: int) -> None:
    """250 each."""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tcir.cute", SCRIPTS / "hostile.py", f"{seed}",
         "250"],
        capture_output=True, text=True, timeout=2500, check=False,
    )  # fmt: skip
    assert ended.returncode in (0, 1) and "wrong" not in ended.stdout, ended.stdout
    counts = ast.literal_eval(ended.stdout.splitlines()[-1])
    assert set(counts) <= {"ran", "refused", "CuTe DSL", "no launch"} and counts["ran"] > 10
    assert counts["refused"] > 10
