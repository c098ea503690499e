"""Tensor maps in global memory: field replacement, and the fences of the tensormap proxy.

TMA reads tensor maps through a proxy of their own. Three steps are required between a write of the
128 bytes (st or tensormap.replace, both through the generic proxy) and a use of the map:

1. The writer executes `fence.proxy.tensormap::generic.release`, or `tensormap.cp_fenceproxy`, which
   copies and releases.
2. Writer and user synchronise.
3. The user executes `fence.proxy.tensormap::generic.acquire` on the map's address. Another thread
   of its CTA may execute this fence instead, if the user synchronises with that thread afterwards:
   the fence must be on the causality path from the writer to the user (PTX ISA 8.9, proxy-preserved
   base causality order, which treats the accesses of one thread block together). Triton's kernels
   acquire in one warp and use the map in two.

Writes to global memory by the host, or by an earlier launch, also need the acquire (PTX ISA 8.9.4).

Sources: PTX ISA 9.7.9.28 (tensormap.replace), 9.7.13.16 (tensormap.cp_fenceproxy), 9.7.13.4
(membar, fence).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.generic import Memory
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import Access, Clock, marked, observed
from tcir.machine.order.lanes import observed_of
from tcir.machine.refusal import Refusal
from tcir.machine.tma.tensor_encoding import MAP_BYTES, USED_BYTES, replace

RELEASED = "tensormap"
"""Marks accesses that were released to the tensormap proxy."""
ACQUIRED = "acquired tensor map"
"""Marks how many acquires of a map, by address, an agent has executed."""


class TensorMaps:
    """Executes tensormap.replace, tensormap.cp_fenceproxy and fence.proxy.tensormap::generic."""

    def __init__(self, agent: AgentProtocol, memory: Memory) -> None:
        self.agent, self.memory = agent, memory
        self.cta, self.machine = agent.cta, agent.machine

    def replace(
        self, space: str, address: int, field: str, value: int, ordinal: int = 0, *, site: object
    ) -> None:
        """tensormap.replace.tile: replaces one field of a map in "shared" or "global" memory."""
        at = self._map_address(address, site)
        raw = self.memory.load(space, at, USED_BYTES, site=site).tobytes()
        try:
            changed = replace(raw, field, value, ordinal)[:USED_BYTES]
        except Refusal as refusal:
            raise MachineError.of(refusal, site) from None
        self.memory.store(space, at, np.frombuffer(changed, np.uint8)[None], site=site)

    def release(self, *, site: object) -> None:
        """fence.proxy.tensormap::generic.release: releases this agent's writes to the tensormap
        proxy."""
        self.agent.proceed(site)
        self.agent.mark(RELEASED)

    def acquire(self, address: int, *, site: object) -> None:
        """fence.proxy.tensormap::generic.acquire [address], 128."""
        self.agent.proceed(site)
        self._map_address(address, site)
        mark = (ACQUIRED, address, self.agent.me)
        number = self.agent.clock.get(mark, 0) + 1
        known = {**self.agent.clock, **self.agent.lanes.done()}
        self.cta.acquired_maps.setdefault(address, {})[self.agent.me] = number, known
        self.agent.clock[mark] = number
        self.agent.lanes.step()

    def copy_release(self, target: int, source: int, *, site: object) -> None:
        """tensormap.cp_fenceproxy: copies a map from shared to global memory and releases the copy.

        Undefined bytes in the unused second half of the map are ignored.
        """
        at = self._map_address(source, site)
        raw, undefined = self.memory.read("shared", at, MAP_BYTES, site=site)
        if undefined is not None:
            undefined.where[:, USED_BYTES:] = False
        at = self._map_address(target, site)
        self.memory.store("global", at, raw, undefined=undefined, site=site)
        self.agent.mark(RELEASED)

    def _map_address(self, address: int, site: object) -> NDArray[np.int64]:
        if address % MAP_BYTES:
            raise MachineError(
                "misaligned",
                f"expected a tensor map to be replaced at a multiple of {MAP_BYTES}, got "
                f"{address:#x}",
                site=site,
            )
        return np.array([address], np.int64)

    def read(self, address: int, *, site: object) -> bytes:
        """Returns the used bytes of the map at a global address, without checks of the ordering,
        which `note` makes.
        """
        buffer = self.machine.memory.find(address, address + MAP_BYTES, site)
        start = address - buffer.base
        where = slice(start, start + USED_BYTES)
        unwritten = self.memory.origin(f"tensor map at {address:#x}", site)
        if undefined := buffer.missing(where, unwritten):
            self.cta.report_undefined(undefined.origin, site)
        return buffer.data[where].tobytes()

    def note(self, address: int | None, access: Access) -> None:
        """Checks and records a use of the map at a global address."""
        if address is None:
            return
        buffer = self.machine.memory.find(address, address + MAP_BYTES, access.site)
        self.memory.watch(buffer)
        if buffer.shadow is None:
            return
        start = address - buffer.base
        where = slice(start // buffer.granule, (start + USED_BYTES) // buffer.granule)
        acquires = list(self._acquires(address))
        if not (acquires or buffer.constant or buffer.shadow.writer[where].all()):
            self.cta.report(
                "error",
                "missing-tensormap-fence",
                f"{buffer.words(start, start + MAP_BYTES)}, written before the launch",
                f"{access.site} ({access.kind} uses it as tensor map)",
                "fence.proxy.tensormap::generic.acquire.sys on the map by its user, or a map in a "
                "__grid_constant__ parameter or constant memory: the start of a kernel acquires "
                "nothing for the tensormap proxy (PTX ISA 8.9.4)",
            )
        for other in buffer.shadow.writers_at(where):
            if not self.agent.checks.has_observed(buffer.shadow, where, other):
                continue  # a race, reported by note_read below
            if any(_covers(known, other) for known in acquires):
                continue
            missing = (
                "fence.proxy.tensormap::generic.acquire on the map by its user, after the "
                "synchronisation"
                if marked(self.agent.clock, RELEASED, other)
                else "fence.proxy.tensormap::generic.release (or tensormap.cp_fenceproxy) by the "
                "writer, a synchronisation, and fence.proxy.tensormap::generic.acquire by the user"
            )
            self.cta.report(
                "error",
                "missing-tensormap-fence",
                f"{other.site} ({other.kind} writes the map)",
                f"{access.site} ({access.kind} uses it)",
                missing,
            )
        mine = Access(access.component, access.number, access.kind, access.site, "tensormap")
        self.agent.checks.note_read(buffer.shadow, where, mine)

    def _acquires(self, address: int) -> Iterator[Clock]:
        """Yields the clocks of the CTA's agents at those acquires of the map that this agent has
        observed, each agent's last."""
        for agent, (number, known) in self.cta.acquired_maps.get(address, {}).items():
            if self.agent.clock.get((ACQUIRED, address, agent), 0) >= number:
                yield known


def _covers(known: Clock, write: Access) -> bool:
    """Whether a write was released and synchronised with before an acquire."""
    seen = observed(known, write) or observed_of(known, write, write.lanes)
    return marked(known, RELEASED, write) and seen
