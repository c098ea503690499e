"""The simulated machine: executes a launch of a grid of CTAs."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from tcir.errors import LaunchError
from tcir.machine.assumptions import Assumptions
from tcir.machine.counters import Counters
from tcir.machine.engine.agent import Agent
from tcir.machine.engine.cluster import Cluster
from tcir.machine.engine.completion_order import CompletionOrder
from tcir.machine.engine.cta import Cta
from tcir.machine.engine.residency import most_resident
from tcir.machine.engine.residents import Residents, Turns
from tcir.machine.errors import Deadlock, MachineError, NotModelled
from tcir.machine.findings import Findings
from tcir.machine.memory.effects import Effect
from tcir.machine.memory.memories import GlobalMemory
from tcir.machine.memory.protocols import AgentProtocol, Triple
from tcir.machine.memory.shared_names import SharedNames
from tcir.machine.memory.stores_in_flight import StoresInFlight
from tcir.machine.memory.tensor_memory import SmTensorMemory
from tcir.machine.order.loads_in_flight import LoadsInFlight
from tcir.machine.order.strong import AtomicUpdate, Place, StrongWrites
from tcir.machine.placement import Placement
from tcir.machine.recorder import Recorder
from tcir.run_options import DEFAULT_OPTIONS, RunOptions
from tcir.target import DEFAULT_TARGET, Target

ABREAST = 4
"""Clusters that run side by side where they may act on each other, if there are twice as many."""
MANY = 4
"""Groups of CTAs that may all poll up to the limit before a deadlock is reported."""


class Followers(Protocol):
    """Executes further CTAs as copies of CTAs that the machine runs (lockstep)."""

    def ended(self, cta: Cta) -> int:
        """Called when a CTA has ended; returns the number of CTAs that were executed as copies of
        this CTA.
        """

    def executed(self, index: tuple[int, ...]) -> bool:
        """Whether the followers have executed a CTA."""


class Machine:
    """The simulated machine for one launch; `tcir.machine` describes its use."""

    def __init__(
        self,
        *,
        grid: Triple,
        block: Triple,
        cluster: Triple = (1, 1, 1),
        dynamic_smem: int = 0,
        static_smem: int = 0,
        ctas_per_sm: int = 1,
        options: RunOptions = DEFAULT_OPTIONS,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        for axis, g, c in zip("xyz", grid, cluster, strict=True):
            if g % c:
                raise LaunchError(f"grid.{axis}: expected a multiple of the cluster's {c}, got {g}")
        self.grid, self.block, self.cluster = grid, block, cluster
        self.dynamic_smem, self.static_smem = dynamic_smem, static_smem
        self.shared_start = 0
        """The address of the first of these bytes in the window of a CTA; those before it are not
        the kernel's."""
        self.placement = Placement(options)
        self.ctas_per_sm = ctas_per_sm
        """CTAs that share an SM, and run side by side."""
        self.meets = False
        """Whether CTAs may act on each other."""
        self.abreast = 1
        """Clusters that run side by side, each on SMs of its own."""
        self.target = DEFAULT_TARGET
        self.registers = 0
        """Registers of a thread; 0: ptxas chooses the number."""
        self.programmatic = False
        """Whether the launch may start before the previous one has ended."""
        self.options = options
        self.checking = options.hazards == "report"
        self.assumptions = (options.assumptions or Assumptions()).under(options.ordering)
        self.progress = progress
        self.memory = GlobalMemory()
        self.strong: dict[Place, StrongWrites] = {}
        """Strong writes that reads of each place observe."""
        self.loads_in_flight = LoadsInFlight()
        self.shared_names = SharedNames()
        self.stores_in_flight = StoresInFlight()
        self.updates: dict[Place, list[AtomicUpdate]] = {}
        """Changes of each place by a load and a store."""
        self.counters = Counters()
        self.effects: Callable[[Effect | None], None] | None = None
        """Takes what operations of the tensor core do to the memories; None: one that is no
        function of arrays."""
        self.findings = Findings()
        self.recorder: Recorder | None = None
        self.running: AgentProtocol | None = None
        """The agent whose turn it is."""
        self.spin_limit = 2_000
        """Steps of a cluster without progress before it counts as waiting for another one."""
        self.cta_group: tuple[int, object] | None = None
        """The group that the tcgen05 instructions of this kernel use, and the site of the first."""
        self._waiting: Iterator[tuple[int, tuple[int, ...]]] = iter(())
        """Clusters not launched yet."""
        self._rng = random.Random(f"{options.order_seed}/launch control")
        self._turns = None
        if options.order_seed is not None:
            self._turns = Turns(options.order_seed)

    def take_over(self) -> Triple | None:
        """Cancels the launch of a waiting cluster and returns its first CTA; returns None if the
        request is declined.

        The hardware may decline although clusters are waiting; therefore some requests fail if
        there is an order seed.
        """
        if self.options.order_seed is not None and self._rng.random() < 0.25:
            return None
        _, place = next(self._waiting, (0, None))
        if place is None:
            return None
        x, y, z = (p * c for p, c in zip(reversed(place), self.cluster, strict=True))
        return x, y, z

    def on(self, target: Target, registers: int) -> None:
        """Sets, before the run, the target to simulate and the registers per thread, as far as they
        are known.
        """
        self.target, self.registers = target, registers

    def interleave(self, meets: bool) -> None:
        """Chooses, before the run, how many clusters run side by side. meets: whether CTAs may
        interact. If they may and there is an order seed, several clusters run side by side, so that
        no CTA always runs first.
        """
        self.meets = meets
        if meets and self.options.order_seed is not None:
            clusters = math.prod(self.grid) // math.prod(self.cluster)
            self.abreast = min(ABREAST, max(2, clusters // 2))

    @property
    def side_by_side(self) -> int:
        """Number of clusters that run at a time."""
        return self.ctas_per_sm * self.abreast

    @property
    def who(self) -> str:
        """Name of the running agent in a report; "" if none runs."""
        return "" if self.running is None else self.running.who

    def run(
        self, start: Callable[[Cta], Sequence[Agent]], followers: Followers | None = None
    ) -> None:
        """Runs the grid. ``start(cta)`` creates the agents of each CTA; `followers` may execute
        some of the CTAs.

        Clusters run one after the other. A cluster whose agents only poll is set aside until other
        clusters have run; the number of CTAs that are resident at a time is at most the number that
        the SMs of the target can hold. An exception that ends the run contains the hazards found up
        to then.
        """
        try:
            self._run(start, followers)
            self._report_undefined_results()
        except (MachineError, NotModelled) as error:
            error.findings = self.findings.counted()
            raise

    def _report_undefined_results(self) -> None:
        """Findings about bytes that the caller will read, and that a store left undefined."""
        if not self.checking:
            return
        seen = set()
        for buffer in self.memory.buffers:
            for at, origin in buffer.stored_undefined() if buffer.result or buffer.kept else ():
                if (key := (*origin.key, str(origin.stored))) not in seen:
                    seen.add(key)
                    place = buffer.words(at, at + 1)
                    use = f"{origin.stored}, which leaves it in {place}"
                    for finding in origin.findings(use):
                        self.findings.append(finding)

    def _run(self, start: Callable[[Cta], Sequence[Agent]], followers: Followers | None) -> None:
        extents = [g // c for g, c in zip(self.grid, self.cluster, strict=True)]
        size = self.cluster[0] * self.cluster[1] * self.cluster[2]
        total = extents[0] * extents[1] * extents[2] * size
        started = 0
        parked: list[Residents] = []
        self._waiting = enumerate(self._order(itertools.product(*map(range, reversed(extents)))))
        for first in self._waiting:
            if followers is not None and followers.executed(first[1][::-1]):
                continue
            places = [first, *itertools.islice(self._waiting, self.side_by_side - 1)]
            clusters = []
            for n, (number, place) in enumerate(places):
                if n % self.ctas_per_sm == 0:
                    sms = [
                        SmTensorMemory(self.assumptions.alloc_permit == "owned")
                        for _ in range(size)
                    ]
                clusters.append(self._cluster(number, place, sms))
            for cluster in clusters:
                for cta in cluster.ctas:
                    start(cta)
                cluster.agents.extend(a for cta in cluster.ctas for a in cta.agents)
            group, others = Residents(clusters, self._turns), 0
            if group.run():
                if followers is not None:
                    others = followers.ended(clusters[0].ctas[0])
                group.forget()
            else:
                parked.append(group)
            parked = self._make_room(parked, total)
            for count in itertools.chain((size * len(clusters),), itertools.repeat(1, others)):
                started += count
                if self.progress is not None:
                    self.progress(started - sum(g.size for g in parked), total)
        while parked:
            parked = _resume(parked, self.spin_limit)
            if self.progress is not None:
                self.progress(total - sum(g.size for g in parked), total)

    def _order(self, places: Iterable[tuple[int, ...]]) -> Iterable[tuple[int, ...]]:
        """Order in which clusters start (`Assumptions.cta_order`)."""
        if self.assumptions.cta_order == "index":
            return places
        listed = list(places)[::-1]
        if self.options.order_seed is not None:
            random.Random(f"{self.options.order_seed}/clusters").shuffle(listed)
        return listed

    def _make_room(self, parked: list[Residents], total: int) -> list[Residents]:
        """Groups that still wait, once there is room for another one. Deadlock if there never
        is: then only a CTA that has not started could help."""
        size = math.prod(self.cluster)
        least = self.target.sms // size * size
        while (waiting := sum(group.size for group in parked)) >= least:
            ctas = (c for group in parked for cluster in group.clusters for c in cluster.ctas)
            most, why = most_resident(
                self.target,
                self.block,
                self.cluster,
                self.static_smem + self.dynamic_smem,
                self.registers,
                ctas,
            )
            if waiting < max(most, self.ctas_per_sm * least):
                break
            try:
                parked = _resume(parked, self.spin_limit)
            except Deadlock as deadlock:
                deadlock.message += (
                    f"\n    {waiting} of {total} CTAs are resident and wait, and no other can "
                    f"start before one of them ends: {self.target.name} has {self.target.sms} SMs, "
                    f"and {why}"
                )
                raise
        return parked

    def _cluster(self, number: int, place: tuple[int, ...], sms: list[SmTensorMemory]) -> Cluster:
        """The cluster at a place of the grid (z, y, x), a CTA on each SM."""
        seed = self.options.order_seed
        cluster = Cluster(self, None if seed is None else CompletionOrder(seed, number))
        for sm, inside in zip(sms, itertools.product(*map(range, reversed(self.cluster)))):
            z, y, x = (
                p * c + i for p, c, i in zip(place, reversed(self.cluster), inside, strict=True)
            )
            cta = Cta(self, (x, y, z), cluster, sm)
            cluster.ctas.append(cta)
        return cluster


def _resume(parked: list[Residents], spin_limit: int) -> list[Residents]:
    """Lets clusters that waited for others go on; those that still wait.

    If none moves, each polls up to the limit, many of them less often: a wait may give up. Deadlock
    if none does.
    """
    for limit in (0, min(spin_limit, MANY * spin_limit // len(parked))):
        before = sum(group.progress for group in parked)
        left = []
        for group in parked:
            if group.run(limit):
                group.forget()
            else:
                left.append(group)
        if len(left) < len(parked) or sum(group.progress for group in parked) != before:
            return left
    if sum(group.poll_again() for group in parked):
        return parked
    raise parked[0].deadlock()
