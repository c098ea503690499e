"""Bulk stores to global memory that have been issued but have not taken effect, with the bytes that
they will write.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.memories import Buffer, SharedMemory


@dataclass(frozen=True, eq=False)
class BulkStore:
    """A bulk store in flight: it will write `data` uint8 [n] to the byte indices `places` int64 [n]
    of a buffer.
    """

    buffer: Buffer | SharedMemory
    places: NDArray[np.int64]
    data: NDArray[np.uint8]


class StoresInFlight:
    """The bulk stores in flight of a launch, in issue order."""

    def __init__(self) -> None:
        self._stores: list[BulkStore] = []

    def begin(self, store: BulkStore) -> None:
        """Notes that a store is issued."""
        self._stores.append(store)

    def end(self, store: BulkStore) -> None:
        """Notes that a store has taken effect."""
        self._stores.remove(store)

    def repeat(self, store: BulkStore) -> bool:
        """Whether a new store writes bytes equal to those that memory contains, or will contain
        after the stores in flight.
        """
        there = store.buffer.data[store.places]
        for other in self._stores:
            if other.buffer is store.buffer:
                _, mine, theirs = np.intersect1d(store.places, other.places, return_indices=True)
                there[mine] = other.data[theirs]
        return bool((there == store.data).all())
