"""docs/reference/reported-cases.md names tests, programs and planted bugs that exist and say what
it says."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from corpus.program import find, gaps
from planted import attack, test_values

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "reported-cases.md").read_text()
TABLES, _, OPEN = PAGE.partition("\n## Open\n")
BY = {str(bug): bug.by for bug in (*test_values.BUGS, *attack.BUGS)}


@dataclass(frozen=True)
class Row:
    """One row of a table: its number, what shows the case, and what that says now."""

    number: str
    shown: tuple[str, ...]
    now: str


def rows_of(tables: str) -> list[Row]:
    """All rows of all tables."""
    found = []
    for line in tables.splitlines():
        if re.match(r"\| [A-Z]\d+ ", line):
            number, _, shown, _, now = (cell.strip() for cell in line.strip("|").split(" | "))
            found.append(Row(number, tuple(re.findall(r"`([^`]+)`", shown)), now))
    return found


ROWS = rows_of(TABLES)


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text())


def a_test(name: str, now: str) -> None:
    """The function is there, and its parameter's words are strings of the file."""
    path, _, function = name.partition("::")
    function, _, parameter = function.partition("[")
    nodes = list(ast.walk(tree(path)))
    assert function in {node.name for node in nodes if isinstance(node, ast.FunctionDef)}, name
    if parameter:
        texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
        assert parameter.removesuffix("]") in texts, name


def a_program(name: str, now: str) -> None:
    """The program is there; a wrong one is found as the row says."""
    program = find(name)
    if program.wrong:
        kinds = program.outcome("silicon").kinds
        assert "*" in kinds or any(kind in now for kind in kinds), (name, kinds)
    assert name not in gaps() or "[Open](#open)" in now, name


def a_planted_bug(name: str, now: str) -> None:
    """The bug is in a table, with what notices it."""
    assert BY[name] and BY[name] in now, (name, BY[name])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_what_shows_a_case_is_there(row: Row) -> None:
    assert row.now
    for name in row.shown:
        if name.startswith("test/"):
            a_test(name, row.now)
        elif name.startswith(("wrong/", "right/")):
            a_program(name, row.now)
        elif name.startswith("planted: "):
            a_planted_bug(name.removeprefix("planted: "), row.now)
        else:
            assert re.match("tc-run |python ", name), name
    assert row.shown or row.now.endswith("([Open](#open))")


def test_rows_are_numbered() -> None:
    for letter in {row.number[0] for row in ROWS}:
        numbers = [int(row.number[1:]) for row in ROWS if row.number[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1)), letter
    assert len(ROWS) > 190


def test_what_is_open_is_at_the_end() -> None:
    for row in ROWS:
        if "[Open](#open)" in row.now:
            assert re.search(rf"\b{row.number}\b", OPEN), row.number
