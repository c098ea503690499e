"""Loads and stores through the generic proxy: global and shared memory (PTX ISA 9.7.9)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.heap import POISON
from tcir.machine.memory.memories import RANK_SHIFT, Buffer, SharedMemory
from tcir.machine.memory.polls import Polls
from tcir.machine.memory.protocols import AgentProtocol, CtaProtocol
from tcir.machine.memory.undefined import Origin, Undefined
from tcir.machine.order.clocks import EARLIER, EARLIER_LAUNCH, UNUSED, Access
from tcir.machine.order.distinct import distinct
from tcir.machine.order.involved import LANES, Involved, meeting
from tcir.machine.order.lanes import EACH
from tcir.machine.order.shadow import LastShadow
from tcir.machine.order.strong import Strong

Bytes = NDArray[np.uint8]
Addresses = NDArray[np.int64]


class Memory:
    """Memory accesses of an agent: ld, st and all other instructions that read or write bytes
    through the generic proxy.
    """

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.cta, self.machine = agent, agent.cta, agent.machine
        self.polls = Polls(agent)
        self.idle = False
        """Whether loads are those of lanes in which nothing uses the value."""
        self._last_load: tuple[object, bytes, bytes] | None = None

    def load(
        self,
        space: str,
        addresses: Addresses,
        nbytes: int,
        *,
        lanes: Addresses | None = None,
        strong: Strong | None = None,
        site: object,
    ) -> Bytes:
        """Returns ``nbytes`` bytes at each address, which must be defined: uint8 [n, nbytes].

        ``space``: "global", "shared" (of this CTA) or "cluster" (of any CTA of the cluster).
        ``lanes``: the lane that reads each address. ``strong``: qualifiers of a strong load.
        """
        data, undefined = self.read(space, addresses, nbytes, lanes=lanes, strong=strong, site=site)
        if undefined is not None:
            self.cta.report_undefined(undefined.origin, site)
        return data

    def read(
        self,
        space: str,
        addresses: Addresses,
        nbytes: int,
        *,
        lanes: Addresses | None = None,
        strong: Strong | None = None,
        constant: bool = False,
        site: object,
    ) -> tuple[Bytes, Undefined | None]:
        """Like `load`, for bytes that may be undefined; also returns which bytes are undefined.

        ``constant``: no thread writes the bytes during the launch (ld.global.nc).
        """
        if space == "cluster" and (parts := _by_rank(addresses)):
            found = []
            for part in parts:
                who = None if lanes is None else lanes[part]
                found.append(
                    self.read(space, addresses[part], nbytes, lanes=who, strong=strong, site=site)
                )
            return gathered(found, parts)
        memory, where = self.place(space, addresses, nbytes, site, lanes)
        defined, undefined = memory.defined, None
        if defined is not None and not defined[where].all():
            first = int(addresses[(~defined[where]).any(axis=1).argmax()])
            place = f"{space} bytes at {first:#x}"
            if isinstance(memory, Buffer):
                place = memory.words(first - memory.base, first - memory.base + nbytes)
            unwritten = self.origin(place, site, f"{space} bytes")
            undefined = memory.missing(where, unwritten)
        counters = self.machine.counters
        if space == "global":
            counters.global_load += where.size
        else:
            counters.shared_load += where.size
            self.spare_mbarriers(where, site, "read", self.shared_owner(space, addresses, site))
        if self.machine.checking:
            kind = UNUSED if self.idle else "generic"
            access = self.agent.own_access(kind, site, strong, by_lane=lanes is not None)
            granules = memory.granules(where, aligned=lanes is not None)
            if constant:
                self.agent.checks.note_constant(memory.shadow, granules, access)
            else:
                if _exchanges(strong, addresses):
                    self.agent.checks.check_exchange(
                        memory.shadow, granules, access, lanes, write=False
                    )
                if strong is not None:
                    self.polls.read(memory, where, lanes, strong, access)
                self.agent.checks.note_read(memory.shadow, granules, access, lanes=lanes)
        data = memory.data[where]
        self._look(site, addresses, data, space)
        return data, undefined

    def origin(self, place: str, site: object, what: str = "") -> Origin:
        """Returns the origin (where the undefined value comes from) of unwritten bytes that `site`
        reads in `place`.
        """
        return Origin("undefined-read", site, place, cta=self.cta.index, what=what)

    def _look(self, site: object, addresses: Addresses, data: Bytes, space: str) -> None:
        """Counts a load as progress, unless it repeats the last load with the same result, which is
        polling."""
        this = (site, addresses.tobytes(), data.tobytes())
        if this == self._last_load:
            changed = f"{space} bytes at {int(addresses[0]):#x} to change, at {site}"
            self.agent.poll(site, changed)
        else:
            self.agent.proceed(site)
            self._last_load = this

    @property
    def last_load(self) -> tuple[object, Addresses]:
        """Site of the last load, and the addresses that it read, in the order of the lanes."""
        site, addresses, _ = self._last_load or (None, b"", b"")
        return site, np.frombuffer(addresses, np.int64)

    def loaded(self, site: object, addresses: Addresses, data: Bytes, count: int) -> None:
        """Records `count` loads of global memory that do not poll; the other arguments describe the
        last of these loads.
        """
        self.agent.proceed(site)
        self.agent.progress += count - 1
        self._last_load = site, addresses.tobytes(), data.tobytes()

    def store(
        self,
        space: str,
        addresses: Addresses,
        data: Bytes,
        *,
        lanes: Addresses | None = None,
        undefined: Undefined | None = None,
        strong: Strong | None = None,
        kind: str = "generic",
        site: object,
    ) -> None:
        """Writes uint8 [n, nbytes] to the addresses.

        ``lanes``: the lane that writes to each address. ``undefined``: mask of the undefined bytes.
            ``strong``: qualifiers of a strong store. ``kind``: name of the access in reports.
        """
        if space == "cluster" and (parts := _by_rank(addresses)):
            for part in parts:
                lost = undefined and undefined.of(part)
                who = None if lanes is None else lanes[part]
                self.store(
                    space, addresses[part], data[part],
                    lanes=who, undefined=lost, strong=strong, kind=kind, site=site,
                )  # fmt: skip
            return
        memory, where = self.place(space, addresses, data.shape[1], site, lanes, store=True)
        if space == "global":
            self.machine.counters.global_store += where.size
        else:
            self.machine.counters.shared_store += where.size
            self.spare_mbarriers(where, site, "written", self.shared_owner(space, addresses, site))
        polled: list[int] = []
        if strong is not None and self.polls and self.machine.checking:
            access = self.agent.own_access(kind, site, strong, by_lane=lanes is not None)
            polled = self.polls.write(memory, where, data, lanes, strong, access)
        same = (memory.data[where] == data).all(axis=1)
        if not (self.agent.polls and same.all()):
            self.agent.proceed(site)  # an atomic that puts back what it found is still polling
        memory.data[where] = data
        memory.written(where, undefined, site)
        if self.machine.checking:
            if lanes is not None and len(lanes) > 1:
                lanes = self._shared_places(memory, where, data, lanes, strong, site)
            access = self.agent.own_access(kind, site, strong, by_lane=lanes is not None)
            granules = memory.granules(where, aligned=lanes is not None)
            if _exchanges(strong, addresses):
                self.agent.checks.check_exchange(
                    memory.shadow, granules, access, lanes, write=True, polled=polled
                )
            self.agent.checks.note_write(memory.shadow, granules, access, lanes=lanes, same=same)

    def _shared_places(
        self,
        memory: Buffer | SharedMemory,
        where: Addresses,
        data: Bytes,
        lanes: Addresses,
        strong: Strong | None,
        site: object,
    ) -> Addresses:
        """Returns the lanes of one store, with `EACH` for those that name the same place. Weak
        stores of different values there are a finding: which value remains is undefined (PTX ISA
        8.7.1)."""
        listed = where[:, 0].tolist()
        if len(set(listed)) == len(listed):
            return lanes
        first: dict[int, int] = {}
        shared = [(n, first.setdefault(a, n)) for n, a in enumerate(listed)]
        self.agent.lanes.touch(lanes)
        named, lanes = lanes.tolist(), lanes.copy()
        for n, known in shared:
            if n == known:
                continue
            if strong is None and (data[n] != data[known]).any():
                two = [(f"{self.agent.name}, lane {named[i]}", self.cta.index) for i in (known, n)]
                span = listed[n], listed[n] + data.shape[1]
                self.cta.report(
                    "error",
                    "race",
                    site,
                    "another lane's value in the same place",
                    "one writer: which of the lanes' values remains is undefined (PTX ISA 8.7.1)",
                    Involved(LANES, partial(meeting, two, memory.words, span)),
                )
                break
        again = [n for n, known in shared if n != known]
        lanes[again + [first[listed[n]] for n in again]] = EACH
        return lanes

    def discard(self, address: int, nbytes: int, *, site: object) -> None:
        """Discards bytes of global memory: they are undefined until they are written again."""
        at = np.array([address], np.int64)
        memory, where = self.place("global", at, nbytes, site, store=True)
        memory.data[where] = POISON
        memory.cleared(where)
        if self.machine.checking:
            access = self.agent.own_access("generic", site)
            self.agent.checks.note_write(memory.shadow, memory.granules(where), access)

    def place(
        self,
        space: str,
        addresses: Addresses,
        nbytes: int,
        site: object,
        lanes: Addresses | None = None,
        store: bool = False,
    ) -> tuple[Buffer | SharedMemory, Addresses]:
        """Returns the memory that contains the addresses (an object with ``data``, ``defined``,
        ``shadow``) and the index of every byte in it.

        lanes: the lanes of the addresses, for the error about an address outside all buffers.
            store: whether the access only stores to the bytes.
        """
        low, high = extent(addresses)
        high += nbytes
        span = np.arange(nbytes)
        if space != "global":
            cta = self.shared_owner(space, addresses, site)
            cta.smem.check(low - cta.window, high - cta.window, site)
            return cta.smem, addresses[:, None] - cta.window + span
        if not self.machine.memory.holds(low, high):
            self._check_each(addresses, nbytes, site, lanes)
        buffer = self.machine.memory.find(low, high, site, store=store)
        self.watch(buffer)
        return buffer, addresses[:, None] - buffer.base + span

    def _check_each(
        self, addresses: Addresses, nbytes: int, site: object, lanes: Addresses | None
    ) -> None:
        """MachineError for the first address that is in no buffer; it names the lane."""
        memory = self.machine.memory
        for n, address in enumerate(addresses.tolist()):
            if not memory.holds(address, address + nbytes):
                try:
                    memory.find(address, address + nbytes, site)
                except MachineError as error:
                    lane = "" if lanes is None else f", lane {lanes[n]}"
                    error.who = f"{self.agent.name}{lane} of CTA {self.cta.index}"
                    raise

    def shared_owner(self, space: str, addresses: Addresses, site: object) -> CtaProtocol:
        """Returns the CTA whose shared memory contains the addresses; if the space is "shared", it
        must be the CTA of this agent.
        """
        return self.agent.peers.cta_of(int(addresses[0]), site, own=space == "shared")

    def watch(self, buffer: Buffer) -> None:
        """Starts to record readers and writers of the buffer."""
        if self.machine.checking and buffer.shadow is None:
            buffer.shadow = LastShadow(buffer.data.size // buffer.granule + 1, "global memory")
            if self.machine.programmatic and buffer.result:
                earlier = Access(EARLIER, 1, EARLIER_LAUNCH, "a launch before this", proxy="async")
                for part in buffer.unfinished:
                    buffer.shadow.record_write(part, earlier)

    def spare_mbarriers(
        self, where: Addresses, site: object, verb: str, cta: CtaProtocol | None = None
    ) -> None:
        """Raises MachineError if one of these bytes of a CTA belongs to a live mbarrier. If the CTA
        is None, it is that of this agent.
        """
        low, high = int(where.min()), int(where.max())
        for address, barrier in (cta or self.cta).mbarriers.items():
            near = low < address + 8 and address <= high
            if near and ((where >= address) & (where < address + 8)).any():
                raise MachineError(
                    "mbarrier-overwritten" if verb == "written" else "mbarrier-read",
                    f"expected the live mbarrier at {barrier.where} to be used by mbarrier "
                    f"instructions only (mbarrier.inval frees its memory), got it {verb}",
                    site=site,
                )


def extent(addresses: Addresses) -> tuple[int, int]:
    """Returns the lowest and the highest address; for the few addresses of a warp this is faster
    than numpy.
    """
    if addresses.size > 64:
        return int(addresses.min()), int(addresses.max())
    listed = addresses.tolist()
    return min(listed), max(listed)


def gathered(
    found: Sequence[tuple[Bytes, Undefined | None]], parts: Sequence[slice | NDArray[np.int64]]
) -> tuple[Bytes, Undefined | None]:
    """Joins rows that were read in parts, each part at its positions, and joins the masks of their
    undefined bytes.
    """
    lengths = (data.shape[0] for data, _ in found)
    data = np.empty((sum(lengths), found[0][0].shape[1]), np.uint8)
    where, origin = np.zeros(data.shape, bool), None
    for (some, lost), part in zip(found, parts, strict=True):
        data[part] = some
        if lost is not None:
            where[part], origin = lost.where, lost.origin
    return data, None if origin is None else Undefined(where, origin)


def _exchanges(strong: Strong | None, addresses: Addresses) -> bool:
    """Whether the lanes exchange data: relaxed or volatile accesses to different words, without
    polling. A word that all lanes access, or that is polled, is a flag or a counter."""
    if strong is None or strong.atomic or strong.polled:
        return False
    return bool((addresses != addresses[:1]).any())


def _by_rank(addresses: Addresses) -> list[Addresses]:
    """Positions of the addresses of each CTA; empty if all belong to one CTA."""
    ranks = addresses >> RANK_SHIFT
    if (ranks == ranks[0]).all():
        return []
    return [np.flatnonzero(ranks == rank) for rank in distinct(ranks)]
