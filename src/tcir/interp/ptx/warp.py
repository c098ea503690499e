"""One warp: a register file of 32-lane arrays, local memory, and what its lanes are waiting for."""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.lanes import FULL
from tcir.interp.ptx.launch import LaunchState
from tcir.interp.ptx.registers import WarpStorage, unsigned_view
from tcir.interp.ptx.syntax import Frame, Site
from tcir.machine import Agent, Finding, MachineError


class Warp:
    """Registers and local memory of 32 lanes.

    v[view][slot]: the 32 values of a slot, as the type `view` (see `registers.VIEWS`). p[slot]: a
    predicate as lane mask. undef[slot]: the lanes that never got a value, or that a tcgen05.ld
    fills which nothing has waited for: `pending` has those slots, with the place of the load.
    live: the lanes that have not exited. Instructions write these directly.
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
        "local_defined",
        "names",
        "p",
        "pending",
        "undef",
        "v",
        "waiting",
    )  # fmt: skip

    def __init__(self, storage: WarpStorage, launch: LaunchState, agent: Agent, index: int) -> None:
        self.launch, self.agent, self.index = launch, agent, index
        self.pending: dict[int, Site] = {}
        self.frames: dict[Frame, list[list]] = {}  # of recursive calls, see isa/frames.py
        first, threads = 32 * index, launch.sizes.threads
        self.live = FULL if first + 32 <= threads else (1 << (threads - first)) - 1
        # Of the cluster's barrier: lanes that have arrived while others of the warp have not, how
        # the last of them did and where; and lanes that may wait, since all have.
        self.arrived = self.waiting = 0
        self.arrival: tuple[bool, Site | None] = (False, None)
        self.names = storage.slots.names
        self.local, self.local_defined = storage.local_memory()
        self.v = storage.registers()
        self.p: list[int] = [0] * len(self.names)
        self.undef: list[int] = [FULL] * len(self.names)
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
        for slot, name in slots.specials.items():
            self.undef[slot] = 0
            value = self.launch.special(name, cta, self.index, tid)
            if slots.sizes[slot] == 0:
                self.p[slot] = FULL if value else 0
            else:
                self.v[unsigned_view(slots.sizes[slot])][slot][:] = value

    # --- undefined registers ------------------------------------------------------------------
    def read_undefined(self, site: Site, slots: tuple[int, ...], mask: int) -> None:
        """Reports reads of registers that nothing wrote; the value stays the poison pattern."""
        for slot in slots:
            lanes = self.undef[slot] & mask
            if not lanes:
                continue
            if slot in self.pending:
                self._used_before_wait(self.pending[slot], site)
                self.awaited(self.pending[slot])
                continue
            name = self.names[slot]
            if self.launch.first_report(site.line, name):
                where = f"{name} (warp {self.index}, lanes {lanes:#010x})"
                self._find("undefined-register", site, where, "nothing wrote the register before")
            self.undef[slot] &= ~mask

    def copied(self, source: int, target: int) -> None:
        """Notes that lanes without a value were copied: they may wait for a load, too."""
        load = self.pending.get(source)
        if load is not None:
            self.pending[target] = load
        else:
            self.pending.pop(target, None)

    def awaited(self, load: Site | None = None) -> None:
        """The registers of one tcgen05.ld, or of all, have their values: of all lanes that run."""
        for slot in [s for s, at in self.pending.items() if load is None or at is load]:
            self.undef[slot] = 0
            del self.pending[slot]

    # --- errors and findings ------------------------------------------------------------------
    def error(self, code: str, message: str, site: Site) -> MachineError:
        return MachineError(code, message, site=site)

    def _find(self, code: str, site: Site, second: str, missing: str) -> None:
        if self.launch.first_report(site.line, code + second):
            index = self.agent.cta.index
            self.launch.report(Finding("error", code, str(site), second, missing, index))

    def undefined_local(self, site: Site) -> None:
        self._find("undefined-read", site, "local memory", "nothing wrote the bytes before")

    def undefined_arguments(self, site: Site) -> None:
        self._find("undefined-read", site, "what printf reads", "nothing wrote the bytes before")

    def double_issue(self, site: Site, lanes: int) -> None:
        self._find(
            "double-issue", site, f"{lanes} threads of warp {self.index}",
            "each thread issues the instruction; guard it with elect.sync",
        )  # fmt: skip

    def _used_before_wait(self, load: Site, site: Site) -> None:
        """A warning: the value is the right one (PTX ISA 9.7.16.6.4.5), and some kernels rely on
        it."""
        self.launch.report(
            Finding(
                "warning", "registers-before-wait", str(load), str(site),
                "tcgen05.wait::ld between the load and the first use of its registers",
                self.agent.cta.index,
            )
        )  # fmt: skip

    # --- the cluster's barrier ----------------------------------------------------------------
    def complete_arrival(self) -> None:
        """Arrives at the cluster's barrier once all lanes that still run have."""
        if self.arrived and not self.live & ~self.arrived:
            relaxed, site = self.arrival
            self.agent.cluster_barrier.arrive(relaxed=relaxed, site=site)
            self.arrived, self.waiting = 0, self.arrived
