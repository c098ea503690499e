"""The machine: CTAs, the scheduler of agents and asynchronous operations, deadlocks."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Generator, Sequence
from typing import Any

from tcir.machine.agent import Agent
from tcir.machine.assumptions import Assumptions
from tcir.machine.counters import Counters
from tcir.machine.errors import Deadlock, NotModelled
from tcir.machine.hazards import Clock, Finding, Findings, join
from tcir.machine.mbarrier import Mbarrier
from tcir.machine.memory import GlobalMemory, SharedMemory, TensorMemory
from tcir.machine.operation import Operation, Round

Triple = tuple[int, int, int]
RESIDENT = 148
"""CTAs that may be under way at once: the SMs of a B200. A launch whose CTAs wait for each other
may count on no more than one per SM."""


class Cta:
    """One CTA: its shared memory, tensor memory, mbarriers, agents and operations in flight."""

    def __init__(self, machine: Machine, index: Triple, rng: random.Random | None) -> None:
        self.machine = machine
        self.index = index
        self.rank_in_cluster = 0
        self.rng = rng
        self.smem = SharedMemory(machine.static_smem + machine.dynamic_smem, machine.checking)
        self.tmem = TensorMemory(machine.checking)
        self.mbarriers: dict[int, Mbarrier] = {}
        """The live ones, by address."""
        self.all_mbarriers: list[Mbarrier] = []
        self.barriers: dict[int, Round] = {}
        self.agents: list[Agent] = []
        self.in_flight: list[Operation] = []

    def agent(
        self,
        name: str,
        *,
        warp: int,
        threads: int = 32,
        body: Callable[[Agent], Generator[Any, Any, None]],
    ) -> Agent:
        """A new agent of ``threads`` threads running ``body(agent)``."""
        agent = Agent(self, name, warp, threads, body)
        self.agents.append(agent)
        return agent

    def report(self, severity: str, code: str, first: Any, second: Any, missing: str) -> None:
        """Adds a finding of this CTA."""
        if self.machine.checking:
            self.machine.findings.append(
                Finding(severity, code, str(first), str(second), missing, self.index)
            )

    # --- scheduling ------------------------------------------------------------------------------

    def launch(self, operation: Operation) -> None:
        """Takes an asynchronous operation: at once in prompt order, else some time later."""
        if self.rng is None and operation.ready:
            operation.run()
            operation.done = True
        else:
            self.in_flight.append(operation)

    def complete(self, operation: Operation) -> None:
        """Lets an operation in flight take effect."""
        self.in_flight.remove(operation)
        operation.run()
        operation.done = True

    def step(self) -> bool:
        """One step of an agent or one completion; False when nothing can move."""
        ready = [o for o in self.in_flight if o.ready]
        runnable = [a for a in self.agents if a.runnable]
        if self.rng is None:
            if ready:
                self.complete(ready[0])
            elif runnable:
                # Round robin, so that an agent that polls does not starve the others.
                min(runnable, key=lambda a: a.turns).advance()
            else:
                return False
            return True
        choices = len(ready) + len(runnable)
        if not choices:
            return False
        pick = self.rng.randrange(choices)
        if pick < len(ready):
            self.complete(ready[pick])
        else:
            runnable[pick - len(ready)].advance()
        return True

    @property
    def progress(self) -> int:
        """Grows whenever an agent does something other than polling."""
        return sum(a.progress for a in self.agents)

    def run(self) -> bool:
        """Until every agent has ended and every operation is complete: True.

        False when all that still run poll, so that only another CTA could help. Deadlock when not
        even that.
        """
        polled = 0
        progress = -1
        while self.in_flight or any(not a.ended for a in self.agents):
            if not self.step():
                raise self.deadlock()
            before, progress = progress, self.progress
            polled = polled + 1 if progress == before and not self.in_flight else 0
            if polled > self.machine.patience:
                return False
        self._at_exit()
        return True

    def deadlock(self) -> Deadlock:
        """Who waits for what."""
        waiting = [a for a in self.agents if not a.ended]
        return Deadlock(
            "deadlock",
            f"CTA {self.index}: no agent can go on: "
            + "; ".join(f"{a.name} waits for {a.waiting_for}" for a in waiting),
            site=waiting[0].site if waiting else None,
        )

    # --- the end ---------------------------------------------------------------------------------

    def _at_exit(self) -> None:
        if not self.machine.checking:
            return
        end = "the end of the kernel"
        for base, columns in self.tmem.allocations.items():
            self.report(
                "error", "tensor-memory-leak", f"{columns} columns at {base}", end,
                "tcgen05.dealloc: the next CTA on the SM would wait forever",
            )  # fmt: skip
        known: Clock = {}
        for agent in self.agents:
            join(known, agent.clock)
        for barrier in self.all_mbarriers:
            if barrier.tx and barrier.live:
                self.report(
                    "error", "expect-tx-mismatch", barrier.site, end,
                    f"the announced and the arrived bytes differ by {barrier.tx}: {barrier}",
                )  # fmt: skip
            if known.get(barrier.tma, 0) < barrier.loads:
                _, site = barrier.users[barrier.tma]
                self.report(
                    "error", "never-awaited", site, end,
                    f"a wait for the TMA load: it may write shared memory after the CTA has ended "
                    f"({barrier})",
                )  # fmt: skip
        for agent in self.agents:
            if known.get(agent.bulk_reads, 0) < agent.bulk_issued:
                self.report(
                    "error", "never-awaited", agent.last_bulk, end,
                    "cp.async.bulk.commit_group and wait_group.read: the store may read shared "
                    "memory after the CTA has ended",
                )  # fmt: skip


class Machine:
    """See `tcir.machine`."""

    def __init__(
        self,
        *,
        grid: Triple,
        block: Triple,
        cluster: Triple = (1, 1, 1),
        dynamic_smem: int = 0,
        static_smem: int = 0,
        hazards: str = "report",
        order_seed: int | None = None,
        numerics: str = "exact",
        progress: Callable[[int, int], None] | None = None,
        assumptions: Assumptions | None = None,
    ) -> None:
        if hazards not in ("report", "off"):
            raise ValueError(f"expected hazards 'report' or 'off', got {hazards!r}")
        if numerics not in ("exact", "fast"):
            raise ValueError(f"expected numerics 'exact' or 'fast', got {numerics!r}")
        self.grid, self.block, self.cluster = grid, block, cluster
        self.dynamic_smem, self.static_smem = dynamic_smem, static_smem
        self.checking = hazards == "report"
        self.order_seed = order_seed
        self.numerics = numerics
        self.progress = progress
        self.assumptions = assumptions or Assumptions()
        self.memory = GlobalMemory()
        self.counters = Counters()
        self.findings: list[Finding] = Findings()
        self.patience = 2_000
        """Steps of a CTA without any progress before it counts as waiting for another CTA."""

    def run(self, start: Callable[[Cta], Sequence[Agent]]) -> None:
        """Runs the grid, each CTA with the agents ``start(cta)`` makes.

        One after the other; a CTA that only polls is set aside until others have run, as many as
        there are SMs. Clusters of more than one CTA are not modelled.
        """
        if self.cluster != (1, 1, 1):
            raise NotModelled(f"clusters of more than one CTA, got {self.cluster}")
        total = self.grid[0] * self.grid[1] * self.grid[2]
        aside: list[Cta] = []
        for number, (z, y, x) in enumerate(itertools.product(*map(range, reversed(self.grid)))):
            seed = None if self.order_seed is None else f"{self.order_seed}/{number}"
            cta = Cta(self, (x, y, z), None if seed is None else random.Random(seed))
            start(cta)
            if not cta.run():
                aside.append(cta)
            if len(aside) == RESIDENT:
                aside = _resume(aside)
            if self.progress is not None:
                self.progress(number + 1 - len(aside), total)
        while aside:
            aside = _resume(aside)
            if self.progress is not None:
                self.progress(total - len(aside), total)


def _resume(aside: list[Cta]) -> list[Cta]:
    """Lets CTAs that waited for others go on; those that still wait. Deadlock if none moved."""
    before = sum(cta.progress for cta in aside)
    left = [cta for cta in aside if not cta.run()]
    if len(left) == len(aside) and sum(cta.progress for cta in aside) == before:
        raise aside[0].deadlock()
    return left
