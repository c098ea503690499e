"""Hazards that the machine found: two operations and the edge that is missing between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unpromised:
    """What shipping kernels rely on without a word of the documents.

    isa: section of the PTX ISA; ships: kernels that rely on it and run on B200; what: the promise
    that is missing.
    """

    isa: str
    ships: str
    what: str = "order without it"

    def __str__(self) -> str:
        return f"{self.what} is not promised by PTX ISA {self.isa}; ships in {self.ships}"


@dataclass(frozen=True)
class Finding:
    """One hazard: two operations, and the edge that is missing between them.

    severity "error": the result depends on timing, or is undefined, under the profile of the run
    (`RunOptions.ordering`). "warning": the outcome is the same in either order; or it is
    `unpromised`, which the profile "isa" makes an error.
    """

    severity: str
    code: str
    first: str
    second: str
    missing: str
    cta: tuple[int, int, int] = (0, 0, 0)
    unpromised: Unpromised | None = None

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
