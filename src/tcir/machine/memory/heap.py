"""The heap of device code: allocated memory persists until it is freed, also after the launch (CUDA
C++ Programming Guide, "Dynamic Global Memory Allocation and Operations").
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError

BASE = 0x8000_0000_0000
"""First address: above all others, so that the order of other buffers does not change."""
GAP = 1 << 20
POISON = 0xCB


@dataclass
class Heap:
    """Memory allocated by malloc in device code, by address; no address is used twice.

    limit: bytes that may be allocated at any time (cudaLimitMallocHeapSize)
    blocks: bytes of each allocation, and which of the bytes are defined
    freed: sizes of the allocations that were freed
    """

    limit: int = 8 << 20
    blocks: dict[int, tuple[NDArray[np.uint8], NDArray[np.bool_]]] = field(default_factory=dict)
    freed: dict[int, int] = field(default_factory=dict)
    _live: int = 0
    _next: int = BASE

    def allocate(self, size: int) -> int:
        """Allocates undefined memory and returns its address; 0 if the heap is full."""
        if self._live + size > self.limit:
            return 0
        at, size = self._next, max(size, 1)
        self.blocks[at] = np.full(size, POISON, np.uint8), np.zeros(size, bool)
        self._live += size
        self._next += -(-(size + GAP) // 256) * 256
        return at

    def free(self, base: int, words: str, site: object) -> None:
        """Frees the memory at an address that `allocate` returned. Raises MachineError for another
        address, which the message calls `words`.
        """
        if base not in self.blocks:
            words = "memory that was freed before" if base in self.freed else words
            raise MachineError(
                "invalid-free", f"expected an address that malloc returned, got {words}", site=site
            )
        self.freed[base] = self.blocks.pop(base)[0].size
        self._live -= self.freed[base]

    @property
    def used(self) -> bool:
        """Whether device code has ever allocated memory."""
        return self._next > BASE

    def was_freed(self, address: int) -> bool:
        """Whether the address is in an allocation that was freed."""
        return any(base <= address < base + size for base, size in self.freed.items())

    def copy(self) -> Heap:
        """Returns a heap with the same contents."""
        return deepcopy(self)

    def keep(self, other: Heap) -> None:
        """Replaces the contents by those of another heap."""
        self.__dict__.update(other.__dict__)
