"""The TMA engine of an agent: tensor copies between global and shared memory (PTX ISA 9.7.9.27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.barriers import Barriers
from tcir.machine.core import Blocking
from tcir.machine.errors import MachineError, NotModelled
from tcir.machine.global_and_shared import GlobalAndShared
from tcir.machine.hazards import Access
from tcir.machine.memory import ALL_DEFINED
from tcir.machine.operation import Operation
from tcir.machine.refusal import Refusal
from tcir.machine.swizzle import swizzle_address
from tcir.machine.tensor_map import DecodedMap
from tcir.machine.tensor_walk import im2col_elements, tile_elements

Index = NDArray[np.int64]


class Tma(Barriers, GlobalAndShared):
    """cp.async.bulk.tensor and bulk groups. Everything it touches, it touches as async proxy."""

    _bulk_open: list[Operation]
    _bulk_groups: list[list[Operation]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bulk_open, self._bulk_groups = [], []
        self.last_bulk: Any = None
        """Site of the last bulk store."""
        self.bulk_reads, self.bulk_writes = ("bulk", self.me), ("bulk write", self.me)

    @property
    def bulk_issued(self) -> int:
        """Bulk groups with a store in them, the open one included."""
        return len(self._bulk_groups) + bool(self._bulk_open)

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
        fields = tensor_map.fields
        eb, nbytes = fields.element_bytes, fields.box_bytes
        self._aligned(target, nbytes, site)
        barrier = self._mbarrier(mbar, site, proxy="async")
        source, offset = _box(tensor_map, coords, mode, im2col_offsets, site)
        inside = source >= 0
        counters = self.machine.counters
        counters.tma_loads += 1
        counters.global_to_shared += nbytes
        counters.global_to_shared_by_tensor[tensor_map.address] += nbytes
        counters.global_to_shared_read += int(inside.sum()) * eb
        destination = swizzle_address(target + offset, fields.swizzle)
        self.spare_mbarriers(destination, site, "written")
        barrier.loads += 1
        number = barrier.loads
        smem = self.cta.smem
        smem.check(target, int(destination.max()) + eb, site)
        if self.machine.checking:
            barrier.users[barrier.tma] = (number, site)
            access = Access(barrier.tma, number, "TMA load", site, "async")
            self._note_global(source[inside], access, eb, write=False)
            self.note_write(smem.shadow, _granules(destination, eb), access)
        issued = dict(self.clock)

        def run() -> None:
            self._move_in(source, inside, destination, eb, site)
            barrier.complete_tx(nbytes, number, issued, site)

        self.cta.launch(Operation(site, run))

    def _aligned(self, address: int, nbytes: int, site: Any) -> None:
        if address % 128:
            raise MachineError(
                "misaligned",
                f"expected a shared address, multiple of 128, got {address:#x}",
                site=site,
            )
        self.cta.smem.check(address, address + nbytes, site)

    def _note_global(self, addresses: Index, access: Access, eb: int, *, write: bool) -> None:
        if not addresses.size:
            return
        low, high = int(addresses.min()), int(addresses.max()) + eb
        buffer = self.machine.memory.find(low, high, access.site)
        self.watch(buffer)
        where = (addresses - buffer.base) // 4
        if eb == 8:
            where = np.concatenate([where, where + 1])
        if write:
            self.note_write(buffer.shadow, where, access)
        else:
            self.note_read(buffer.shadow, where, access)

    def _move_in(
        self, source: Index, inside: NDArray[np.bool_], destination: Index, eb: int, site: Any
    ) -> None:
        dtype = np.dtype(f"u{eb}")
        values = np.zeros(source.size, dtype)
        if inside.any():
            addresses = source[inside]
            buffer = self.machine.memory.find(int(addresses.min()), int(addresses.max()) + eb, site)
            at = addresses - buffer.base
            known = buffer.defined
            if known is not None and not all(known[at + i].all() for i in range(eb)):
                self.cta.report(
                    "error", "undefined-read", site, "global memory",
                    "nothing wrote the bytes before",
                )  # fmt: skip
            usable = buffer.data.size // eb * eb
            values[inside] = buffer.data[:usable].view(dtype)[at // eb]
        smem = self.cta.smem
        smem.view(dtype)[destination // eb] = values
        smem.defined_view(eb)[destination // eb] = ALL_DEFINED[eb]

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
        eb, nbytes = fields.element_bytes, fields.box_bytes
        self._aligned(source, nbytes, site)
        target, offset = _box(tensor_map, coords, "tile", (), site)
        inside = target >= 0
        addresses = target[inside]
        at = swizzle_address(source + offset, fields.swizzle)
        smem = self.cta.smem
        smem.check(source, int(at.max()) + eb, site)
        counters = self.machine.counters
        counters.tma_stores += 1
        counters.shared_to_global += nbytes
        if self.machine.checking:
            number = len(self._bulk_groups) + 1
            reads = Access(self.bulk_reads, number, "TMA store", site, "async")
            self.note_read(smem.shadow, _granules(at, eb), reads)
            writes = Access(self.bulk_writes, number, "TMA store", site, "async")
            self._note_global(addresses, writes, eb, write=True)

        def run() -> None:
            if not addresses.size:
                return
            where = at[inside] // eb
            if (smem.defined_view(eb)[where] != ALL_DEFINED[eb]).any():
                self.cta.report(
                    "error", "undefined-read", site, "shared memory", "nothing wrote it before"
                )
            low, high = int(addresses.min()), int(addresses.max()) + eb
            buffer = self.machine.memory.find(low, high, site)
            values = smem.view(np.dtype(f"u{eb}"))[where]
            target_bytes = (addresses - buffer.base)[:, None] + np.arange(eb)
            buffer.data[target_bytes] = values.view(np.uint8).reshape(-1, eb)
            if buffer.defined is not None:
                buffer.defined[target_bytes] = True

        operation = Operation(site, run)
        self.last_bulk = site
        self._bulk_open.append(operation)
        self.cta.launch(operation)

    def bulk_commit(self, *, site: Any) -> None:
        """cp.async.bulk.commit_group."""
        self._at(site)
        self._bulk_groups.append(self._bulk_open)
        self._bulk_open = []

    def bulk_wait(self, pending: int, read: bool = False, *, site: Any) -> Blocking:
        """cp.async.bulk.wait_group(.read): all but the last ``pending`` groups are complete.

        With ``read`` only their sources may be reused; what they wrote is not yet visible.
        """
        self._at(site)
        last = max(0, len(self._bulk_groups) - pending)
        groups = self._bulk_groups[:last]
        yield from self._wait(
            lambda: all(o.done for g in groups for o in g), lambda: f"bulk stores at {site}"
        )
        self.clock[self.bulk_reads] = last
        if not read:
            self.clock[self.bulk_writes] = last


def _granules(addresses: Index, eb: int) -> Any:
    """Granules of a box in shared memory: mostly one range."""
    low, high = int(addresses.min()), int(addresses.max()) + eb
    if (high - low) == addresses.size * eb:
        return slice(low // 4, -(-high // 4))
    return np.unique(np.concatenate([addresses // 4, (addresses + eb - 1) // 4]))


def _box(
    tensor_map: DecodedMap, coords: Sequence[int], mode: str, offsets: Sequence[int], site: Any
) -> tuple[Index, Index]:
    try:
        if mode == "tile":
            return tile_elements(tensor_map, coords)
        return im2col_elements(tensor_map, coords, offsets)
    except Refusal as refusal:
        raise MachineError(refusal.code, str(refusal), site=site) from None
