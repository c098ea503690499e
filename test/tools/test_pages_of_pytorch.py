"""Pages that only PyTorch can write again have each row once, with all cells."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
KEYS = {"aten.md": ("op",), "networks.md": ("network", "type")}
"""Columns that name a row, by page. The other generated pages are compared as a whole by tests."""


def problems(text: str, keys: tuple[str, ...]) -> list[str]:
    """Rows whose names are there twice, and rows with another number of cells than the head."""
    found, named = [], Counter[str]()
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        head, _, *rows = (re.split(r" *(?<!\\)\| *", row)[1:-1] for row in table.splitlines())
        found += [f"cells: {row[0]}" for row in rows if len(row) != len(head)]
        if set(keys) <= set(head):
            named.update(" ".join(row[head.index(key)] for key in keys) for row in rows)
    assert named, "no table has these columns"
    return found + [f"twice: {name}" for name, count in named.items() if count > 1]


@pytest.mark.parametrize("page", KEYS)
def test_rows_are_there_once(page: str) -> None:
    assert not problems((REFERENCE / page).read_text(encoding="utf-8"), KEYS[page])


def test_a_second_row_and_a_missing_cell_are_seen() -> None:
    text = "| op | f16 |\n|---|---|\n| abs | 1 |\n| neg |\n\n| op | f16 |\n|---|---|\n| abs | 2 |\n"
    assert problems(text, ("op",)) == ["cells: neg", "twice: abs"]
