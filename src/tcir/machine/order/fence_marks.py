"""Fences before a barrier, and a strong access after it by another thread.

A release pattern belongs to one thread (PTX ISA 8.8): a fence by thread A, bar.sync and a relaxed
write by thread B release none of A's accesses. Two such fences order memory all the same if both
are fence.sc and a read before the second observes the write: in the other Fence-SC order the second
would synchronise with the first (8.9.4), and the read would precede the write that it observes
(8.10.6). With fence.acq_rel on either side the documents promise nothing, but shipping kernels rely
on it.

Marks in a clock, ``(WHICH, c)``, keep the number of ``c`` up to which this holds. `SC` and
`ACQ_REL`: what came before such a fence, by its reach; `SEEN_SC` and `SEEN_ACQ_REL`: before the
fence that precedes a write observed by a strong read; `BY_FENCES`: what only such fences order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from tcir.machine.order.clocks import REACHES, Clock, Component
from tcir.machine.order.lanes import LANE

SC, ACQ_REL, SEEN_SC, SEEN_ACQ_REL = (
    tuple(f"{name} {reach}" for reach in range(REACHES))
    for name in ("fence.sc", "fence.acq_rel", "seen fence.sc", "seen fence.acq_rel")
)
BY_FENCES = "by fences"

_FENCES: dict[Hashable, tuple[int, bool]] = {
    which: (reach, kind is SC) for kind in (SC, ACQ_REL) for reach, which in enumerate(kind)
}
_SEEN: dict[Hashable, tuple[int, bool]] = {
    which: (reach, kind is SEEN_SC)
    for kind in (SEEN_SC, SEEN_ACQ_REL)
    for reach, which in enumerate(kind)
}
"""For each kind of mark: the reach of its fence, and whether that is fence.sc."""

Covered = tuple[Clock, Clock]
"""Accesses before a fence.acq_rel, and before a fence.sc."""


def mark_fence(clock: Clock, known: Clock, reach: int, *, sc: bool) -> None:
    """Marks the accesses in ``known`` as covered by a fence of the executing thread."""
    which = (SC if sc else ACQ_REL)[reach]
    for line, number in known.items():
        if line[0] not in _FENCES and line[0] not in _SEEN:
            clock[(which, line)] = number


def observe_fences(clock: Clock, reach: int, *, sc: bool) -> None:
    """A fence after a strong read: the writes that the read observed are ordered from now on."""
    for mark, number in [item for item in clock.items() if item[0][0] in _SEEN]:
        seen_reach, seen_sc = _SEEN[mark[0]]
        if seen_reach <= reach:
            line = _line(mark)
            _raise(clock, line if sc and seen_sc else (BY_FENCES, line), number)
            if sc or not seen_sc:
                del clock[mark]


def in_front(clock: Clock, released: Sequence[Clock]) -> list[Covered]:
    """The accesses, for each reach, that fences before a strong write cover and the write itself
    does not release."""
    found: list[Covered] = [({}, {}) for _ in range(REACHES)]
    for mark, number in clock.items():
        if mark[0] in _FENCES:
            fence_reach, sc = _FENCES[mark[0]]
            line = _line(mark)
            number = min(number, _known(clock, line))
            for reach in range(fence_reach + 1):
                if released[reach].get(line, 0) < number:
                    _raise(found[reach][sc], line, number)
    return found


def see(clock: Clock, covered: Covered, reach: int, *, acquire: bool) -> None:
    """Notes that a strong read observes a write preceded by fences. acquire: whether the read
    itself orders what they cover; otherwise a later fence does."""
    for sc, lines in enumerate(covered):
        for line, number in lines.items():
            if clock.get(line, 0) < number:
                if acquire:
                    _raise(clock, (BY_FENCES, line), number)
                if sc or not acquire:
                    _raise(clock, ((SEEN_SC if sc else SEEN_ACQ_REL)[reach], line), number)


def _line(mark: Component) -> Component:
    line = mark[1]
    assert isinstance(line, tuple)
    return line


def _known(clock: Clock, line: Component) -> int:
    """How far a line is observed; one of a lane also as its warp is."""
    number = clock.get(line, 0)
    return max(number, clock.get(_line(line), 0)) if line[0] == LANE else number


def _raise(clock: Clock, line: Component, number: int) -> None:
    if clock.get(line, 0) < number:
        clock[line] = number
