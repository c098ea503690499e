"""Bulk stores to global memory that have not taken effect: the bytes that will be there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.machine.memory.memories import Buffer, SharedMemory


@dataclass(frozen=True, eq=False)
class BulkStore:
    """Bytes on their way to places of a buffer, each uint8 or int64 [n]."""

    buffer: Buffer | SharedMemory
    places: NDArray[np.int64]
    data: NDArray[np.uint8]


class StoresInFlight:
    """Stores in flight of a launch, in the order of issue."""

    def __init__(self) -> None:
        self._stores: list[BulkStore] = []

    def begin(self, store: BulkStore) -> None:
        """One is issued."""
        self._stores.append(store)

    def end(self, store: BulkStore) -> None:
        """One has taken effect."""
        self._stores.remove(store)

    def repeat(self, store: BulkStore) -> bool:
        """Whether a new one writes what is there already, or will be."""
        there = store.buffer.data[store.places]
        for other in self._stores:
            if other.buffer is store.buffer:
                _, mine, theirs = np.intersect1d(store.places, other.places, return_indices=True)
                there[mine] = other.data[theirs]
        return bool((there == store.data).all())
