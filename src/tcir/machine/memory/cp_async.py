"""cp.async: copies by single threads from global to shared memory (PTX ISA 9.7.9.25.3).

Each lane has its own groups of copies, but the clock of the warp has one number for all its copies.
The number counts a copy as complete when every lane that issued copies has waited for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.generic import Memory
from tcir.machine.memory.memories import Buffer
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.memory.undefined import Undefined
from tcir.machine.order.clocks import Access, Component
from tcir.machine.order.lanes import members
from tcir.machine.order.mbarrier import Mbarrier
from tcir.machine.order.operation import AsyncOperation, Blocking

ALL_LANES = (1 << 32) - 1


@dataclass(eq=False)
class _Copy:
    operation: AsyncOperation
    number: int
    lanes: int
    groups: NDArray[np.int64]  # of the 32 lanes, at the time of issue
    written: NDArray[np.int64]  # granules of shared memory, a row for each lane
    waited: int = 0


class CpAsync:
    """The cp.async operations of one warp."""

    def __init__(self, agent: AgentProtocol, memory: Memory) -> None:
        self.agent, self.memory = agent, memory
        self.component: Component = (("cp.async",), agent.me)
        self.groups = np.zeros(32, np.int64)
        self.issued = 0
        self.copies: list[_Copy] = []

    def copy(
        self,
        lanes: int,
        targets: NDArray[np.int64],
        sources: NDArray[np.int64],
        nbytes: int,
        read: NDArray[np.int64],
        *,
        site: object,
    ) -> None:
        """Copies `nbytes` to each shared address. The first `read[n]` bytes of copy n come from
        global memory; the rest are zero.
        """
        agent = self.agent
        agent.proceed(site)
        smem, where = self.memory.place("shared", targets, nbytes, site)
        self.memory.spare_mbarriers(where, site, "written")
        agent.machine.counters.global_load += int(read.sum())
        agent.machine.counters.shared_store += where.size
        self.issued += 1
        access = Access(self.component, self.issued, "cp.async", site)
        inside = np.arange(nbytes) < read[:, None]
        buffer, places = self._sources(sources, inside, nbytes, site)
        granules = where[:, :: smem.granule] // smem.granule
        if agent.machine.checking:
            # One row is one lane's, where lanes are threads; a tile has more rows than lanes.
            who = np.array(list(members(lanes))) if agent.lanes.separate else None
            agent.checks.note_write(smem.shadow, granules, access, lanes=who)
            if buffer is not None:
                read_there, index = np.unique(places[inside] // buffer.granule, return_index=True)
                if who is not None:
                    who = np.repeat(who, inside.sum(axis=1))[index]
                agent.checks.note_read(buffer.shadow, read_there, access, lanes=who)

        def run() -> None:
            data = np.zeros(where.shape, np.uint8)
            undefined = None
            if buffer is not None:
                data[inside] = buffer.data[places[inside]]
                unwritten = self.memory.origin("global memory", site)
                if found := buffer.missing(places[inside], unwritten):
                    missing = np.zeros(where.shape, bool)
                    missing[inside] = found.where
                    undefined = Undefined(missing, found.origin)
            smem.data[where] = data
            smem.written(where, undefined, site)

        operation = AsyncOperation(site, run)
        self.copies.append(_Copy(operation, self.issued, lanes, self.groups, granules))
        agent.cta.launch(operation)

    def commit(self, lanes: int) -> None:
        """cp.async.commit_group, executed by these lanes."""
        self.groups = self.groups + (np.array([lanes]) >> np.arange(32) & 1)

    def wait(self, lanes: int, pending: int | None, *, site: object) -> Blocking:
        """cp.async.wait_group. If pending is None, waits for all copies, including those of open
        groups (wait_all).
        """
        agent = self.agent
        agent.proceed(site)
        limit = self.groups + 1 if pending is None else self.groups - pending
        needed = []
        for copy in self.copies:
            late = np.flatnonzero(copy.groups < limit)
            mine = copy.lanes & lanes & int(sum(1 << int(lane) for lane in late))
            if mine:
                copy.waited |= mine
                needed.append(copy.operation)
        yield from agent.wait(
            lambda: all(o.done for o in needed), lambda: f"cp.async groups at {site}"
        )
        agent.lanes.learn()
        while self.copies and not self.copies[0].lanes & ~self.copies[0].waited:
            copy = self.copies.pop(0)
            agent.clock[self.component] = copy.number
            self._complete(copy)

    def _complete(self, copy: _Copy) -> None:
        """Records the bytes that a lane has copied and awaited as its own stores from now on: other
        lanes observe them only after synchronising."""
        shadow, agent = self.agent.cta.smem.shadow, self.agent
        if shadow is not None and agent.lanes.separate:
            lanes = np.array(list(members(copy.lanes)))
            access = agent.own_access("cp.async", copy.operation.site, by_lane=True)
            agent.checks.note_write(shadow, copy.written, access, lanes=lanes)

    def arrive(self, lanes: int, addresses: list[int], increment: bool, *, site: object) -> None:
        """cp.async.mbarrier.arrive: each lane arrives at the mbarrier once its earlier copies are
        complete.
        """
        agent = self.agent
        agent.proceed(site)
        after = tuple(c.operation for c in self.copies if c.lanes & lanes)
        issued = agent.release()
        if self.copies and all(not c.lanes & ~lanes | c.waited for c in self.copies):
            issued[self.component] = self.copies[-1].number
        for address in addresses:
            barrier = agent.mbarrier.at(address, site)
            if increment:
                barrier.pending += 1

            def run(barrier: Mbarrier = barrier) -> None:
                barrier.arrive(1, issued, site)

            agent.cta.launch(AsyncOperation(site, run, after=after))

    def _sources(
        self,
        sources: NDArray[np.int64],
        inside: NDArray[np.bool_],
        nbytes: int,
        site: object,
    ) -> tuple[Buffer | None, NDArray[np.int64]]:
        """Returns the buffer, and the index in it of every byte; lanes that read nothing may point
        anywhere. The buffer is None if no lane reads.
        """
        reading = inside[:, 0]
        if not reading.any():
            return None, sources[:, None]
        addresses = np.where(reading, sources, sources[reading][0])
        widths = np.where(reading, inside.sum(axis=1), 1)
        low, high = int(addresses.min()), int((addresses + widths).max())
        buffer = self.agent.machine.memory.find(low, high, site)
        self.memory.watch(buffer)
        return buffer, addresses[:, None] - buffer.base + np.arange(nbytes)
