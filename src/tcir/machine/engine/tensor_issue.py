"""The threads of an agent that issue tensor-core operations, and the earlier operations that the
next one follows in the tensor core's pipe.
"""

from __future__ import annotations

from collections.abc import Iterable

from tcir.machine.assumptions import Assumptions
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import BEFORE, PIPE, Access, Component, join
from tcir.machine.order.lanes import Lanes
from tcir.machine.order.ordering import Class
from tcir.machine.order.tensor_thread import TensorThread


class TensorIssue:
    """The tensor-core operations that an agent has issued, by thread."""

    def __init__(self, me: Component, lanes: Lanes, assumptions: Assumptions) -> None:
        self.me, self.lanes, self.assumptions = me, lanes, assumptions
        self.threads = [TensorThread(me, 0, assumptions)]
        """Threads that issued an operation; at least one, so that there is a `thread`."""
        self.thread = self.threads[0]
        """The one that issues now."""
        self.reach: dict[Class, int] = {}
        """Operations that precede the one being issued, in the pipe: for each class, the number of
        the last."""
        self.listed_reach: dict[Class, int] = {}
        """The part of `reach` that the PTX ISA promises."""

    def by_lane(self, lane: int) -> None:
        """Makes this lane the issuer of the operations that follow.

        A commit tracks only operations of its own thread, and the pipe keeps only operations of one
        thread in order. A role of a tile program is one thread and never calls this method.
        """
        if self.thread.lane != lane:
            known = (t for t in self.threads if t.lane == lane)
            thread = next(known, None)
            if thread is None:
                thread = TensorThread(self.me, lane, self.assumptions)
                self.threads.append(thread)
            self.thread = thread

    def before(
        self, access: Access, agents: Iterable[AgentProtocol], *, listed: bool = False
    ) -> dict[Class, int]:
        """Operations that the pipe completes before a new operation of this thread.

        listed: return only the operations for which the PTX ISA promises this order

        The result contains operations of this thread. It also contains operations of another thread
        of `agents` (its CTA or pair) if that thread executed tcgen05.fence::before_thread_sync
        after them, and this agent then synchronised with it and executed ::after_thread_sync.
        """
        reach = (self.thread.listed if listed else self.thread.kept).before(access)
        after = self.lanes.knows.after
        for thread in (t for agent in agents for t in agent.issue.threads if t.issued):
            fenced = after.get((PIPE, thread.component), 0)
            if thread is not self.thread and fenced:
                foreign = (thread.listed if listed else thread.kept).before(access)
                join(reach, {group: min(number, fenced) for group, number in foreign.items()})
        return reach

    def mark_before(self, threads: Iterable[TensorThread]) -> None:
        """tcgen05.fence::before_thread_sync: marks the tensor-core operations of these threads as
        covered by the fence.
        """
        clock, me = self.lanes.knows.clock, self.me
        for component in (("ld", me), ("st", me)):
            clock[(BEFORE, component)] = clock.get(component, 0)
        for thread in threads:
            clock[(PIPE, thread.component)] = thread.issued
