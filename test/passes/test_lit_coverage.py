"""Every pass and every pipeline of ours has a lit test that looks at what it makes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcir.passmanager.pipeline import registered_passes, registered_pipelines

TEST = Path(__file__).resolve().parents[1]
LIT = {path: path.read_text() for path in TEST.rglob("*.mlir") if path.parent.name != "Inputs"}
NAMES = [name for name, each in registered_passes().items() if each.__module__.startswith("tcir.")]


def looked_at(name: str) -> list[str]:
    """Files with a RUN line that runs the pass and pipes the result on, or verifies diagnostics."""
    run = re.compile(rf"^// RUN:.*--{name}(?![\w-]).*(filecheck|--verify-diagnostics)", re.M)
    return [path.name for path, text in LIT.items() if run.search(text)]


@pytest.mark.parametrize("name", NAMES)
def test_pass(name: str) -> None:
    assert looked_at(name)


def test_pipelines() -> None:
    text = (TEST / "passes" / "pipelines.mlir").read_text()
    named = re.findall(r"^// CHECK: ([\w-]+): ", text, re.M)
    known = registered_pipelines().items()  # other tests register pipelines of their own
    ours = [name for name, each in known if each.build.__module__.startswith("tcir.pipelines.")]
    assert named == sorted(ours)
