"""Converts a buffer's record of accesses, kept per granule (unit of bytes), to bit masks in one
pass.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcir.machine.jit import jit

Bits = NDArray[np.uint8]
"""A bit for each granule, the lowest of a byte first."""
Words = NDArray[np.unsignedinteger] | NDArray[np.int32]


@jit
def mark(
    writer: NDArray[np.int32],
    readers: NDArray[np.int32],
    constant: NDArray[np.int32],
    stored: Bits,
    loaded: NDArray[np.int32],
    shift: int,
    written: Bits,
    read: Bits,
) -> int:
    """Fills the masks `written` and `read`. Returns the number of granules written according to the
    machine's record, or -1 if the ledger has a written granule that the record lacks.

    writer, readers, constant: arrays of the record
    stored, loaded: arrays of the ledger, of which one granule covers ``1 << shift`` granules of the
                    record

    Empty arrays are ignored.
    """
    found = 0
    for byte in range(len(written)):
        wrote = reads = 0
        for n in range(8):
            g = 8 * byte + n
            own = g < len(writer) and writer[g] != 0
            wide = g >> shift
            if not own and wide >> 3 < len(stored) and stored[wide >> 3] >> (wide & 7) & 1:
                first = wide << shift  # a store of 16 bits leaves half of 32 as they were
                if not writer[first : first + (1 << shift)].any():
                    return -1
            loads = g < len(readers) and readers[g] != 0
            loads |= g < len(constant) and constant[g] != 0
            loads |= wide < len(loaded) and loaded[wide] != 0
            wrote |= own << n
            reads |= loads << n
            found += own
        written[byte], read[byte] = wrote, reads
    return found


@jit
def gather(bits: Bits, whole: Words, packed: Words) -> None:
    """Copies the elements of the granules whose bit is set into an array without gaps."""
    at = 0
    for byte in range(len(bits)):
        if bits[byte]:
            for n in range(8):
                if bits[byte] >> n & 1:
                    packed[at] = whole[8 * byte + n]
                    at += 1


@jit
def scatter(bits: Bits, packed: Words, whole: Words) -> None:
    """Copies elements back to the granules whose bit is set: the reverse of `gather`."""
    at = 0
    for byte in range(len(bits)):
        if bits[byte]:
            for n in range(8):
                if bits[byte] >> n & 1:
                    whole[8 * byte + n] = packed[at]
                    at += 1


@jit
def renumber(numbers: NDArray[np.int32], new: NDArray[np.int32]) -> int:
    """Renumbers values from 0 on in order of their first appearance, and returns the number of
    different values. new: for each old number, its new number plus 1
    """
    count = 0
    for n in range(len(numbers)):
        if new[numbers[n]] == 0:
            count += 1
            new[numbers[n]] = count
        numbers[n] = new[numbers[n]] - 1
    return count
