"""cp.async.bulk without a tensor map, and bulk groups (PTX ISA 9.7.9.25.4).

These operations move contiguous bytes between global and shared memory; addresses and sizes are
multiples of 16 bytes. Copies to shared memory signal their completion on an mbarrier; copies and
reductions to global memory complete in bulk groups. All accesses use the async proxy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.generic import Memory
from tcir.machine.memory.memories import RANK_SHIFT, Buffer, SharedMemory
from tcir.machine.memory.protocols import AgentProtocol, CtaProtocol
from tcir.machine.memory.reduction import Reduction
from tcir.machine.memory.stores_in_flight import BulkStore
from tcir.machine.memory.undefined import Undefined
from tcir.machine.order.clocks import Access, Component, Scope
from tcir.machine.order.distinct import distinct
from tcir.machine.order.mbarrier import Mbarrier
from tcir.machine.order.operation import AsyncOperation, Blocking

UNIT = 16


@dataclass(frozen=True)
class BulkSource:
    """The bytes to copy, in "global" or "shared" memory."""

    space: str
    address: int
    nbytes: int


class Bulk:
    """An agent's bulk copies and reductions, and the bulk groups in which operations on global
    memory complete.

    An operation of a group records its reads under the component `reads` and its writes under
    `writes`, both with the number `number`, and is passed to `launch`.
    """

    def __init__(self, agent: AgentProtocol, memory: Memory) -> None:
        self.agent, self.memory, self.cta = agent, memory, agent.cta
        self._open: list[AsyncOperation] = []
        self._groups: list[list[AsyncOperation]] = []
        self.last: object = None
        """Site of the last operation that joined a bulk group."""
        self.reads: Component = ("bulk", agent.me)
        self.writes: Component = ("bulk write", agent.me)

    # --- groups ----------------------------------------------------------------------------------

    @property
    def issued(self) -> int:
        """Number of committed bulk groups, plus one if the open group contains an operation."""
        return len(self._groups) + bool(self._open)

    @property
    def number(self) -> int:
        """Number of the open group."""
        return len(self._groups) + 1

    def launch(self, operation: AsyncOperation) -> None:
        """Starts an operation in the open group."""
        self.last = operation.site
        self._open.append(operation)
        self.cta.launch(operation)

    def commit(self, *, site: object) -> None:
        """cp.async.bulk.commit_group."""
        self.agent.proceed(site)
        self._groups.append(self._open)
        self._open = []

    def wait(self, pending: int, read: bool = False, *, site: object) -> Blocking:
        """cp.async.bulk.wait_group(.read): waits until all groups except the last ``pending`` are
        complete.

        With ``read``, only the sources may be reused after the wait; the writes are not yet
        visible.
        """
        self.agent.proceed(site)
        last = max(0, len(self._groups) - pending)
        groups = self._groups[:last]
        yield from self.agent.wait(
            lambda: all(o.done for g in groups for o in g), lambda: f"bulk groups at {site}"
        )
        self.agent.lanes.learn()
        clock = self.agent.clock
        for line in (self.reads,) if read else (self.reads, self.writes):
            clock[line] = max(clock.get(line, 0), last)

    def observe(self) -> None:
        """Records that the agent has observed the completion of all groups."""
        self.agent.clock[self.reads] = self.agent.clock[self.writes] = self.issued

    # --- copies ----------------------------------------------------------------------------------

    def load(
        self,
        target: int,
        source: BulkSource,
        mbar: int,
        *,
        cta_mask: int | None = None,
        ignore: tuple[int, int] = (0, 0),
        reduction: Reduction | None = None,
        scope: str | None = None,
        site: object,
    ) -> None:
        """Copies from global (or shared) memory to shared memory; the bytes count toward the
        mbarrier's tx-count.

        cta_mask: multicasts the data and the signal to the same offsets in each CTA of the mask.
            ignore: number of bytes at the start and at the end that may be outside the source and
            become undefined. reduction: combines the data with the old bytes instead of overwriting
            them. scope: scope of a relaxed copy or reduction.
        """
        agent = self.agent
        space, nbytes = source.space, source.nbytes
        agent.proceed(site)
        for what, value in (("target", target), ("source", source.address), ("size", nbytes)):
            _check(what, value, site)
        for what, value in zip(("start", "end"), ignore, strict=True):
            if not 0 <= value < UNIT:
                raise MachineError(
                    "ignore-oob",
                    f"expected 0..{UNIT - 1} bytes to ignore at the {what}, got {value}",
                    site=site,
                )
        copies = self.destinations(target, mbar, cta_mask, 1, site)
        counters = agent.machine.counters
        counters.global_to_shared += nbytes * len(copies)
        counters.global_to_shared_read += nbytes
        if agent.events is not None:
            agent.events.note(bytes=nbytes, inner_bytes=nbytes)
        first, last = ignore[0], max(ignore[0], nbytes - ignore[1])
        origin, where = None, np.empty((1, 0), np.int64)
        if last > first:
            origin, where = self.memory.place(
                space, np.array([source.address + first]), last - first, site
            )
        at = target & (1 << RANK_SHIFT) - 1
        kind = "TMA reduce" if reduction else "TMA load"
        strong = self._strong(scope, reduction)
        signals = []
        for cta, barrier in copies:
            number = barrier.load(agent.clock)
            signals.append((cta.smem, barrier, number))
            if not nbytes:
                continue
            cta.smem.check(at, at + nbytes, site)
            self.memory.spare_mbarriers(_bytes(at, nbytes), site, "written", cta)
            if agent.machine.checking:
                barrier.users[barrier.tma] = (number, site)
                access = Access(barrier.tma, number, kind, site, "async", strong=strong)
                if origin is not None:
                    copied = strong if reduction is None else None
                    reads = Access(barrier.tma, number, kind, site, "async", strong=copied)
                    agent.checks.note_read(origin.shadow, distinct(where // origin.granule), reads)
                agent.checks.note_write(cta.smem.shadow, slice(at // 4, (at + nbytes) // 4), access)

        def run() -> None:
            place = slice(at + first, at + last)
            for smem, barrier, number in signals:
                if origin is not None:
                    undefined = self._undefined(origin, where[0], space, site)
                    data = origin.data[where[0]]
                    if reduction is not None:
                        before = self._undefined(smem, place, "shared", site)
                        self._use(undefined, before, site)
                        undefined = None
                        data = reduction(smem.data[place], data)
                    smem.data[place] = data
                    smem.written(place, undefined, site)
                smem.poison(at, first)
                smem.poison(at + last, nbytes - last)
                barrier.complete_tx(nbytes, number, site)

        agent.cta.launch(AsyncOperation(site, run))

    def store(
        self,
        target: int,
        source: int,
        nbytes: int,
        *,
        byte_mask: int = 0xFFFF,
        reduction: Reduction | None = None,
        scope: str | None = None,
        site: object,
    ) -> None:
        """Copies `nbytes` from shared to global memory, in the open bulk group.

        byte_mask: selects the bytes of every 16 that are written. reduction: combines the data with
            the old bytes instead of overwriting them. scope: scope of a relaxed copy or reduction.
        """
        agent = self.agent
        agent.proceed(site)
        for what, value in (("target", target), ("source", source), ("size", nbytes)):
            _check(what, value, site)
        agent.machine.counters.shared_to_global += nbytes
        if agent.events is not None:
            agent.events.note(bytes=nbytes)
        if not nbytes:
            return
        source -= agent.peers.cta_of(source, site, own=True).window
        smem = agent.cta.smem
        smem.check(source, source + nbytes, site)
        self.memory.spare_mbarriers(_bytes(source, nbytes), site, "read")
        chosen = np.flatnonzero(np.tile(byte_mask >> np.arange(UNIT) & 1, nbytes // UNIT))
        if not chosen.size:
            return
        first, size = int(chosen[0]), int(chosen[-1] - chosen[0] + 1)  # only these must exist
        at = np.array([target + first])
        memory, where = self.memory.place("global", at, size, site, store=reduction is None)
        places = where[0][chosen - first]
        stores = agent.machine.stores_in_flight
        bytes_ = BulkStore(memory, places, smem.data[source : source + nbytes][chosen])
        if agent.machine.checking:
            kind = "TMA reduce" if reduction else "TMA store"
            number = self.number
            strong = self._strong(scope, reduction)
            copied = strong if reduction is None else None
            reads = Access(self.reads, number, kind, site, "async", strong=copied)
            agent.checks.note_read(smem.shadow, slice(source // 4, (source + nbytes) // 4), reads)
            writes = Access(self.writes, number, kind, site, "async", strong=strong)
            granules = distinct(places // memory.granule)
            same = partial(stores.repeat, bytes_) if reduction is None else False
            agent.checks.note_write(memory.shadow, granules, writes, same=same)

        def run() -> None:
            copied = np.arange(source, source + nbytes)[chosen]
            undefined = self._undefined(smem, copied, "shared", site)
            data = smem.data[source : source + nbytes].copy()
            if reduction is not None:
                before = self._undefined(memory, places, "global", site)
                self._use(undefined, before, site)
                undefined = None
                data = reduction(memory.data[where[0]], data)
            memory.data[places] = data[chosen]
            memory.written(places, undefined, site)
            if reduction is None:
                stores.end(bytes_)

        if reduction is None:
            stores.begin(bytes_)
        self.launch(AsyncOperation(site, run))

    def destinations(
        self, target: int, mbar: int, cta_mask: int | None, cta_group: int, site: object
    ) -> list[tuple[CtaProtocol, Mbarrier]]:
        """The CTAs that a load writes to, each with the mbarrier that it signals.

        The mbarrier is in the destination CTA. With .cta_group::2 it may be in the other CTA of the
        destination's pair: the mbarrier is then in the CTA of the pair whose rank has the same
        parity as the rank of the CTA of ``mbar`` (PTX ISA 9.7.9.27.1.2).
        """
        ctas = [
            self.agent.peers.cta_of(to, site)
            for to in self.agent.peers.multicast(target, cta_mask, site)
        ]
        rank, offset = mbar >> RANK_SHIFT, mbar & (1 << RANK_SHIFT) - 1
        found = []
        for cta in ctas:
            at = cta.rank_in_cluster
            if cta_group == 2:
                at = at & ~1 | rank & 1
            if cta_mask is None and at != rank:
                allowed = "the CTA that the data go to" + (", or its pair" * (cta_group == 2))
                raise MachineError(
                    "foreign-mbarrier",
                    f"expected the mbarrier in {allowed} (rank {cta.rank_in_cluster} of the "
                    f"cluster), got "
                    f"{self.agent.machine.shared_names.address(mbar)}",
                    site=site,
                )
            found.append(
                (cta, self.agent.mbarrier.at(at << RANK_SHIFT | offset, site, proxy="async"))
            )
        return found

    def _strong(self, scope: str | None, reduction: Reduction | None) -> Scope | None:
        """Returns the scope of an operation: unqualified, a copy is weak and a reduction relaxed at
        gpu scope."""
        if scope is None and reduction is None:
            return None
        return self.agent.scope(scope or "gpu")

    def _undefined(
        self,
        memory: Buffer | SharedMemory,
        where: NDArray[np.int64] | slice,
        space: str,
        site: object,
    ) -> Undefined | None:
        return memory.missing(where, self.memory.origin(f"{space} memory", site))

    def _use(self, new: Undefined | None, old: Undefined | None, site: object) -> None:
        """Reports an undefined operand of a reduction."""
        for operand in (new, old):
            if operand is not None:
                self.cta.report_undefined(operand.origin, site)


def _check(what: str, value: int, site: object) -> None:
    if value % UNIT or value < 0:
        raise MachineError(
            "misaligned",
            f"expected a {what} that is a multiple of {UNIT}, got {value:#x}",
            site=site,
        )


def _bytes(start: int, nbytes: int) -> NDArray[np.int64]:
    return np.arange(start, start + nbytes, dtype=np.int64)[:, None]
