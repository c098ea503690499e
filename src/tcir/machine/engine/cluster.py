"""A cluster: CTAs that run at the same time, and the scheduler that takes turns between them (PTX
ISA 2.2.2).

A launch without clusters has clusters of one CTA. A shared-memory address contains the rank of its
CTA in the cluster in bits 24 and up, and the offset in that CTA's window in the bits below. The
hardware does the same: CUTLASS clears bit 24 to address the even CTA of a pair.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from tcir.machine.engine.agent import Agent
from tcir.machine.engine.completion_order import CompletionOrder
from tcir.machine.engine.cta import Cta
from tcir.machine.engine.operand_races import RECENT
from tcir.machine.errors import Deadlock, MachineError
from tcir.machine.memory.protocols import MachineProtocol, OperandReads
from tcir.machine.order.clocks import Component
from tcir.machine.order.involved import lane_words
from tcir.machine.order.lanes import WARP
from tcir.machine.order.operation import AsyncOperation, Pending
from tcir.machine.order.rounds import ClusterRound


class Cluster:
    """The CTAs of a cluster. It also schedules their agents and their asynchronous operations in
    flight.
    """

    def __init__(self, machine: MachineProtocol, order: CompletionOrder | None) -> None:
        self.machine, self.order = machine, order
        self.ctas: list[Cta] = []
        self.agents: list[Agent] = []
        self.in_flight: list[AsyncOperation] = []
        self.round: ClusterRound | None = None
        """The use of barrier.cluster that is under way."""
        self.declined: object = None
        """Where a refusal of cluster launch control was seen."""
        self._mma: dict[Component, deque[OperandReads]] = {}

    def at(self, rank: int, site: object) -> Cta:
        """The CTA with this rank; raises MachineError if there is no such CTA or it has exited."""
        if not 0 <= rank < len(self.ctas):
            raise MachineError(
                "cluster-rank",
                f"expected a CTA rank below {len(self.ctas)} (the size of the cluster), got {rank}",
                site=site,
            )
        cta = self.ctas[rank]
        if cta.exited:
            raise MachineError(
                "peer-exited",
                f"CTA {cta.index} (rank {rank} of the cluster) must not exit before the last "
                "access to its memory, but all its threads have ended: put a cluster barrier at "
                "the end of every CTA",
                site=site,
            )
        return cta

    def pair(self, rank: int, site: object) -> tuple[Cta, Cta]:
        """The CTA pair that contains this rank, even rank first."""
        if len(self.ctas) % 2:
            raise MachineError(
                "cta-pair",
                "expected a cluster of an even number of CTAs for .cta_group::2 (launch with "
                f"cluster=(2, 1, 1)), got {len(self.ctas)}",
                site=site,
            )
        even = rank & ~1
        return self.at(even, site), self.at(even | 1, site)

    # --- scheduling ------------------------------------------------------------------------------

    def launch(self, operation: AsyncOperation) -> None:
        """Accepts an asynchronous operation. If operations complete in prompt order, it takes
        effect at once, otherwise later.
        """
        if self.order is None and operation.ready:
            operation.run()
            operation.done = True
        else:
            if self.machine.recorder is not None:
                self.machine.recorder.bind(operation)
            self.in_flight.append(operation)

    def complete(self, operation: AsyncOperation) -> None:
        """Completes an operation in flight: its effect takes place."""
        self.in_flight.remove(operation)
        operation.run()
        operation.done = True

    def note_mma(self, mma: OperandReads) -> None:
        """Notes that an mma was issued."""
        component = mma.access.component
        if component not in self._mma:
            self._mma[component] = deque(maxlen=RECENT)
        self._mma[component].append(mma)

    def last_mma(self, component: Component) -> Sequence[OperandReads]:
        """The most recent mma operations of one thread, at most `RECENT` of them."""
        return self._mma.get(component, ())

    def finish(self) -> None:
        """Completes all operations in flight."""
        while self.in_flight:
            self.complete(next(o for o in self.in_flight if o.ready))

    def step(self) -> bool:
        """Gives one agent a turn or completes one operation; returns False if neither is
        possible.
        """
        ready = [o for o in self.in_flight if o.ready]
        runnable = [a for a in self.agents if a.runnable]
        if self.order is None:
            if ready:
                self.complete(ready[0])
            elif runnable:
                # Round robin, so that an agent that polls does not starve the others.
                min(runnable, key=lambda a: a.turns).advance()
            else:
                return False
            return True
        if not ready and not runnable:
            return False
        chosen = self.order.pick(ready, runnable)
        if isinstance(chosen, AsyncOperation):
            self.complete(chosen)
        else:
            self.order.advance(chosen)
        return True

    @property
    def progress(self) -> int:
        """A count that grows whenever an agent does something other than polling."""
        return sum(a.progress for a in self.agents)

    @property
    def size(self) -> int:
        """Number of CTAs in the cluster."""
        return len(self.ctas)

    @property
    def ended(self) -> bool:
        """Whether all agents have ended and no operation is in flight."""
        return not self.in_flight and all(a.ended for a in self.agents)

    def end(self) -> None:
        """Ends the cluster; adds a finding for each operation that is still unfinished."""
        for cta in self.ctas:
            cta.tmem.has_permit = False
            if self.machine.checking:
                cta.at_exit()

    def forget(self) -> None:
        """Breaks the reference cycles of a cluster that has ended, so that its memories are freed
        at once. Python's garbage collector starts after a number of objects, not of bytes, and
        would free these few large memories much later.
        """
        for cta in self.ctas:
            cta.agents.clear()
            cta.tmem.forget()
            if cta.smem.shadow is not None:
                cta.smem.shadow.owner = None
        for agent in self.agents:
            agent.forget()
        self.agents.clear()
        self.ctas.clear()
        self._mma.clear()

    def deadlock(self) -> Deadlock:
        """Returns the error of a deadlock, which lists each agent with its wait, root causes first.
        Also reports, as a finding, bytes that an mbarrier expects and that did not arrive.
        """
        waiting = [a for a in self.agents if not a.ended]
        where = f"CTA {self.ctas[0].index}" + (
            f" to {self.ctas[-1].index}" if len(self.ctas) > 1 else ""
        )
        for cta in self.ctas:
            for barrier in cta.mbarriers.values():
                if barrier.tx and not barrier.pending:
                    cta.report(
                        "error",
                        "expect-tx-mismatch",
                        (barrier.announced or (0, barrier.site))[1],
                        "the deadlock",
                        f"the announced and the arrived bytes differ by {barrier.tx}: {barrier}",
                    )

        found = [(agent, p) for agent in waiting for p in agent.pending()]
        found.sort(key=lambda each: each[1].rank)
        groups: dict[str, tuple[list[str], Pending]] = {}
        for agent, pending in found:
            lanes = pending.lanes if pending.lanes & WARP != WARP else 0
            name = agent.name if len(self.ctas) == 1 else agent.who
            one = f"{name}, {lane_words(lanes)}" if lanes else name
            groups.setdefault(pending.text, ([], pending))[0].append(one)
        lines = [
            f"{'; '.join(names)} wait{'s' * (names[1:] == [] and 'lanes' not in names[0])} for "
            + pending.text
            + (f"\n        {pending.barrier.lacks}" if pending.barrier and not n else "")
            for n, (names, pending) in enumerate(groups.values())
        ]
        return Deadlock(
            "deadlock",
            f"{where}: no agent can go on:" + "".join(f"\n    {line}" for line in lines),
            site=waiting[0].site if waiting else None,
        )
