"""Divergence of a warp: groups of lanes, each group with its own program counter.

Lanes that disagree on a branch become separate groups. The group with the lowest program counter
runs, and groups that reach the same instruction merge (min-PC reconvergence, which is a legal
schedule under independent thread scheduling). A group whose wait fails, or that keeps spinning,
yields, so that the lanes for which it waits can run.
"""

from __future__ import annotations

from collections.abc import Iterator

READY, BLOCKED, YIELDED = range(3)
"""BLOCKED: at a collective instruction that other lanes have to reach first. YIELDED: ready again
once no other group is."""

_NOWHERE = 1 << 62


class Group:
    """Lanes with the same program counter."""

    __slots__ = ("mask", "pc", "state")

    def __init__(self, pc: int, mask: int, state: int = READY) -> None:
        self.pc, self.mask, self.state = pc, mask, state


class Divergence:
    """The running group of a warp (the lanes `mask`, at the instruction `pc`) and the warp's other
    groups. mask is 0 while no group runs.

    spins:  backward branches that the running group has taken since it was chosen
    stops:  program counters of the other groups, ascending
    lowest: program counter of the first ready group
    """

    __slots__ = ("lowest", "mask", "others", "pc", "spins", "stops")

    def __init__(self, mask: int) -> None:
        self.pc, self.mask, self.spins = 0, mask, 0
        self.others: list[Group] = []
        self.update()

    def update(self) -> None:
        """Updates the cached program counters after the other groups have changed."""
        self.stops = sorted([g.pc for g in self.others])
        ready = [g.pc for g in self.others if g.state == READY]
        self.lowest = min(ready) if ready else _NOWHERE

    def groups(self) -> Iterator[Group]:
        """All groups, the running one first."""
        if self.mask:
            yield Group(self.pc, self.mask)
        yield from self.others

    def add(self, *groups: Group) -> None:
        self.others += groups
        self.update()

    def reconverge(self) -> None:
        """Merges the groups whose program counter is `pc`; afterwards the ready group with the
        lowest program counter is the running one.
        """
        while self.pc >= self.lowest or self.pc in self.stops:
            if self.pc in self.stops:
                for group in self.others:
                    if group.pc == self.pc:
                        self.mask |= group.mask
                self.others = [g for g in self.others if g.pc != self.pc]
            for group in self.others:
                if group.pc == self.lowest < self.pc and group.state == READY:
                    group.pc, self.pc = self.pc, group.pc
                    group.mask, self.mask = self.mask, group.mask
                    self.spins = 0
            self.update()

    def next_stop(self) -> int:
        """Position of the first instruction after `pc` at which another group is stopped."""
        for stop in self.stops:
            if stop > self.pc:
                return stop
        return _NOWHERE

    def leave(self, state: int) -> None:
        """Stops the running group at its current instruction; `resume` then chooses another
        group.
        """
        self.add(Group(self.pc, self.mask, state))
        self.mask = 0

    def stay(self, lanes: int) -> None:
        """Stops some lanes of the running group at its current instruction, which is collective."""
        self.add(Group(self.pc, lanes, BLOCKED))
        self.mask &= ~lanes

    def release(self, group: Group, lanes: int) -> None:
        """Lets some lanes of a blocked group continue after its current instruction."""
        group.mask &= ~lanes
        self.others = [g for g in self.others if g.mask]
        if lanes:
            self.add(Group(group.pc + 1, lanes))

    def resume(self) -> bool:
        """Runs the ready group with the lowest program counter; returns False if there is none."""
        for group in self.others:
            if group.state == READY and group.pc == self.lowest:
                self.others.remove(group)
                self.pc, self.mask, self.spins = group.pc, group.mask, 0
                self.update()
                return True
        return False

    def others_run(self) -> bool:
        """Whether another group can run, and so may end the wait of this group."""
        return any(g.state != BLOCKED for g in self.others)

    def wake(self) -> None:
        """Makes the groups that yielded ready again."""
        for group in self.others:
            if group.state == YIELDED:
                group.state = READY
        self.update()
