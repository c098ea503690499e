"""docs/reference/networks-reported.md names tests and rows of docs/reference/aten.md that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .test_reported_cases import ROOT, Row, a_test, rows_of

PAGE = (ROOT / "docs" / "reference" / "networks-reported.md").read_text()
TABLES, _, OPEN = PAGE.partition("\n## Open\n")
ROWS = rows_of(TABLES)
ATEN = {
    cells[0]: cells[1:]
    for line in Path(ROOT / "docs" / "reference" / "aten.md").read_text().splitlines()
    if line.startswith("| ") and len(cells := [each.strip() for each in line.split("|")[1:-1]]) > 3
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_what_shows_a_case_is_there(row: Row) -> None:
    for name in row.shown:
        if name.startswith("aten: "):
            cells = ATEN[name.removeprefix("aten: ")]
            assert not any(each.startswith(("left", "red")) for each in cells), name
        else:
            a_test(name, row.now)
    assert row.shown or row.now.endswith("([Open](#open))")


def test_rows_are_numbered() -> None:
    for letter in {row.number[0] for row in ROWS}:
        numbers = [int(row.number[1:]) for row in ROWS if row.number[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1)), letter
    assert len(ROWS) > 50


def test_what_is_open_is_at_the_end() -> None:
    spelled = re.sub(r"([A-Z])(\d+) to [A-Z](\d+)", _each, OPEN)
    for row in ROWS:
        if "[Open](#open)" in row.now:
            assert re.search(rf"\b{row.number}\b", spelled), row.number


def _each(found: re.Match[str]) -> str:
    return " ".join(f"{found[1]}{n}" for n in range(int(found[2]), int(found[3]) + 1))
