"""Verdicts of the prover, shown next to those of the simulated machine."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from tcir.errors import VerdictError
from tcir.prover.rewritings import Rewriting

Verdict = Literal["proved", "neighbour proved", "in part", "refuted", "incomplete"]
REFUTED = ("not_wellsynced", "potential_race", "invalid_lifecycle")
EXIT_CODES: dict[Verdict, int] = {
    "proved": 0, "neighbour proved": 2, "in part": 2, "refuted": 1, "incomplete": 2,
}  # fmt: skip
NOTHING_WRONG = "no race, deadlock, use after release in any order, fences aside"


@dataclass(frozen=True)
class Proof:
    """The prover's verdict on one launch.

    result:     sentryward's result, verbatim
    why:        the first diagnostic of the result; for a race, the two accesses
    grid:       extents of the part of the launch's grid that was judged
    of:         extents of the launch's grid
    rewritings: changes that were made to the PTX for the prover
    """

    launch: str
    result: str
    why: str
    grid: tuple[int, int, int]
    of: tuple[int, int, int]
    rewritings: tuple[Rewriting, ...]
    seconds: float

    @property
    def differs(self) -> tuple[str, ...]:
        """Differences between the program that was judged and the kernel, in words."""
        return tuple(each.differs for each in self.rewritings if each.differs)

    @property
    def verdict(self) -> Verdict:
        if self.result in REFUTED:
            return "refuted"
        if self.result != "race_free":
            return "incomplete"
        if self.differs:
            return "neighbour proved"
        return "proved" if self.grid == self.of else "in part"

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        if self.verdict in ("refuted", "incomplete"):
            return f"{self.result}: {self.why}"
        judged, every = prod(self.grid), prod(self.of)
        part = [f"{judged} of {every} CTAs"] if judged != every else []
        return "; ".join((NOTHING_WRONG, *part, *self.differs))


@dataclass(frozen=True)
class Proofs:
    """The prover's verdicts on all launches of a kernel.

    machine:  verdict of the simulated machine
    findings: findings of the simulated machine
    """

    launches: tuple[Proof, ...]
    machine: str
    findings: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if a launch is refuted, 2 if one is not fully proved, else 0."""
        codes = {EXIT_CODES[proof.verdict] for proof in self.launches}
        return 1 if 1 in codes else max(codes, default=0)

    @property
    def ok(self) -> bool:
        """Whether every launch is proved, without changes to the kernel's meaning and for all
        CTAs.
        """
        return self.exit_code == 0

    def __bool__(self) -> bool:
        return self.ok

    def check(self) -> Proofs:
        """Raises VerdictError unless every launch is proved."""
        if not self.ok:
            raise VerdictError(str(self), self.exit_code)
        return self

    def __str__(self) -> str:
        rows = [("launch", "CTAs", "the machine", "sentryward", "took")]
        rows += [
            (
                proof.launch,
                "x".join(map(str, proof.grid)),
                self.machine,
                proof.verdict,
                f"{proof.seconds:.2f} s",
            )
            for proof in self.launches
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines += [f"sentryward, @{proof.launch}: {proof.words}" for proof in self.launches]
        lines += [f"the machine: {finding}" for finding in self.findings]
        return "\n".join(lines)
