"""Chooses the leaders of a launch in lockstep, at any level, and keeps which CTAs have been
executed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from tcir.interp.ptx.lockstep.abandoned import Abandoned
from tcir.machine import Cta, Machine
from tcir.machine.memory.protocols import Triple

LEAST, MOST = 4, 1 << 20
"""CTAs of a launch that is worth it, and that has room for a byte of each."""


def eligible(machine: Machine) -> bool:
    """Whether the launch may run in lockstep: there are enough CTAs, and the machine's schedule of
    each CTA depends on that CTA alone.

    If the run has a seed, operations complete later than they are issued. Only the detection of
    hazards shows whether that may change a result, so it must be on.
    """
    return (
        machine.options.lockstep
        and (machine.options.order_seed is None or machine.checking)
        and machine.cluster == (1, 1, 1)
        and machine.side_by_side == 1
        and machine.assumptions.cta_order == "index"
        and not (machine.programmatic and machine.memory.partly_unfinished)
        and LEAST <= math.prod(machine.grid) <= MOST
    )


class Recorded(Protocol):
    """Record of a leader's execution. why: reason why no other CTA can do the same; "" if others
    can
    """

    cta: Cta
    why: str


RecordedType = TypeVar("RecordedType", bound=Recorded)


class Leaders(Generic[RecordedType]):
    """A launch in which the machine runs some CTAs, which are recorded, and other CTAs do the
    same.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.committed = False
        """Whether a follower has written to global memory."""
        self.followers = 0
        """CTAs that were executed together with a leader."""
        self.why = ""
        """Why no more CTAs follow; "": they may."""
        self.total = math.prod(machine.grid)
        self._done = bytearray(self.total)
        """Whether each CTA has been executed, by its number in the grid."""
        self._recording: RecordedType | None = None

    def only(self, numbers: Sequence[int]) -> None:
        """Restricts the launch to these CTAs; other CTAs are executed elsewhere, or not at all."""
        self._done = bytearray([True]) * self.total
        for number in numbers:
            self._done[number] = False

    def finish(self) -> None:
        """Called at the end of the launch."""
        if self._recording is not None:
            self._stop("a CTA that waits for another one")

    def executed(self, index: tuple[int, ...]) -> bool:
        """Whether a CTA has been executed."""
        return bool(self._done[self._number(index)])

    def _recorded(self, cta: Cta) -> RecordedType | None:
        """What a CTA that has ended did; None if it was not recorded."""
        recording, self._recording, self.machine.effects = self._recording, None, None
        if recording is None or recording.cta is not cta:
            return None
        self._done[self._number(cta.index)] = True
        return recording

    def _number(self, index: tuple[int, ...]) -> int:
        """Number of a CTA in the grid."""
        x, y, _ = self.machine.grid
        return index[0] + x * (index[1] + y * index[2])

    def _index(self, number: int) -> Triple:
        x, y, _ = self.machine.grid
        return number % x, number // x % y, number // (x * y)

    def _stop(self, why: str) -> None:
        """Ends lockstep for this launch. If CTAs that follow have already stored, their results are
        not certain, and the launch is abandoned."""
        self.why, self._recording, self.machine.effects = why, None, None
        if self.committed:
            raise Abandoned(why, alone=True)
