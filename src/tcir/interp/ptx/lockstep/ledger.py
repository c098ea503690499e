"""Readers and writers of global memory in a launch: no thread may touch another one's writes."""

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
    """One load: `nbytes` from byte `at` [n] of a buffer; row, thread: CTA and thread of each."""

    buffer: int
    at: Index
    nbytes: int
    row: Index
    thread: Index


@dataclass(frozen=True)
class LedgerStore:
    """One store: data uint8 [n, nbytes] to byte `at` [n] of a buffer; row, thread: as in a load.

    access: the leader's access in the machine's record.
    """

    buffer: int
    at: Index
    data: NDArray[np.uint8]
    row: Index
    thread: Index
    access: Access

    @property
    def nbytes(self) -> int:
        """Bytes of each access."""
        return self.data.shape[1]

    @property
    def size(self) -> int:
        """Bytes of memory used by the record itself."""
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
    """Written granules of each buffer, the readers of each granule, and the buffers that are
    read."""

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
        """Records accesses in order of time; returns whether there is no conflict.

        anywhere: buffers that are also read at unknown places. numbers: number of each row's CTA;
        0: ignored.
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
        """Marks of a buffer: a bit for each written granule, the reader of each, and the
        granule's bytes."""
        nothing = np.zeros(0, np.uint8), np.zeros(0, np.int32)
        return *self._threads.get(number, nothing), self._granules[number]

    def reads(self, number: int) -> bool:
        """Whether all of a buffer may be read."""
        return number in self._read


def perform(
    buffer: Buffer, one: LedgerStore, chosen: NDArray[np.bool_], ctas: Sequence[Triple]
) -> None:
    """Performs the writes of the chosen CTAs, and records the writers."""
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
    """Whether memory already holds the stores of the chosen rows."""
    where = one.at[chosen][:, None] + np.arange(one.data.shape[1])
    return bool((buffer.data[where] == one.data[chosen]).all())
