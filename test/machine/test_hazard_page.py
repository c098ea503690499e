"""docs/explanation/hazards.md, the pair tests and the machine's kinds of findings stay in step."""

from __future__ import annotations

import ast
import fnmatch
import re
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

from tcir.machine.findings import Unpromised
from tcir.machine.order import unpromised
from tcir.machine.order.hazard import Hazard
from tcir.tools.dev.hazard_page import rules

from . import test_clusters, test_mistakes, test_pairs
from .test_hazards import OMISSIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/hazards.md"
PROMISES = {name for name, value in vars(unpromised).items() if isinstance(value, Unpromised)}
PROMISES |= {"last_use_of_nothing", "promise"}
"""Names in calls of `report` of what no document promises."""
NOT_SEEN = {"29"}
"""Mistakes that no test shows: what the machine cannot see, explained on the page."""


def tables() -> dict[str, list[list[str]]]:
    """Heading -> rows of its table."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|"):
            found.setdefault(heading, []).append([c.strip() for c in line.strip("|").split("|")])
    return {heading: rows[2:] for heading, rows in found.items()}


TABLES = tables()
ROWS = [
    row
    for heading in (
        "Kinds of findings",
        "Common mistakes",
        "The ordering rules",
        "Fences and scopes",
    )
    for row in TABLES[heading]
]


@cache
def known_tests() -> set[str]:
    """Names of all test functions, of the pairs, and of programs without an edge."""
    names = {str(missing) for missing in OMISSIONS}
    for module in (test_pairs, test_mistakes, test_clusters):
        names |= set(module.PAIRS)
    for folder in ("machine", "ptx", "corpus", "hopper"):
        for path in (ROOT / "test" / folder).glob("test_*.py"):
            names |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.M))
    return names


@cache
def kinds() -> dict[str, set[str]]:
    """Kinds of findings that the machine and the PTX rules report, with their severities by
    silicon; those of what the documents do not promise, also "isa"."""
    found: dict[str, set[str]] = {}
    for folder in ("machine", "interp/ptx"):
        for path in (ROOT / "src/tcir" / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call):
                    continue
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                texts = [
                    c.value
                    for a in node.args
                    for c in ast.walk(a)
                    if isinstance(c, ast.Constant) and isinstance(c.value, str)
                ]
                if name in ("_find", "Origin"):  # errors, all of them
                    texts.insert(0, "error")
                elif name not in ("report", "Finding"):
                    continue
                severities = {t for t in texts if t in ("error", "warning")}
                if any(getattr(n, "id", "") in PROMISES for a in node.args for n in ast.walk(a)):
                    severities |= {"warning", "isa"}
                code = next((t for t in texts if re.fullmatch(r"[a-z]+(-[a-z]+)+|race", t)), None)
                if code and severities:
                    found.setdefault(code, set()).update(severities)
    for rule in rules():
        if isinstance(rule, Hazard):
            severities = {"warning", "isa"} if rule.severity == "unpromised" else {rule.severity}
            found.setdefault(rule.kind, set()).update(severities)
    return found


def test_the_scan_finds_what_is_there() -> None:
    assert {"missing-proxy-fence", "undefined-register", "peer-exited"} <= set(kinds())


def test_every_kind_is_on_the_page_and_no_other() -> None:
    rows = TABLES["Kinds of findings"]
    by_silicon = {row[0]: set(re.findall("error|warning", row[1])) for row in rows}
    assert by_silicon == {kind: found - {"isa"} for kind, found in kinds().items()}
    by_documents = {row[0]: row[2] for row in rows}
    for kind, found in kinds().items():
        assert by_documents[kind] == ("error" if {"isa", "error"} & found else "warning")


@pytest.mark.parametrize("row", TABLES["Kinds of findings"], ids=lambda row: row[0])
def test_what_is_not_promised_has_its_evidence(row: list[str]) -> None:
    assert row[4]
    if "isa" in kinds()[row[0]]:
        assert "PTX ISA" in row[4] and re.search(r"[;:] .*[A-Z]\w+", row[4])


def test_only_the_profile_makes_it_a_warning() -> None:
    """Findings say "not promised" through `Unpromised`, so that "isa" makes errors of them."""
    for path in (ROOT / "src/tcir").rglob("*.py"):
        if path.name != "findings.py":
            words = [n.value for n in ast.walk(ast.parse(path.read_text())) if is_text(n)]
            assert not [w for w in words if "not promised by" in w], path


def is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    """A string of an expression, not a docstring."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value


def test_what_it_cannot_see_is_true() -> None:
    text = PAGE.read_text().split("## What it cannot see")[1].split("\n## ")[0]
    lines = (ROOT / "test/corpus/gaps.txt").read_text().splitlines()
    gaps = {line.split()[0] for line in lines if line and not line.startswith("#")}
    named = set(re.findall(r"`((?:wrong|right)/[\w*]+|test_\w+)`", text))
    for name in named:
        found = fnmatch.filter(gaps, name) if "/" in name else {name} & known_tests()
        assert found, f"{name}: closed, or gone; its line on the page has to go"
    missed = {name for name in gaps if name.startswith("wrong/")}
    assert not {n for n in missed if not any(fnmatch.fnmatch(n, p) for p in named)}
    for line in text.split("\n- ")[1:]:
        assert re.search(r"`(wrong/|right/|test_|a_)", line), line


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_row_names_tests_that_exist(row: list[str]) -> None:
    named = re.findall(r"`([^`]+)`", row[-1])
    assert named or row[0] in NOT_SEEN
    assert set(named) <= known_tests()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_pair_shows_what_its_row_says(row: list[str]) -> None:
    said = " ".join(row[:-1])
    for name in re.findall(r"`([^`]+)`", row[-1]):
        codes: set[str] = {m.code for m in OMISSIONS if str(m) == name}
        codes |= test_mistakes.PAIRS.get(name, (None, set()))[1]
        codes |= {m.PAIRS[name][1] for m in (test_pairs, test_clusters) if name in m.PAIRS}
        if codes and not any(code in said for code in codes):
            assert {"missing-fence-before", "missing-fence-after"} >= codes and "warnings" in said


def test_the_mistakes_are_numbered() -> None:
    assert [row[0] for row in TABLES["Common mistakes"]] == [str(n) for n in range(1, 32)]
    for number in NOT_SEEN:
        assert f"**{number}, " in PAGE.read_text()


def test_there_are_at_least_fifty_pairs() -> None:
    pairs = len(test_pairs.PAIRS) + len(test_mistakes.PAIRS) + len(test_clusters.PAIRS)
    assert pairs + len(OMISSIONS) >= 50
