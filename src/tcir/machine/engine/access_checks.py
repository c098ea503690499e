"""Checks whether each memory access of an agent is ordered after the earlier accesses to the same
bytes, and records the access.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tcir.machine.engine.conflict import check_ordered, check_unordered, involved
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import EARLIER, Access, Component, morally_strong, observed
from tcir.machine.order.lane_shadow import Granules
from tcir.machine.order.lanes import EACH, TOGETHER, LaneNumbers, known_to, observed_of
from tcir.machine.order.ordering import MISSING_WARP_SYNC
from tcir.machine.order.shadow import ByLane, Shadow
from tcir.machine.order.touch import Same, Touch

MOST_CONCURRENT = 64
"""Unordered strong writes to one place that are remembered: a later access that is not ordered with
one of those before them goes unnoticed."""


class AccessChecks:
    """Checks the accesses of one agent against all earlier accesses."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent = agent
        self.cta, self.lanes, self.me = agent.cta, agent.lanes, agent.me

    def note_read(
        self,
        shadow: Shadow | None,
        where: Granules,
        access: Access,
        *,
        lanes: NDArray[np.int64] | None = None,
    ) -> None:
        """Checks and records a read of the granules ``where``.

        lanes: the lane that reads each row of the granules; None: the active lanes read all rows.
        """
        if shadow is not None:
            touch = Touch(shadow, where, access, False, self._who(lanes))
            self._check(touch)
            by = self._by_lane(touch)
            shadow.record_read(where, access, by, self._known_to_all)
            self._visit(shadow, access)

    def _who(self, lanes: NDArray[np.int64] | None) -> LaneNumbers | None:
        """The lane of each row, or of all; None: all lanes of a warp, or no warp."""
        active = self.lanes.active
        if lanes is not None or not active:
            return lanes if self.lanes.separate else None
        return TOGETHER if active & (active - 1) else active.bit_length() - 1

    def _by_lane(self, touch: Touch) -> ByLane | None:
        """Lanes that make the access about to be recorded; None: all together, or another agent."""
        if touch.access.lanes and touch.lanes is not None:
            self.lanes.touch(touch.lanes)
            return ByLane(touch.lanes, self._known_to_all)
        if touch.access.component == self.me:
            self.lanes.touch(TOGETHER)
        return None

    def _known_to_all(self, access: Access) -> bool:
        return known_to(self.lanes.knows.clock, access)

    def note_constant(self, shadow: Shadow | None, where: Granules, access: Access) -> None:
        """Checks and records a read of memory that no thread may write during the launch."""
        if shadow is not None:
            for writer in shadow.writers_at(where):
                if writer.component == EARLIER:
                    touch = Touch(shadow, where, access, False, self._who(None))
                    self._pair(touch, writer, wrote=True)
                else:
                    self._not_constant(access, writer, shadow, where, wrote=True)
            shadow.record_constant(where, access)

    def _not_constant(
        self, load: Access, write: Access, shadow: Shadow, where: Granules, *, wrote: bool
    ) -> None:
        other, access = (write, load) if wrote else (load, write)
        touch = Touch(shadow, where, access, not wrote, self._who(None))
        self.cta.report(
            "error",
            "non-coherent-load",
            load.site,
            write.site,
            "a plain load: the launch writes these bytes, and no barrier or fence orders the "
            "non-coherent path (PTX ISA 9.7.9.9)",
            involved(self.agent, touch, other, wrote=wrote),
        )

    def note_write(
        self,
        shadow: Shadow | None,
        where: Granules,
        access: Access,
        *,
        lanes: NDArray[np.int64] | None = None,
        same: Same = False,
        visit: bool = True,
    ) -> None:
        """Checks and records a write of the granules ``where``.

        lanes: the lane that writes each row of the granules; None: the active lanes write all rows
        same: whether the write stores bytes equal to those that memory contains, or will contain
            after the stores in flight
        visit: whether the CTA that owns the memory must not end before the write
        """
        if shadow is not None:
            if shadow.constant is not None:
                for reader in shadow.constant_at(where):
                    self._not_constant(reader, access, shadow, where, wrote=False)
            touch = Touch(shadow, where, access, True, self._who(lanes), same)
            concurrent = self._check(touch)
            if by := self._by_lane(touch):
                shadow.lanes_write(where, by.lanes)
            if concurrent:
                for earlier, part in shadow.parts(where):
                    shadow.record_write(
                        part, replace(access, concurrent=self._concurrent(earlier, access))
                    )
            else:
                shadow.record_write(where, access)
            if visit:
                self._visit(shadow, access)

    def check_exchange(
        self,
        shadow: Shadow | None,
        where: Granules,
        access: Access,
        lanes: NDArray[np.int64] | None,
        *,
        write: bool,
        polled: Sequence[int] = (),
    ) -> None:
        """Checks a relaxed or volatile load or store by which the lanes of a warp exchange words:
        each lane accesses its own word, then the words of the other lanes.

        Such an exchange is no data race, but the loaded values depend on timing. Polling is allowed
        for a word that a single lane writes, and for a word that all lanes write.

        polled: the lanes that poll the word that each of `lanes` overwrites
            (`tcir.machine.memory.polls`)
        """
        touch = Touch(shadow, where, access, write, self._who(lanes)) if shadow else None
        if touch is None or touch.lanes is None:
            return
        earlier = [(other, True) for other in touch.shadow.writers_at(where)]
        if write:
            earlier += [(other, False) for other in touch.shadow.readers_at(where)]
        for other, wrote in earlier:
            both = other.lanes & access.lanes
            ours = other.component == self.me and other.strong and both & (both - 1)
            if not ours or observed(self.lanes.knows.clock, other):
                continue
            mine = touch.shadow.other_lanes(where, other, touch.lanes, wrote) & ~(1 << EACH)
            if mine and polled and not wrote:
                mine = _but(polled, touch, other) & ~(1 << EACH)
            if mine and not observed_of(self.lanes.knows.clock, other, mine):
                verb = f"{'write' if wrote else 'read'} {touch.shadow.space}"
                self.cta.report(
                    "error",
                    "race",
                    f"{other.site} (lanes {verb}, each its own place)",
                    f"{access.site} (lanes {'write' if write else 'read'} each other's)",
                    "no data race, as both are relaxed or volatile, but what is read depends on "
                    f"timing: {MISSING_WARP_SYNC}",
                    involved(self.agent, touch, other, wrote=wrote),
                )

    def check_write(self, shadow: Shadow | None, where: Granules, access: Access) -> None:
        """Checks a write without recording it; the caller records another write that stands for
        it.
        """
        if shadow is not None:
            self._check(Touch(shadow, where, access, True, self._who(None)))

    def _concurrent(self, earlier: list[Access], access: Access) -> tuple[Access, ...]:
        """Strong accesses that neither race with `access` nor are ordered before it, the last of
        each component: later accesses must be ordered after them as well."""
        last: dict[Component, Access] = {}
        for other in earlier:
            if morally_strong(other, access) and not observed(self.lanes.knows.clock, other):
                known = last.get(other.component)
                if known is None or known.number < other.number:
                    last[other.component] = other
        kept = list(last.values())[-MOST_CONCURRENT:]
        return tuple(replace(a, concurrent=()) if a.concurrent else a for a in kept)

    def _visit(self, shadow: Shadow, access: Access) -> None:
        """The owner of the memory must not end before."""
        if shadow.owner is not None and shadow.owner is not self.cta:
            shadow.owner.remote_accesses[access.component] = access

    def _check(self, touch: Touch) -> bool:
        """True if it is concurrent with an earlier strong write of another agent."""
        concurrent, access, clock = False, touch.access, self.lanes.knows.clock
        for last in touch.shadow.writers_at(touch.where):
            for other in (last, *last.concurrent):
                if not morally_strong(other, access) or observed(clock, other):
                    self._pair(touch, other, wrote=True)
                elif other.component != self.me:
                    concurrent = True
        if touch.write:
            for other in touch.shadow.readers_at(touch.where):
                if not morally_strong(other, access):
                    self._pair(touch, other, wrote=False)
            for other in touch.shadow.beside_at(touch.where):
                # Which of its lanes is not kept: what is known of one will do.
                own = other.component == self.me
                known = own or observed(clock, other) or observed_of(clock, other, 0)
                if not known and not morally_strong(other, access):
                    self._pair(touch, other, wrote=False)
        return concurrent

    def has_observed(self, shadow: Shadow, where: Granules, other: Access) -> bool:
        """Whether the active lanes have observed ``other``, the last write to the granules."""
        if observed(self.lanes.knows.clock, other):
            return True
        own = Access(self.me, self.lanes.number, "", None)
        touch = Touch(shadow, where, own, False, self._who(None))
        return self._lanes_observed(touch, other, wrote=True)

    def _lanes_observed(self, touch: Touch, other: Access, *, wrote: bool) -> bool:
        """Whether an access was observed, where single lanes of a warp, this one or another, did
        it."""
        own = other.component == self.me
        if not other.lanes:
            return own or observed_of(self.lanes.knows.clock, other, 0)
        if own and touch.lanes is None:
            return True  # all lanes of the warp together
        mine = touch.lanes if own and touch.lanes is not None else TOGETHER
        lanes = touch.shadow.other_lanes(touch.where, other, mine, wrote)
        if own:
            lanes &= ~(1 << EACH)  # its own lane did the same
        else:
            lanes = lanes or other.lanes  # a later reader's lanes may have replaced them
        return not lanes or observed_of(self.lanes.knows.clock, other, lanes)

    def _pair(self, touch: Touch, other: Access, *, wrote: bool) -> None:
        known = observed(self.lanes.knows.clock, other)
        if known or self._lanes_observed(touch, other, wrote=wrote):
            check_ordered(self.agent, touch, other, wrote)
        else:
            check_unordered(self.agent, touch, other, wrote)


def _but(polled: Sequence[int], touch: Touch, other: Access) -> int:
    """Lanes of an earlier read, except those that poll the bytes that each lane of `touch`
    overwrites."""
    found, where = 0, cast("NDArray[np.int64] | tuple[NDArray[np.int64], ...]", touch.where)
    for row, (lane, lanes) in enumerate(zip(cast("list[int]", touch.lanes), polled, strict=True)):
        each = slice(row, row + 1)
        part = tuple(w[each] for w in where) if isinstance(where, tuple) else where[each]
        found |= touch.shadow.other_lanes(part, other, int(lane), False) & ~lanes
    return found
