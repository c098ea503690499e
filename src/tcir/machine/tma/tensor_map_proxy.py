"""Tensor maps in global memory: their replacement and the fences of the tensormap proxy.

TMA reads a tensor map through a proxy of its own. Between a write of the 128 bytes (by st, or by
tensormap.replace, both through the generic proxy) and a use there has to be: by the writer
`fence.proxy.tensormap::generic.release` (or `tensormap.cp_fenceproxy`, which copies and releases);
a synchronisation; by the user `fence.proxy.tensormap::generic.acquire` on the map's address.

Sources: PTX ISA 9.7.9.28 (tensormap.replace), 9.7.13.16 (tensormap.cp_fenceproxy), 9.7.13.4
(membar, fence).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir.machine.errors import MachineError
from tcir.machine.memory.global_and_shared import GlobalAndShared
from tcir.machine.order.hazards import Access, Clock, marked, observed
from tcir.machine.refusal import Refusal
from tcir.machine.tma.tensor_encoding import MAP_BYTES, replace

RELEASED = "tensormap"
"""Mark of what has passed a release to the tensormap proxy."""


class TensorMapProxy(GlobalAndShared):
    """tensormap.replace, tensormap.cp_fenceproxy, fence.proxy.tensormap::generic."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._acquired: dict[int, Clock] = {}
        """Global address of a map -> what was known at the last acquire of it."""

    def tensormap_replace(
        self, space: str, address: int, field: str, value: int, ordinal: int = 0, *, site: Any
    ) -> None:
        """tensormap.replace.tile: one field of the map in "shared" or "global" memory."""
        at = self._map_address(address, site)
        raw = self.load(space, at, MAP_BYTES, site=site).tobytes()
        try:
            changed = replace(raw, field, value, ordinal)
        except Refusal as refusal:
            raise MachineError(refusal.code, str(refusal), site=site) from None
        self.store(space, at, np.frombuffer(changed, np.uint8)[None], site=site)

    def tensormap_release(self, *, site: Any) -> None:
        """fence.proxy.tensormap::generic.release: what this agent wrote may be used as maps."""
        self._at(site)
        self._mark_own(RELEASED)

    def tensormap_acquire(self, address: int, *, site: Any) -> None:
        """fence.proxy.tensormap::generic.acquire [address], 128."""
        self._at(site)
        self._map_address(address, site)
        self._acquired[address] = dict(self.clock)

    def tensormap_copy_release(self, target: int, source: int, *, site: Any) -> None:
        """tensormap.cp_fenceproxy: the map at a shared address to a global one, and a release."""
        raw = self.load("shared", self._map_address(source, site), MAP_BYTES, site=site)
        self.store("global", self._map_address(target, site), raw, site=site)
        self._mark_own(RELEASED)

    def _map_address(self, address: int, site: Any) -> Any:
        if address % MAP_BYTES:
            raise MachineError(
                "misaligned",
                f"expected a tensor map to be replaced at a multiple of {MAP_BYTES}, got "
                f"{address:#x}",
                site=site,
            )
        return np.array([address], np.int64)

    def read_map(self, address: int, *, site: Any) -> bytes:
        """The bytes TMA finds at a global address; `note_map` checks the order."""
        buffer = self.machine.memory.find(address, address + MAP_BYTES, site)
        start = address - buffer.base
        where = slice(start, start + MAP_BYTES)
        if buffer.defined is not None and not buffer.defined[where].all():
            self.cta.report(
                "error", "undefined-read", site, f"tensor map at {address:#x}",
                "nothing wrote the bytes before",
            )  # fmt: skip
        return buffer.data[where].tobytes()

    def note_map(self, address: int | None, access: Access) -> None:
        """Checks and records that an operation uses the map at a global address."""
        if address is None:
            return
        buffer = self.machine.memory.find(address, address + MAP_BYTES, access.site)
        self.watch(buffer)
        if buffer.shadow is None:
            return
        start = address - buffer.base
        where = slice(start // buffer.granule, (start + MAP_BYTES) // buffer.granule)
        known = self._acquired.get(address, {})
        for other in buffer.shadow.writers_at(where):
            if not observed(self.clock, other):
                continue  # a race, reported by note_read below
            released = marked(known, RELEASED, other)
            if released and observed(known, other):
                continue
            missing = (
                "fence.proxy.tensormap::generic.acquire on the map by its user, after the "
                "synchronisation"
                if marked(self.clock, RELEASED, other)
                else "fence.proxy.tensormap::generic.release (or tensormap.cp_fenceproxy) by the "
                "writer, a synchronisation, and fence.proxy.tensormap::generic.acquire by the user"
            )
            self.cta.report(
                "error", "missing-tensormap-fence", f"{other.site} ({other.kind} writes the map)",
                f"{access.site} ({access.kind} uses it)", missing,
            )  # fmt: skip
        mine = Access(access.component, access.number, access.kind, access.site, "tensormap")
        self.note_read(buffer.shadow, where, mine)
