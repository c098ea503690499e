"""Hazards that the machine found: two operations and the edge that is missing between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One hazard: two operations, and the edge that is missing between them.

    severity "error": the result depends on timing, by the documents and by what shipping code
    proves. "warning": the ISA's text asks for the edge, shipping compilers leave it out.
    """

    severity: str
    code: str
    first: str
    second: str
    missing: str
    cta: tuple[int, int, int] = (0, 0, 0)

    def __str__(self) -> str:
        second = f" and {self.second}" if self.second else ""
        return f"{self.code}: {self.first}{second}: {self.missing} (CTA {self.cta})"


class Findings(list[Finding]):
    """Findings without repetitions: the same pair of sites counts once, whatever the CTA."""

    LIMIT = 200
    """Of each severity, so that no flood of warnings hides an error."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[tuple[str, str, str]] = set()
        self._room: dict[str, int] = {}

    def append(self, finding: Finding) -> None:
        key = (finding.code, finding.first, finding.second)
        room = self._room.setdefault(finding.severity, self.LIMIT)
        if key in self._seen or not room:
            return
        self._room[finding.severity] = room - 1
        self._seen.add(key)
        super().append(finding)
