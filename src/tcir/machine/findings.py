"""Hazards that the simulated machine found: each is two operations, and the ordering that is
missing between them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Unpromised:
    """An ordering that kernels in production rely on although no document promises it.

    isa: section of the PTX ISA that omits the promise
    ships: kernels that rely on the ordering and run correctly on B200
    what: the ordering that is not promised
    """

    isa: str
    ships: str
    what: str = "order without it"

    def __str__(self) -> str:
        return f"{self.what} is not promised by PTX ISA {self.isa}; ships in {self.ships}"


@dataclass(frozen=True)
class Finding:
    """One hazard: two operations, and the ordering (edge) that is missing between them.

    severity: "error" if the result depends on timing, or is undefined, under the ordering profile
        of the run (`RunOptions.ordering`). "warning" if the outcome is the same in either order, or
        if the ordering is `unpromised`; the profile "isa" makes an unpromised ordering an error
    kind: distinguishes findings about the same two operations: it names the level at which their
        executors differ (lanes, warps, CTAs, launches), or the data that is read
    who, place: agents and bytes of the first time that the hazard occurred; "" if not known
    count: number of times that it occurred
    """

    severity: str
    code: str
    first: str
    second: str
    missing: str
    cta: tuple[int, int, int] = (0, 0, 0)
    unpromised: Unpromised | None = None
    kind: str = ""
    who: str = ""
    place: str = ""
    count: int = 1

    @property
    def key(self) -> Key:
        """Key that is equal for all occurrences of this hazard."""
        return self.code, self.first, self.second, self.kind

    @property
    def circumstances(self) -> str:
        """Threads, bytes and count of the finding; if the threads are unknown, the CTA in their
        place.
        """
        words = [self.who or f"CTA {self.cta}", self.place]
        return ": ".join(w for w in words if w) + (f"; {self.count} times" * (self.count > 1))

    def __str__(self) -> str:
        second = f" and {self.second}" if self.second else ""
        return f"{self.code}: {self.first}{second}: {self.missing} (CTA {self.cta})"


class Findings(list[Finding]):
    """List of findings without repetitions. A hazard that occurs again between the same two
    operations, in this CTA or another, is counted and not listed again.
    """

    LIMIT = 200
    """Maximum number of findings of each severity, so that no flood of warnings hides an error."""

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[Key, int] = {}
        self._room: dict[str, int] = {}
        self.unnamed = 0
        """Events of which no finding is kept, since there are as many as `LIMIT` of a severity."""

    def again(self, key: Key) -> bool:
        """Whether the hazard with this key was reported before; if so, counts this occurrence."""
        if key not in self._counts:
            return False
        self._counts[key] += 1
        return True

    def full(self, severity: str) -> bool:
        """Whether the limit of findings of this severity is reached; if so, counts this
        occurrence.
        """
        full = not self._room.setdefault(severity, self.LIMIT)
        self.unnamed += full
        return full

    def append(self, finding: Finding) -> None:
        if self.again(finding.key) or self.full(finding.severity):
            return
        self._room[finding.severity] -= 1
        self._counts[finding.key] = 1
        super().append(finding)

    def counted(self) -> list[Finding]:
        """All findings, each with the number of times that its hazard occurred."""
        return [replace(finding, count=self._counts[finding.key]) for finding in self]
