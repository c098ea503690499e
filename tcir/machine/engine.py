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
from tcir.machine.hazards import Finding, Findings
from tcir.machine.mbarrier import Mbarrier
from tcir.machine.memory import GlobalMemory, SharedMemory, TensorMemory
from tcir.machine.operation import NamedBarrier, Operation

Triple = tuple[int, int, int]


class Cta:
    """One CTA: its shared memory, tensor memory, mbarriers, agents and operations in flight."""

    def __init__(self, machine: Machine, index: Triple, rank: int) -> None:
        self.machine = machine
        self.index = index
        self.rank_in_cluster = rank
        self.smem = SharedMemory(machine.static_smem + machine.dynamic_smem, machine.checking)
        self.tmem = TensorMemory(machine.checking)
        self.mbarriers: dict[int, Mbarrier] = {}
        self.barriers: dict[int, NamedBarrier] = {}
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

    def launch(self, operation: Operation) -> None:
        """Takes an asynchronous operation: at once in prompt order, else some time later."""
        if self.machine.rng is None and operation.ready:
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
        rng = self.machine.rng
        ready = [o for o in self.in_flight if o.ready]
        runnable = [a for a in self.agents if a.runnable]
        if rng is None:
            if ready:
                self.complete(ready[0])
                return True
            if not runnable:
                return False
            # Round robin, so that an agent that polls does not starve the others.
            chosen = min(runnable, key=lambda a: a.turns)
            chosen.advance()
            return True
        choices = len(ready) + len(runnable)
        if not choices:
            return False
        pick = rng.randrange(choices)
        if pick < len(ready):
            self.complete(ready[pick])
        else:
            runnable[pick - len(ready)].advance()
        return True

    def run(self) -> None:
        """Until every agent has ended and every operation is complete."""
        polled = 0
        while any(not a.ended for a in self.agents) or self.in_flight:
            before = sum(a.progress for a in self.agents)
            if not self.step():
                raise self._deadlock()
            if self.in_flight or sum(a.progress for a in self.agents) != before:
                polled = 0
            else:
                polled += 1
                if polled > self.machine.patience:
                    raise self._deadlock()
        self._at_exit()

    def _deadlock(self) -> Deadlock:
        lines = [
            f"{a.name} waits for {a.waiting_for or 'its own polling loop'}"
            for a in self.agents
            if not a.ended
        ]
        sites = [a.site for a in self.agents if not a.ended]
        return Deadlock(
            "deadlock",
            f"CTA {self.index}: no agent can go on: " + "; ".join(lines),
            site=sites[0] if sites else None,
        )

    def _at_exit(self) -> None:
        for base, columns in self.tmem.allocations.items():
            self.report(
                "error", "tensor-memory-leak", f"{columns} columns at {base}",
                "the end of the kernel",
                "tcgen05.dealloc: the next CTA on the SM would wait forever",
            )  # fmt: skip
        for barrier in self.mbarriers.values():
            if barrier.tx:
                self.report(
                    "error", "expect-tx-mismatch", barrier.site, "the end of the kernel",
                    f"the announced and the arrived bytes differ by {barrier.tx}: {barrier}",
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
        self.rng: random.Random | None = None
        self.patience = 10_000
        """Steps of polling agents without any progress before the run counts as a deadlock."""

    def run(self, start: Callable[[Cta], Sequence[Agent]]) -> None:
        """Runs the grid, one CTA after the other, each with the agents ``start(cta)`` makes.

        CTAs of one launch must not wait for each other; clusters of more than one CTA are not
        modelled.
        """
        if self.cluster != (1, 1, 1):
            raise NotModelled(f"clusters of more than one CTA, got {self.cluster}")
        total = self.grid[0] * self.grid[1] * self.grid[2]
        indices = itertools.product(*(range(n) for n in reversed(self.grid)))
        for number, (z, y, x) in enumerate(indices):
            if self.order_seed is not None:
                self.rng = random.Random(f"{self.order_seed}/{number}")
            cta = Cta(self, (x, y, z), 0)
            start(cta)
            cta.run()
            if self.progress is not None:
                self.progress(number + 1, total)
