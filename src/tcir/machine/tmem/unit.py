"""Instructions by which threads allocate and access tensor memory: alloc, dealloc, ld, st, wait
(PTX ISA 9.7.16.7-8).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.generic import Memory
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.memory.tensor_memory import COLUMNS, UNSPECIFIED_HALF
from tcir.machine.memory.undefined import Undefined
from tcir.machine.order.clocks import Access, complete
from tcir.machine.order.operation import Blocking
from tcir.machine.refusal import Refusal
from tcir.machine.tmem.pair_allocation import PairAllocation, check_exclusive
from tcir.machine.tmem.places import access_base, access_map

Registers = NDArray[np.uint32]
Index = NDArray[np.int64]


class Tmem:
    """The warp-collective instructions on tensor memory, for one agent."""

    def __init__(self, agent: AgentProtocol, memory: Memory) -> None:
        self.agent, self.memory = agent, memory
        self.cta, self.machine = agent.cta, agent.machine
        self._pair = PairAllocation(agent)
        self._loads = self._stores = 0
        """Number of tcgen05.ld and .st executed."""
        self._number_at: dict[object, int] = {}
        """Site -> number of its last tcgen05.ld since `wait`."""

    def alloc(
        self,
        address: int,
        columns: int,
        cta_group: int = 1,
        exclusive: bool = False,
        *,
        site: object,
    ) -> Blocking:
        """tcgen05.alloc: allocates ``columns`` columns and writes their address to shared memory.

        exclusive: the CTA uses the tensor memory of the SM alone; ``columns`` need not be a power
            of two (PTX ISA version 9.4).
        """
        self.agent.proceed(site)
        ctas = self.agent.peers.group(cta_group, site)
        tmem = self.cta.tmem
        if (
            columns % 32
            or not 32 <= columns <= COLUMNS
            or (columns & columns - 1 and not exclusive)
        ):
            allowed, why = (
                ("a multiple of 32 up to 512", "an .exclusive one")
                if exclusive
                else ("32, 64, 128, 256 or 512", "a power of two")
            )
            raise MachineError(
                "tensor-memory-columns",
                f"expected {allowed} columns, got {columns}: allocation is {why} (PTX ISA "
                "9.7.16.7)",
                site=site,
            )
        if address % 4:
            raise MachineError(
                "misaligned", f"expected a multiple of 4, got {address:#x}", site=site
            )
        if tmem.relinquished is not None:
            raise MachineError(
                "tensor-memory-relinquished",
                f"expected no tcgen05.alloc after {tmem.relinquished} gave up the permit",
                site=site,
            )
        if columns > tmem.largest:
            raise MachineError(
                "tensor-memory-growth",
                f"expected at most {tmem.largest} columns, as in the allocation before, got "
                f"{columns}: a later allocation must not be larger (PTX ISA 9.7.16.7)",
                site=site,
            )
        tmem.largest = columns
        if len(ctas) > 1:
            base = yield from self._pair.alloc(columns, exclusive, site)
        else:
            yield from self.agent.wait(
                lambda: tmem.room(columns, exclusive=exclusive) is not None,
                lambda: f"{columns} free columns of tensor memory at {site}{tmem.sm.holders(tmem)}",
            )
            free = tmem.room(columns, exclusive=exclusive)
            assert free is not None
            base = free
            tmem.allocate(base, columns, exclusive)
        word = np.array([[base]], np.uint32).view(np.uint8)
        self.memory.store("shared", np.array([address], np.int64), word, kind="alloc", site=site)

    def dealloc(
        self,
        taddr: int,
        columns: int,
        cta_group: int = 1,
        exclusive: bool = False,
        *,
        site: object,
    ) -> None:
        """tcgen05.dealloc: frees a whole allocation. For a CTA pair use `pair_dealloc`."""
        self.agent.proceed(site)
        if len(self.agent.peers.group(cta_group, site)) > 1:
            raise ValueError("expected pair_dealloc for cta_group 2: it may block")
        tmem = self.cta.tmem
        if tmem.allocations.get(taddr) != columns:
            raise MachineError(
                "tensor-memory-dealloc",
                f"expected an allocation to free ({tmem.allocations or 'none exists'}), got "
                f"{columns} columns at {taddr:#x}",
                site=site,
            )
        check_exclusive(tmem, exclusive, site)
        where = (slice(None), slice(taddr, taddr + columns))
        self.agent.checks.note_write(tmem.shadow, where, self.agent.own_access("dealloc", site))
        tmem.free(taddr)

    def relinquish(self, cta_group: int = 1, *, site: object) -> None:
        """tcgen05.relinquish_alloc_permit."""
        self.agent.proceed(site)
        self.agent.peers.group(cta_group, site)
        self.cta.tmem.relinquished = site
        self.cta.tmem.has_permit = False

    def _reach(
        self, taddr: int, shape: str, num: int, packed: bool, half_split: int | None, site: object
    ) -> tuple[Index, Index, int]:
        """Returns the lanes and columns that a tcgen05.ld or .st accesses, and the columns per
        register."""
        try:
            rule = self.machine.assumptions.ld_st_lane
            lane, column = access_base(taddr, shape, self.agent.warp, rule)
            table = access_map(shape, num, packed, half_split)
        except Refusal as refusal:
            raise MachineError.of(refusal, site) from None
        lanes, columns = lane + table.lanes, column + table.columns
        self.cta.tmem.check(int(columns.min()), int(columns.max()) + table.halves, site)
        return lanes, columns, table.halves

    def ld(
        self,
        taddr: int,
        shape: str = "32x32b",
        num: int = 16,
        pack: bool = False,
        half_split: int | None = None,
        *,
        site: object,
    ) -> Registers:
        """tcgen05.ld of words that must be defined: returns uint32 [registers, 32 lanes], which are
        valid after `wait("ld")`.
        """
        value, undefined = self.read(taddr, shape, num, pack, half_split, site=site)
        if undefined is not None:
            self.cta.report_undefined(undefined.origin, site)
        return value

    def read(
        self,
        taddr: int,
        shape: str,
        num: int,
        pack: bool,
        half_split: int | None,
        *,
        site: object,
    ) -> tuple[Registers, Undefined | None]:
        """Like `ld`, for words that may be undefined; also returns a mask of the undefined bytes,
        [registers, 32 lanes, 4].
        """
        self.agent.proceed(site)
        lanes, columns, halves = self._reach(taddr, shape, num, pack, half_split, site)
        tmem = self.cta.tmem
        value = tmem.words[lanes, columns]
        undefined = None
        if halves == 2:
            high = tmem.words[lanes, columns + 1]
            value = np.asarray((value & 0xFFFF) | (high << 16), np.uint32)
        defined = tmem.defined[lanes, columns].all()
        if not defined or (halves == 2 and not tmem.defined[lanes, columns + 1].all()):
            undefined = self._undefined(lanes, columns, halves, site)
        self._loads += 1
        self.machine.counters.tmem_load += 4 * value.size * halves
        self._number_at[site] = self._loads
        if tmem.accumulations:
            tmem.read(lanes, slice(int(columns.min()), int(columns.max()) + halves))
        access = Access(("ld", self.agent.me), self._loads, "tcgen05.ld", site)
        self.agent.checks.note_read(tmem.shadow, _words(lanes, columns, halves), access)
        return value, undefined

    def _undefined(self, lanes: Index, columns: Index, halves: int, site: object) -> Undefined:
        """Mask of the undefined bytes of registers."""
        place = f"tensor memory at column {int(columns.min())}"
        unwritten = self.memory.origin(place, site)
        tmem = self.cta.tmem
        parts = [tmem.missing((lanes, columns + n), unwritten) for n in range(halves)]
        size = 4 // halves
        where = np.zeros((*lanes.shape, 4), bool)
        for n, part in enumerate(parts):
            if part is not None:
                where[..., n * size : (n + 1) * size] = part.where[..., None]
        return Undefined(where, next(part.origin for part in parts if part is not None))

    def st(
        self,
        taddr: int,
        shape: str,
        num: int,
        data: Registers,
        unpack: bool = False,
        half_split: int | None = None,
        *,
        undefined: Undefined | None = None,
        site: object,
    ) -> None:
        """tcgen05.st of uint32 [registers, 32 lanes]. undefined: mask of the undefined bytes,
        [registers, 32, 4].
        """
        self.agent.proceed(site)
        lanes, columns, halves = self._reach(taddr, shape, num, unpack, half_split, site)
        tmem = self.cta.tmem
        if halves == 2:
            for offset, low in ((0, data & 0xFFFF), (1, data >> 16)):
                upper = self._upper_halves(tmem.words[lanes, columns + offset])
                tmem.words[lanes, columns + offset] = low | upper
        else:
            tmem.words[lanes, columns] = data
        size = 4 // halves
        for n in range(halves):
            lost = undefined and undefined.of((..., slice(n * size, (n + 1) * size)))
            tmem.written((lanes, columns + n), lost and lost.any(axis=-1), site)
        self._stores += 1
        self.machine.counters.tmem_store += 4 * data.size * halves
        access = Access(("st", self.agent.me), self._stores, "tcgen05.st", site)
        self.agent.checks.note_write(tmem.shadow, _words(lanes, columns, halves), access)

    def _upper_halves(self, before: Registers) -> Registers | np.uint32:
        """Returns the upper halves after .unpack::16b of words that held `before`."""
        match self.machine.assumptions.unpack_upper:
            case "zero":
                return np.uint32(0)
            case "kept":
                return before & np.uint32(0xFFFF0000)
        return np.uint32(UNSPECIFIED_HALF)

    def pair_dealloc(
        self, taddr: int, columns: int, exclusive: bool = False, *, site: object
    ) -> Blocking:
        """tcgen05.dealloc.cta_group::2: frees a whole allocation in both CTAs."""
        return self._pair.dealloc(taddr, columns, exclusive, site)

    def wait(self, kind: str, *, site: object) -> None:
        """tcgen05.wait::ld or ::st."""
        if kind not in ("ld", "st"):
            raise ValueError(f"expected 'ld' or 'st', got {kind!r}")
        self.agent.proceed(site)
        self.agent.clock[(kind, self.agent.me)] = self._loads if kind == "ld" else self._stores
        if kind == "ld":
            self._number_at.clear()

    def used(self, site: object) -> None:
        """Notes that an instruction uses a register of the last tcgen05.ld at ``site`` without a
        tcgen05.wait. On hardware the load is complete by then, because ptxas waits for it; the
        documents do not promise this.
        """
        number = self._number_at.pop(site, 0)
        if number and self.machine.options.ordering == "silicon":
            for group in self.agent.lanes.groups:
                complete(group.clock, ("ld", self.agent.me), number)


def _words(lanes: Index, columns: Index, halves: int) -> tuple[Index, Index]:
    if halves == 1:
        return lanes, columns
    return np.concatenate([lanes, lanes]), np.concatenate([columns, columns + 1])
