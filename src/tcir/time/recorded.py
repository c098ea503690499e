"""What the launches of a program did, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcir.machine.events import EventStream
from tcir.time.engine import simulate
from tcir.time.timeline import Timeline


@dataclass(frozen=True)
class Recorded:
    """What the first cluster of a launch did, and when, modelled."""

    stream: EventStream
    timeline: Timeline

    @classmethod
    def all(cls, streams: Sequence[EventStream], target: str) -> list[Recorded]:
        """Timeline of each launch by itself."""
        return [cls(stream, simulate(stream, target)) for stream in streams]
