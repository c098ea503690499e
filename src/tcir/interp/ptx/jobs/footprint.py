"""Records which bytes of a global buffer a block of CTAs reads and writes."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.jobs.granules import Bits, gather, mark, renumber, scatter
from tcir.interp.ptx.jobs.part import TogetherError
from tcir.interp.ptx.jobs.workers import ALL_PAGES
from tcir.interp.ptx.lockstep.ledger import Ledger
from tcir.machine.memory.memories import Buffer, GlobalMemory
from tcir.machine.order.accesses import Twin
from tcir.machine.order.clocks import EARLIER, Access
from tcir.machine.order.shadow import LastShadow

Bytes = NDArray[np.unsignedinteger]
NOTHING = np.zeros(0, np.int32)
Word = TypeVar("Word", bound=np.generic)


@dataclass(frozen=True)
class Footprint:
    """Accesses of one block of CTAs to one buffer.

    granule: size in bytes of the units (granules) in which accesses are recorded
    written: a bit for each granule that was written
    read:    a bit for each granule that was read
    data:    contents of the written granules
    defined: which bytes of the written granules are defined
    which:   for each written granule, its writer, as an index into `accesses`
    """

    granule: int
    written: Bits
    read: Bits
    data: Bytes
    defined: Bytes | None
    which: NDArray[np.int32]
    accesses: list[Access | Twin]

    def by(self, granule: int, size: int) -> Footprint:
        """Returns the footprint in smaller granules, whose size divides the present size. size:
        bytes of the buffer
        """
        if granule == self.granule:
            return self
        times, room = self.granule // granule, _room(size, granule)
        return replace(
            self,
            granule=granule,
            written=_finer(self.written, times)[:room],
            read=_finer(self.read, times)[:room],
            data=_granules(self.data, granule),
            defined=None if self.defined is None else _granules(self.defined, granule),
            which=np.repeat(self.which, times),
        )


def _room(size: int, granule: int) -> int:
    """Bytes that have a bit for each granule."""
    return -(-size // (8 * granule))


def _finer(bits: Bits, times: int) -> Bits:
    return np.packbits(np.repeat(np.unpackbits(bits, bitorder="little"), times), bitorder="little")


def footprints(memory: GlobalMemory, ledger: Ledger | None) -> dict[int, Footprint]:
    """Footprints of the buffers that were accessed, by the number of the buffer.

    ledger: accesses of the CTAs that were executed in lockstep, whose loads the machine does not
    record
    """
    found = {}
    for number, buffer in enumerate(memory.buffers):
        size, shadow = buffer.data.size, buffer.shadow
        records: list[NDArray[np.int32] | None] = [None] * 3
        if shadow is not None:
            writer = shadow.writer
            if len(shadow.accesses) and shadow.accesses[0].component == EARLIER:
                writer = np.where(writer == 1, np.int32(0), writer)  # launches before have no CTAs
            records = [writer, shadow.readers, shadow.constant]
        stored, loaded, granule = np.zeros(0, np.uint8), NOTHING, buffer.granule
        if ledger is not None:
            stored, loaded, granule = ledger.marks(number)
        writer, readers, constant = (
            NOTHING if one is None else one[: size // buffer.granule] for one in records
        )
        written, read = np.zeros((2, _room(size, buffer.granule)), np.uint8)
        count = mark(
            writer, readers, constant, stored, loaded, (granule // buffer.granule).bit_length() - 1,
            written, read,
        )  # fmt: skip
        if count < 0:
            raise TogetherError("stores that no record names")
        if ledger is not None and ledger.reads(number):
            read[:] = 0xFF
        if count or read.any():
            found[number] = _footprint(buffer, buffer.granule, count, written, read)
    return found


def unrecorded(memory: GlobalMemory) -> dict[int, Footprint]:
    """Footprints after `follow_stores`, when accesses were not recorded. The written bytes are
    those that stores marked. If a buffer was accessed in any other way, all of it counts as read.
    """
    found = {}
    for number, buffer in enumerate(memory.buffers):
        assert buffer.stored is not None
        count = int(np.count_nonzero(buffer.stored))
        if count or buffer.read:
            written = np.packbits(buffer.stored, bitorder="little")
            read = np.full_like(written, 0xFF if buffer.read else 0)
            found[number] = _footprint(buffer, 1, count, written, read)
    return found


def follow_stores(memory: GlobalMemory) -> None:
    """From now on, marks the bytes that stores write, and the buffers that are read."""
    for buffer in memory.buffers:
        buffer.stored, buffer.read = np.zeros(buffer.data.size, bool), False


def _footprint(buffer: Buffer, granule: int, count: int, written: Bits, read: Bits) -> Footprint:
    accesses: list[Access | Twin] = []
    which = np.zeros(0, np.int32)
    if buffer.shadow is not None and count:
        which = _array(count, np.dtype(np.int32))
        gather(written, buffer.shadow.writer, which)
        new = np.zeros(len(buffer.shadow.accesses) + 1, np.int32)
        named = np.zeros(renumber(which, new), np.int64)
        numbers = np.flatnonzero(new)
        named[new[numbers] - 1] = numbers - 1
        accesses = buffer.shadow.accesses.raw(named.tolist())
    return Footprint(
        granule,
        written,
        read,
        _taken(buffer.data, granule, count, written),
        None if buffer.defined is None else _taken(buffer.defined, granule, count, written),
        which,
        accesses,
    )


def _taken(array: NDArray[np.generic], granule: int, count: int, written: Bits) -> Bytes:
    whole = _granules(array, granule)
    taken = _array(count, whole.dtype)
    gather(written, whole, taken)
    return taken


def _array(count: int, dtype: np.dtype[Word]) -> NDArray[Word]:
    """Zeros, with all pages at once: that the system brings them one by one, as they are written,
    takes longer than what is computed here."""
    if not count:
        return np.zeros(0, dtype)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | ALL_PAGES
    return np.frombuffer(mmap.mmap(-1, count * dtype.itemsize, flags=flags), dtype)


def _granules(array: NDArray[np.generic], granule: int) -> Bytes:
    """Bytes, or whether they are defined, one element for each granule."""
    return array.view(f"u{granule}")


def apart(memory: GlobalMemory, blocks: Sequence[dict[int, Footprint]]) -> bool:
    """Whether no block accesses bytes that another block wrote."""
    for number, buffer in enumerate(memory.buffers):
        mine = _alike(number, buffer, blocks)
        if len(mine) < 2 or not any(one.data.size for one in mine):
            continue
        all_written, all_read = np.zeros_like(mine[0].written), np.zeros_like(mine[0].read)
        for one in mine:
            met = one.written & (all_written | all_read) | one.read & all_written
            if met.any():
                return False
            all_written |= one.written
            all_read |= one.read
    return True


def _alike(number: int, buffer: Buffer, blocks: Sequence[dict[int, Footprint]]) -> list[Footprint]:
    """Footprints of a buffer, all at the finest granule of any."""
    mine = [block[number] for block in blocks if number in block]
    finest = min((one.granule for one in mine), default=1)
    return [one.by(finest, buffer.data.size) for one in mine]


def perform(memory: GlobalMemory, blocks: Sequence[dict[int, Footprint]]) -> None:
    """Performs the writes of blocks for which `apart` is true, and records the writer of each byte
    where the blocks recorded it.
    """
    for number, buffer in enumerate(memory.buffers):
        mine = [one for one in _alike(number, buffer, blocks) if one.data.size]
        if not mine:
            continue
        buffer.granule = granule = mine[0].granule
        count = -(-buffer.data.size // granule)
        shadow = LastShadow(count + 1, "global memory") if mine[0].accesses else None
        buffer.shadow = shadow
        for one in mine:
            scatter(one.written, one.data, _granules(buffer.data, granule))
            if one.defined is not None:
                if buffer.defined is None:
                    buffer.defined = np.ones(buffer.data.size, bool)
                scatter(one.written, one.defined, _granules(buffer.defined, granule))
            if shadow is not None:
                one.which[...] += shadow.admit(one.accesses)
                scatter(one.written, one.which, shadow.writer)
