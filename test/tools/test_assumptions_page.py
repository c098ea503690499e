"""docs/reference/assumptions.md is fresh, and every answer to every question is tried by some
test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tcir.machine import REGISTRY
from tcir.tools.dev.assumptions import TARGET, document, main

TESTS = Path(__file__).parents[1]


def test_the_page_is_fresh() -> None:
    assert main(["--check"]) == 0, "run python -m tcir.tools.dev.assumptions"


def test_a_stale_page_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stale = tmp_path / "assumptions.md"
    stale.write_text(document().replace("assumed", "known", 1))
    monkeypatch.setattr("tcir.tools.dev.assumptions.TARGET", stale)
    assert main(["--check"]) == 1
    assert main([]) == 0 and stale.read_text() == TARGET.read_text()


@pytest.mark.parametrize("entry", REGISTRY, ids=lambda e: e.name)
def test_every_other_answer_is_tried(entry: Any) -> None:
    """By a test of the entry's own, beside those that treat all entries alike."""
    spelled = (f"{entry.name}=", f'"{entry.name}"')
    texts = [p.read_text() for p in TESTS.rglob("test_*.py") if p.name != "test_selftest.py"]
    texts = [text for text in texts if any(s in text for s in spelled)]
    for alternative in set(entry.alternatives) - {entry.default}:
        assert any(f'"{alternative}"' in text for text in texts), alternative
