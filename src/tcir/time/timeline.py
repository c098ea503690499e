"""When each operation of a stream of events ran, by the model: spans, flows, shares of resources.

Modelled, never measured. Cycles are those of one SM's clock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Span:
    """Something that one track did from `start` to `end`, in cycles.

    track: ``CTA 0 warp 4``, ``tensor pipe``, ``TMA``, ``barrier 0x40``; of several CTAs, resources
           and barriers are ``CTA 1 tensor pipe``
    event: index in the stream
    """

    track: str
    name: str
    start: float
    end: float
    event: int


@dataclass(frozen=True)
class Flow:
    """The wait that something else ended: indices of spans."""

    source: int
    sink: int


@dataclass(frozen=True)
class Timeline:
    """One SM's share of a launch, modelled.

    limits: of each resource, the share of `cycles` in which it was busy
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
        """The busiest resource; ``latency`` if none was busy for half of the time."""
        name = max(self.limits, key=lambda key: self.limits[key], default="latency")
        return re.sub(r"^CTA \d+ ", "", name) if self.limits.get(name, 0) >= 0.5 else "latency"

    def __str__(self) -> str:
        return (
            f"modelled: {self.cycles:.0f} cycles, {self.microseconds:.2f} us at "
            f"{self.clock_ghz:g} GHz on {self.target}, limited by {self.bound}"
        )
