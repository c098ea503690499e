"""CTAs that share an SM: its tensor memory is one, and they run side by side (PTX ISA 9.7.16.7).

An allocation belongs to its CTA, and what it holds is undefined at first; so each CTA keeps words
of its own, and what they share is which columns are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import Deadlock

if TYPE_CHECKING:
    from tcir.machine.engine.cluster import Cluster
    from tcir.machine.memory.memories import TensorMemory


class Sm:
    """The tensor memories of the CTAs on one SM; `permits`: whether its first user keeps it."""

    def __init__(self, permits: bool = False) -> None:
        self.permits = permits
        self.memories: list[TensorMemory] = []

    def taken(self) -> NDArray[np.bool_]:
        """The columns that nobody can have now."""
        return np.logical_or.reduce([m.allocated for m in self.memories])

    def closed(self, asking: TensorMemory, exclusive: bool) -> bool:
        """Whether an exclusive allocation, or the permit of another CTA, keeps this one out."""
        others = [m for m in self.memories if m is not asking]
        return (
            any(m.exclusive for m in self.memories)
            or (exclusive and any(m.allocations for m in self.memories))
            or (self.permits and any(m.has_permit for m in others))
        )

    def holders(self, asking: TensorMemory) -> str:
        """Who has columns, in words."""
        return "".join(
            f"; {'it' if m is asking else m.name} has {m.columns()}"
            for m in self.memories
            if m.allocations
        )


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

    def run(self) -> bool:
        """Until every agent has ended and every operation is complete: True.

        False when all that still run poll, so that only other clusters could help. Deadlock when
        not even that.
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
            if not moved:
                raise self.deadlock()
            before, progress = progress, self.progress
            flying = any(cluster.in_flight for cluster in self._going)
            polled = polled + 1 if progress == before and not flying else 0
            if self._going and polled > self._going[0].machine.patience:
                return False
        return True

    def forget(self) -> None:
        for cluster in self.clusters:
            cluster.forget()

    def deadlock(self) -> Deadlock:
        """Who waits for what, in all of them."""
        found = [cluster.deadlock() for cluster in self._going]
        if len(found) == 1:
            return found[0]
        return Deadlock("deadlock", "; ".join(d.message for d in found), site=found[0].site)
