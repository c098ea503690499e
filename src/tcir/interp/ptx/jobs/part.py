"""A part of a grid: the clusters that one process executes."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import Protocol

from tcir.interp.ptx.launch import LaunchState
from tcir.machine import Cta, Machine

PIECE = 8
"""Clusters of a piece that is not cut further."""


class TogetherError(Exception):
    """Raised if all CTAs of the grid have to run in one process."""


def clusters(machine: Machine) -> int:
    """Number of clusters in the grid."""
    return math.prod(machine.grid) // math.prod(machine.cluster)


def blocks(clusters: Sequence[int], jobs: int) -> list[Sequence[int]]:
    """Divides clusters into at most `jobs` blocks that should take equal time.

    Each block has a part of the grid's first half, a part of half of the rest, and so on. Clusters
    at the end of the grid (tails) take longer in lockstep, so every block gets some of them;
    neighbouring clusters stay in one block because they share pages of memory.
    """
    count = min(jobs, len(clusters))
    cut: list[list[int]] = [[] for _ in range(count)]
    start, left = 0, len(clusters)
    while left:
        size = left // 2 if left >= 4 * count * PIECE else left
        for n, block in enumerate(cut):
            low, high = (start + size * each // count for each in (n, n + 1))
            block.extend(clusters[low:high])
        start, left = start + size, left - size
    return list(cut)


class JoinedLockstep(Protocol):
    """Executes further CTAs in lockstep with the CTAs that the machine runs."""

    def ended(self, cta: Cta) -> int: ...

    def executed(self, index: tuple[int, ...]) -> bool: ...

    def only(self, numbers: Sequence[int]) -> None: ...


class GridPart:
    """Restricts a launch to some clusters of the grid; see `tcir.machine.engine.machine.Followers`.

    mine:     the numbers of the clusters that are executed
    lockstep: if set (by `join`), executes CTAs of these clusters together
    """

    def __init__(self, machine: Machine, mine: Sequence[int]) -> None:
        self.machine, self.mine = machine, mine
        self.lockstep: JoinedLockstep | None = None
        self._mine: Container[int] = mine if isinstance(mine, range) else frozenset(mine)
        self._extents = [g // c for g, c in zip(machine.grid, machine.cluster, strict=True)]

    def join(self, lockstep: JoinedLockstep) -> None:
        """Lets `lockstep` execute CTAs of this part. In such a launch each cluster has one CTA."""
        self.lockstep = lockstep
        lockstep.only(self.mine)

    def executed(self, index: tuple[int, ...]) -> bool:
        """Whether a cluster need not run: it is not in this part, or was already executed in
        lockstep.
        """
        if self._number(index) not in self._mine:
            return True
        return self.lockstep is not None and self.lockstep.executed(index)

    def _number(self, index: tuple[int, ...]) -> int:
        """Number of a cluster in the grid."""
        x, y, _ = self._extents
        return index[0] + x * (index[1] + y * index[2])

    def ended(self, cta: Cta) -> int:
        """Called when a CTA has ended."""
        return 0 if self.lockstep is None else self.lockstep.ended(cta)


class Block(GridPart):
    """The clusters that one worker executes. Raises `TogetherError` as soon as one process has to
    run the whole grid.

    printed: printed text of the CTAs, by the number of their cluster
    """

    def __init__(self, launch: LaunchState, mine: Sequence[int]) -> None:
        super().__init__(launch.machine, mine)
        self.printed: dict[int, str] = {}
        self._launch, self._known = launch, len(launch.output)

    def ended(self, cta: Cta) -> int:
        if texts := self._launch.output[self._known :]:
            x, y, z = (i // c for i, c in zip(cta.index, self.machine.cluster, strict=True))
            self.printed[self._number((x, y, z))] = "".join(texts)
            self._known += len(texts)
        others = super().ended(cta)
        self.check()
        return others

    def check(self) -> None:
        """Raises `TogetherError` for any event that only one process can report or put into
        order.
        """
        if self.machine.findings:
            raise TogetherError("findings")
        if any(owner is None for owner, *_ in self.machine.strong):
            raise TogetherError("atomics or strong accesses of global memory")
