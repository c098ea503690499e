"""Clusters whose CTAs share SMs, and so tensor memory: they run side by side (PTX ISA 9.7.16.7)."""

from __future__ import annotations

from collections.abc import Sequence

from tcir.machine.engine.cluster import Cluster
from tcir.machine.errors import Deadlock

PATIENCE = 8
"""Turns of each agent without progress after which its cluster is set aside for others."""


class Residents:
    """Clusters whose CTAs share SMs, rank by rank: mostly one. They take turns."""

    def __init__(self, clusters: Sequence[Cluster]) -> None:
        self.clusters = list(clusters)
        self._going = list(clusters)

    @property
    def size(self) -> int:
        return sum(cluster.size for cluster in self.clusters)

    @property
    def progress(self) -> int:
        return sum(cluster.progress for cluster in self.clusters)

    def run(self, limit: int = 0) -> bool:
        """Until every agent has ended and every operation is complete: True.

        False when all that still run have polled for a while, or for `limit` steps, so that only
        other clusters could help. Deadlock when not even that.
        """
        polled, progress = 0, -1
        while self._going:
            moved = False
            for cluster in list(self._going):
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

    def poll_again(self) -> bool:
        """Wakes agents that wait in loops which may give up; whether there are any."""
        return sum(a.poll_again() for cluster in self._going for a in cluster.agents) > 0

    def forget(self) -> None:
        for cluster in self.clusters:
            cluster.forget()

    def deadlock(self) -> Deadlock:
        """Who waits for what, in all of them."""
        found = [cluster.deadlock() for cluster in self._going]
        if len(found) == 1:
            return found[0]
        return Deadlock("deadlock", "\n    ".join(d.message for d in found), site=found[0].site)
