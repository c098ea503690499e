"""The core of an agent: its generator, what it waits for, what it has observed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from tcir.machine.engine.cluster import RANK_SHIFT
from tcir.machine.errors import MachineError
from tcir.machine.order.hazards import Access, Clock, Component, Scope
from tcir.machine.order.ordering import Class
from tcir.machine.order.tensor_thread import TensorThread

if TYPE_CHECKING:
    from tcir.machine.engine.machine import Cta

Blocking = Generator[Any, Any, None]


class Waiting:
    """What a blocked agent waits for: runnable again once ``ready()``."""

    def __init__(self, ready: Callable[[], bool], words: Callable[[], str]) -> None:
        self.ready, self.words = ready, words


class Core:
    """Scheduling and clocks; what an agent can do is in the classes built on it."""

    def __init__(
        self, cta: Cta, name: str, warp: int, threads: int, body: Callable[[Any], Blocking]
    ) -> None:
        self.cta, self.name, self.warp, self.threads = cta, name, warp, threads
        self.machine = cta.machine
        self.me: Component = (cta.index, len(cta.agents))
        self.clock: Clock = {self.me: 1}
        self.after_clock: Clock = {}
        """What was observed at the last tcgen05.fence::after_thread_sync."""
        self.fenced: Clock = {}
        """What a relaxed arrival at the cluster's barrier releases: what fences did before."""
        self.inits: list[int] = []
        """Numbers of its mbarrier.init."""
        self.tensor_threads = [TensorThread(self.me, 0, self.machine.assumptions)]
        """Those that issued tensor-core operations; at least one, so that there is a `tensor`."""
        self.tensor = self.tensor_threads[0]
        """The one that issues now."""
        self.pipe_reach: dict[Class, int] = {}
        """What the operation that is being issued comes after, in the pipe."""
        self.pending_ld = self.pending_st = 0
        self.waiting: Waiting | None = None
        self.polls = ""
        """What it looks at again and again without doing anything else, in words."""
        self.ended = False
        self.progress = 0
        """Grows with everything it does except polling."""
        self.turns = 0
        self.site: Any = None
        self._generator = body(self)

    # --- scheduling ------------------------------------------------------------------------------

    @property
    def runnable(self) -> bool:
        """Whether `advance` would do something."""
        return not self.ended and (self.waiting is None or self.waiting.ready())

    @property
    def waiting_for(self) -> str:
        """In words."""
        if self.waiting:
            return self.waiting.words()
        return f"{self.polls or 'nothing in particular'}, in a loop"

    def advance(self) -> None:
        """Runs until the agent ends, blocks or gives way."""
        self.waiting = None
        self.turns += 1
        try:
            self.waiting = next(self._generator)
        except StopIteration:
            self.ended = True
            self.progress += 1

    def pause(self) -> Blocking:
        """Gives way to the other agents (a polling loop)."""
        yield None

    def tick(self, count: int) -> None:
        """Notes ``count`` instructions done; those of a polling loop are no progress."""
        if not self.polls:
            self.progress += count

    def _wait(self, ready: Callable[[], bool], words: Callable[[], str]) -> Blocking:
        while not ready():
            yield Waiting(ready, words)

    def _at(self, site: Any) -> None:
        self.site = site
        self.polls = ""
        self.progress += 1

    # --- the cluster -----------------------------------------------------------------------------

    def cta_of(self, address: int, site: Any, *, own: bool = False) -> Cta:
        """Whose window of shared memory an address is in; ``own``: it has to be this CTA's."""
        rank = address >> RANK_SHIFT
        if rank == self.cta.rank_in_cluster:
            return self.cta
        if own:
            raise MachineError(
                "foreign-shared-memory",
                f"expected an address in this CTA's shared memory ({self.cta.window:#x}, rank "
                f"{self.cta.rank_in_cluster} of its cluster), got {address:#x}, rank {rank}: other "
                "CTAs are reached with .shared::cluster and by what the ISA lists for it",
                site=site,
            )
        return self.cta.cluster.at(rank, site)

    def multicast(self, address: int, cta_mask: int | None, site: Any) -> list[int]:
        """The address, or the ones at its offset in each CTA of a mask."""
        if cta_mask is None:
            return [address]
        if cta_mask <= 0:
            raise MachineError("cta-mask", "expected a CTA in the mask, got none", site=site)
        offset = address & (1 << RANK_SHIFT) - 1
        ranks = [r for r in range(cta_mask.bit_length()) if cta_mask >> r & 1]
        return [self.cta.cluster.at(r, site).window | offset for r in ranks]

    def group(self, cta_group: int, site: Any) -> tuple[Cta, ...]:
        """The CTAs on which a tcgen05 instruction of this group acts, even rank first."""
        known = self.machine.cta_group
        if known is None:
            self.machine.cta_group = (cta_group, site)
        elif known[0] != cta_group:
            raise MachineError(
                "cta-group-mixed",
                f"expected .cta_group::{known[0]} as at {known[1]}, got .cta_group::{cta_group}: "
                "all tcgen05 instructions of a kernel use the same (PTX ISA 9.7.16.5)",
                site=site,
            )
        if cta_group == 1:
            return (self.cta,)
        return self.cta.cluster.pair(self.cta.rank_in_cluster, site).ctas

    def issue_from(self, lane: int) -> None:
        """The tensor-core operations that follow are issued by this lane.

        A commit tracks those of its own thread only, and the pipe keeps only those in order. A role
        of a tile program is one thread and never calls this.
        """
        if self.tensor.lane != lane:
            known = (t for t in self.tensor_threads if t.lane == lane)
            thread = next(known, None)
            if thread is None:
                thread = TensorThread(self.me, lane, self.machine.assumptions)
                self.tensor_threads.append(thread)
            self.tensor = thread

    # --- clocks ----------------------------------------------------------------------------------

    def release(self) -> Clock:
        """A copy of what this agent knows, itself included; later accesses are not covered."""
        published = dict(self.clock)
        self.clock[self.me] += 1
        return published

    def own_access(self, kind: str, site: Any, strong: str | None = None) -> Access:
        """An access that takes effect here and now; strong: its scope."""
        scope = self.scope(strong) if strong else None
        return Access(self.me, self.clock[self.me], kind, site, strong=scope)

    def scope(self, word: str) -> Scope:
        """The scope of a strong operation of this agent: "cta", "cluster", "gpu" or "sys"."""
        return Scope(word, self.cta.index, self.cta.cluster.ctas[0].index)
