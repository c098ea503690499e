"""One use of a barrier: who has arrived so far, and what the arrivals have observed."""

from __future__ import annotations

from dataclasses import dataclass, field

from tcir.machine.order.clocks import Clock, Component


@dataclass(eq=False)
class BarrierRound:
    """One use of a named barrier (bar.sync)."""

    threads: int | None
    """How many are expected; None: all that still run."""
    arrived: int = 0
    done: bool = False
    clock: Clock = field(default_factory=dict)
    events: list[int] = field(default_factory=list)
    """The arrivals, where events are recorded."""
    arrivals: list[tuple[Component, int, object]] = field(default_factory=list)
    """Who arrived, the number of its accesses so far, and where."""
    before: BarrierRound | None = None
    """The use before this one."""


@dataclass(eq=False)
class ClusterRound:
    """One use of the cluster's barrier."""

    arrived: set[object] = field(default_factory=set)
    """Agents."""
    clock: Clock = field(default_factory=dict)
    met: Clock = field(default_factory=dict)
    """What was done before the arrivals, relaxed ones included: who waits runs after it."""
    done: bool = False
    events: list[int] = field(default_factory=list)
    """The arrivals, where events are recorded."""
