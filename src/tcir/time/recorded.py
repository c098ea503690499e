"""The recorded events of a program's launches, and their modelled timelines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcir.machine.events import EventStream
from tcir.time.engine import simulate
from tcir.time.timeline import Timeline


@dataclass(frozen=True)
class RecordedTimeline:
    """The events of a launch's first cluster, and their modelled timeline."""

    stream: EventStream
    timeline: Timeline

    @classmethod
    def all(cls, streams: Sequence[EventStream], target: str) -> list[RecordedTimeline]:
        """Computes the timeline of each launch separately."""
        return [cls(stream, simulate(stream, target)) for stream in streams]
