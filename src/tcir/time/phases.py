"""The phases of mbarriers in a timeline: from the first arrival to the last wait for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcir.time.timeline import Timeline

if TYPE_CHECKING:
    from tcir.machine.events import EventStream


@dataclass(frozen=True)
class Phase:
    """A phase that somebody waited for, in cycles.

    start: when the first of what completes it was under way; end: when the first wait was over
    """

    cta: int
    barrier: int
    number: int
    start: float
    end: float

    @property
    def track(self) -> str:
        return f"CTA {self.cta} barrier {self.barrier:#x}"


def phases(stream: EventStream, timeline: Timeline) -> list[Phase]:
    """Of all mbarriers; those of one follow one another."""
    start: dict[int, float] = {}
    end: dict[int, float] = {}
    for span in timeline.spans:
        start[span.event] = min(span.start, start.get(span.event, span.start))
        end[span.event] = max(span.end, end.get(span.event, span.end))
    found: dict[tuple[int, int], dict[tuple[int, ...], tuple[float, float]]] = {}
    for index, event in enumerate(stream):
        if event.op != "mbarrier.wait" or not event.after or "barrier" not in event.detail:
            continue
        place = event.cta, int(event.detail["barrier"])
        began = min(start[cause] for cause in event.after)
        known = found.setdefault(place, {})
        first = min(end[index], known.get(event.after, (began, end[index]))[1])
        known[event.after] = began, first
    return [
        Phase(cta, barrier, number, max(began, before), over)
        for (cta, barrier), known in sorted(found.items())
        for number, (before, (began, over)) in enumerate(_in_turn(list(known.values())))
    ]


def _in_turn(spans: list[tuple[float, float]]) -> list[tuple[float, tuple[float, float]]]:
    """Each with the end of the one before."""
    ends = [0.0, *(end for _, end in sorted(spans))]
    return list(zip(ends, sorted(spans)))
