"""mbarrier objects (PTX ISA 9.7.13.15)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tcir.machine.errors import MachineError
from tcir.machine.hazards import Clock, join

MAX_COUNT = (1 << 20) - 1


@dataclass
class Mbarrier:
    """Phase, pending arrivals, transaction count; and what the arrivals of a phase observed."""

    address: int
    count: int
    site: Any
    phase: int = 0
    pending: int = 0
    tx: int = 0
    collected: Clock = field(default_factory=dict)
    released: Clock = field(default_factory=dict)
    waited_phase: int = -1

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MAX_COUNT:
            raise MachineError(
                "mbarrier-count",
                f"expected an arrival count in 1..{MAX_COUNT}, got {self.count}",
                site=self.site,
            )
        self.pending = self.count

    def complete(self, parity: int) -> bool:
        """test_wait.parity: whether the phase of ``parity`` (current or the one before) is over."""
        return (self.phase & 1) != (parity & 1)

    def arrive(self, count: int, clock: Clock, site: Any) -> None:
        """``count`` arrivals that have observed ``clock``."""
        if count < 1 or count > self.pending:
            raise MachineError(
                "mbarrier-over-arrival",
                f"expected at most {self.pending} arrivals in phase {self.phase} of the mbarrier "
                f"at {self.address:#x} (count {self.count}), got {count} more",
                site=site,
            )
        self.pending -= count
        join(self.collected, clock)
        self._advance()

    def expect(self, nbytes: int, site: Any) -> None:
        """expect_tx."""
        self._move(nbytes, site)

    def complete_tx(self, nbytes: int, clock: Clock, site: Any) -> None:
        """Bytes that have arrived."""
        join(self.collected, clock)
        self._move(-nbytes, site)
        self._advance()

    def _move(self, nbytes: int, site: Any) -> None:
        self.tx += nbytes
        if abs(self.tx) > MAX_COUNT:
            raise MachineError(
                "mbarrier-tx-range",
                f"expected a tx-count within +-{MAX_COUNT} at {self.address:#x}, got {self.tx}",
                site=site,
            )

    def _advance(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.count
            join(self.released, self.collected)
            self.collected = {}

    def __str__(self) -> str:
        return (
            f"mbarrier at {self.address:#x} (phase {self.phase}, {self.pending} of {self.count} "
            f"arrivals pending, tx-count {self.tx})"
        )
