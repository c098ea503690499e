"""Replays tensor copies and accesses to tensor memory in all CTAs of a group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.isa.tma import TensorCopy
from tcir.interp.ptx.lockstep.group import LockstepGroup, Operand
from tcir.interp.ptx.lockstep.lanes_of import Active
from tcir.interp.ptx.lockstep.ledger import ENGINE, LedgerStore
from tcir.interp.ptx.registers import S32, U32
from tcir.interp.ptx.syntax import Site
from tcir.machine import Assumptions, DecodedMap, MachineError, TensorOperand
from tcir.machine.memory.effects import PIECE, by_piece, elements, pieces
from tcir.machine.order.clocks import Access
from tcir.machine.tma.box import Box, load_box, store_box
from tcir.machine.tma.tensor_walk import whole_boxes

Index = NDArray[np.int64]


@dataclass(frozen=True)
class TensorMove:
    """Replays a tensor copy that one lane issues. Its coordinates may vary between CTAs; its box in
    shared memory may not.

    shared: address of the box in shared memory; im2col_offsets: values of the im2col offsets
    """

    warp: int
    lane: int
    copy: TensorCopy
    tensor_map: DecodedMap
    coordinates: tuple[Operand, ...]
    im2col_offsets: tuple[int, ...]
    shared: int
    site: Site
    access: Access

    def run(self, group: LockstepGroup) -> None:
        columns = [
            group.by_cta(self.warp, operand, S32)[:, self.lane] for operand in self.coordinates
        ]
        first: Box | None = None
        whole, moved_bytes = np.zeros(group.count, bool), np.zeros(group.count, np.int64)
        if self.copy.load and self.copy.mode == "tile":
            first, whole = self._whole_boxes(group, np.stack(columns, axis=1).astype(np.int64))
            moved_bytes[whole] = 0 if first is None else first.size
        known: dict[tuple[int, ...], list[int]] = {}
        for row in np.flatnonzero(group.alive & ~whole).tolist():
            known.setdefault(tuple(int(c[row]) for c in columns), []).append(row)
        for coords, rows in known.items():
            box = self.box(group.machine.assumptions, coords)
            if box is None or first is not None and box.nbytes != first.nbytes:
                group.leave(np.isin(np.arange(group.count), rows))
                continue
            first = first or box
            moved_bytes[rows] = box.size
            if self.copy.load:
                moved = self._move_in(group, box, rows)
            else:
                moved = self._move_out(group, box, rows)
            if not moved:
                group.leave(np.isin(np.arange(group.count), rows))
        counter = "global_to_shared_read" if self.copy.load else "shared_to_global"
        group.count_beyond(counter, moved_bytes)

    def box(self, assumptions: Assumptions, coords: tuple[int, ...]) -> Box | None:
        """Words that a copy at these coordinates moves; None if the machine rejects the
        coordinates.
        """
        tensor = TensorOperand(self.tensor_map, coords, self.copy.mode, self.im2col_offsets)
        make = load_box if self.copy.load else store_box
        try:
            return make(tensor, self.shared, assumptions, self.site)
        except MachineError:
            return None

    def _whole_boxes(
        self, group: LockstepGroup, coords: Index
    ) -> tuple[Box | None, NDArray[np.bool_]]:
        """Moves boxes that lie inside the tensor and consist of contiguous pieces; returns one such
        box, and the mask of the CTAs for which that is done."""
        starts, whole = whole_boxes(self.tensor_map, coords)
        whole &= group.alive
        done = np.zeros(group.count, bool)
        if not whole.any():
            return None, done
        one = int(np.argmax(whole))
        box = self.box(group.machine.assumptions, tuple(coords[one].tolist()))
        found = None if box is None else self._words(group, box)
        if box is None or found is None:
            return None, done
        (number, at), eb = found, box.fields.piece_bytes
        source, target = pieces(at // eb, eb), pieces(box.shared // eb, eb)
        if source is None or target is None:
            return None, done
        buffer, far = group.machine.memory.buffers[number], starts - starts[one]
        inside = (far + at.min() >= 0) & (far + at.max() + eb <= buffer.data.size)
        rows = np.flatnonzero(whole & inside & (far % PIECE == 0))
        read = source + far[rows, None] // PIECE
        if buffer.defined is not None:
            known = by_piece(buffer.defined.view(np.uint8)).take(read).view(np.uint8).all(axis=1)
            rows, read = rows[known], read[known]
        group.reads.add(number)
        words = by_piece(buffer.data).take(read).view(f"u{eb}")
        by_piece(group.smem)[rows[:, None], target] = box.filled(words).view(f"V{PIECE}")
        done[rows] = True
        return box, done

    def _words(self, group: LockstepGroup, box: Box) -> tuple[int, Index] | None:
        """The buffer of the words inside the tensor, and their bytes in it."""
        memory, eb = group.machine.memory, box.fields.piece_bytes
        low, high = int(box.addresses.min()), int(box.addresses.max()) + eb
        try:
            buffer = memory.find(low, high, self.site, store=not self.copy.load)
        except MachineError:
            return None
        return memory.buffers.index(buffer), box.addresses - buffer.base

    def _move_in(self, group: LockstepGroup, box: Box, rows: list[int]) -> bool:
        eb = box.fields.piece_bytes
        words = np.empty(0, f"u{eb}")
        if box.addresses.size:
            found = self._words(group, box)
            if found is None:
                return False
            number, at = found
            group.reads.add(number)
            buffer = group.machine.memory.buffers[number]
            known = buffer.defined
            if known is not None and not known[at[:, None] + np.arange(eb)].all():
                return False
            usable = buffer.data.size // eb * eb
            words = buffer.data[:usable].view(words.dtype)[at // eb]
        values = box.filled(words)
        shared = elements(group.smem, eb)
        for row in rows:
            shared[row, box.shared // eb] = values
        return True

    def _move_out(self, group: LockstepGroup, box: Box, rows: list[int]) -> bool:
        eb = box.fields.piece_bytes
        if not box.addresses.size:
            return True
        found = self._words(group, box)
        if found is None or box.gaps is not None:
            return False
        where = box.shared[box.inside] // eb
        for row in rows:
            values = np.ascontiguousarray(elements(group.smem[row], eb)[where])
            data = values.view(np.uint8).reshape(-1, eb)
            many = np.full(len(data), row), np.full(len(data), ENGINE)
            group.accesses.append(LedgerStore(*found, data, *many, self.access))
        return True


@dataclass(frozen=True)
class TmemLoad:
    """Replays tcgen05.ld. lanes, columns: lane and column of tensor memory for each element,
    [registers, 32]
    """

    active: Active
    lanes: Index
    columns: Index
    halves: int
    slots: tuple[int, ...]
    old: tuple[Operand | None, ...]

    def run(self, group: LockstepGroup) -> None:
        found = group.tmem[:, self.lanes, self.columns]
        if self.halves == 2:
            high = group.tmem[:, self.lanes, self.columns + 1]
            found = (found & np.uint32(0xFFFF)) | high << np.uint32(16)
        where = self.active.where(group)
        rows = np.ascontiguousarray(found.transpose(1, 0, 2)).reshape(len(self.slots), -1)
        for slot, row, old in zip(self.slots, rows, self.old, strict=True):
            group.assign(self.active.warp, slot, U32, row, where, old)


@dataclass(frozen=True)
class TmemStore:
    """Replays a tcgen05.st that writes whole 32-bit words."""

    warp: int
    lanes: Index
    columns: Index
    sources: tuple[Operand, ...]

    def run(self, group: LockstepGroup) -> None:
        data = np.stack([group.by_cta(self.warp, s, U32) for s in self.sources], axis=1)
        group.tmem[:, self.lanes, self.columns] = data
