"""Clusters that run concurrently, on separate SMs or on shared ones with shared tensor memory (PTX
ISA 9.7.16.7)."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tcir.machine.engine.cluster import Cluster
from tcir.machine.errors import Deadlock

PATIENCE = 8
"""Turns of each agent without progress after which its cluster is set aside for others."""


class Turns:
    """Turns of clusters under a seed: the seed draws their order, and how many turns a cluster
    takes in a row. Under even seeds a cluster takes one turn, so that equal clusters reach each
    instruction together; under odd seeds up to four.
    """

    def __init__(self, seed: int) -> None:
        self.drawn = random.Random(f"{seed}/turns")
        self.most = 4 if seed % 2 else 1


class Residents:
    """Clusters that run side by side, usually only one. They take turns: `turns` draws the order
    and the number of turns; None: one turn each, in order."""

    def __init__(self, clusters: Sequence[Cluster], turns: Turns | None = None) -> None:
        self.clusters, self._turns = list(clusters), turns
        self._going = list(clusters)

    @property
    def size(self) -> int:
        return sum(cluster.size for cluster in self.clusters)

    @property
    def progress(self) -> int:
        return sum(cluster.progress for cluster in self.clusters)

    def run(self, limit: int = 0) -> bool:
        """Runs the clusters. Returns True once every agent has ended and every operation is
        complete; False if all agents that still run have polled for a while, or for `limit`
        steps, so that only other clusters could help. Raises Deadlock if those could not help
        either."""
        polled, progress = 0, -1
        while self._going:
            moved = False
            for cluster in self._in_turn():
                if cluster.ended:
                    cluster.end()
                    self._going.remove(cluster)
                    moved = True
                else:
                    moved |= cluster.step()
            if not moved and not self.poll_again():
                raise self.deadlock()
            before, progress = progress, self.progress
            flying = any(cluster.in_flight for cluster in self._going)
            polled = polled + 1 if progress == before and not flying else 0
            agents = sum(len(cluster.agents) for cluster in self._going)
            if self._going and polled > (limit or PATIENCE * agents):
                return False
        return True

    def _in_turn(self) -> Iterator[Cluster]:
        """Clusters that take the next turns: each at least one, until it has ended."""
        if self._turns is None or len(self._going) == 1:
            yield from list(self._going)
            return
        order = list(self._going)
        self._turns.drawn.shuffle(order)
        for cluster in order:
            for _ in range(self._turns.drawn.randint(1, self._turns.most)):
                if cluster in self._going:
                    yield cluster

    def poll_again(self) -> bool:
        """Wakes the agents that wait in loops which may give up; returns whether there are such
        agents."""
        return sum(a.poll_again() for cluster in self._going for a in cluster.agents) > 0

    def forget(self) -> None:
        for cluster in self.clusters:
            cluster.forget()

    def deadlock(self) -> Deadlock:
        """Deadlock of all clusters: their agents and waits."""
        found = [cluster.deadlock() for cluster in self._going]
        if len(found) == 1:
            return found[0]
        return Deadlock("deadlock", "\n    ".join(d.message for d in found), site=found[0].site)
