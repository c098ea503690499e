"""What a block of CTAs did to a global buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.jobs.part import TogetherError
from tcir.interp.ptx.lockstep.ledger import Ledger
from tcir.machine.memory.memories import Buffer, GlobalMemory
from tcir.machine.order.accesses import Twin
from tcir.machine.order.clocks import Access
from tcir.machine.order.shadow import LastShadow

Mask = NDArray[np.bool_]
Bytes = NDArray[np.unsignedinteger]


@dataclass(frozen=True)
class Footprint:
    """Of one block in one buffer.

    granule: bytes that accesses are told apart by; written, read: a bit for each granule. data,
    defined: an element for each of the written ones; which: who wrote each, of `accesses`.
    """

    granule: int
    written: NDArray[np.uint8]
    read: NDArray[np.uint8]
    data: Bytes
    defined: Bytes | None
    which: NDArray[np.int32]
    accesses: list[Access | Twin]

    def masks(self, granule: int, count: int) -> tuple[Mask, Mask]:
        """Which granules of this size were written, and read."""
        packed = (np.unpackbits(bits).view(bool) for bits in (self.written, self.read))
        finer = self.granule // granule
        written, read = (np.repeat(mask, finer)[:count] for mask in packed)
        return written, read


def footprints(memory: GlobalMemory, ledger: Ledger | None) -> dict[int, Footprint]:
    """By the number of the buffer, of those that were touched.

    ledger: of CTAs that were executed together, whose loads no shadow has
    """
    found = {}
    for number, buffer in enumerate(memory.buffers):
        count = -(-buffer.data.size // buffer.granule)
        written, read = np.zeros(count, bool), np.zeros(count, bool)
        shadow = buffer.shadow
        if shadow is not None:
            written |= shadow.writer[:count] != 0
            read |= shadow.readers[:count] != 0
            if shadow.constant is not None:
                read |= shadow.constant[:count] != 0
        if ledger is not None:
            noted, loaded = ledger.touched(number)
            read |= loaded[:count]
            if (noted[:count] & ~written).any():
                raise TogetherError("stores that no record names")
        if written.any() or read.any():
            found[number] = _footprint(buffer, written, read)
    return found


def _footprint(buffer: Buffer, written: Mask, read: Mask) -> Footprint:
    accesses: list[Access | Twin] = []
    which = np.zeros(0, np.int32)
    if buffer.shadow is not None:
        writers = buffer.shadow.writer[: written.size][written]
        named = np.zeros(len(buffer.shadow.accesses) + 1, bool)
        named[writers] = True
        which = (np.cumsum(named, dtype=np.int32) - 1)[writers]
        accesses = buffer.shadow.accesses.raw((np.flatnonzero(named) - 1).tolist())
    data = _granules(buffer.data, buffer.granule)[written]
    defined = None
    if buffer.defined is not None:
        defined = _granules(buffer.defined, buffer.granule)[written]
    packed = np.packbits(written), np.packbits(read)
    return Footprint(buffer.granule, *packed, data, defined, which, accesses)


def _granules(array: Bytes | Mask, granule: int) -> Bytes:
    """Bytes, or whether they are defined, one element for each granule."""
    return array.view(f"u{granule}")


def apart(memory: GlobalMemory, blocks: Sequence[dict[int, Footprint]]) -> bool:
    """Whether no block touches what another one wrote."""
    for number, buffer in enumerate(memory.buffers):
        mine = [block[number] for block in blocks if number in block]
        if len(mine) < 2 or not any(one.data.size for one in mine):
            continue
        granule = min(one.granule for one in mine)
        count = -(-buffer.data.size // granule)
        all_written, all_read = np.zeros(count, bool), np.zeros(count, bool)
        for one in mine:
            written, read = one.masks(granule, count)
            if (written & (all_written | all_read)).any() or (read & all_written).any():
                return False
            all_written |= written
            all_read |= read
    return True


def perform(memory: GlobalMemory, blocks: Sequence[dict[int, Footprint]]) -> None:
    """Writes what blocks wrote that are `apart`, and notes who did."""
    for number, buffer in enumerate(memory.buffers):
        mine = [block[number] for block in blocks if number in block and block[number].data.size]
        if not mine:
            continue
        buffer.granule = granule = min(one.granule for one in mine)
        count = -(-buffer.data.size // granule)
        shadow = buffer.shadow = LastShadow(count + 1, "global memory")
        for one in mine:
            written, _ = one.masks(granule, count)
            _granules(buffer.data, granule)[written] = _granules(one.data, granule)
            if one.defined is not None:
                if buffer.defined is None:
                    buffer.defined = np.ones(buffer.data.size, bool)
                _granules(buffer.defined, granule)[written] = _granules(one.defined, granule)
            which = np.repeat(one.which, one.granule // granule)
            shadow.record_writes(np.flatnonzero(written), which, one.accesses)
