"""The lanes of a warp as separate threads (PTX ISA 8: program order holds only between the accesses
of one thread).

The accesses of a warp are numbered in one sequence for all lanes, and shadow memory records the
lane of each access. In a clock, ``clock[me]`` is the number up to which the accesses of *every*
lane are observed. ``lane_line(me, lane)`` is a component of its own for one lane; its number is at
least as large, and up to it the accesses of this lane are observed.

Lanes that have observed the same accesses share one `Knowledge`. A lane that waits alone gets its
own `Knowledge` until bar.warp.sync, a barrier or another `.aligned` instruction joins the lanes
again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tcir.machine.order.clocks import BY_WARP, REACHES, Access, Clock, Component, join, observed

WARP = (1 << 32) - 1
TOGETHER = 32
"""Pseudo-lane of an access that several lanes make together and that is not split by lane."""
EACH = 33
"""The lane of what each of several does: what one of them has seen of it is enough."""
LANE = "lane"

LaneNumbers = NDArray[np.int64] | int
"""The lane of each row of granules, or the one of all."""


def lane_line(component: Component, lane: int) -> Component:
    """Component of one lane's accesses; its numbers are those of the warp's accesses."""
    return (LANE, component, lane)


def members(mask: int) -> Iterator[int]:
    """The lanes of a mask."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def observed_of(clock: Clock, access: Access, lanes: int, mark: str | None = None) -> bool:
    """Whether the part of ``access`` that these lanes made is observed or, with ``mark``, covered
    by the fence of that mark.

    With `EACH`, or if the access has no lanes, the whole access is meant. Asynchronous accesses
    belong to no lane.
    """
    if access.cta is None:
        return False

    def known(lane: int) -> bool:
        line = lane_line(access.component, lane)
        return clock.get((mark, line) if mark else line, 0) >= access.number

    if not lanes or lanes >> EACH & 1:
        return any(known(lane) for lane in range(TOGETHER))
    return all(known(lane) for lane in members(lanes))


def known_to(clock: Clock, access: Access) -> bool:
    """Whether an operation with ``clock`` is ordered after ``access``, whichever lanes made the
    access.
    """
    return observed(clock, access) or observed_of(clock, access, access.lanes)


@dataclass(eq=False)
class Knowledge:
    """The accesses that some or all lanes of a warp have observed.

    after: accesses observed at the last tcgen05.fence::after_thread_sync
    fenced: accesses, by reach, that relaxed writes and arrivals release because of a fence; the
        lane's own accesses are left out
    seen: accesses, by reach, that relaxed reads and waits returned; a later fence makes them
        observed
    read: version, and reach of the acquire, of the last strong read of each place; the reach of a
        relaxed read is -1
    """

    lanes: int
    clock: Clock
    after: Clock = field(default_factory=dict)
    fenced: list[Clock] = field(default_factory=lambda: [{} for _ in range(REACHES)])
    seen: list[Clock] = field(default_factory=lambda: [{} for _ in range(REACHES)])
    read: dict[Hashable, tuple[int, int]] = field(default_factory=dict)

    def part(self, lanes: int) -> Knowledge:
        """Splits off some of the lanes, whose knowledge is separate from now on."""
        self.lanes &= ~lanes
        return Knowledge(
            lanes,
            dict(self.clock),
            dict(self.after),
            [dict(c) for c in self.fenced],
            [dict(c) for c in self.seen],
            dict(self.read),
        )

    def absorb(self, other: Knowledge) -> None:
        """Merges the knowledge of both groups of lanes."""
        self.lanes |= other.lanes
        join(self.clock, other.clock)
        join(self.after, other.after)
        for mine, theirs in zip(self.fenced + self.seen, other.fenced + other.seen, strict=True):
            join(mine, theirs)
        self.read.clear()  # only saves joining again what was joined before

    def equals(self, other: Knowledge) -> bool:
        """Whether both groups of lanes have observed the same accesses."""
        return (self.clock, self.after, self.fenced, self.seen) == (
            other.clock,
            other.after,
            other.fenced,
            other.seen,
        )


class Lanes:
    """The accesses that the lanes of one agent have observed. An agent that is not a warp is one
    thread: see `separate`.

    knows: knowledge of the executing lanes. active: mask of these lanes; 0: all lanes of the warp
        together. number: number of their current accesses.
    """

    def __init__(self, me: Component) -> None:
        self.me = me
        self.number = 1
        self.separate = False
        self.active = 0
        self.knows = Knowledge(WARP, {me: 1})
        self.groups = [self.knows]
        self._gone: Clock = {}
        self._last = np.zeros(EACH + 1, np.int64)
        self._latest = 0
        self._fenced_at = np.zeros((REACHES, TOGETHER), np.int64)
        """The number at each lane's last fence, by reach."""
        self._fenced = False

    def keep_apart(self, live: int) -> None:
        """Treats the lanes as different threads from now on."""
        self.separate = True
        self.knows.lanes = live
        self.knows.clock[self.me] = 0

    # --- which lanes execute ---------------------------------------------------------------------

    def parts(self, lanes: int) -> Iterator[int]:
        """Yields the lanes in groups with equal knowledge; while a group is yielded, its lanes are
        the active ones.
        """
        for knowledge in list(self.groups):
            if part := lanes & knowledge.lanes:
                self.knows, self.active = knowledge, part
                yield part
        self._merge_equal()

    def together(self) -> None:
        """Merges the knowledge of all lanes of the warp, because they execute an `.aligned`
        instruction together.
        """
        self.active = 0
        if len(self.groups) > 1:
            first, *others = self.groups
            for other in others:
                first.absorb(other)
            self.groups, self.knows = [first], first

    def learn(self) -> None:
        """Separates the knowledge of the active lanes from that of the other lanes, because only
        the active lanes are about to observe an access.
        """
        if self.active and self.knows.lanes & ~self.active:
            self.knows = self.knows.part(self.active)
            self.groups.append(self.knows)

    def converge(self, lanes: int) -> None:
        """elect.sync of these lanes. On silicon it orders earlier accesses of the whole warp before
        later accesses of each of these lanes; no document guarantees this.
        """
        if self.separate and all(not group.lanes & ~lanes for group in self.groups):
            for group in self.groups:
                group.clock[(BY_WARP, self.me)] = self.number
            self.step()

    def synchronise(self, lanes: int) -> None:
        """bar.warp.sync: orders the earlier accesses of these lanes before the later accesses of
        these lanes.
        """
        if not self.separate:
            return
        if all(not group.lanes & ~lanes for group in self.groups):
            self.together()
            self.knows.clock[self.me] = self.number
        elif len(self.groups) > 1 or self._unsynchronised() & lanes:
            joint = Knowledge(0, {self.me: 0})
            for group in self.groups:
                if group.lanes & lanes:
                    joint.absorb(group.part(group.lanes & lanes))
            self.groups = [group for group in self.groups if group.lanes] + [joint]
            self.knows, self.active = joint, lanes
            for lane in members(self._unsynchronised() & lanes):
                joint.clock[lane_line(self.me, lane)] = self.number
        self.step()

    def exit(self, lanes: int) -> None:
        """Records that lanes have ended."""
        for group in self.groups:
            if group.lanes & lanes:
                join(self._gone, group.clock)
                group.lanes &= ~lanes
        left = [group for group in self.groups if group.lanes]
        if left:
            self.groups = left
            if not self.knows.lanes:
                self.knows = left[0]

    def _merge_equal(self) -> None:
        if len(self.groups) == 1:
            return
        kept: list[Knowledge] = []
        for group in self.groups:
            same = next((k for k in kept if k.equals(group)), None)
            if same is None:
                kept.append(group)
            else:
                same.lanes |= group.lanes
                if group is self.knows:
                    self.knows = same
        self.groups = kept

    @property
    def line(self) -> Component:
        """Component of the current accesses: that of the lane if a single lane executes, otherwise
        that of the warp.
        """
        return lane_line(self.me, self.active.bit_length() - 1) if self._one else self.me

    @property
    def _one(self) -> bool:
        """Whether a single lane executes."""
        return self.active > 0 and not self.active & (self.active - 1)

    def sees(self, line: Component, number: int, mark: str | None = None) -> bool:
        """Whether the active lanes have observed the events of a component up to `number`. If it is
        the component of a warp, one lane's part of it is enough. mark: whether they know the events
        by this mark.
        """

        def known(seen: Component) -> bool:
            return self.knows.clock.get((mark, seen) if mark else seen, 0) >= number

        if line in (self.line, self.me) or known(line):
            return True
        warp = line[1] if line[0] == LANE else line
        assert isinstance(warp, tuple)
        lanes = () if line[0] == LANE else range(TOGETHER)
        return known(warp) or any(known(lane_line(warp, lane)) for lane in lanes)

    # --- their accesses --------------------------------------------------------------------------

    def step(self) -> None:
        """Increases the number that later accesses receive."""
        self.number += 1
        if not self.separate:
            self.knows.clock[self.me] = self.number

    def touch(self, lanes: LaneNumbers) -> None:
        """Records that these lanes made an access; `TOGETHER` stands for all active lanes."""
        self._latest = self.number
        if not isinstance(lanes, int) and lanes[0] != TOGETHER:
            self._last[lanes] = self.number
        elif self.active in (0, WARP):
            self._last[:TOGETHER] = self.number
        else:
            self._last[list(members(self.active))] = self.number

    def _unsynchronised(self) -> int:
        """Lanes with an access that not all others know of."""
        known = self.knows.clock[self.me]
        if self._latest <= known:
            return 0
        late = np.packbits(self._last[:TOGETHER] > known, bitorder="little")
        return int.from_bytes(late.tobytes(), "little")

    def done(self) -> Clock:
        """Clock of the active lanes' own accesses, and of the accesses of other lanes that they
        have observed."""
        late = self._unsynchronised() if self.separate and self.active else 0
        if not late & ~self.active:
            return {self.me: self.number}
        own = {lane_line(self.me, lane): self.number for lane in members(self.active)}
        return {self.me: self.knows.clock[self.me], **own}

    def publish(self) -> Clock:
        """Returns a copy of the active lanes' knowledge, including their own accesses."""
        published = {**self.knows.clock, **self.done()}
        self.step()
        return published

    def fence(self, reach: int) -> None:
        """Executes a release fence for each active lane."""
        own = self.done() if self._one or not self.separate else {}
        now = {**self.knows.clock, **own}
        for near in range(reach + 1):
            self.knows.fenced[near] = now
            self._fenced_at[near][list(members(self.active or WARP))] = self.number
        self._fenced = True
        self.step()

    def fenced(self, reach: int) -> Clock:
        """Accesses that a relaxed write or arrival of the active lanes releases: those that the
        lanes' fences covered, and each lane's own accesses before its last fence.
        """
        clock = self.knows.fenced[reach]
        if not self.separate or not self._fenced:
            return clock
        lanes = list(members(self.active or self.knows.lanes))
        numbers = dict(zip(lanes, self._fenced_at[reach][lanes].tolist(), strict=True))
        own: Clock = {}
        if all(not group.lanes & ~(self.active or WARP) for group in self.groups):
            own[self.me] = min(numbers.values())
        known = max(clock.get(self.me, 0), own.get(self.me, 0))
        own |= {lane_line(self.me, lane): n for lane, n in numbers.items() if n > known}
        behind = {line: n for line, n in own.items() if clock.get(line, 0) < n}
        return {**clock, **behind} if behind else clock

    def of_ended(self) -> Clock:
        """Knowledge of an agent that has ended, including its own accesses."""
        return {**self.everything(), self.me: self.number}

    def everything(self) -> Clock:
        """Accesses that any lane of the warp has observed, including lanes that have ended."""
        known = dict(self._gone)
        for group in self.groups:
            join(known, group.clock)
        return known
