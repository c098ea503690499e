"""An agent: one warp, or a role of a tile program, and all it can ask of the machine."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine import tensor_core
from tcir.machine.errors import MachineError, NotModelled
from tcir.machine.hazards import (
    BEFORE,
    PROXY,
    Access,
    Clock,
    Shadow,
    before_fenced,
    join,
    mark,
    observed,
    proxy_fenced,
)
from tcir.machine.mbarrier import Mbarrier
from tcir.machine.memory import COLUMNS, LANES
from tcir.machine.operation import NamedBarrier, Operation
from tcir.machine.refusal import Refusal
from tcir.machine.swizzle import swizzle_address
from tcir.machine.tensor_map import DecodedMap
from tcir.machine.tensor_walk import im2col_elements, tile_elements
from tcir.machine.tmem import access_base, access_map

if TYPE_CHECKING:
    from tcir.machine.engine import Cta

Blocking = Generator[Any, Any, None]
INIT = "init"


class Waiting:
    """What a blocked agent waits for: runnable again once ``ready()``."""

    def __init__(self, ready: Callable[[], bool], words: Callable[[], str]) -> None:
        self.ready, self.words = ready, words


class Agent:
    """See `tcir.machine` for the methods; ``site`` is what a report shows of the operation."""

    def __init__(
        self,
        cta: Cta,
        name: str,
        warp: int,
        threads: int,
        body: Callable[[Agent], Blocking],
    ) -> None:
        self.cta, self.name, self.warp, self.threads = cta, name, warp, threads
        self.machine = cta.machine
        self.me = (cta.index, len(cta.agents))
        self.clock: Clock = {self.me: 1}
        self.after_clock: Clock = {}
        """What was observed at the last tcgen05.fence::after_thread_sync."""
        self.tc = ("tc", self.me)
        self.tc_issued = 0
        self.pipe: list[Operation] = []
        self.pending_ld = self.pending_st = 0
        self.bulk_groups: list[list[Operation]] = []
        self.bulk_open: list[Operation] = []
        self.waiting: Waiting | None = None
        self.ended = False
        self.progress = 0
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
        return self.waiting.words() if self.waiting else ""

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
        """Notes ``count`` instructions done."""
        self.progress += count

    def _wait(self, ready: Callable[[], bool], words: Callable[[], str]) -> Blocking:
        while not ready():
            yield Waiting(ready, words)

    def _at(self, site: Any) -> None:
        self.site = site
        self.progress += 1

    # --- clocks ----------------------------------------------------------------------------------

    def _release(self) -> Clock:
        """A copy of what this agent knows, itself included; later accesses are not covered."""
        published = dict(self.clock)
        self.clock[self.me] += 1
        return published

    def _own(self, kind: str, site: Any) -> Access:
        return Access(self.me, self.clock[self.me], kind, site)

    # --- global and shared memory ----------------------------------------------------------------

    def load(
        self, space: str, addresses: NDArray[np.int64], nbytes: int, *, site: Any
    ) -> NDArray[np.uint8]:
        """``nbytes`` bytes at each address: uint8 [n, nbytes]. ``space`` "global" or "shared"."""
        self._at(site)
        data, defined, where, shadow = self._place(space, addresses, nbytes, site)
        if defined is not None and not defined[where].all():
            first = int(addresses[(~defined[where]).any(axis=1).argmax()])
            self.cta.report(
                "error", "undefined-read", site, f"{space} bytes at {first:#x}",
                "nothing wrote them before",
            )  # fmt: skip
        if space == "global":
            self.machine.counters.global_load += where.size
        else:
            self.machine.counters.shared_load += where.size
        if shadow is not None:
            granules = np.unique(where // 4)
            access = self._own("generic", site)
            self._check(shadow, granules, access, self.clock, write=False)
            shadow.record_read(granules, access, self.clock)
        return data[where]

    def store(
        self, space: str, addresses: NDArray[np.int64], data: NDArray[np.uint8], *, site: Any
    ) -> None:
        """Writes uint8 [n, nbytes] to the addresses."""
        self._at(site)
        memory, defined, where, shadow = self._place(
            space, addresses, data.shape[1], site, writing=True
        )
        memory[where] = data
        if defined is not None:
            defined[where] = True
        if space == "global":
            self.machine.counters.global_store += where.size
        else:
            self.machine.counters.shared_store += where.size
            self._spare_mbarriers(where, site)
        if shadow is not None:
            granules = np.unique(where // 4)
            access = self._own("generic", site)
            self._check(shadow, granules, access, self.clock, write=True)
            shadow.record_write(granules, access)

    def _place(
        self,
        space: str,
        addresses: NDArray[np.int64],
        nbytes: int,
        site: Any,
        writing: bool = False,
    ) -> tuple[Any, Any, NDArray[np.int64], Any]:
        low, high = int(addresses.min()), int(addresses.max()) + nbytes
        span = np.arange(nbytes)
        if space == "shared":
            smem = self.cta.smem
            smem.check(low, high, site)
            return smem.data, smem.defined, addresses[:, None] + span, smem.shadow
        buffer = self.machine.memory.find(low, high, site)
        if self.machine.checking and writing and buffer.shadow is None:
            buffer.shadow = Shadow(buffer.data.size // 4 + 1, "global memory")
        return buffer.data, buffer.defined, addresses[:, None] - buffer.base + span, buffer.shadow

    def _spare_mbarriers(self, where: NDArray[np.int64], site: Any) -> None:
        low, high = int(where.min()), int(where.max())
        for address in self.cta.mbarriers:
            if (
                low < address + 8
                and address <= high
                and ((where >= address) & (where < address + 8)).any()
            ):
                raise MachineError(
                    "mbarrier-overwritten",
                    f"expected the live mbarrier at {address:#x} to be left alone (mbarrier.inval "
                    "frees its memory), got a store over it",
                    site=site,
                )  # fmt: skip

    # --- happens-before --------------------------------------------------------------------------

    def _check(self, shadow: Any, where: Any, access: Access, clock: Clock, *, write: bool) -> None:
        """Findings for every earlier access to ``where`` that ``access`` is not ordered after."""
        for other in shadow.writers_at(where):
            self._pair(shadow, other, access, clock, True, write)
        if write:
            for other in shadow.readers_at(where):
                self._pair(shadow, other, access, clock, False, write)

    def _pair(
        self, shadow: Any, other: Access, access: Access, clock: Clock, wrote: bool, write: bool
    ) -> None:
        if other.component == self.tc and access.component == self.tc:
            ordered, missing = tensor_core.pipe_order(other, access, self.machine.assumptions)
            if ordered or observed(clock, other):
                return
        elif not observed(clock, other):
            missing = tensor_core.missing_edge(other, access)
        else:
            self._fences(shadow, other, access, clock, wrote)
            return
        verb = f"{'writes' if wrote else 'reads'} {shadow.space}, then {access.kind} " + (
            "overwrites it" if write else "reads it"
        )
        self.cta.report(
            "error",
            "race",
            f"{other.site} ({other.kind} {verb})",
            access.site,
            f"not ordered: {missing}",
        )

    def _fences(
        self, shadow: Any, other: Access, access: Access, clock: Clock, wrote: bool
    ) -> None:
        """Ordered; are the fences there that the two kinds of access need besides?"""
        if shadow.space != "tensor memory":
            if (
                wrote
                and other.proxy == "generic"
                and access.proxy == "async"
                and not proxy_fenced(clock, other)
            ):
                self.cta.report(
                    "error", "missing-proxy-fence", other.site, access.site,
                    "fence.proxy.async between a write through the generic proxy and a use "
                    "through the async proxy (PTX ISA 9.7.16.6.5)",
                )  # fmt: skip
            return
        mine = {self.me, self.tc, ("ld", self.me), ("st", self.me)}
        if other.component in mine or access.kind == "dealloc":
            return  # dealloc is synchronous: a barrier is enough
        if self.after_clock.get(other.component, 0) < other.number:
            self.cta.report(
                "warning", "missing-fence-after", other.site, access.site,
                "tcgen05.fence::after_thread_sync between the wait and the access",
            )  # fmt: skip
        elif other.component[0] in ("ld", "st") and not before_fenced(clock, other):
            self.cta.report(
                "warning", "missing-fence-before", other.site, access.site,
                "tcgen05.fence::before_thread_sync between the access and the arrival",
            )  # fmt: skip

    # --- barriers and fences ---------------------------------------------------------------------

    def barrier(self, number: int, threads: int | None, *, site: Any) -> Blocking:
        """bar.sync: blocks until ``threads`` threads (None: all that still run) have arrived."""
        self._at(site)
        self.machine.counters.barriers += 1
        if not 0 <= number < 16:
            raise MachineError(
                "barrier-number", f"expected a barrier in 0..15, got {number}", site=site
            )
        barrier = self.cta.barriers.setdefault(number, NamedBarrier())
        join(barrier.clock, self._release())
        barrier.arrived += self.threads
        generation = barrier.generation

        def expected() -> int:
            if threads is not None:
                return threads
            return sum(a.threads for a in self.cta.agents if not a.ended)

        def passed() -> bool:
            if barrier.generation == generation and barrier.arrived >= expected():
                barrier.generation += 1
                barrier.arrived = 0
                barrier.released, barrier.clock = barrier.clock, {}
            return barrier.generation != generation

        yield from self._wait(
            passed,
            lambda: f"barrier {number} ({barrier.arrived} of {expected()} threads) at {site}",
        )
        join(self.clock, barrier.released)

    def fence(self, kind: str, *, site: Any) -> None:
        """A fence; ``kind`` as in `tcir.machine`."""
        self._at(site)
        match kind:
            case "tcgen05.after":
                self.after_clock = dict(self.clock)
            case "tcgen05.before":
                self._mark_before()
            case "proxy.async" | "proxy.async.shared":
                self._mark(PROXY)
                self._mark(INIT)
            case "mbarrier_init":
                self._mark(INIT)
            case "cta" | "cluster" | "gpu" | "sys" | "proxy.tensormap" | "proxy.alias":
                pass
            case _:
                raise NotModelled(f"fence {kind}", site=site)

    def _mark(self, which: str) -> None:
        mark(self.clock, which, [c for c in self.clock if not isinstance(c[0], str)])

    def _mark_before(self) -> None:
        mark(self.clock, BEFORE, [c for c in self.clock if c[0] in ("ld", "st")])

    # --- mbarriers -------------------------------------------------------------------------------

    def mbarrier_init(self, address: int, count: int, *, site: Any) -> None:
        """mbarrier.init."""
        self._at(site)
        self.cta.smem.check(address, address + 8, site)
        if address % 8:
            raise MachineError(
                "misaligned", f"expected a multiple of 8, got {address:#x}", site=site
            )
        if address in self.cta.mbarriers:
            raise MachineError(
                "mbarrier-reuse",
                f"expected mbarrier.inval before a new mbarrier.init at {address:#x}, got "
                f"{self.cta.mbarriers[address]}",
                site=site,
            )
        self.cta.mbarriers[address] = Mbarrier(address, count, site)
        smem = self.cta.smem
        smem.data[address : address + 8] = 0
        smem.defined[address : address + 8] = True
        if smem.shadow is not None:
            where = slice(address // 4, address // 4 + 2)
            access = self._own("mbarrier.init", site)
            self._check(smem.shadow, where, access, self.clock, write=True)
            smem.shadow.record_write(where, access)

    def mbarrier_inval(self, address: int, *, site: Any) -> None:
        """mbarrier.inval."""
        self._at(site)
        self._mbarrier(address, site)
        del self.cta.mbarriers[address]

    def _mbarrier(self, address: int, site: Any, *, proxy: str = "generic") -> Mbarrier:
        barrier = self.cta.mbarriers.get(address)
        if barrier is None:
            known = ", ".join(f"{a:#x}" for a in sorted(self.cta.mbarriers)) or "none"
            raise MachineError(
                "mbarrier-not-initialised",
                f"expected the address of an initialised mbarrier ({known}), got {address:#x}",
                site=site,
            )
        shadow = self.cta.smem.shadow
        if shadow is not None:
            for other in shadow.writers_at(slice(address // 4, address // 4 + 2)):
                if not observed(self.clock, other):
                    self.cta.report(
                        "error", "mbarrier-init-race", other.site, site,
                        "a CTA barrier between mbarrier.init and the first use by another warp",
                    )  # fmt: skip
                elif (
                    proxy == "async"
                    and other.component != self.me
                    and self.clock.get((INIT, other.component), 0) < other.number
                ):
                    self.cta.report(
                        "warning", "missing-init-fence", other.site, site,
                        "fence.mbarrier_init between mbarrier.init and use by the async proxy",
                    )  # fmt: skip
        return barrier

    def mbarrier_arrive(
        self, address: int, count: int = 1, expect_tx: int | None = None, *, site: Any
    ) -> None:
        """mbarrier.arrive, with ``expect_tx`` announced first."""
        self._at(site)
        barrier = self._mbarrier(address, site)
        if expect_tx is not None:
            barrier.expect(expect_tx, site)
        barrier.arrive(count, self._release(), site)

    def mbarrier_expect_tx(self, address: int, nbytes: int, *, site: Any) -> None:
        """mbarrier.expect_tx."""
        self._at(site)
        self._mbarrier(address, site).expect(nbytes, site)

    def mbarrier_test(self, address: int, parity: int, *, site: Any) -> bool:
        """mbarrier.test_wait.parity."""
        self.site = site
        barrier = self._mbarrier(address, site)
        if not barrier.complete(parity):
            return False
        self.progress += 1
        join(self.clock, barrier.released)
        return True

    def mbarrier_wait(self, address: int, parity: int, *, site: Any) -> Blocking:
        """mbarrier.try_wait.parity in a loop."""
        self._at(site)
        barrier = self._mbarrier(address, site)
        yield from self._wait(
            lambda: barrier.complete(parity), lambda: f"parity {parity} of {barrier} at {site}"
        )
        join(self.clock, barrier.released)

    # --- tensor memory: allocation, ld, st -------------------------------------------------------

    def tmem_alloc(self, address: int, columns: int, cta_group: int = 1, *, site: Any) -> Blocking:
        """tcgen05.alloc: writes the address of ``columns`` columns to shared memory."""
        self._at(site)
        self._one_group(cta_group, site)
        tmem = self.cta.tmem
        if columns not in (32, 64, 128, 256, 512):
            raise MachineError(
                "tensor-memory-columns",
                f"expected 32, 64, 128, 256 or 512 columns, got {columns}: allocation "
                "is in powers of two (PTX ISA 9.7.16.7)",
                site=site,
            )
        if tmem.relinquished is not None:
            raise MachineError(
                "tensor-memory-relinquished",
                f"expected no tcgen05.alloc after {tmem.relinquished} gave the permit up",
                site=site,
            )
        if columns > tmem.largest:
            raise MachineError(
                "tensor-memory-growth",
                f"expected at most {tmem.largest} columns, as in the allocation before, got "
                f"{columns}: a later allocation must not be larger (PTX ISA 9.7.16.7)",
                site=site,
            )

        def place() -> int | None:
            return next(
                (
                    b
                    for b in range(0, COLUMNS - columns + 1, columns)
                    if not tmem.allocated[b : b + columns].any()
                ),
                None,
            )

        yield from self._wait(
            lambda: place() is not None,
            lambda: f"{columns} free columns of tensor memory at {site}",
        )
        base = place()
        assert base is not None
        tmem.allocated[base : base + columns] = True
        tmem.allocations[base] = columns
        tmem.largest = columns
        tmem.poison(base, columns)
        word = np.array([[base]], np.uint32).view(np.uint8)
        self.store("shared", np.array([address], np.int64), word, site=site)

    def tmem_dealloc(self, taddr: int, columns: int, cta_group: int = 1, *, site: Any) -> None:
        """tcgen05.dealloc of a whole allocation."""
        self._at(site)
        self._one_group(cta_group, site)
        tmem = self.cta.tmem
        if tmem.allocations.get(taddr) != columns:
            raise MachineError(
                "tensor-memory-dealloc",
                f"expected an allocation to free ({tmem.allocations or 'none exists'}), got "
                f"{columns} columns at {taddr}",
                site=site,
            )
        if tmem.shadow is not None:
            where = self._columns(taddr, columns)
            access = self._own("dealloc", site)
            self._check(tmem.shadow, where, access, self.clock, write=True)
            tmem.shadow.record_write(where, access)
        del tmem.allocations[taddr]
        tmem.allocated[taddr : taddr + columns] = False
        tmem.poison(taddr, columns)

    def tmem_relinquish(self, cta_group: int = 1, *, site: Any) -> None:
        """tcgen05.relinquish_alloc_permit."""
        self._at(site)
        self._one_group(cta_group, site)
        self.cta.tmem.relinquished = site

    def _one_group(self, cta_group: int, site: Any) -> None:
        if cta_group != 1:
            raise NotModelled("cta_group::2", site=site)

    @staticmethod
    def _columns(column: int, columns: int) -> NDArray[np.int64]:
        return (np.arange(LANES)[:, None] * COLUMNS + column + np.arange(columns)).ravel()

    def _reach(
        self, taddr: int, shape: str, num: int, packed: bool, half_split: int | None, site: Any
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        try:
            lane, column = access_base(taddr, shape, self.warp)
            table = access_map(shape, num, packed, half_split)
        except Refusal as refusal:
            raise MachineError(refusal.code, str(refusal), site=site) from None
        lanes, columns = lane + table.lanes, column + table.columns
        self.cta.tmem.check(int(columns.min()), int(columns.max()) + table.halves, site)
        return lanes, columns, table.halves

    def tmem_ld(
        self,
        taddr: int,
        shape: str = "32x32b",
        num: int = 16,
        pack: bool = False,
        half_split: int | None = None,
        *,
        site: Any,
    ) -> NDArray[np.uint32]:
        """tcgen05.ld: uint32 [registers, 32 lanes], to be used after `tmem_wait("ld")`."""
        self._at(site)
        lanes, columns, halves = self._reach(taddr, shape, num, pack, half_split, site)
        tmem = self.cta.tmem
        value = tmem.words[lanes, columns]
        defined = tmem.defined[lanes, columns].all()
        if halves == 2:
            high = tmem.words[lanes, columns + 1]
            value = np.asarray((value & 0xFFFF) | (high << 16), np.uint32)
            defined &= tmem.defined[lanes, columns + 1].all()
        if not defined:
            self.cta.report(
                "error", "undefined-read", site, f"tensor memory at column {int(columns.min())}",
                "nothing wrote the words before",
            )  # fmt: skip
        self.pending_ld += 1
        self.machine.counters.tmem_load += 4 * value.size * halves
        if tmem.shadow is not None:
            where = self._words(lanes, columns, halves)
            access = Access(("ld", self.me), self.pending_ld, "tcgen05.ld", site)
            self._check(tmem.shadow, where, access, self.clock, write=False)
            tmem.shadow.record_read(where, access, self.clock)
        return value

    def tmem_st(
        self,
        taddr: int,
        shape: str,
        num: int,
        data: NDArray[np.uint32],
        unpack: bool = False,
        half_split: int | None = None,
        *,
        site: Any,
    ) -> None:
        """tcgen05.st of uint32 [registers, 32 lanes]."""
        self._at(site)
        lanes, columns, halves = self._reach(taddr, shape, num, unpack, half_split, site)
        tmem = self.cta.tmem
        if halves == 2:
            tmem.words[lanes, columns] = data & 0xFFFF
            tmem.words[lanes, columns + 1] = data >> 16
            tmem.defined[lanes, columns + 1] = True
        else:
            tmem.words[lanes, columns] = data
        tmem.defined[lanes, columns] = True
        self.pending_st += 1
        self.machine.counters.tmem_store += 4 * data.size * halves
        if tmem.shadow is not None:
            where = self._words(lanes, columns, halves)
            access = Access(("st", self.me), self.pending_st, "tcgen05.st", site)
            self._check(tmem.shadow, where, access, self.clock, write=True)
            tmem.shadow.record_write(where, access)

    @staticmethod
    def _words(
        lanes: NDArray[np.int64], columns: NDArray[np.int64], halves: int
    ) -> NDArray[np.int64]:
        where = (lanes * COLUMNS + columns).ravel()
        return np.concatenate([where, where + 1]) if halves == 2 else where

    def tmem_wait(self, kind: str, *, site: Any) -> None:
        """tcgen05.wait::ld or ::st."""
        self._at(site)
        self.clock[(kind, self.me)] = self.pending_ld if kind == "ld" else self.pending_st

    # --- tensor core -----------------------------------------------------------------------------

    cp = tensor_core.cp
    cp_bytes = tensor_core.cp_bytes
    shift = tensor_core.shift
    mma = tensor_core.mma
    mma_elements = tensor_core.mma_elements
    commit = tensor_core.commit

    # --- TMA -------------------------------------------------------------------------------------

    def _box(
        self,
        tensor_map: DecodedMap,
        coords: Sequence[int],
        mode: str,
        offsets: Sequence[int],
        site: Any,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        try:
            if mode == "tile":
                return tile_elements(tensor_map, coords)
            return im2col_elements(tensor_map, coords, offsets)
        except Refusal as refusal:
            raise MachineError(refusal.code, str(refusal), site=site) from None

    def tma_load(
        self,
        target: int,
        tensor_map: DecodedMap,
        coords: Sequence[int],
        mbar: int,
        mode: str = "tile",
        im2col_offsets: Sequence[int] = (),
        cta_mask: int | None = None,
        *,
        site: Any,
    ) -> None:
        """cp.async.bulk.tensor global -> shared; its bytes count on the mbarrier at ``mbar``."""
        self._at(site)
        if cta_mask not in (None, 1):
            raise NotModelled("multicast to other CTAs", site=site)
        if target % 128:
            raise MachineError(
                "misaligned",
                f"expected a shared address, multiple of 128, got {target:#x}",
                site=site,
            )
        fields = tensor_map.fields
        barrier = self._mbarrier(mbar, site, proxy="async")
        source, offset = self._box(tensor_map, coords, mode, im2col_offsets, site)
        eb, nbytes = fields.element_bytes, fields.box_bytes
        smem = self.cta.smem
        smem.check(target, target + nbytes, site)
        inside = source >= 0
        counters = self.machine.counters
        counters.tma_loads += 1
        counters.global_to_shared += nbytes
        counters.global_to_shared_by_tensor[tensor_map.address] += nbytes
        counters.global_to_shared_read += int(inside.sum()) * eb
        destination = swizzle_address(target + offset, fields.swizzle)
        component = ("tma", mbar, self.cta.index, barrier.phase)
        if smem.shadow is not None:
            where = np.arange(target // 4, (target + nbytes) // 4)
            access = Access(component, 1, "TMA load", site, "async")
            self._check(smem.shadow, where, access, self.clock, write=True)
            smem.shadow.record_write(where, access)
        issued = dict(self.clock)
        issued[component] = 1

        def run() -> None:
            self._move_in(source, inside, destination, eb, site)
            barrier.complete_tx(nbytes, issued, site)

        self.cta.launch(Operation(site, run))

    def _move_in(
        self,
        source: NDArray[np.int64],
        inside: NDArray[np.bool_],
        destination: NDArray[np.int64],
        eb: int,
        site: Any,
    ) -> None:
        dtype = np.dtype(f"u{eb}")
        values = np.zeros(source.size, dtype)
        if inside.any():
            addresses = source[inside]
            buffer = self.machine.memory.find(int(addresses.min()), int(addresses.max()) + eb, site)
            at = addresses - buffer.base
            if buffer.defined is not None and not buffer.defined[at].all():
                self.cta.report(
                    "error",
                    "undefined-read",
                    site,
                    "global memory",
                    "nothing wrote the bytes before",
                )
            usable = buffer.data.size // eb * eb
            values[inside] = buffer.data[:usable].view(dtype)[at // eb]
        smem = self.cta.smem
        usable = smem.size // eb * eb
        smem.data[:usable].view(dtype)[destination // eb] = values
        low, high = int(destination.min()), int(destination.max()) + eb
        smem.defined[low:high] = True

    def tma_store(
        self, source: int, tensor_map: DecodedMap, coords: Sequence[int], *, site: Any
    ) -> None:
        """cp.async.bulk.tensor shared -> global; part of the open bulk group."""
        self._at(site)
        if any(c < 0 for c in coords):
            raise MachineError(
                "tma-coordinate", f"expected store coordinates >= 0, got {tuple(coords)}", site=site
            )
        fields = tensor_map.fields
        target, offset = self._box(tensor_map, coords, "tile", (), site)
        eb, nbytes = fields.element_bytes, fields.box_bytes
        smem = self.cta.smem
        smem.check(source, source + nbytes, site)
        at = swizzle_address(source + offset, fields.swizzle)
        counters = self.machine.counters
        counters.tma_stores += 1
        counters.shared_to_global += nbytes
        group = ("bulk", self.me)
        if smem.shadow is not None:
            where = np.arange(source // 4, (source + nbytes) // 4)
            access = Access(group, len(self.bulk_groups) + 1, "TMA store", site, "async")
            self._check(smem.shadow, where, access, self.clock, write=False)
            smem.shadow.record_read(where, access, self.clock)

        def run() -> None:
            inside = target >= 0
            addresses = target[inside]
            if not addresses.size:
                return
            dtype = np.dtype(f"u{eb}")
            buffer = self.machine.memory.find(int(addresses.min()), int(addresses.max()) + eb, site)
            values = smem.data[: smem.size // eb * eb].view(dtype)[at[inside] // eb]
            where = (addresses - buffer.base)[:, None] + np.arange(eb)
            buffer.data[where] = values.view(np.uint8).reshape(-1, eb)
            if buffer.defined is not None:
                buffer.defined[where] = True

        operation = Operation(site, run)
        self.bulk_open.append(operation)
        self.cta.launch(operation)

    def bulk_commit(self, *, site: Any) -> None:
        """cp.async.bulk.commit_group."""
        self._at(site)
        self.bulk_groups.append(self.bulk_open)
        self.bulk_open = []

    def bulk_wait(self, pending: int, read: bool = False, *, site: Any) -> Blocking:
        """cp.async.bulk.wait_group(.read): all but the last ``pending`` groups are complete."""
        self._at(site)
        last = max(0, len(self.bulk_groups) - pending)
        groups = self.bulk_groups[:last]
        yield from self._wait(
            lambda: all(o.done for g in groups for o in g), lambda: f"bulk stores at {site}"
        )
        self.clock[("bulk", self.me)] = last

    # --- program order, for tile programs without barriers ---------------------------------------

    def drain(self) -> None:
        """Finishes everything in flight in this CTA and makes it visible to this agent."""
        cta = self.cta
        while cta.in_flight:
            ready = next((o for o in cta.in_flight if o.ready), None)
            assert ready is not None
            cta.complete(ready)
        self.clock[self.tc] = self.tc_issued
        for barrier in cta.mbarriers.values():
            join(self.clock, barrier.released)
            join(self.clock, barrier.collected)
        self.tmem_wait("ld", site=self.site)
        self.tmem_wait("st", site=self.site)
        self.after_clock = dict(self.clock)
