"""One use of a barrier: which warps have arrived so far, and the accesses that they have
observed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tcir.machine.order.clocks import Clock, Component


class Arrival(NamedTuple):
    """Arrival of a warp: its instruction, its place, and the number of accesses that the warp has
    made so far.
    """

    name: str
    instruction: str
    site: object
    component: Component
    accesses: int

    def __str__(self) -> str:
        return f"{self.name} at {self.site}"


@dataclass(eq=False)
class BarrierRound:
    """One use of a named barrier (bar.sync)."""

    threads: int | None
    """Number of expected threads; None: all that still run."""
    number: int = 1
    """1 for the first use of this barrier."""
    before: BarrierRound | None = None
    """The use before this one, until this one is complete."""
    arrivals: list[Arrival] = field(default_factory=list)
    gone: Clock = field(default_factory=dict)
    """Knowledge of the threads that had ended when the round was complete."""
    arrived: int = 0
    done: bool = False
    clock: Clock = field(default_factory=dict)
    events: list[int] = field(default_factory=list)
    """The arrivals, where events are recorded."""


@dataclass(eq=False)
class ClusterRound:
    """One use of the cluster's barrier."""

    arrived: set[object] = field(default_factory=set)
    """Agents."""
    clock: Clock = field(default_factory=dict)
    gone: Clock = field(default_factory=dict)
    """As in `BarrierRound`."""
    met: Clock = field(default_factory=dict)
    """Accesses before the arrivals, relaxed ones included: the waiting threads run after them."""
    done: bool = False
    events: list[int] = field(default_factory=list)
    """The arrivals, where events are recorded."""
