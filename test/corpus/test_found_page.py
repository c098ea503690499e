"""docs/found.md: each program it names prints the finding it shows, and is clean with its edge."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .program import Case, programs, verdict

PAGE = (Path(__file__).parents[2] / "docs" / "found.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^`wrong/(\w+)`:\n\n```text\n(.+?)\n```$", PAGE, re.M | re.S)
PROGRAMS = {program.name: program for program in programs("wrong")}


def test_every_entry_shows_a_program() -> None:
    entries = re.findall(r"^### ", PAGE, re.M)
    assert len(SHOWN) == len(entries) >= 18
    assert len({name for name, _ in SHOWN}) == len(SHOWN)


@pytest.mark.parametrize(("name", "finding"), SHOWN, ids=[name for name, _ in SHOWN])
def test_the_program_prints_the_finding(name: str, finding: str) -> None:
    program = PROGRAMS[name]
    report, _ = program.run(program.text, None)
    assert finding in str(report)
    assert finding.startswith(f"{program.outcome('silicon').severity}: ")
    assert not verdict(Case("twin", program), None)
