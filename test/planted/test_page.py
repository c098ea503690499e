"""docs/reference/planted-bugs.md is what the tables of planted bugs say, and holds what it
claims."""

from __future__ import annotations

from .page import TARGET, VALUES, render, rows


def test_the_page_is_current() -> None:
    assert TARGET.read_text(encoding="utf-8") == render(), "run python -m planted.page in test/"


def test_the_bugs_are_many_and_half_of_them_are_of_values() -> None:
    found = list(rows())
    caught = sum(row.caught for row in found)
    assert len(found) >= 120 and caught >= 0.95 * len(found)
    assert 2 * sum(row.kind == VALUES for row in found) >= len(found)
