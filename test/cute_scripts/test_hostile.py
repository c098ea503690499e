"""80 runs of `python -m tcir.cute` that mean harm: files, flags, places, streams and signals."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from pathlib import Path

import pytest

if importlib.util.find_spec("cutlass") is None:
    pytest.skip("nvidia-cutlass-dsl is not installed", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).parents[1]))
from hostile import ROOT, complaints, hostile_script


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("first", range(0, 80, 20))
def test_commands_drawn_at_random(first: int) -> None:
    script, found = (ROOT / "examples" / "cute_transpose.py").read_bytes(), []
    for seed in range(first, first + 20):
        case = hostile_script("tcir.cute", script, seed)
        with tempfile.TemporaryDirectory() as folder:
            said = complaints(case, Path(folder))
        found += [f"seed {seed}: {case}: {'; '.join(said)}"] if said else []
    assert not found, "\n".join(found)
