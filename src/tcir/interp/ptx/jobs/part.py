"""A part of a grid: the clusters that one process executes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Sequence
from typing import Protocol

from tcir.machine import Cta, Machine


class TogetherError(Exception):
    """The CTAs of the grid have to run in one process."""


def clusters(machine: Machine) -> int:
    """How many clusters the grid has."""
    return math.prod(machine.grid) // math.prod(machine.cluster)


def blocks(clusters: Sequence[int], jobs: int) -> list[Sequence[int]]:
    """These clusters in at most so many blocks, in the order of the grid."""
    count = len(clusters)
    ends = [count * n // min(jobs, count) for n in range(min(jobs, count) + 1)]
    return [clusters[low:high] for low, high in itertools.pairwise(ends)]


class Together(Protocol):
    """Executes CTAs beside those that the machine runs, in lockstep."""

    def ended(self, cta: Cta) -> int: ...

    def executed(self, index: tuple[int, ...]) -> bool: ...

    def only(self, numbers: Sequence[int]) -> None: ...


class Part:
    """See `tcir.machine.engine.machine.Followers`: leaves other clusters out.

    mine: the numbers of the clusters that are executed
    lockstep: what executes CTAs of them together, if anything does (`join`)
    """

    def __init__(self, machine: Machine, mine: Sequence[int]) -> None:
        self.machine, self.mine = machine, mine
        self.lockstep: Together | None = None
        self._mine: Container[int] = mine if isinstance(mine, range) else frozenset(mine)
        self._extents = [g // c for g, c in zip(machine.grid, machine.cluster, strict=True)]

    def join(self, lockstep: Together) -> None:
        """Has CTAs executed together; a launch in lockstep has clusters of one."""
        self.lockstep = lockstep
        lockstep.only(self.mine)

    def executed(self, index: tuple[int, ...]) -> bool:
        """Whether a cluster is none of these, or was executed in lockstep."""
        x, y, _ = self._extents
        if index[0] + x * (index[1] + y * index[2]) not in self._mine:
            return True
        return self.lockstep is not None and self.lockstep.executed(index)

    def ended(self, cta: Cta) -> int:
        """Called when a CTA has ended."""
        return 0 if self.lockstep is None else self.lockstep.ended(cta)


class Block(Part):
    """What a worker executes; `TogetherError` as soon as it is in vain."""

    def ended(self, cta: Cta) -> int:
        others = super().ended(cta)
        self.check()
        return others

    def check(self) -> None:
        """`TogetherError` for what one process has to find, or to order."""
        if self.machine.findings:
            raise TogetherError("findings")
        if any(owner is None for owner, *_ in self.machine.strong):
            raise TogetherError("atomics or strong accesses of global memory")
