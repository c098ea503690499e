"""Registers that wgmma reads and writes asynchronously (PTX ISA 9.7.15.7).

Other instructions may touch a register of D, A or the metadata only after a wait for the wgmma. A
wgmma may use a register that other instructions have touched only after wgmma.fence. So in a kernel
with wgmma, all instructions that name such registers record their accesses here. In this file, A
includes its metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np

from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.syntax import Site
from tcir.machine import Agent
from tcir.machine.order.unpromised import COPIED_IN_FLIGHT, MOVED_AFTER_THE_FENCE
from tcir.machine.wgmma.unit import Flight

POISON = np.uint32(0xCBCBCBCB)
Put = Callable[[np.ndarray], None]
"""Writes a result [16, n] to the registers of D."""


class RegisterFile(Protocol):
    """Registers of a warp."""

    agent: Agent
    v: list[dict[int, np.ndarray]]
    undef: list[int]
    names: list[str]


class WgmmaRegisters:
    """Registers of one warp that wgmma uses. in_flight: for each slot, the last wgmma that uses
    it
    """

    def __init__(self) -> None:
        self.in_flight: dict[int, Flight] = {}
        self.accumulators: dict[tuple[int, ...], tuple[Flight, Put]] = {}
        self.fenced = False
        self.touched: dict[int, Site] = {}
        """Registers touched since the last wgmma.fence other than by a wgmma on the same
        accumulator, with the site."""
        self.moved: set[int] = set()
        """Registers of `touched` that only a mov of zero or of another register has touched."""
        self.shapes: dict[int, tuple[int, ...]] = {}
        """The accumulator that a register was last part of since the last wgmma.fence."""

    def fence(self) -> None:
        """Executes wgmma.fence: afterwards no register counts as touched by other instructions."""
        self.fenced = True
        self.touched.clear()
        self.moved.clear()
        self.shapes.clear()

    def touch(self, w: RegisterFile, slots: tuple[int, ...], site: Site) -> None:
        """Records that an instruction other than wgmma reads or writes registers."""
        self.moved.difference_update(slots)
        for slot in slots:
            self.touched[slot] = site
            if slot in self.in_flight:
                self._early(w, self.in_flight[slot], slot, site)

    def touch_each(self, sites: Mapping[int, Site]) -> None:
        """Records that instructions other than wgmma have read or written registers that no wgmma
        in flight uses. sites: location of the last access to each register
        """
        self.moved.difference_update(sites)
        self.touched.update(sites)

    def move(self, slots: tuple[int, ...]) -> None:
        """Records that a mov of zero or of another register wrote these registers."""
        self.moved.update(slots)

    def copies(self, w: RegisterFile, slots: tuple[int, ...], site: Site) -> bool:
        """Whether a mov of these registers copies a result of a wgmma in flight, which is then
        reported.
        """
        slot = next((slot for d in self.accumulators for slot in d if slot in slots), None)
        if slot is not None:
            w.agent.cta.report(
                COPIED_IN_FLIGHT,
                "wgmma-in-flight",
                self.in_flight[slot].site,
                site,
                "wgmma.commit_group and wait_group before a copy of "
                f"{w.names[slot]}, which the wgmma writes until then (PTX ISA 9.7.15.7)",
            )
        return slot is not None

    def take(
        self, w: RegisterFile, d: tuple[int, ...], a: tuple[int, ...], site: Site
    ) -> Flight | None:
        """Checks the registers of a new wgmma; returns the wgmma in flight that writes the same
        D.
        """
        for slot in sorted((*d, *a), key=self.moved.__contains__):
            other = self.shapes.get(slot)
            if not self.fenced or slot in self.touched or other is not None and other != d:
                where = self.touched.get(slot, "the start of the kernel")
                apart = not self.fenced or other not in (None, d)
                copied = slot in d and slot in self.moved and not apart
                w.agent.cta.report(
                    MOVED_AFTER_THE_FENCE if copied else "error",
                    "missing-wgmma-fence",
                    where,
                    site,
                    "wgmma.fence between another access to a register of D, A or metadata "
                    f"({w.names[slot]}) and the wgmma (PTX ISA 9.7.15.7)",
                )
                break
        before = self.accumulators.get(d)
        results = {slot for other in self.accumulators for slot in other}
        for slots, clashes in ((d, set(self.in_flight) if before is None else set()), (a, results)):
            for slot in slots:
                if slot in clashes:
                    self._early(w, self.in_flight[slot], slot, site)
                    break
        return before[0] if before is not None else None

    def fly(
        self, w: RegisterFile, d: tuple[int, ...], a: tuple[int, ...], flight: Flight, put: Put
    ) -> None:
        """Records the issue of a wgmma. The contents of its D are undefined until a wait covers
        it.
        """
        self.accumulators[d] = flight, put
        for slot in (*d, *a):
            self.in_flight[slot] = flight
        for slot in d:
            self.shapes[slot] = d
            w.v[U32][slot][:] = POISON
            w.undef[slot] = 0

    def land(self, complete: int) -> None:
        """Records that a wait covers all wgmma up to this number."""
        for d, (flight, put) in list(self.accumulators.items()):
            if flight.number <= complete and flight.result is not None:
                put(flight.result)
                del self.accumulators[d]
        self.in_flight = {s: f for s, f in self.in_flight.items() if f.number > complete}

    def _early(self, w: RegisterFile, flight: Flight, slot: int, site: Site) -> None:
        w.agent.cta.report(
            "error",
            "wgmma-in-flight",
            flight.site,
            site,
            f"wgmma.commit_group and wait_group before an access to {w.names[slot]}, which "
            "the wgmma reads or writes until then (PTX ISA 9.7.15.7)",
        )
