"""Ledger of the readers and writers of global memory in a launch. It checks that no thread accesses
bytes that another thread writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.jit import jit
from tcir.machine.memory.memories import Buffer, GlobalMemory
from tcir.machine.memory.protocols import Triple
from tcir.machine.order.clocks import Access

Index = NDArray[np.int64]

THREADS = 2048
"""Number above every thread number of a CTA."""
ENGINE = THREADS - 1
"""Number that stands for the TMA engine."""
_MANY = -1


@dataclass(frozen=True)
class LedgerLoad:
    """A load of n lanes, each of which reads `nbytes` bytes of a buffer.

    at: offset of each lane's bytes in the buffer, [n]
    row, thread: CTA and thread number of each lane
    """

    buffer: int
    at: Index
    nbytes: int
    row: Index
    thread: Index


@dataclass(frozen=True)
class LedgerStore:
    """A store of n lanes, each of which writes `nbytes` bytes of a buffer.

    at: offset of each lane's bytes in the buffer, [n]
    data: the bytes that are written, uint8 [n, nbytes]
    row, thread: CTA and thread number of each lane
    access: the same store in the record of the leader, the CTA that the other CTAs follow
    """

    buffer: int
    at: Index
    data: NDArray[np.uint8]
    row: Index
    thread: Index
    access: Access

    @property
    def nbytes(self) -> int:
        """Bytes that each lane stores."""
        return self.data.shape[1]

    @property
    def size(self) -> int:
        """Bytes of memory that the record itself occupies."""
        return self.data.nbytes + self.at.nbytes + self.row.nbytes + self.thread.nbytes


@jit
def _mark(
    written: NDArray[np.uint8],
    reader: NDArray[np.int32],
    granule: int,
    at: NDArray[np.int64],
    nbytes: int,
    who: NDArray[np.int64],
    write: bool,
) -> bool:
    """Notes accesses, or stops at the first that meets one that it must not.

    A granule is written once, and read by no other thread and not later. written: a bit each. who:
    below 0 is ignored.
    """
    for n in range(at.size):
        if who[n] < 0:
            continue
        me = np.int32(who[n])
        for g in range(at[n] // granule, (at[n] + nbytes - 1) // granule + 1):
            bit = np.uint8(1 << (g & 7))
            if written[g >> 3] & bit:
                return False
            if write:
                if reader[g] != 0 and reader[g] != me:
                    return False
                written[g >> 3] |= bit
            elif reader[g] == 0:
                reader[g] = me
            elif reader[g] != me:
                reader[g] = _MANY
    return True


class Ledger:
    """The granules (units of bytes) of each buffer that were written, the reader of each granule,
    and the buffers that are read at unknown places.
    """

    def __init__(self, memory: GlobalMemory) -> None:
        self.memory = memory
        # The coarsest that the machine tells accesses apart by during the launch.
        self._granules = [buffer.granule for buffer in memory.buffers]
        self._threads: dict[int, tuple[NDArray[np.uint8], NDArray[np.int32]]] = {}
        self._written: set[int] = set()
        self._read: set[int] = set()

    def note(
        self, accesses: Sequence[LedgerLoad | LedgerStore], anywhere: set[int], numbers: Index
    ) -> bool:
        """Records accesses in order of time. Returns False if a thread accesses bytes that another
        thread writes.

        anywhere: buffers that are also read at unknown places
        numbers:  number of the CTA of each row; rows with number 0 are ignored
        """
        self._read |= anywhere
        for one in accesses:
            if one.buffer not in self._threads:
                count = self.memory.buffers[one.buffer].data.size // self._granules[one.buffer] + 1
                bits = np.zeros(count // 8 + 1, np.uint8)
                self._threads[one.buffer] = bits, np.zeros(count, np.int32)
            number = numbers[one.row]
            who = np.where(number > 0, THREADS * number + one.thread, -1)
            write = isinstance(one, LedgerStore)
            if write:
                self._written.add(one.buffer)
            marks, granule = self._threads[one.buffer], self._granules[one.buffer]
            if not _mark(*marks, granule, one.at, one.nbytes, who, write):
                return False
        return not self._read & self._written

    def marks(self, number: int) -> tuple[NDArray[np.uint8], NDArray[np.int32], int]:
        """Record of a buffer: a bit for each granule that was written, the reader of each granule,
        and the size of a granule in bytes.
        """
        nothing = np.zeros(0, np.uint8), np.zeros(0, np.int32)
        return *self._threads.get(number, nothing), self._granules[number]

    def reads(self, number: int) -> bool:
        """Whether the buffer is read at unknown places, so that any byte of it may be read."""
        return number in self._read


def perform(
    buffer: Buffer, one: LedgerStore, chosen: NDArray[np.bool_], ctas: Sequence[Triple]
) -> None:
    """Performs the writes of a store in the chosen CTAs, and records their writers."""
    masks = [
        np.zeros(0, bool) if mask is None else mask for mask in (buffer.defined, buffer.stored)
    ]
    _store(one.at, one.data, one.row, chosen, buffer.data, *masks)
    if buffer.shadow is not None:
        mine = chosen[one.row]
        buffer.shadow.record_writes(
            one.at[mine] // buffer.granule,
            -(-one.nbytes // buffer.granule),
            one.row[mine],
            [(one.access, cta) for cta in ctas],
        )


@jit
def _store(
    at: Index,
    data: NDArray[np.uint8],
    row: Index,
    chosen: NDArray[np.bool_],
    memory: NDArray[np.uint8],
    defined: NDArray[np.bool_],
    stored: NDArray[np.bool_],
) -> None:
    """Stores the data of the chosen rows. defined, stored: masks of the memory, empty if there are
    none."""
    for n in range(at.size):
        if chosen[row[n]]:
            for byte in range(data.shape[1]):
                memory[at[n] + byte] = data[n, byte]
            for mask in (defined, stored):
                if mask.size:
                    for byte in range(data.shape[1]):
                        mask[at[n] + byte] = True


def performed(buffer: Buffer, one: LedgerStore, chosen: NDArray[np.bool_]) -> bool:
    """Whether memory already contains the values that the chosen rows store."""
    where = one.at[chosen][:, None] + np.arange(one.data.shape[1])
    return bool((buffer.data[where] == one.data[chosen]).all())
