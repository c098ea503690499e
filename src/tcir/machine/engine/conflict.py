"""Two accesses to one location in the form that the hazard tables need, and the functions that
search the tables.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import cast

import numpy as np

from tcir.machine.engine.circumstances import circumstances
from tcir.machine.engine.operand_races import Race
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import (
    BEYOND,
    PROXY,
    Access,
    Clock,
    Component,
    marked,
    observed,
    observed_beyond,
)
from tcir.machine.order.fence_hazards import FENCES, TENSOR_FENCES, fenced
from tcir.machine.order.hazard import SCOPE_OF_CLUSTER, SHARED_MEMORY, TENSOR_MEMORY, Hazard
from tcir.machine.order.involved import Involved, between
from tcir.machine.order.lanes import TOGETHER, observed_of
from tcir.machine.order.ordering import MISSING_WARP_SYNC, class_of, listed, missing_edge
from tcir.machine.order.race_hazards import ORDERS, RACES
from tcir.machine.order.touch import Touch


def check_ordered(agent: AgentProtocol, touch: Touch, other: Access, wrote: bool) -> None:
    """Reports the fences that are missing between two accesses whose order is established. wrote:
    whether the first access wrote.
    """
    if touch.shadow.space == TENSOR_MEMORY:
        found = TENSOR_FENCES
    elif other.proxy == "generic" and touch.access.proxy == "async":
        found = FENCES[wrote, touch.write]
    else:
        return
    AccessConflict(agent, touch, other, wrote).report_first(found)


def check_unordered(agent: AgentProtocol, touch: Touch, other: Access, wrote: bool) -> None:
    """Reports two accesses that the clocks do not order, unless a rule of the hazard tables orders
    them.
    """
    conflict = AccessConflict(agent, touch, other, wrote)
    for order in ORDERS:
        if order.applies(conflict):
            if order.fences:
                check_ordered(agent, touch, other, wrote)
            return
    hazard = conflict.report_first(RACES)
    if hazard is not None and hazard.fences(conflict):
        check_ordered(agent, touch, other, wrote)


def involved(agent: AgentProtocol, touch: Touch, other: Access, *, wrote: bool) -> Involved:
    """Agents and places of an access and an earlier access, for a report."""
    pair, lanes = (other, touch.access), touch.lanes
    return Involved(
        between(other.component, touch.access.component),
        partial(circumstances, agent, touch.shadow, touch.where, pair, lanes, wrote),
    )


class AccessConflict:
    """Implements `tcir.machine.order.hazard.Conflict`. agent: the agent that makes the second
    access, `touch`.
    """

    def __init__(self, agent: AgentProtocol, touch: Touch, first: Access, wrote: bool) -> None:
        self.agent, self.touch, self.first, self.wrote = agent, touch, first, wrote
        self.second, self.writes = touch.access, touch.write
        self.space = touch.shadow.space
        self._passed: dict[str, bool] = {}
        self._lost: str | None = None
        """Result of `lose_operands`, which acts once."""

    def report_first(self, hazards: tuple[Hazard, ...]) -> Hazard | None:
        """Reports and returns the first of these hazards that applies; returns None if none
        applies.
        """
        for hazard in hazards:
            if hazard.applies(self):
                words = hazard.first(self), self.second.site, hazard.edge(self), self.involved
                self.agent.cta.report(hazard.verdict, hazard.kind, *words)
                return hazard
        return None

    # --- who does it, and what that agent knows --------------------------------------------------

    @property
    def me(self) -> Component:
        return self.agent.me

    @property
    def tensor(self) -> Component:
        return self.agent.issue.thread.component

    @property
    def clock(self) -> Clock:
        return self.agent.clock

    @property
    def after(self) -> Clock:
        return self.agent.lanes.knows.after

    @property
    def met(self) -> Clock:
        return self.agent.met

    def passed(self, mark: str) -> bool:
        known = self._passed.get(mark)
        if known is None:
            known = self._passed[mark] = self._has_passed(mark)
        return known

    def _has_passed(self, mark: str) -> bool:
        clock, first = self.clock, self.first
        return marked(clock, mark, first) or observed_of(clock, first, self._lanes, mark)

    @cached_property
    def _lanes(self) -> int:
        """Mask of the lanes that did the first access; 0 if lanes are not distinguished."""
        first, where = self.first, self.touch.where
        others = self.touch.shadow.other_lanes
        return others(where, first, TOGETHER, self.wrote) if first.lanes else 0

    @cached_property
    def beyond(self) -> bool:
        return self.passed(BEYOND) or observed_beyond(self.clock, self.first)

    @property
    def _one_pipe(self) -> bool:
        """Whether both are tensor-core operations, the second of this thread."""
        return self.first.component[0] == "tc" and self.second.component == self.tensor

    def in_pipe(self, *, listed: bool) -> bool:
        issue = self.agent.issue
        reach = issue.listed_reach if listed else issue.reach
        return self._one_pipe and reach.get(class_of(self.first), 0) >= self.first.number

    def read_since(self) -> bool:
        sees = self.agent.lanes.sees
        strong = self.agent.machine.strong.values() if self.first.strong else ()
        return any(writes.precedes(self.first, sees) for writes in strong)

    # --- the memory ------------------------------------------------------------------------------

    @property
    def of_peer(self) -> bool:
        owner, mine = self.touch.shadow.owner, self.agent.cta
        return owner is not None and owner is not mine and self.first.issuer != mine.index

    @property
    def near(self) -> bool:
        """Whether the first access is by a CTA to its own shared memory.

        Kernels in production signal such an access to another CTA without .cluster. For other
        memory this fails on an H200: the L1 cache of the other SM may contain older bytes of global
        memory, and an access to another CTA's shared memory may be in flight for longer than the
        arrival.
        """
        owner = self.touch.shadow.owner
        return owner is not None and self.first.cta in (None, owner.index)

    @property
    def on_its_way(self) -> bool:
        """Whether a generic write to shared memory may still be in flight when the tensor core
        reads, because the writing thread executes no fence.proxy.async after the write. On B200s,
        mma of CTA pairs have read older bytes in this case.
        """
        shared = self.space == SHARED_MEMORY and self.first.proxy == "generic"
        return shared and not fenced(self, PROXY)

    @property
    def in_flight(self) -> bool:
        agent = self.agent
        return agent.machine.loads_in_flight.unused(self.first, agent.me, agent.clock)

    @property
    def written_by(self) -> set[str]:
        return {w.kind for w in self.touch.shadow.writers_read(self.touch.where, self.first)}

    @property
    def same_bytes(self) -> bool:
        same = self.touch.same
        if isinstance(same, np.ndarray):  # of the rows that the first access wrote
            met = self.touch.shadow.met(self.touch.where, self.first, self.wrote)
            return bool(same[met.reshape(len(same), -1).any(axis=1)].all())
        return same() if callable(same) else same

    def lose_operands(self) -> str:
        if self._lost is None:
            where, words = self.touch.where, self.words
            race = Race(self.touch.shadow, where, self.first, self.second, words)
            self._lost = race.lose_rows(self.agent, self.edges)
        return self._lost

    # --- words -----------------------------------------------------------------------------------

    @property
    def involved(self) -> Involved:
        """Threads and bytes of the two accesses."""
        return involved(self.agent, self.touch, self.first, wrote=self.wrote)

    @property
    def words(self) -> str:
        first, second = self.first, self.second
        verb, then = (
            ("writes" if self.wrote else "reads"),
            ("overwrites it" if self.writes else "reads it"),
        )
        return f"{first.site} ({first.kind} {verb} {self.space}, then {second.kind} {then})"

    @property
    def edge(self) -> str:
        agent, first, second = self.agent, self.first, self.second
        one_cluster = self.touch.shadow.owner is not None
        missing = missing_edge(first, second, first.component == self.tensor, one_cluster)
        missing += self._ended_early
        if first.component == agent.me or any(observed(g.clock, first) for g in agent.lanes.groups):
            missing = MISSING_WARP_SYNC
        if self._one_pipe and listed(agent.machine.assumptions, first, second):
            missing += "; or tcgen05.fence::before_thread_sync, a barrier and ::after_thread_sync"
        return missing

    @property
    def edges(self) -> str:
        return f"{self.edge}; {SCOPE_OF_CLUSTER}" if self.beyond else self.edge

    @property
    def _ended_early(self) -> str:
        """The agent that ended a phase of an operation's mbarrier before its bytes arrived."""
        if self.first.component[0] == "tma":
            _, index, number = self.first.component
            for cta in self.agent.cta.cluster.ctas:
                if cta.index == index:
                    return cta.all_mbarriers[cast("int", number)].early
        return ""
