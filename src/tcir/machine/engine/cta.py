"""A CTA of the simulated machine: its memories, barriers and agents."""

from __future__ import annotations

from collections.abc import Hashable

from tcir.machine.engine.agent import Agent, Body
from tcir.machine.findings import Finding, Unpromised
from tcir.machine.memory.memories import RANK_SHIFT, SharedMemory
from tcir.machine.memory.protocols import ClusterProtocol, MachineProtocol, Triple, WarpgroupPart
from tcir.machine.memory.tensor_memory import SmTensorMemory, TensorMemory
from tcir.machine.memory.undefined import Origin
from tcir.machine.order.clocks import BEYOND, Access, Clock, Component, join, observed_beyond
from tcir.machine.order.collected import Collected
from tcir.machine.order.involved import Involved
from tcir.machine.order.lanes import known_to, observed_of
from tcir.machine.order.mbarrier import Mbarrier
from tcir.machine.order.register_pool import RegisterPool
from tcir.machine.order.rounds import BarrierRound
from tcir.machine.order.unpromised import (
    ACCESS_THEN_RELAXED_BARRIER,
    RELAXED_BARRIER,
    RELEASING_ARRIVAL,
    SPARE_PHASE,
    STORE_AT_THE_END,
)
from tcir.machine.sync.mbarriers import MBARRIER_OPERATION


class Cta:
    """One CTA: its shared memory, tensor memory, mbarriers and agents."""

    def __init__(
        self,
        machine: MachineProtocol,
        index: Triple,
        cluster: ClusterProtocol,
        sm: SmTensorMemory,
    ) -> None:
        self.machine = machine
        self.index = index
        self.cluster = cluster
        self.rank_in_cluster = len(cluster.ctas)
        self.window = self.rank_in_cluster << RANK_SHIFT
        """The address of its window of shared memory."""
        self.shared = self.window + machine.shared_start
        """The address of the first byte in it that is the kernel's."""
        self.launch = cluster.launch
        self.smem = SharedMemory(
            size := machine.static_smem + machine.dynamic_smem,
            machine.checking,
            dynamic=machine.dynamic_smem,
            start=machine.shared_start,
        )
        pick = machine.placement.columns(index, machine.block, size)
        zeros = machine.assumptions.alloc_content == "zeros"
        self.tmem = TensorMemory(machine.checking, zeros, pick, sm, f"CTA {index}", self)
        if self.smem.shadow is not None:
            self.smem.shadow.owner = self
        self.mbarriers: dict[int, Mbarrier] = {}
        """The live ones, by offset in the CTA's window."""
        self.all_mbarriers: list[Mbarrier] = []
        self.barriers: dict[int, BarrierRound] = {}
        """The uses of named barriers that are under way."""
        self.last_rounds: dict[int, BarrierRound] = {}
        """Previous round of each named barrier."""
        self.register_pool = RegisterPool()
        self.agents: list[Agent] = []
        self.remote_accesses: dict[Component, Access] = {}
        self.acquired_maps: dict[int, dict[Component, tuple[int, Clock]]] = {}
        """The last access of each component of another CTA to this one's memories."""
        self.collectors: dict[str, Collected] = {}
        """The tensor core's buffers for operands: "a", "b0" to "b3"; of a pair at its even CTA."""
        self.warpgroups: dict[int, dict[int, tuple[tuple[Hashable, ...], object]]] = {}
        self.warpgroup_parts: dict[int, list[WarpgroupPart]] = {}

    def agent(
        self,
        name: str,
        *,
        warp: int,
        threads: int = 32,
        body: Body,
    ) -> Agent:
        """Adds an agent of ``threads`` threads that runs ``body(agent)``."""
        agent = Agent(self, name, warp, threads, body)
        self.agents.append(agent)
        return agent

    @property
    def exited(self) -> bool:
        """Whether all agents of the CTA have ended; false for a CTA that has no agents yet."""
        return bool(self.agents) and all(a.ended for a in self.agents)

    def report(
        self,
        severity: str | Unpromised,
        code: str,
        first: object,
        second: object,
        missing: str,
        involved: Involved | None = None,
    ) -> None:
        """Adds a finding of this CTA: an "error", a "warning", or an `Unpromised` ordering, whose
        severity the ordering profile decides.

        involved: threads and bytes of two conflicting accesses; None: the finding is about the
            running agent.
        """
        if not self.machine.checking:
            return
        unpromised = None
        if isinstance(severity, Unpromised):
            unpromised, missing = severity, f"{missing}: {severity}"
            severity = "warning" if self.machine.options.ordering == "silicon" else "error"
        one, other, kind = str(first), str(second), involved.kind if involved else ""
        findings = self.machine.findings
        if findings.again((code, one, other, kind)) or findings.full(severity):
            return
        who, place = involved.words() if involved else (self.machine.who, "")
        findings.append(
            Finding(severity, code, one, other, missing, self.index, unpromised, kind, who, place)
        )

    def report_relaxed(
        self, first: object, second: object, promise: Unpromised, involved: Involved | None = None
    ) -> None:
        """Adds a finding that two operations are separated only by relaxed arrivals at a cluster
        barrier.
        """
        self.report(promise, RELAXED_BARRIER, first, second, RELEASING_ARRIVAL, involved)

    def report_undefined(self, origin: Origin, use: object) -> None:
        """Adds a finding that the operation at `use` depends on undefined bits."""
        if self.machine.checking:
            for finding in origin.findings(use, self.machine.who):
                self.machine.findings.append(finding)

    # --- the end ---------------------------------------------------------------------------------

    def at_exit(self) -> None:
        """Called when the CTA ends; reports the operations that it leaves unfinished."""
        end = "the end of the kernel"
        for base, columns in self.tmem.allocations.items():
            self.report(
                "error",
                "tensor-memory-leak",
                f"{columns} columns at {base}",
                end,
                "tcgen05.dealloc: the next CTA on the SM would wait forever",
            )
        if self.register_pool.done:
            for agent in self.agents:
                agent.registers.at_exit()
        known: Clock = {}
        for agent in self.agents:
            join(known, agent.lanes.everything())
        met = dict(known)
        for agent in self.agents:
            join(met, agent.met)
        check_remote_accesses(self, known, met)
        for barrier in self.all_mbarriers:
            if barrier.tx and barrier.live:
                self.report(
                    SPARE_PHASE if barrier.spare else "error",
                    "expect-tx-mismatch",
                    barrier.site,
                    end,
                    f"the announced and the arrived bytes differ by {barrier.tx}: {barrier}",
                )
            if known.get(barrier.tma, 0) < barrier.loads:
                _, site = barrier.users[barrier.tma]
                self.report(
                    "error",
                    "never-awaited",
                    site,
                    end,
                    f"a wait for its bytes: it may write shared memory after the CTA has ended "
                    f"({barrier})",
                )
        for agent in self.agents:
            if known.get(agent.bulk.reads, 0) < agent.bulk.issued:
                self.report(
                    STORE_AT_THE_END,
                    "never-awaited",
                    agent.bulk.last,
                    end,
                    "cp.async.bulk.commit_group and wait_group.read",
                )
            if agent.wgmma.complete < agent.wgmma.issued:
                self.report(
                    "error",
                    "never-awaited",
                    agent.wgmma.last,
                    end,
                    "wgmma.commit_group and wait_group",
                )
            if not agent.wgmma.issued:
                continue
            group = [a.wgmma.issued for a in self.agents if a.warp // 4 == agent.warp // 4]
            if len(set(group)) > 1 and agent.wgmma.issued == max(group):
                self.report(
                    "error",
                    "warpgroup",
                    agent.wgmma.last,
                    end,
                    f"the other warps of the warpgroup: they issued {group} wgmma",
                )


def check_remote_accesses(cta: Cta, known: Clock, met: Clock) -> None:
    """Reports each access by another CTA to the memory of ``cta`` that may happen after ``cta`` has
    ended.

    known: accesses that the agents of ``cta`` have observed; met: accesses that cluster barriers,
        including relaxed arrivals, put before the end of ``cta``.
    """
    for access in cta.remote_accesses.values():
        first = f"{access.site} ({access.kind} of another CTA)"
        end = f"the end of CTA {cta.index}"
        if known_to(known, access) or (access.kind == MBARRIER_OPERATION and _seen(known, access)):
            continue
        if known_to(met, access):
            cta.report_relaxed(first, end, ACCESS_THEN_RELAXED_BARRIER)
        else:
            cta.report(
                "error",
                "peer-exited",
                first,
                end,
                "a cluster barrier (or an mbarrier that this CTA waits for) between the access to "
                "this CTA's memory and its end",
            )


def _seen(known: Clock, access: Access) -> bool:
    """Whether a wait, whatever its scope, saw that the access is over."""
    return observed_beyond(known, access) or observed_of(known, access, access.lanes, BEYOND)
