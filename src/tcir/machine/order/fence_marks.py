"""Order that a fence establishes if another thread executes the strong access after it, with a
barrier between fence and access.

A release pattern belongs to one thread (PTX ISA 8.8): a fence by thread A, then bar.sync, then a
relaxed write by thread B release none of A's accesses. Yet two such fences do order memory if both
are fence.sc and a read before the second fence observes the write. In the other Fence-SC order the
second fence would synchronise with the first (8.9.4), and the read would precede the write that it
observes, which 8.10.6 excludes. If one of the fences is fence.acq_rel the documents promise
nothing, but kernels in production rely on the order.

Marks in a clock, ``(WHICH, c)``, are numbers of events of ``c``. `SC` and `ACQ_REL`, by reach, mark
the events before such a fence. `SEEN_SC` and `SEEN_ACQ_REL` mark the events before the fence that
precedes a write, once a strong read has observed that write. `BY_FENCES` marks the events that only
such fences order.
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
    """Executes a fence after a strong read: the accesses that fences before the observed write
    cover are ordered from now on.
    """
    for mark, number in [item for item in clock.items() if item[0][0] in _SEEN]:
        seen_reach, seen_sc = _SEEN[mark[0]]
        if seen_reach <= reach:
            line = _line(mark)
            _raise(clock, line if sc and seen_sc else (BY_FENCES, line), number)
            if sc or not seen_sc:
                del clock[mark]


def in_front(clock: Clock, released: Sequence[Clock]) -> list[Covered]:
    """The accesses, by reach, that are covered by fences before a strong write but that the write
    itself does not release.
    """
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
    """Notes that a strong read observes a write that follows fences. acquire: whether the read
    itself orders the accesses that the fences cover; if not, a later fence does.
    """
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
