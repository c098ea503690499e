"""The TMA engine of an agent: tensor copies between global and shared memory (PTX ISA 9.7.9.27)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.generic import Memory
from tcir.machine.memory.memories import ALL_DEFINED, RANK_SHIFT, Buffer
from tcir.machine.memory.protocols import AgentProtocol, CtaProtocol
from tcir.machine.memory.stores_in_flight import BulkStore
from tcir.machine.memory.undefined import Undefined
from tcir.machine.order.clocks import Access
from tcir.machine.order.distinct import distinct
from tcir.machine.order.lane_shadow import Granules
from tcir.machine.order.operation import AsyncOperation
from tcir.machine.refusal import Refusal
from tcir.machine.tma.box import Box, TensorOperand, load_box, store_box
from tcir.machine.tma.bulk import Bulk
from tcir.machine.tma.tensormap import TensorMaps
from tcir.machine.tma.values import check_reduction, packed_low_bits, reduced

Index = NDArray[np.int64]


class Tma:
    """Executes cp.async.bulk.tensor; all accesses use the async proxy."""

    def __init__(
        self, agent: AgentProtocol, memory: Memory, bulk: Bulk, tensormap: TensorMaps
    ) -> None:
        self.agent, self.memory, self.bulk, self.tensormap = agent, memory, bulk, tensormap
        self.cta, self.machine = agent.cta, agent.machine

    def load(
        self,
        target: int,
        tensor: TensorOperand,
        mbar: int,
        *,
        cta_mask: int | None = None,
        cta_group: int = 1,
        site: object,
    ) -> None:
        """cp.async.bulk.tensor from global to shared memory; the bytes count toward the mbarrier at
        ``mbar``.

        With ``cta_mask``, the data and the signal are multicast to the same offsets in each CTA of
        the mask.
        """
        self.agent.proceed(site)
        _check_aligned(target, site)
        copies = self.bulk.destinations(target, mbar, cta_mask, cta_group, site)
        target &= (1 << RANK_SHIFT) - 1
        box = load_box(tensor, target, self.machine.assumptions, site)
        counters, eb = self.machine.counters, box.fields.piece_bytes
        source = box.addresses
        counters.tma_loads += 1
        counters.global_to_shared += box.nbytes * len(copies)
        counters.global_to_shared_by_tensor[tensor.tensor_map.address] += box.nbytes * len(copies)
        counters.global_to_shared_read += source.size * eb
        if self.agent.events is not None:
            inner = box.fields.counts[0] * box.fields.unit.shared_bytes
            self.agent.events.note(bytes=box.nbytes, inner_bytes=inner)
        signals = []
        for cta, barrier in copies:
            cta.smem.check(box.low, box.high, site)
            self._spare(box, "written", site, cta)
            number = barrier.load(self.agent.clock)
            signals.append((cta, barrier, number))
            if self.machine.checking:
                barrier.users[barrier.tma] = (number, site)
                access = Access(barrier.tma, number, "TMA load", site, "async")
                self.tensormap.note(tensor.map_at, access)
                self._note_global(source, access, eb, write=False)
                self.agent.checks.note_write(cta.smem.shadow, _granules(box), access)

        def run() -> None:
            for cta, barrier, number in signals:
                self._move_in(cta, box, source, site)
                barrier.complete_tx(box.nbytes, number, site)

        self.cta.launch(AsyncOperation(site, run))

    def store(
        self,
        source: int,
        tensor: TensorOperand,
        reduction: str | None = None,
        *,
        site: object,
    ) -> None:
        """cp(.reduce).async.bulk.tensor from shared to global memory, in the open bulk group."""
        self.agent.proceed(site)
        _check_aligned(source, site)
        source -= self.agent.peers.cta_of(source, site, own=True).window
        box = store_box(tensor, source, self.machine.assumptions, site)
        fields, smem = box.fields, self.cta.smem
        smem.check(box.low, box.high, site)
        self._spare(box, "read", site)
        if reduction:
            try:
                check_reduction(reduction, fields)
            except Refusal as refusal:
                raise MachineError.of(refusal, site) from None
        counters = self.machine.counters
        counters.tma_stores += 1
        counters.shared_to_global += box.addresses.size * fields.piece_bytes  # clipped
        if self.agent.events is not None:
            self.agent.events.note(bytes=box.nbytes)
        addresses, stores = box.addresses, self.machine.stores_in_flight
        bytes_: BulkStore | None = None
        if self.machine.checking:
            kind = "TMA reduce" if reduction else "TMA store"
            number = self.bulk.number
            reads = Access(self.bulk.reads, number, kind, site, "async")
            self.tensormap.note(tensor.map_at, reads)
            self.agent.checks.note_read(smem.shadow, _granules(box), reads)
            # Each reduction is a relaxed atomic of its own (PTX ISA 9.7.9.27.1.3).
            strong = self.agent.scope("gpu") if reduction else None
            writes = Access(self.bulk.writes, number, kind, site, "async", strong=strong)
            bytes_ = None if reduction or not addresses.size else self._outgoing(box, site)
            same = bytes_ is not None and partial(stores.repeat, bytes_)
            self._note_global(addresses, writes, fields.piece_bytes, write=True, same=same)

        def run() -> None:
            if addresses.size:
                self._move_out(box, addresses, reduction, site)
            if bytes_ is not None:
                stores.end(bytes_)

        if bytes_ is not None:
            stores.begin(bytes_)
        self.bulk.launch(AsyncOperation(site, run))

    def prefetch(
        self,
        tensor: TensorOperand,
        *,
        site: object,
    ) -> None:
        """cp.async.bulk.prefetch.tensor. It is checked and counted but has no effect, because the
        L2 cache is not modelled.
        """
        self.agent.proceed(site)
        load_box(tensor, 0, self.machine.assumptions, site)
        self.machine.counters.tma_prefetches += 1
        if self.machine.checking:
            self.tensormap.note(tensor.map_at, self.agent.own_access("TMA prefetch", site))

    # --- movement --------------------------------------------------------------------------------

    def _move_in(self, cta: CtaProtocol, box: Box, source: Index, site: object) -> None:
        eb = box.fields.piece_bytes
        dtype = np.dtype(f"u{eb}")
        words, undefined = np.empty(0, dtype), None
        if source.size:
            buffer, at = self._words(source, eb, site)
            unwritten = self.memory.origin("global memory", site)
            known = buffer.defined
            if known is not None and not all(known[at + i].all() for i in range(eb)):
                undefined = buffer.missing(at[:, None] + np.arange(eb), unwritten)
            usable = buffer.data.size // eb * eb
            words = buffer.data[:usable].view(dtype)[at // eb]
        smem = cta.smem
        smem.view(dtype)[box.shared // eb] = box.filled(words)
        if undefined is None:
            smem.defined_view(eb)[box.shared // eb] = ALL_DEFINED[eb]
        else:
            inside = slice(None) if source is box.outside else box.inside
            missing = np.zeros((box.shared.size, eb), bool)
            missing[inside] = undefined.where
            lost = Undefined(missing, undefined.origin)
            smem.written(box.shared[:, None] + np.arange(eb), lost, site)
        if box.gaps is not None:
            smem.scramble(box.gaps)

    def _move_out(self, box: Box, addresses: Index, reduction: str | None, site: object) -> None:
        fields, smem = box.fields, self.cta.smem
        eb = fields.piece_bytes
        low_bits = fields.dtype == "u6_align16b" and self.machine.assumptions.u6_store == "low-bits"
        where = box.shared[box.inside] // eb
        unwritten = self.memory.origin("shared memory", site)
        undefined = None
        values = smem.view(np.dtype(f"u{eb}"))[where]
        if low_bits:
            at = _units(box)[box.inside.reshape(-1, fields.unit.pieces)[:, 0]]
            values = packed_low_bits(smem.data[at]).reshape(-1).view(f"u{eb}")
            undefined = smem.missing(at, unwritten)
            if undefined is not None:  # what is made of a unit is
                lost = undefined.where.any(axis=1).repeat(values.size // len(at))
                undefined = Undefined(lost[:, None].repeat(eb, axis=1), undefined.origin)
        elif (smem.defined_view(eb)[where] != ALL_DEFINED[eb]).any():
            undefined = smem.missing(eb * where[:, None] + np.arange(eb), unwritten)
        buffer, start = self._words(addresses, eb, site, store=not reduction)
        places = start[:, None] + np.arange(eb)
        if reduction:
            before = buffer.missing(places, self.memory.origin("global memory", site))
            for operand in (undefined, before):
                if operand is not None:
                    self.cta.report_undefined(operand.origin, site)
            undefined = None
            old = buffer.data[places].reshape(-1).view(values.dtype)
            values = reduced(reduction, fields, old, values)
        buffer.data[places] = np.ascontiguousarray(values).view(np.uint8).reshape(-1, eb)
        buffer.written(places, undefined, site)

    def _words(
        self, addresses: Index, eb: int, site: object, *, store: bool = False
    ) -> tuple[Buffer, Index]:
        """The buffer that holds the global words, and their positions in it. store: whether they
        are only stored to"""
        low, high = int(addresses.min()), int(addresses.max()) + eb
        buffer = self.machine.memory.find(low, high, site, store=store)
        return buffer, addresses - buffer.base

    # --- checks ----------------------------------------------------------------------------------

    def _spare(self, box: Box, verb: str, site: object, cta: CtaProtocol | None = None) -> None:
        self.memory.spare_mbarriers(box.shared, site, verb, cta)
        if box.gaps is not None:
            self.memory.spare_mbarriers(box.gaps, site, verb, cta)

    def _outgoing(self, box: Box, site: object) -> BulkStore:
        """The bytes that a store will write, as shared memory has them now."""
        eb = box.fields.piece_bytes
        buffer, at = self._words(box.addresses, eb, site)
        values = self.cta.smem.view(np.dtype(f"u{eb}"))[box.shared[box.inside] // eb]
        places = (at[:, None] + np.arange(eb)).ravel()
        return BulkStore(buffer, places, np.ascontiguousarray(values).view(np.uint8).ravel())

    def _note_global(
        self,
        addresses: Index,
        access: Access,
        eb: int,
        *,
        write: bool,
        same: bool | Callable[[], bool] = False,
    ) -> None:
        if not addresses.size:
            return
        buffer, at = self._words(addresses, eb, access.site)
        self.memory.watch(buffer)
        size = buffer.granule
        where = at // size
        if eb > size:
            where = (at[:, None] + np.arange(0, eb, size)).ravel() // size
        if write:
            self.agent.checks.note_write(buffer.shadow, where, access, same=same)
        else:
            self.agent.checks.note_read(buffer.shadow, where, access)


def _units(box: Box) -> Index:
    """Shared addresses of the 16 bytes of each unit of a padded type: int64 [units, 16]."""
    unit = box.fields.unit
    assert box.gaps is not None
    words = (box.shared[:, None] + np.arange(unit.piece)).reshape(-1, unit.global_bytes)
    return np.concatenate([words, box.gaps.reshape(len(words), -1)], axis=1)


def _granules(box: Box) -> Granules:
    """Shared-memory granules of a box; usually one range."""
    eb, addresses = box.fields.piece_bytes, box.shared
    low, high = int(addresses.min()), int(addresses.max()) + eb
    if (high - low) == addresses.size * eb:
        return slice(low // 4, -(-high // 4))
    parts = [addresses // 4, (addresses + eb - 1) // 4]
    if box.gaps is not None:
        parts.append(box.gaps // 4)
    return distinct(np.concatenate(parts))


def _check_aligned(address: int, site: object) -> None:
    if address % 128:
        raise MachineError(
            "misaligned",
            f"expected a shared address, multiple of 128, got {address:#x}",
            site=site,
        )
