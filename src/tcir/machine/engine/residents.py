"""Clusters that run concurrently: on separate SMs, or on shared SMs, whose tensor memory they share
(PTX ISA 9.7.16.7).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tcir.machine.engine.cluster import Cluster
from tcir.machine.errors import Deadlock

PATIENCE = 8
"""Turns of each agent without progress after which its cluster is set aside for others."""


class Turns:
    """Draws from a seed the order of the clusters, and the number of turns that a cluster takes in
    a row.

    Under an even seed a cluster takes one turn at a time, so that clusters that execute the same
    instructions reach each instruction together. Under an odd seed it takes one to four turns in a
    row.
    """

    def __init__(self, seed: int) -> None:
        self.drawn = random.Random(f"{seed}/turns")
        self.most = 4 if seed % 2 else 1


class Residents:
    """Clusters that run side by side; usually there is only one. They take turns, whose order and
    number `turns` draws. If `turns` is None, each cluster takes one turn, in order.
    """

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
        """Runs the clusters.

        Returns True once every agent has ended and every operation is complete. Returns False if
        all agents that still run have polled for a while, or for `limit` steps, so that only
        clusters that are not resident could end the wait. Raises Deadlock if no other cluster could
        end it either.
        """
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
        """Wakes the agents that wait in loops that may give up; returns whether any agent was
        woken.
        """
        return sum(a.poll_again() for cluster in self._going for a in cluster.agents) > 0

    def forget(self) -> None:
        for cluster in self.clusters:
            cluster.forget()

    def deadlock(self) -> Deadlock:
        """The deadlock of all these clusters, with the waits of their agents."""
        found = [cluster.deadlock() for cluster in self._going]
        if len(found) == 1:
            return found[0]
        return Deadlock("deadlock", "\n    ".join(d.message for d in found), site=found[0].site)
