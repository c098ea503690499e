"""One warp: a register file of 32-lane arrays, local memory, and the pending waits of its lanes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcir.interp.ptx.definedness import Bits, Unknown
from tcir.interp.ptx.lanes import FULL, LANE_MASK
from tcir.interp.ptx.launch import LaunchState
from tcir.interp.ptx.registers import LocalMemory, WarpStorage, unsigned_view
from tcir.interp.ptx.syntax import Activation, Site
from tcir.interp.ptx.wgmma_registers import WgmmaRegisters
from tcir.interp.ptx.windows import PRIVATE
from tcir.machine import Agent, Finding, MachineError
from tcir.machine.memory.undefined import Origin, Undefined
from tcir.machine.order.involved import lane_words

Results = tuple[int, ...] | None
"""The slots that an instruction writes, if that is its only effect."""


class Warp:
    """Registers and local memory of the 32 lanes of a warp.

    v[view][slot]: the 32 values of a slot, in the type of `view` (see `registers.VIEWS`)
    p[slot]:       a predicate, as lane mask
    undef[slot]:   lanes with undefined bits, or lanes that await a tcgen05.ld (`pending` has the
                   slots of the load and its location)
    unknown[slot]: the undefined bits of these lanes, unless all their bits are undefined
    private:       offset of each lane's local variables
    live:          the lanes that have not exited

    Instructions write all of these attributes directly.
    """

    __slots__ = (
        "agent",
        "arrival",
        "arrived",
        "frames",
        "index",
        "launch",
        "live",
        "local",
        "names",
        "p",
        "pending",
        "private",
        "sizes",
        "undef",
        "unknown",
        "v",
        "waiting",
        "wgmma",
    )

    def __init__(self, storage: WarpStorage, launch: LaunchState, agent: Agent, index: int) -> None:
        self.launch, self.agent, self.index = launch, agent, index
        self.pending: dict[int, Site] = {}
        self.frames: dict[Activation, list[list]] = {}  # of recursive calls, see isa/frames.py
        first, threads = 32 * index, launch.sizes.threads
        self.live = FULL if first + 32 <= threads else (1 << (threads - first)) - 1
        if launch.machine.checking:
            agent.lanes.keep_apart(self.live)
        # Of the cluster's barrier: lanes that have arrived while others of the warp have not, how
        # the last of them did and where; and lanes that may wait, since all have.
        self.arrived = self.waiting = 0
        self.arrival: tuple[bool, Site | None] = (False, None)
        self.names, self.sizes = storage.slots.names, storage.slots.sizes
        self.local = LocalMemory(storage.local_bytes)
        self.v = storage.registers()
        self.p: list[int] = [0] * len(self.names)
        self.undef: list[int] = [FULL] * len(self.names)
        self.unknown: dict[int, Unknown] = {}
        self.wgmma = WgmmaRegisters()
        self._initialise(storage)

    def _initialise(self, storage: WarpStorage) -> None:
        """Constants, addresses in the CTA's window of shared memory, special registers."""
        slots, cta = storage.slots, self.agent.cta
        for slot, bits in slots.constants.items():
            self.undef[slot] = 0
            if slots.sizes[slot] == 0:
                self.p[slot] = FULL if bits else 0
        if cta.window:
            for slot in slots.shared:
                self.v[unsigned_view(slots.sizes[slot])][slot][:] += cta.window
        tid = 32 * self.index + np.arange(32, dtype=np.int64)
        self.private = tid + 1 << PRIVATE
        for slot in slots.private:
            row = self.v[unsigned_view(slots.sizes[slot])][slot]
            row += self.private.astype(row.dtype)
        for slot, name in slots.specials.items():
            self.undef[slot] = 0
            value = self.launch.special(name, cta, self.index, tid)
            if slots.sizes[slot] == 0:
                self.p[slot] = FULL if value else 0
            else:
                self.v[unsigned_view(slots.sizes[slot])][slot][:] = value

    def own_local(self, at: np.ndarray, lanes: np.ndarray, site: Site) -> np.ndarray:
        """Converts addresses in local memory to offsets in each lane's own local memory. An address
        in another thread's local memory is an error; an address without a thread number belongs to
        no variable.
        """
        owners, own = at >> PRIVATE, self.private[lanes] >> PRIVATE
        strange = (owners != own) & (owners != 0)
        if strange.any():
            first = int(np.argmax(strange))
            raise self.error(
                "foreign-local-memory",
                f"expected an address in the local memory of thread {own[first] - 1} of the CTA, "
                f"which accesses it, got one of thread {owners[first] - 1}: each thread has its "
                "own (PTX ISA 5.1.5), so on hardware this is another variable; pass the value, or "
                "put it into shared memory",
                site,
            )
        return at & (1 << PRIVATE) - 1

    # --- undefined registers ------------------------------------------------------------------
    def read_undefined(self, site: Site, slots: tuple[int, ...], mask: int) -> None:
        """Reports that an instruction reads undefined bits where they matter; the value is not
        changed.
        """
        for slot in slots:
            unknown = self.undefined(slot, mask, site)
            if unknown is None:
                continue
            for finding in unknown.origin.findings(site, self.agent.who):
                self.launch.report(finding)
            self.undef[slot] &= ~mask

    def undefined(self, slot: int, mask: int, site: Site) -> Unknown | None:
        """Undefined bits of an operand in the lanes of a mask; None if there are none."""
        if self.undef[slot] & mask and slot in self.pending:
            load = self.pending[slot]
            self._used_before_wait(load, site)
            self.agent.tmem.used(load)
            self.awaited(load)
        lanes = self.undef[slot] & mask
        if not lanes:
            return None
        known = self.unknown.get(slot)
        where = LANE_MASK[lanes]
        bits = np.zeros((32, self.sizes[slot] or 1), np.uint8)
        bits[where] = 0xFF if known is None else known.bits[where]
        if known is not None:
            return Unknown(bits, known.origin)
        place = f"{self.names[slot]} (warp {self.index}, {lane_words(lanes)})"
        missing = "nothing wrote the register before"
        index = self.agent.cta.index
        what = self.names[slot]
        return Unknown(bits, Origin("undefined-register", site, place, missing, index, what))

    def define(self, slot: int, mask: int, unknown: Unknown | None) -> None:
        """Records which bits of a value are undefined that lanes write to a register."""
        self.pending.pop(slot, None)
        if unknown is None:
            self.undef[slot] &= ~mask
            return
        bits, others = unknown.bits.copy(), self.undef[slot] & ~mask
        if others:
            known, where = self.unknown.get(slot), LANE_MASK[others]
            bits[where] = 0xFF if known is None else known.bits[where]
        self.unknown[slot] = merged = Unknown(bits, unknown.origin)
        self.undef[slot] = others | merged.lanes & mask

    def result(
        self, sources: tuple[int, ...], mask: int, site: Site, flow: Callable[[list[Bits]], Bits]
    ) -> Unknown | None:
        """Computes the undefined bits of a result from those of the sources, by `flow`."""
        operands = [self.undefined(slot, mask, site) for slot in sources]
        found = [operand for operand in operands if operand is not None]
        if not found:
            return None
        bits = [
            np.zeros((32, self.sizes[slot] or 1), np.uint8) if operand is None else operand.bits
            for slot, operand in zip(sources, operands, strict=True)
        ]
        return Unknown(flow(bits), found[0].origin)

    def copied(self, source: int, target: int, mask: int, site: Site) -> None:
        """Gives the destination of a copy the undefined bits, or the pending load, of its source,
        because a copy does not count as a use of the value.
        """
        load = self.pending.get(source)
        if load is None:
            self.define(target, mask, self.undefined(source, mask, site))
            return
        self.pending[target] = load
        self.undef[target] |= self.undef[source] & mask
        if source in self.unknown:
            self.unknown[target] = self.unknown[source]
        else:
            self.unknown.pop(target, None)

    def guarded(self, guard: int, results: Results, mask: int, site: Site) -> int:
        """Returns the lanes whose guard is undefined. If the instruction does more than compute,
        they are also reported.
        """
        if results is None:
            self.read_undefined(site, (guard,), mask)
        return self.undef[guard] & mask

    def depend(self, guard: int, results: Results, lanes: int, site: Site) -> None:
        """Records the lanes whose results depend on an undefined guard."""
        unknown = self.undefined(guard, lanes, site) if lanes else None
        if unknown is not None and results is not None:
            for slot in results:
                bits = np.repeat(unknown.bits, self.sizes[slot] or 1, axis=1)
                self.define(slot, lanes, Unknown(bits, unknown.origin))

    def loaded(self, slots: dict[int, Site], mask: int, undefined: Undefined | None) -> None:
        """Records that a tcgen05.ld will fill registers. undefined: mask of undefined bits, bytes
        [registers, 32, 4]
        """
        for n, slot in enumerate(slots if undefined or self.unknown else ()):
            if undefined is None or not undefined.where[n].any():
                self.unknown.pop(slot, None)
            else:
                bits = undefined.where[n].astype(np.uint8) * np.uint8(0xFF)
                self.unknown[slot] = Unknown(bits, undefined.origin)
        self.pending.update(slots)
        for slot in slots:
            self.undef[slot] |= mask
        if not self.agent.machine.checking:
            self.awaited()

    def awaited(self, load: Site | None = None) -> None:
        """Records that the registers of one tcgen05.ld, or of all of them, are ready in all running
        lanes.
        """
        for slot in [s for s, at in self.pending.items() if load is None or at is load]:
            known = self.unknown.get(slot)
            self.undef[slot] &= 0 if known is None else known.lanes
            del self.pending[slot]

    # --- errors and findings ------------------------------------------------------------------
    def error(self, code: str, message: str, site: Site) -> MachineError:
        return MachineError(code, message, site=site)

    def _find(self, code: str, site: Site, second: str, missing: str) -> None:
        index, who = self.agent.cta.index, self.agent.who
        self.launch.report(Finding("error", code, str(site), second, missing, index, who=who))

    def undefined_arguments(self, site: Site) -> None:
        self._find("undefined-read", site, "what printf reads", "nothing wrote the bytes before")

    def double_issue(self, site: Site, lanes: int) -> None:
        self._find(
            "double-issue",
            site,
            f"{lanes} threads of warp {self.index}",
            "each thread issues the instruction; guard it with elect.sync",
        )

    def _used_before_wait(self, load: Site, site: Site) -> None:
        """A warning: the value is the right one (PTX ISA 9.7.16.6.4.5), and some kernels rely on
        it."""
        self.launch.report(
            Finding(
                "warning",
                "registers-before-wait",
                str(load),
                str(site),
                "tcgen05.wait::ld between the load and the first use of its registers",
                self.agent.cta.index,
                who=self.agent.who,
            )
        )

    # --- the cluster's barrier ----------------------------------------------------------------
    def complete_arrival(self) -> None:
        """Arrives at the cluster's barrier as soon as all live lanes of the warp have arrived."""
        if self.arrived and not self.live & ~self.arrived:
            relaxed, site = self.arrival
            self.agent.lanes.together()
            self.agent.cluster_barrier.arrive(relaxed=relaxed, site=site)
            self.arrived, self.waiting = 0, self.arrived
