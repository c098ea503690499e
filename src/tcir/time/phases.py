"""The phases of mbarriers in a timeline, each from its first arrival to the last wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcir.time.timeline import Timeline

if TYPE_CHECKING:
    from tcir.machine.events import EventStream

OFFSET = 0xFFFFFF
"""Mask of the offset of an address in shared memory: the rest is the rank of its CTA."""


@dataclass(frozen=True)
class BarrierPhase:
    """A phase of an mbarrier for which a warp waited. Times are in cycles.

    start: when the first operation that completes the phase started; end: when the first wait for
        it ended
    """

    cta: int
    barrier: int
    number: int
    start: float
    end: float
    by: str
    """Kind of the operations that complete it: copies, mma or arrivals."""

    @property
    def track(self) -> str:
        return f"CTA {self.cta} barrier {self.barrier:#x}"


def phases(stream: EventStream, timeline: Timeline) -> list[BarrierPhase]:
    """Returns the phases of all mbarriers; the phases of one mbarrier do not overlap."""
    start: dict[int, float] = {}
    end: dict[int, float] = {}
    for span in timeline.spans:
        start[span.event] = min(span.start, start.get(span.event, span.start))
        end[span.event] = max(span.end, end.get(span.event, span.end))
    found: dict[tuple[int, int], dict[tuple[int, ...], float]] = {}
    for index, event in enumerate(stream):
        if event.op == "mbarrier.wait" and event.after and "barrier" in event.detail:
            known = found.setdefault((event.cta, int(event.detail["barrier"]) & OFFSET), {})
            known[event.after] = min(end[index], known.get(event.after, end[index]))
    listed = []
    for (cta, barrier), ends in sorted(found.items()):
        before = 0.0
        for number, (after, over) in enumerate(sorted(ends.items(), key=lambda item: item[1])):
            began = min(start[cause] for cause in after)
            by = _by({stream[cause].op for cause in after})
            listed.append(BarrierPhase(cta, barrier, number, max(began, before), over, by))
            before = over
    return listed


def _by(ops: set[str]) -> str:
    if not ops.isdisjoint(("tma.load", "bulk.load")):
        return "copies"
    return "mma" if "tcgen05.commit" in ops else "arrivals"
