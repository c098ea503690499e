"""The machine: CTAs and the launch of a grid of them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from tcir.errors import LaunchError
from tcir.machine.assumptions import Assumptions
from tcir.machine.counters import Counters
from tcir.machine.engine.agent import Agent
from tcir.machine.engine.cluster import Cluster
from tcir.machine.engine.completion_order import CompletionOrder
from tcir.machine.engine.cta import Cta
from tcir.machine.engine.residents import Residents
from tcir.machine.errors import MachineError, NotModelled
from tcir.machine.findings import Findings
from tcir.machine.memory.effects import Effect
from tcir.machine.memory.memories import GlobalMemory
from tcir.machine.memory.protocols import AgentProtocol, Triple
from tcir.machine.memory.tensor_memory import Sm
from tcir.machine.order.strong import Place, Writes
from tcir.machine.placement import Placement
from tcir.machine.recorder import Recorder
from tcir.run_options import DEFAULT_OPTIONS, RunOptions
from tcir.target import DEFAULT_TARGET

RESIDENT = DEFAULT_TARGET.sms
"""CTAs that may be under way at once: the SMs of a B200. A launch whose CTAs wait for each other
may count on no more than one per SM."""


class Followers(Protocol):
    """Executes CTAs beside those that the machine runs."""

    def ended(self, cta: Cta) -> int:
        """Called when a CTA has ended; the number of CTAs that were executed after its example."""

    def executed(self, index: tuple[int, ...]) -> bool:
        """Whether a CTA was among them."""


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
        self.programmatic = False
        """Whether the launch may start before the one in front of it has ended."""
        self.options = options
        self.checking = options.hazards == "report"
        self.assumptions = (options.assumptions or Assumptions()).under(options.ordering)
        self.progress = progress
        self.memory = GlobalMemory()
        self.strong: dict[Place, Writes] = {}
        """What strong reads of each place observe."""
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

    def take_over(self) -> Triple | None:
        """The first CTA of a cluster that is not launched and now never will be; None: declined.

        Hardware may decline while there still is one, so a seed makes some requests fail.
        """
        if self.options.order_seed is not None and self._rng.random() < 0.25:
            return None
        _, place = next(self._waiting, (0, None))
        if place is None:
            return None
        x, y, z = (p * c for p, c in zip(reversed(place), self.cluster, strict=True))
        return x, y, z

    @property
    def who(self) -> str:
        """The agent whose turn it is, as a report names it; "": none."""
        return "" if self.running is None else self.running.who

    def run(
        self, start: Callable[[Cta], Sequence[Agent]], followers: Followers | None = None
    ) -> None:
        """Runs the grid, each CTA with the agents ``start(cta)`` makes; some may be `followers`.

        One cluster after the other; one that only polls is parked until others have run, as
        many CTAs as there are SMs. What ends the run takes the hazards found before with it.
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
            for at, origin in buffer.stored_undefined() if buffer.result else ():
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
        self._waiting = enumerate(itertools.product(*map(range, reversed(extents))))
        for first in self._waiting:
            if followers is not None and followers.executed(first[1][::-1]):
                continue
            sms = [Sm(self.assumptions.alloc_permit == "owned") for _ in range(size)]
            places = [first, *itertools.islice(self._waiting, self.ctas_per_sm - 1)]
            clusters = [self._cluster(number, place, sms) for number, place in places]
            for cluster in clusters:
                for cta in cluster.ctas:
                    start(cta)
                cluster.agents.extend(a for cta in cluster.ctas for a in cta.agents)
            group, others = Residents(clusters), 0
            if group.run():
                if followers is not None:
                    others = followers.ended(clusters[0].ctas[0])
                group.forget()
            else:
                parked.append(group)
            if sum(g.size for g in parked) >= RESIDENT * self.ctas_per_sm:
                parked = _resume(parked, self.spin_limit)
            for count in itertools.chain((size * len(clusters),), itertools.repeat(1, others)):
                started += count
                if self.progress is not None:
                    self.progress(started - sum(g.size for g in parked), total)
        while parked:
            parked = _resume(parked, self.spin_limit)
            if self.progress is not None:
                self.progress(total - sum(g.size for g in parked), total)

    def _cluster(self, number: int, place: tuple[int, ...], sms: list[Sm]) -> Cluster:
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

    If none moves, each polls up to the limit: a wait may give up. Deadlock if none does.
    """
    for limit in (0, spin_limit):
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
