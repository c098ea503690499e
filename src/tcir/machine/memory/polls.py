"""Finds stores to a polled word that may overwrite a value before the polling lane has read it.

A relaxed or volatile store to a word that another lane polls is no data race. Usually it stores the
value that the other lane waits for: it raises a flag or advances a counter. The store is an error
if three conditions hold: the old value would end the wait, the lane may not have read the old value
yet, and the new value would not end the wait. Examples are a flag that is lowered too early, and a
sequence number that passes the awaited number.

A lane is known to have read the old value if the store comes after its poll in memory order. It is
also known to have read the value if, after its poll, it executed a strong store or atomic (an
answer) that the storing lane has read.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.memories import Buffer, SharedMemory
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import Access
from tcir.machine.order.involved import LANES, Involved, meeting
from tcir.machine.order.lanes import TOGETHER, known_to, observed_of
from tcir.machine.order.ordering import MISSING_WARP_SYNC
from tcir.machine.order.strong import Awaited, Strong

Word = tuple[Buffer | SharedMemory, int, int]
"""A word by its memory, first byte and size."""


class Poll(NamedTuple):
    """The last poll of a word by a lane. leaves: tells whether a value ends the wait."""

    access: Access
    leaves: Awaited


class Polls:
    """The polls of a warp. Nothing is recorded until one of its lanes polls."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent = agent
        self._polls: dict[Word, dict[int, Poll]] = {}
        self._heard = np.zeros((0, TOGETHER), np.int64)
        """For each lane (row), the number of the last access of every other lane that it has
        observed."""
        self._told: dict[Word, NDArray[np.int64]] = {}
        """Word -> the row of `_heard` of its writer at the time of the write."""

    def __bool__(self) -> bool:
        """Whether a lane has polled."""
        return bool(self._polls)

    def read(
        self,
        memory: Buffer | SharedMemory,
        where: NDArray[np.int64],
        lanes: NDArray[np.int64] | None,
        strong: Strong,
        access: Access,
    ) -> None:
        """Records that these lanes read a word by a strong load or by an atomic."""
        if lanes is None or (strong.awaited is None and not self):
            return
        if not self:
            self._heard = np.zeros((TOGETHER, TOGETHER), np.int64)
        for lane, word in zip(lanes.tolist(), self._words(memory, where), strict=True):
            if strong.observes and word in self._told:
                np.maximum(self._heard[lane], self._told[word], out=self._heard[lane])
            if strong.awaited is not None:
                self._polls.setdefault(word, {})[lane] = Poll(access, strong.awaited)
            elif word in self._polls and not strong.atomic:
                self._polls[word].pop(lane, None)

    def write(
        self,
        memory: Buffer | SharedMemory,
        where: NDArray[np.int64],
        data: NDArray[np.uint8],
        lanes: NDArray[np.int64] | None,
        strong: Strong,
        access: Access,
    ) -> list[int]:
        """Checks a strong store by these lanes before it takes effect.

        Returns, for each lane, a mask of the lanes that poll the word that it stores to; empty if
        no lane polls.
        """
        if lanes is None:
            return []
        words, masks = self._words(memory, where), []
        for row, (lane, word) in enumerate(zip(lanes.tolist(), words, strict=True)):
            polls = self._polls.get(word, {})
            before, after = memory.data[where[row]].tobytes(), data[row].tobytes()
            for other, poll in polls.items():
                takes = poll.leaves(other, before) and not poll.leaves(other, after)
                if other != lane and takes and not self._has_looked(lane, other, poll.access):
                    self._report(poll.access, access, word, (other, lane))
            masks.append(sum(1 << other for other in polls))
        for lane, word in zip(lanes.tolist(), words, strict=True):
            self._heard[lane, lane] = access.number
            heard = self._heard[lane].copy()
            if strong.atomic and word in self._told:
                np.maximum(heard, self._told[word], out=heard)
            self._told[word] = heard
        return masks if any(masks) else []

    def _words(self, memory: Buffer | SharedMemory, where: NDArray[np.int64]) -> list[Word]:
        return [(memory, first, where.shape[1]) for first in where[:, 0].tolist()]

    def _has_looked(self, lane: int, other: int, poll: Access) -> bool:
        """Whether a lane has observed that another lane's poll is over."""
        clock = self.agent.clock
        known = known_to(clock, poll) or observed_of(clock, poll, 1 << other)
        return known or bool(self._heard[lane, other] >= poll.number)

    def _report(self, poll: Access, access: Access, word: Word, two: tuple[int, int]) -> None:
        memory, first, size = word
        cta, space = self.agent.cta, "shared" if isinstance(memory, SharedMemory) else "global"
        who = [(f"{self.agent.name}, lane {lane}", cta.index) for lane in two]
        cta.report(
            "error",
            "race",
            f"{poll.site} (a lane polls {space} memory)",
            f"{access.site} (another lane overwrites what it waits for)",
            "no data race, as both are relaxed or volatile, but the lane may read too late and "
            f"wait forever: wait for an answer of that lane first, or {MISSING_WARP_SYNC}",
            Involved(LANES, partial(meeting, who, memory.words, (first, first + size))),
        )
