"""Programs after classes of bugs in public reports (docs/reference/reported-cases.md): each gives a
finding that its row names, and its twin is clean."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .program import Case, programs, verdict

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "reported-cases.md").read_text("utf-8")
SECTION = PAGE.split("## Classes of bugs in public reports\n")[1].split("\n## ")[0]
ROWS = [line.split(" | ") for line in SECTION.splitlines() if line.startswith("| B")]
NAMED = [(name, row[4]) for row in ROWS for name in re.findall(r"`wrong/(\w+)`", row[2])]
PROGRAMS = {program.name: program for program in programs("wrong")}


def test_as_many_as_the_page_says() -> None:
    said = re.search(r"(\d+) programs of our own", SECTION)
    assert said and int(said[1]) == len(NAMED) == len(dict(NAMED)) >= 60


@pytest.mark.parametrize(("name", "kinds"), NAMED, ids=[name for name, _ in NAMED])
def test_it_is_found_by_name_and_its_twin_is_clean(name: str, kinds: str) -> None:
    program = PROGRAMS[name]
    report, _ = program.run(program.text, None)
    found = set(re.findall(r"^(?:error|warning): ([a-z-]+)", str(report), re.M))
    assert found & set(re.findall(r"[a-z]+(?:-[a-z]+)*", kinds)), (found, kinds)
    assert not verdict(Case("twin", program), None)
