"""The modelled times of the operations of a stream of events: spans, flows, shares of resources.

Modelled, never measured. Cycles are those of one SM's clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Span:
    """An operation on one track from `start` to `end`, in cycles.

    track: ``CTA 0 warp 4``, ``tensor pipe``, ``TMA``, ``barrier 0x40``; with several CTAs,
    resources
           and barriers are named like ``CTA 1 tensor pipe``
    event: index in the stream
    """

    track: str
    name: str
    start: float
    end: float
    event: int


@dataclass(frozen=True)
class Flow:
    """A dependence that ended a wait: the index of the span at which it starts, and the index of
    the wait's span.
    """

    source: int
    sink: int


@dataclass(frozen=True)
class Timeline:
    """The modelled timeline of one SM's part of a launch.

    limits: resource -> the share of `cycles` in which it was busy
    """

    spans: tuple[Span, ...]
    flows: tuple[Flow, ...]
    cycles: float
    target: str
    clock_ghz: float
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def microseconds(self) -> float:
        """Modelled time at `clock_ghz`."""
        return self.cycles / self.clock_ghz / 1000

    @property
    def bound(self) -> str:
        """The busiest resource; ``latency`` if no resource was busy for half of the time."""
        name = max(self.limits, key=lambda key: self.limits[key], default="latency")
        return re.sub(r"^CTA \d+ ", "", name) if self.limits.get(name, 0) >= 0.5 else "latency"

    def __str__(self) -> str:
        return (
            f"modelled: {self.cycles:.0f} cycles, {self.microseconds:.2f} us at "
            f"{self.clock_ghz:g} GHz on {self.target}, limited by {self.bound}"
        )
