"""Replays ld and st (PTX ISA 9.7.9), and other accesses to memory, in all CTAs of a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.isa.async_copy import AsyncCopy
from tcir.interp.ptx.isa.memory import Load, Store
from tcir.interp.ptx.isa.mma.warp_matrix import MatrixLoad
from tcir.interp.ptx.lanes import LANE_INDICES
from tcir.interp.ptx.lockstep.group import LockstepGroup, Operand
from tcir.interp.ptx.lockstep.lanes_of import Active
from tcir.interp.ptx.lockstep.ledger import ENGINE, LedgerLoad, LedgerStore
from tcir.interp.ptx.registers import PREDICATE, U32, U64
from tcir.machine.order.clocks import Access

Bytes = NDArray[np.uint8]


def _loaded(
    group: LockstepGroup, active: Active, load: Load, data: Bytes, old: tuple[Operand | None, ...]
) -> None:
    """Moves loaded bytes, uint8 [CTAs * 32, nbytes], into registers."""
    values = data.view(load.dtype)
    where = active.where(group)
    for (element, slot, view), before in zip(load.moves, old, strict=True):
        group.assign(active.warp, slot, view, values[:, element], where, before)


@dataclass(frozen=True)
class SharedFill:
    """Fills in bytes of shared memory that are equal in every CTA and that no step of the trace has
    written, such as an address that tcgen05.alloc wrote.
    """

    at: NDArray[np.int64]
    data: Bytes

    def run(self, group: LockstepGroup) -> None:
        group.smem[:, self.at] = self.data


@dataclass(frozen=True)
class SharedLoad:
    """Replays a load from shared memory.

    at:    addresses of the active lanes, which are the same in every CTA
    again: whether the load may repeat the previous load; a repeat that reads the same value counts
           as polling
    parts: sets of lanes that are executed one set after the other, as positions in `at`
    """

    active: Active
    load: Load
    at: NDArray[np.int64]
    old: tuple[Operand | None, ...]
    again: bool
    parts: tuple[NDArray[np.int64], ...]

    def run(self, group: LockstepGroup) -> None:
        nbytes = self.load.nbytes
        found = _pieces(group.smem, self.at, nbytes)
        lanes = LANE_INDICES[self.active.leader]
        data = found
        if len(lanes) < 32:
            data = np.zeros((group.count, 32, nbytes), np.uint8)
            data[:, lanes] = found
        at = np.broadcast_to(self.at, (group.count, self.at.size))
        # Later parts repeat the one before in every CTA, or in none: the addresses are the same.
        first, *others = self.parts
        note_last(group, self.active.warp, at[:, first], found[:, first], self.again)
        for part in others[-1:]:
            note_last(group, self.active.warp, at[:, part], found[:, part], False)
        _loaded(group, self.active, self.load, data.reshape(-1, nbytes), self.old)


@dataclass(frozen=True)
class SharedMatrices:
    """Replays ldmatrix.

    at: the addresses of the rows, which are the same in every CTA. again: as in `SharedLoad`
    """

    warp: int
    load: MatrixLoad
    at: NDArray[np.int64]
    again: bool

    def run(self, group: LockstepGroup) -> None:
        rows = group.smem[:, self.at[:, None] + np.arange(16)]
        at = np.broadcast_to(self.at, (group.count, self.at.size))
        note_last(group, self.warp, at, rows, self.again)
        words = self.load.fragments(rows)
        for n, slot in enumerate(self.load.targets):
            group.assign(self.warp, slot, U32, words[:, n].reshape(-1), None, None)


@dataclass(frozen=True)
class CopyToShared:
    """Replays cp.async, which takes effect at once in the order of issue.

    at:     the shared addresses of the active lanes
    count:  value of src-size; None: all bytes are read
    ignore: value of the ignore-src predicate; None: all bytes are read
    found:  bytes that the leader's lanes read
    buffer: None if the lanes read nothing and write zeros
    """

    active: Active
    copy: AsyncCopy
    at: NDArray[np.int64]
    source: Operand
    count: Operand | None
    ignore: Operand | None
    buffer: int | None
    found: Bytes

    def run(self, group: LockstepGroup) -> None:
        copy, warp, nbytes = self.copy, self.active.warp, self.copy.nbytes
        lanes = LANE_INDICES[self.active.leader]
        view = U64 if copy.source.size == 8 else U32
        start = copy.source.effective(group.by_cta(warp, self.source, view)[:, lanes])
        group.leave(np.asarray(start & (nbytes - 1) != 0).any(axis=1))
        read = np.full(start.shape, nbytes, np.int64)
        if self.count is not None:
            read = group.by_cta(warp, self.count, U32)[:, lanes].astype(np.int64)
            group.leave((read > nbytes).any(axis=1))
        if self.ignore is not None:
            ignored = group.by_cta(warp, self.ignore, PREDICATE)[:, lanes] ^ bool(copy.flip)
            read = np.where(ignored, 0, read)
        group.smem[:, self.at[:, None] + np.arange(nbytes)] = self._data(group, start, read)
        group.count_beyond("global_load", read.sum(axis=1))

    def _data(
        self, group: LockstepGroup, start: NDArray[np.int64], read: NDArray[np.int64]
    ) -> Bytes:
        """The loaded bytes, followed by zeros."""
        nbytes = self.copy.nbytes
        if self.buffer is None:
            group.leave(read.any(axis=1))
            return np.zeros((*read.shape, nbytes), np.uint8)
        buffer = group.machine.memory.buffers[self.buffer]
        start = start - buffer.base
        good = (start >= 0) & (start + read <= buffer.data.size) | (read == 0)
        group.leave(~good.all(axis=1))
        inside = (np.arange(nbytes) < read[..., None]) & good[..., None]
        where = np.where(inside, start[..., None] + np.arange(nbytes), 0)
        if buffer.defined is not None:
            group.leave((inside & ~buffer.defined[where]).any(axis=(1, 2)))
        data = np.where(inside, buffer.data[where], np.uint8(0))
        data[0] = self.found
        group.reads.add(self.buffer)
        return data


@dataclass(frozen=True)
class GlobalLoad:
    """Replays a load from one buffer, at addresses that vary between CTAs. base: address of the
    buffer
    """

    active: Active
    load: Load
    address: Operand
    buffer: int
    old: tuple[Operand | None, ...]
    again: bool
    found: Bytes
    """Bytes that the leader's lanes read, [32, nbytes]; it may have overwritten them since."""

    def run(self, group: LockstepGroup) -> None:
        buffer, nbytes = group.machine.memory.buffers[self.buffer], self.load.nbytes
        active = self.active.of(group)
        view = U64 if self.load.place.size == 8 else U32
        at = self.load.place.effective(group.by_cta(self.active.warp, self.address, view))
        at = _inside(group, active, at, nbytes, buffer.base, buffer.data.size)
        if buffer.defined is not None:
            defined = buffer.defined[at[..., None] + np.arange(nbytes)]
            group.leave((active & ~defined.all(axis=2)).any(axis=1))
        data = _pieces(buffer.data, at, nbytes)
        data[0] = self.found
        chosen, row, thread = _chosen(group, self.active.warp, active)
        if self.load.constant:  # nobody may write it, not even the same thread
            thread = np.full(len(row), ENGINE)
        group.accesses.append(LedgerLoad(self.buffer, at.reshape(-1)[chosen], nbytes, row, thread))
        group.count_beyond("global_load", nbytes * active.sum(axis=1))
        shown = data if isinstance(chosen, slice) else np.where(active[..., None], data, 0)
        note_last(group, self.active.warp, np.where(active, at, -1), shown, self.again)
        _loaded(group, self.active, self.load, data.reshape(-1, nbytes), self.old)


def _pieces(memory: Bytes, at: NDArray[np.int64], nbytes: int) -> Bytes:
    """The bytes [..., nbytes] at places that are multiples of `nbytes`, in the last axis."""
    whole = memory.shape[-1] // nbytes * nbytes
    found = memory[..., :whole].view(f"V{nbytes}")[..., at // nbytes]
    return np.ascontiguousarray(found).view(np.uint8).reshape(*found.shape, nbytes)


def _chosen(
    group: LockstepGroup, warp: int, active: NDArray[np.bool_]
) -> tuple[slice | NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Mask of the active lanes of all CTAs, with the row and thread of each."""
    row, thread = group.everyone(warp)
    if active.all():
        return slice(None), row, thread
    chosen = np.flatnonzero(active)
    return chosen, row[chosen], thread[chosen]


def note_last(
    group: LockstepGroup, warp: int, at: NDArray[np.int64], data: Bytes, again: bool
) -> None:
    """Removes a CTA whose load repeats the CTA's previous load (same addresses and bytes) although
    the leader's load does not repeat the leader's previous one, or vice versa.

    at: [CTAs, n]; data: uint8 [CTAs, n, bytes]
    """
    if again:
        last_at, last_data = group.last_loads[warp]
        same = np.zeros(group.count, bool)
        if last_at.shape == at.shape and last_data.shape == data.shape:
            same = (last_at == at).all(axis=1) & (last_data == data).all(axis=(1, 2))
        group.leave(same != same[0])
    group.last_loads[warp] = at, data


def _inside(
    group: LockstepGroup,
    active: NDArray[np.bool_],
    at: NDArray[np.int64],
    nbytes: int,
    base: int,
    size: int,
) -> NDArray[np.int64]:
    """Bytes inside the buffer; a CTA leaves with an address outside it or one not aligned."""
    start = at - base
    good = (start >= 0) & (start + nbytes <= size) & (at & (nbytes - 1) == 0)
    if not good.all():
        group.leave((active & ~good).any(axis=1))
        start = np.where(good, start, 0)
    return start


def _stored(group: LockstepGroup, warp: int, store: Store, sources: tuple[Operand, ...]) -> Bytes:
    """Bytes that the lanes store, uint8 [CTAs, 32, nbytes]."""
    data = np.empty((group.count, 32, len(sources)), store.dtype)
    for position, (source, (_, view)) in enumerate(zip(sources, store.sources, strict=True)):
        data[:, :, position] = group.by_cta(warp, source, view)
    return data.view(np.uint8)


@dataclass(frozen=True)
class SharedStore:
    """Replays a store to shared memory. at: the addresses of the active lanes, which are the same
    in every CTA
    """

    active: Active
    store: Store
    at: NDArray[np.int64]
    sources: tuple[Operand, ...]

    def run(self, group: LockstepGroup) -> None:
        data = _stored(group, self.active.warp, self.store, self.sources)
        lanes = LANE_INDICES[self.active.leader]
        group.smem[:, self.at[:, None] + np.arange(self.store.nbytes)] = data[:, lanes]


@dataclass(frozen=True)
class GlobalStore:
    """Replays a store to one buffer, at addresses that vary between CTAs."""

    active: Active
    store: Store
    address: Operand
    buffer: int
    sources: tuple[Operand, ...]
    access: Access

    def run(self, group: LockstepGroup) -> None:
        buffer, nbytes = group.machine.memory.buffers[self.buffer], self.store.nbytes
        active = self.active.of(group)
        view = U64 if self.store.place.size == 8 else U32
        at = self.store.place.effective(group.by_cta(self.active.warp, self.address, view))
        at = _inside(group, active, at, nbytes, buffer.base, buffer.data.size)
        data = _stored(group, self.active.warp, self.store, self.sources)
        group.count_beyond("global_store", nbytes * active.sum(axis=1))
        chosen, row, thread = _chosen(group, self.active.warp, active)
        at, data = at.reshape(-1)[chosen], data.reshape(-1, nbytes)[chosen]
        group.accesses.append(LedgerStore(self.buffer, at, data, row, thread, self.access))
