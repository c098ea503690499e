"""A block of a grid: the clusters that one process executes."""

from __future__ import annotations

import itertools
import math

from tcir.interp.ptx.lockstep.launch import Lockstep
from tcir.machine import Cta, Machine


class TogetherError(Exception):
    """The CTAs of the grid have to run in one process."""


def clusters(machine: Machine) -> int:
    """How many clusters the grid has."""
    return math.prod(machine.grid) // math.prod(machine.cluster)


def blocks(count: int, jobs: int) -> list[range]:
    """So many clusters in at most so many blocks, in the order of the grid."""
    jobs = min(jobs, count)
    ends = [count * n // jobs for n in range(jobs + 1)]
    return [range(low, high) for low, high in itertools.pairwise(ends)]


class Part:
    """See `tcir.machine.engine.machine.Followers`: leaves the clusters of other blocks out.

    lockstep: what executes CTAs of this block together, if anything does (`join`)
    """

    def __init__(self, machine: Machine, mine: range) -> None:
        self.machine, self.mine = machine, mine
        self.lockstep: Lockstep | None = None
        self._extents = [g // c for g, c in zip(machine.grid, machine.cluster, strict=True)]

    def join(self, lockstep: Lockstep) -> None:
        """Has CTAs of this block executed together; a launch in lockstep has clusters of one."""
        self.lockstep = lockstep
        lockstep.leave_out(range(self.mine.start))
        lockstep.leave_out(range(self.mine.stop, clusters(self.machine)))

    def executed(self, index: tuple[int, ...]) -> bool:
        """Whether a cluster is another block's, or was executed in lockstep."""
        x, y, _ = self._extents
        if index[0] + x * (index[1] + y * index[2]) not in self.mine:
            return True
        return self.lockstep is not None and self.lockstep.executed(index)

    def ended(self, cta: Cta) -> int:
        """Called when a CTA has ended; `TogetherError` as soon as it is in vain."""
        others = 0 if self.lockstep is None else self.lockstep.ended(cta)
        self.check()
        return others

    def check(self) -> None:
        """`TogetherError` for what one process has to find, or to order."""
        if self.machine.findings:
            raise TogetherError("findings")
        if any(owner is None for owner, *_ in self.machine.strong):
            raise TogetherError("atomics or strong accesses of global memory")
