"""The TMA engine of an agent: tensor copies between global and shared memory (PTX ISA 9.7.9.27)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.engine.cluster import RANK_SHIFT
from tcir.machine.engine.operation import Operation
from tcir.machine.errors import MachineError
from tcir.machine.memory.memories import ALL_DEFINED, Buffer
from tcir.machine.order.hazards import Access
from tcir.machine.sync.barriers import Barriers
from tcir.machine.sync.mbarrier import Mbarrier
from tcir.machine.tma.box import Box, load_box, store_box
from tcir.machine.tma.groups import BulkGroups
from tcir.machine.tma.tensor_map import DecodedMap
from tcir.machine.tma.tensor_map_proxy import TensorMapProxy
from tcir.machine.tma.values import check_reduction, fill, loaded, packed_low_bits, reduced

if TYPE_CHECKING:
    from tcir.machine.engine.machine import Cta

Index = NDArray[np.int64]


class Tma(TensorMapProxy, BulkGroups, Barriers):
    """cp.async.bulk.tensor. Everything it touches, it touches as async proxy.

    ``map_at`` is the global address of the tensor map; None: it lies in kernel parameters, which
    nobody writes.
    """

    def tma_load(
        self,
        target: int,
        tensor_map: DecodedMap,
        coords: Sequence[int],
        mbar: int,
        mode: str = "tile",
        im2col_offsets: Sequence[int] = (),
        cta_mask: int | None = None,
        map_at: int | None = None,
        cta_group: int = 1,
        *,
        site: Any,
    ) -> None:
        """cp.async.bulk.tensor global -> shared; its bytes count on the mbarrier at ``mbar``.

        ``mode`` as PTX spells it; ``im2col_offsets``: of im2col, or wHalo and wOffset. With
        ``cta_mask`` data and signal go to the same offsets in each CTA of the mask.
        """
        self._at(site)
        self._aligned(target, tensor_map, site)
        copies = self._destinations(target, mbar, cta_mask, cta_group, site)
        target &= (1 << RANK_SHIFT) - 1
        box = load_box(
            tensor_map, coords, mode, im2col_offsets, target, self.machine.assumptions, site
        )
        counters, eb = self.machine.counters, box.fields.piece_bytes
        source = box.addresses
        counters.tma_loads += 1
        counters.global_to_shared += box.nbytes * len(copies)
        counters.global_to_shared_by_tensor[tensor_map.address] += box.nbytes * len(copies)
        counters.global_to_shared_read += source.size * eb
        signals = []
        for cta, barrier in copies:
            cta.smem.check(box.low, box.high, site)
            self._spare(box, "written", site, cta)
            barrier.loads += 1
            number = barrier.loads
            signals.append((cta, barrier, number))
            if self.machine.checking:
                barrier.users[barrier.tma] = (number, site)
                access = Access(barrier.tma, number, "TMA load", site, "async")
                self.note_map(map_at, access)
                self._note_global(source, access, eb, write=False)
                self.note_write(cta.smem.shadow, _granules(box), access)
        issued = dict(self.clock)

        def run() -> None:
            for cta, barrier, number in signals:
                self._move_in(cta, box, source, site)
                barrier.complete_tx(box.nbytes, number, issued, site)

        self.cta.launch(Operation(site, run))

    def _destinations(
        self, target: int, mbar: int, cta_mask: int | None, cta_group: int, site: Any
    ) -> list[tuple[Cta, Mbarrier]]:
        """The CTAs that a load writes to, and the mbarrier that each of them signals.

        It is in the same CTA; with .cta_group::2 it may be in the other of the pair, and every
        destination signals the one of its pair whose rank is even (or odd) like that of ``mbar``
        (PTX ISA 9.7.9.27.1.2).
        """
        ctas = [self.cta_of(to, site) for to in self.multicast(target, cta_mask, site)]
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
                    f"cluster), got {mbar:#x}, rank {rank}",
                    site=site,
                )
            found.append((cta, self._mbarrier(at << RANK_SHIFT | offset, site, proxy="async")))
        return found

    def tma_store(
        self,
        source: int,
        tensor_map: DecodedMap,
        coords: Sequence[int],
        mode: str = "tile",
        reduction: str | None = None,
        map_at: int | None = None,
        *,
        site: Any,
    ) -> None:
        """cp(.reduce).async.bulk.tensor shared -> global; part of the open bulk group."""
        self._at(site)
        self._aligned(source, tensor_map, site)
        source -= self.cta_of(source, site, own=True).window
        box = store_box(tensor_map, coords, mode, source, self.machine.assumptions, site)
        fields, smem = box.fields, self.cta.smem
        smem.check(box.low, box.high, site)
        self._spare(box, "read", site)
        if reduction:
            self._refused(site, check_reduction, reduction, fields)
        counters = self.machine.counters
        counters.tma_stores += 1
        counters.shared_to_global += box.nbytes
        addresses = box.addresses
        if self.machine.checking:
            kind = "TMA reduce" if reduction else "TMA store"
            number = self.bulk_number
            reads = Access(self.bulk_reads, number, kind, site, "async")
            self.note_map(map_at, reads)
            self.note_read(smem.shadow, _granules(box), reads)
            # Each reduction is a relaxed atomic of its own (PTX ISA 9.7.9.27.1.3).
            strong = self.scope("gpu") if reduction else None
            writes = Access(self.bulk_writes, number, kind, site, "async", strong=strong)
            self._note_global(addresses, writes, fields.piece_bytes, write=True)

        def run() -> None:
            if addresses.size:
                self._move_out(box, addresses, reduction, site)

        self.launch_in_group(Operation(site, run))

    def tma_prefetch(
        self,
        tensor_map: DecodedMap,
        coords: Sequence[int],
        mode: str = "tile",
        im2col_offsets: Sequence[int] = (),
        map_at: int | None = None,
        *,
        site: Any,
    ) -> None:
        """cp.async.bulk.prefetch.tensor: checked and counted; the L2 cache is not modelled."""
        self._at(site)
        load_box(tensor_map, coords, mode, im2col_offsets, 0, self.machine.assumptions, site)
        self.machine.counters.tma_prefetches += 1
        if self.machine.checking:
            self.note_map(map_at, self.own_access("TMA prefetch", site))

    # --- movement --------------------------------------------------------------------------------

    def _move_in(self, cta: Cta, box: Box, source: Index, site: Any) -> None:
        fields = box.fields
        eb = fields.piece_bytes
        dtype = np.dtype(f"u{eb}")
        values = None if source is box.outside else np.full(box.outside.size, fill(fields), dtype)
        if source.size:
            buffer, at = self._words(source, eb, site)
            known = buffer.defined
            if known is not None and not all(known[at + i].all() for i in range(eb)):
                self.cta.report(
                    "error", "undefined-read", site, "global memory",
                    "nothing wrote the bytes before",
                )  # fmt: skip
            usable = buffer.data.size // eb * eb
            found = loaded(fields, buffer.data[:usable].view(dtype)[at // eb])
            if values is None:
                values = found
            else:
                values[box.inside] = found
        smem = cta.smem
        smem.view(dtype)[box.shared // eb] = values
        smem.defined_view(eb)[box.shared // eb] = ALL_DEFINED[eb]
        if box.gaps is not None:
            smem.scramble(box.gaps)

    def _move_out(self, box: Box, addresses: Index, reduction: str | None, site: Any) -> None:
        fields, smem = box.fields, self.cta.smem
        eb = fields.piece_bytes
        low_bits = fields.dtype == "u6_align16b" and self.machine.assumptions.u6_store == "low-bits"
        where = box.shared[box.inside] // eb
        undefined = (smem.defined_view(eb)[where] != ALL_DEFINED[eb]).any()
        values = smem.view(np.dtype(f"u{eb}"))[where]
        if low_bits:
            at = _units(box)[box.inside.reshape(-1, fields.unit.pieces)[:, 0]]
            undefined = not smem.defined[at].all()
            values = packed_low_bits(smem.data[at]).reshape(-1).view(f"u{eb}")
        if undefined:
            self.cta.report(
                "error", "undefined-read", site, "shared memory", "nothing wrote it before"
            )
        buffer, start = self._words(addresses, eb, site)
        places = start[:, None] + np.arange(eb)
        if reduction:
            if buffer.defined is not None and not buffer.defined[places].all():
                self.cta.report(
                    "error", "undefined-read", site, "global memory", "nothing wrote it before"
                )
            old = buffer.data[places].reshape(-1).view(values.dtype)
            values = reduced(reduction, fields, old, values)
        buffer.data[places] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, eb)
        if buffer.defined is not None:
            buffer.defined[places] = True

    def _words(self, addresses: Index, eb: int, site: Any) -> tuple[Buffer, Index]:
        """The buffer of global words, and their positions in it."""
        low, high = int(addresses.min()), int(addresses.max()) + eb
        buffer = self.machine.memory.find(low, high, site)
        return buffer, addresses - buffer.base

    # --- checks ----------------------------------------------------------------------------------

    def _aligned(self, address: int, tensor_map: DecodedMap, site: Any) -> None:
        if address % 128:
            raise MachineError(
                "misaligned",
                f"expected a shared address, multiple of 128, got {address:#x}",
                site=site,
            )

    def _spare(self, box: Box, verb: str, site: Any, cta: Cta | None = None) -> None:
        self.spare_mbarriers(box.shared, site, verb, cta)
        if box.gaps is not None:
            self.spare_mbarriers(box.gaps, site, verb, cta)

    def _note_global(self, addresses: Index, access: Access, eb: int, *, write: bool) -> None:
        if not addresses.size:
            return
        buffer, at = self._words(addresses, eb, access.site)
        self.watch(buffer)
        size = buffer.granule
        where = at // size
        if eb > size:
            where = (at[:, None] + np.arange(0, eb, size)).ravel() // size
        if write:
            self.note_write(buffer.shadow, where, access)
        else:
            self.note_read(buffer.shadow, where, access)


def _units(box: Box) -> Index:
    """Shared addresses of the 16 bytes of every unit of a padded type: int64 [units, 16]."""
    unit = box.fields.unit
    assert box.gaps is not None
    words = (box.shared[:, None] + np.arange(unit.piece)).reshape(-1, unit.global_bytes)
    return np.concatenate([words, box.gaps.reshape(len(words), -1)], axis=1)


def _granules(box: Box) -> Any:
    """Granules of a box in shared memory: mostly one range."""
    eb, addresses = box.fields.piece_bytes, box.shared
    low, high = int(addresses.min()), int(addresses.max()) + eb
    if (high - low) == addresses.size * eb:
        return slice(low // 4, -(-high // 4))
    parts = [addresses // 4, (addresses + eb - 1) // 4]
    if box.gaps is not None:
        parts.append(box.gaps // 4)
    return np.unique(np.concatenate(parts))
