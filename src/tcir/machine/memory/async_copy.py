"""cp.async: copies of single threads from global to shared memory (PTX ISA 9.7.9.25.3).

Each lane has groups of its own. What the warp may rely on is kept as a prefix of its operations:
those that every lane that issued them has waited for.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.engine.agent import Agent
from tcir.machine.engine.operation import Operation
from tcir.machine.order.hazards import Access

ALL_LANES = (1 << 32) - 1


@dataclass(eq=False)
class _Copy:
    operation: Operation
    number: int
    lanes: int
    groups: NDArray[np.int64]  # of the 32 lanes, at the time of issue
    waited: int = 0


class CopyQueue:
    """The cp.async operations of one warp."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.component = (("cp.async",), agent.me)
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
        site: Any,
    ) -> None:
        """`nbytes` to each shared address; only the first `read[n]` come from memory, rest zero."""
        agent = self.agent
        agent._at(site)
        memory, where = agent.place("shared", targets, nbytes, site)
        agent.spare_mbarriers(where, site, "written")
        agent.machine.counters.global_load += int(read.sum())
        agent.machine.counters.shared_store += where.size
        self.issued += 1
        access = Access(self.component, self.issued, "cp.async", site)
        inside = np.arange(nbytes) < read[:, None]
        buffer, places = _sources(agent, sources, inside, nbytes, site)
        if agent.machine.checking:
            agent.note_write(memory.shadow, np.unique(where // memory.granule), access)
            if buffer is not None:
                read_there = np.unique(places[inside] // buffer.granule)
                agent.note_read(buffer.shadow, read_there, access)

        def run() -> None:
            data = np.zeros(where.shape, np.uint8)
            if buffer is not None:
                data[inside] = buffer.data[places[inside]]
                if buffer.defined is not None and not buffer.defined[places[inside]].all():
                    agent.cta.report(
                        "error", "undefined-read", site, "global memory",
                        "nothing wrote the bytes before",
                    )  # fmt: skip
            memory.data[where] = data
            memory.defined[where] = True

        operation = Operation(site, run)
        self.copies.append(_Copy(operation, self.issued, lanes, self.groups))
        agent.cta.launch(operation)

    def commit(self, lanes: int) -> None:
        """cp.async.commit_group by these lanes."""
        self.groups = self.groups + (np.array([lanes]) >> np.arange(32) & 1)

    def wait(self, lanes: int, pending: int | None, *, site: Any) -> Generator[Any, Any, None]:
        """cp.async.wait_group; None: all copies, of open groups too (wait_all)."""
        agent = self.agent
        agent._at(site)
        limit = self.groups + 1 if pending is None else self.groups - pending
        needed = []
        for copy in self.copies:
            late = np.flatnonzero(copy.groups < limit)
            mine = copy.lanes & lanes & int(sum(1 << int(lane) for lane in late))
            if mine:
                copy.waited |= mine
                needed.append(copy.operation)
        yield from agent._wait(
            lambda: all(o.done for o in needed), lambda: f"cp.async groups at {site}"
        )
        while self.copies and not self.copies[0].lanes & ~self.copies[0].waited:
            agent.clock[self.component] = self.copies.pop(0).number

    def arrive(self, lanes: int, addresses: list[int], increment: bool, *, site: Any) -> None:
        """cp.async.mbarrier.arrive: an arrival per lane once the lane's earlier copies are done."""
        agent = self.agent
        agent._at(site)
        after = tuple(c.operation for c in self.copies if c.lanes & lanes)
        issued = agent.release()
        if self.copies and all(not c.lanes & ~lanes | c.waited for c in self.copies):
            issued[self.component] = self.copies[-1].number
        for address in addresses:
            barrier = agent._mbarrier(address, site)
            if increment:
                barrier.pending += 1

            def run(barrier: Any = barrier) -> None:
                barrier.arrive(1, issued, site)

            agent.cta.launch(Operation(site, run, after=after))


def _sources(
    agent: Agent, sources: NDArray[np.int64], inside: NDArray[np.bool_], nbytes: int, site: Any
) -> tuple[Any, Any]:
    """The buffer and the indices of what is read; lanes that read nothing may point anywhere."""
    reading = inside[:, 0]
    if not reading.any():
        return None, None
    addresses = np.where(reading, sources, sources[reading][0])
    widths = np.where(reading, inside.sum(axis=1), 1)
    low, high = int(addresses.min()), int((addresses + widths).max())
    buffer = agent.machine.memory.find(low, high, site)
    agent.watch(buffer)
    return buffer, addresses[:, None] - buffer.base + np.arange(nbytes)
