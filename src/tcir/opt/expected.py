"""``--verify-diagnostics``: compares diagnostics with ``// expected-error @+1 {{text}}``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tcir.program.source import Diagnostic

_EXPECTED = re.compile(
    r"//\s*expected-(?P<severity>error|warning|remark|note)(?P<regex>-re)?"
    r"(?:\s*@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*?)\}\}\s*(?=$|//)"
)


@dataclass
class Expected:
    """One annotation: a severity, a line (0: without location) and a part of the message."""

    severity: str
    line: int
    text: str
    regex: bool
    at: int

    def matches(self, diagnostic: Diagnostic) -> bool:
        """Whether `diagnostic` matches."""
        if diagnostic.severity != self.severity or diagnostic.line != self.line:
            return False
        if self.regex:
            parts = re.split(r"\{\{(.*?)\}\}", self.text)
            pattern = "".join(p if i % 2 else re.escape(p) for i, p in enumerate(parts))
            return re.search(pattern, diagnostic.message) is not None
        return self.text in diagnostic.message


def read_expected(text: str) -> list[Expected]:
    """The annotations of a chunk; ``@below`` and ``@above`` skip lines that contain only
    annotations."""
    lines = text.splitlines()
    return [
        Expected(
            match["severity"],
            _target(lines, number, match["where"]),
            match["text"],
            match["regex"] is not None,
            number,
        )
        for number, line in enumerate(lines, start=1)
        for match in _EXPECTED.finditer(line)
    ]


def _target(lines: list[str], number: int, where: str | None) -> int:
    if where is None:
        return number
    if where == "unknown":
        return 0
    if where in ("above", "below"):
        step = 1 if where == "below" else -1
        number += step
        while 1 <= number <= len(lines) and lines[number - 1].strip().startswith("// expected-"):
            number += step
        return number
    return number + int(where)


def compare_diagnostics(
    text: str, name: str, diagnostics: Iterable[Diagnostic]
) -> list[Diagnostic]:
    """Returns the mismatches: diagnostics that were emitted but not expected, and diagnostics that
    were expected but not emitted.

    Notes are ignored unless a note is expected.
    """
    expected = read_expected(text)
    wrong = []
    for diagnostic in [d for top in diagnostics for d in (top, *top.notes)]:
        hit = next((e for e in expected if e.matches(diagnostic)), None)
        if hit is not None:
            expected.remove(hit)
        elif diagnostic.severity != "note":
            message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            wrong.append(
                Diagnostic("error", diagnostic.file, diagnostic.line, diagnostic.column, message)
            )
    for missing in expected:
        message = f'expected {missing.severity} "{missing.text}" was not produced'
        wrong.append(Diagnostic("error", name, missing.at, 1, message))
    return wrong
