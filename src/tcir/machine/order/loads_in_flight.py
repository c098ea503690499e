"""Loads whose values no instruction has used yet.

A thread continues after a load until an instruction uses the value; barriers and arrivals do not
wait for the load either. On an H200, bulk copies issued after a barrier or an arrival overtook such
loads, but did not overtake loads whose value had been used (docs/explanation/hazards.md, "Read,
then TMA").
"""

from __future__ import annotations

from collections.abc import Hashable

from tcir.machine.order.clocks import Access, Clock, Component
from tcir.machine.order.lanes import lane_line, members

RECENT = 64
"""The loads at one place of a program that are kept: those before them count as used."""


class LoadsInFlight:
    """Tracks, for each load that may still be in flight when its thread releases, the first use of
    its value.
    """

    def __init__(self) -> None:
        self._uses: dict[tuple[Component, Hashable], dict[int, int]] = {}

    def load(self, agent: Component, site: Hashable, number: int) -> None:
        """Records a load, which is the access ``number`` of an agent."""
        uses = self._uses.setdefault((agent, site), {})
        uses[number] = 0
        if len(uses) > RECENT:
            del uses[next(iter(uses))]

    def use(self, agent: Component, site: Hashable, number: int) -> None:
        """Records that the last load at a site is complete before the access ``number``."""
        uses = self._uses.get((agent, site))
        if uses and not uses[last := next(reversed(uses))]:
            uses[last] = number

    def unused(self, load: Access, agent: Component, clock: Clock) -> bool:
        """Whether an agent with ``clock`` is ordered after a load, but not after the first use of
        the load's value.
        """
        uses = self._uses.get((load.component, load.site), {})
        if load.number not in uses:
            return False
        used = uses[load.number]
        if not used or load.component == agent:
            return not used
        lines = [lane_line(load.component, lane) for lane in members(load.lanes)]
        return max(clock.get(line, 0) for line in (load.component, *lines)) < used
