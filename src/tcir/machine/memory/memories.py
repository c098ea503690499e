"""Memories: global buffers with guards, shared memory of a CTA, tensor memory of an SM."""

from __future__ import annotations

import random
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.engine.residents import Sm
from tcir.machine.errors import MachineError
from tcir.machine.order.shadow import Shadow
from tcir.target import DEFAULT_TARGET

GLOBAL_BASE = 0x7000_0000_0000
GUARD = 1 << 20
SHARED_LIMIT = DEFAULT_TARGET.smem_per_cta
"""Bytes of shared memory one CTA may use."""
LANES, COLUMNS = 128, 512
"""Tensor memory of one SM: lanes x 32-bit columns (PTX ISA 9.7.16.1)."""
POISON = 0xCB
POISON_WORD = 0x7FFF_CBCB
"""Of tensor memory: a NaN as f32."""
UNSPECIFIED_HALF = 0xCBCB_0000
"""Upper half of a tensor-memory word that holds 16 bits: no document says what is in it."""


@dataclass
class Buffer:
    """One bound array: its bytes, and which of them are defined (None: all)."""

    base: int
    data: NDArray[np.uint8]
    defined: NDArray[np.bool_] | None
    granule: int = 4
    """Bytes that accesses are told apart by: an element of the array, at most 4."""
    shadow: Shadow | None = None

    def granules(self, where: NDArray[np.int64]) -> NDArray[np.int64]:
        """What indexes the shadow for an access of some bytes."""
        return where // self.granule

    @property
    def end(self) -> int:
        """First address after it."""
        return self.base + self.data.size


class GlobalMemory:
    """Buffers far apart: an access outside all of them is an error, not somebody's data."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._bases: list[int] = []
        self._next = GLOBAL_BASE

    def bind(self, array: NDArray[Any], *, initialized: bool = True) -> int:
        """Gives ``array`` (C-contiguous, written in place) an address, a multiple of 256."""
        if not array.flags.c_contiguous:
            raise ValueError(f"expected a C-contiguous array, got strides {array.strides}")
        data = array.reshape(-1).view(np.uint8)
        defined = None if initialized else np.zeros(data.size, bool)
        return self._add(data, defined, min(4, array.itemsize))

    def bind_bytes(self, raw: bytes) -> int:
        """A read-only image."""
        return self._add(np.frombuffer(raw, np.uint8).copy(), None)

    def _add(
        self, data: NDArray[np.uint8], defined: NDArray[np.bool_] | None, granule: int = 4
    ) -> int:
        base = self._next
        self.buffers.append(Buffer(base, data, defined, granule))
        self._bases.append(base)
        self._next = (base + data.size + GUARD + 255) // 256 * 256
        return base

    def find(self, low: int, high: int, site: Any) -> Buffer:
        """The buffer that holds bytes ``low`` (inclusive) to ``high`` (exclusive)."""
        i = bisect_right(self._bases, low) - 1
        if i >= 0 and high <= self.buffers[i].end:
            return self.buffers[i]
        raise MachineError("out-of-bounds", self._nearest(low, high), site=site)

    def _nearest(self, low: int, high: int) -> str:
        if not self.buffers:
            return f"expected an address in a buffer, got {low:#x} and no buffer at all"
        near = min(self.buffers, key=lambda b: max(b.base - low, high - b.end))
        return (
            f"expected an address in a buffer, got bytes {low:#x}..{high - 1:#x}: "
            f"{low - near.base} bytes from the start of the nearest, which has {near.data.size}"
        )


ALL_DEFINED = {1: 1, 2: 0x0101, 4: 0x01010101, 8: 0x0101010101010101}
"""Element size -> the value of `SharedMemory.defined_view` where every byte is defined."""


class SharedMemory:
    """Shared memory of one CTA, by byte; unwritten bytes are poison."""

    granule = 4
    """Bytes that accesses are told apart by, until one of them is smaller: see `granules`."""

    def __init__(self, size: int, hazards: bool) -> None:
        if size > SHARED_LIMIT:
            raise MachineError(
                "shared-memory-size",
                f"expected at most {SHARED_LIMIT} bytes a CTA (227 KB), got {size}",
            )
        self.size = size
        self.data = np.full(size, POISON, np.uint8)
        self.defined = np.zeros(size, bool)
        self.shadow = Shadow(size // 4 + 1, "shared memory") if hazards else None

    def granules(self, where: NDArray[np.int64]) -> Any:
        """What indexes the shadow for an access of some bytes, int64 [n, bytes of an element]."""
        if self.shadow is not None and where.shape[1] % 4:
            self.shadow.split()
            return where // 4, where % 4
        return where // 4

    def view(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The memory as elements of ``dtype``."""
        return self.data[: self.size // dtype.itemsize * dtype.itemsize].view(dtype)

    def defined_view(self, size: int) -> NDArray[Any]:
        """``defined`` of the bytes of elements of ``size`` bytes: `ALL_DEFINED` where all are."""
        return self.defined[: self.size // size * size].view(f"u{size}")

    def poison(self, start: int, size: int) -> None:
        """Makes bytes undefined."""
        self.data[start : start + size] = POISON
        self.defined[start : start + size] = False

    def scramble(self, where: NDArray[np.int64]) -> None:
        """Makes single bytes undefined."""
        self.data[where] = POISON
        self.defined[where] = False

    def check(self, low: int, high: int, site: Any) -> None:
        """MachineError unless bytes [low, high) exist."""
        if low < 0 or high > self.size:
            raise MachineError(
                "out-of-bounds",
                f"expected shared bytes in [0, {self.size}), got {low}..{high - 1}",
                site=site,
            )


class TensorMemory:
    """Tensor memory of a CTA: words [lane, column], which are defined, which allocated.

    Where an allocation lies is not the program's to know: with a `seed` it is drawn.
    """

    def __init__(
        self,
        hazards: bool,
        zeros: bool = False,
        seed: str | None = None,
        sm: Sm | None = None,
        name: str = "the CTA",
    ) -> None:
        self._rng = None if seed is None else random.Random(seed)
        self.name = name
        self.sm = sm or Sm()
        self.sm.memories.append(self)
        self.zeros = zeros
        """Whether alloc gives columns of zeros: an open question."""
        self.words = np.full((LANES, COLUMNS), POISON_WORD, np.uint32)
        self.defined = np.zeros((LANES, COLUMNS), bool)
        self.allocated = np.zeros(COLUMNS, bool)
        self.allocations: dict[int, int] = {}
        self.largest = COLUMNS
        self.relinquished: Any = None
        self.exclusive = False
        """Whether its allocation is one by tcgen05.alloc.exclusive."""
        self.has_permit = False
        """Whether it has allocated, and not given up its right to allocate more."""
        self.shadow = Shadow((LANES, COLUMNS), "tensor memory") if hazards else None

    def room(
        self, columns: int, peer: TensorMemory | None = None, exclusive: bool = False
    ) -> int | None:
        """A free place for that many columns (of the pair's other CTA, too); None: there is none.

        It is aligned to their number, so that what is left has room for all that may follow: later
        allocations are not larger. An exclusive one is alone, and of any number of 32 columns.
        """
        both = (self,) if peer is None else (self, peer)
        if any(memory.sm.closed(memory, exclusive) for memory in both):
            return None
        taken = np.logical_or.reduce([memory.sm.taken() for memory in both])
        starts = range(0, COLUMNS - columns + 1, 32 if exclusive else columns)
        free = [b for b in starts if not taken[b : b + columns].any()]
        if not free:
            return None
        return free[0] if self._rng is None else self._rng.choice(free)

    def allocate(self, base: int, columns: int, exclusive: bool = False) -> None:
        """Takes free columns: what they hold is undefined, from the start or since `free`."""
        self.exclusive, self.has_permit = exclusive, True
        self.allocated[base : base + columns] = True
        if self.zeros:
            self.words[:, base : base + columns] = 0
            self.defined[:, base : base + columns] = True
        self.allocations[base] = columns

    def free(self, base: int) -> None:
        """Ends an allocation."""
        columns = self.allocations.pop(base)
        self.exclusive = False
        self.allocated[base : base + columns] = False
        self.poison(base, columns)

    def poison(self, column: int, columns: int) -> None:
        """Makes columns undefined."""
        self.words[:, column : column + columns] = POISON_WORD
        self.defined[:, column : column + columns] = False

    def columns(self) -> str:
        """The allocations, in words."""
        return ", ".join(f"{b}..{b + n - 1}" for b, n in sorted(self.allocations.items()))

    def check(self, low: int, high: int, site: Any) -> None:
        """MachineError unless columns [low, high) are allocated."""
        if any(base <= low and high <= base + n for base, n in self.allocations.items()):
            return
        if low < 0 or high > COLUMNS or not self.allocated[low:high].all():
            raise MachineError(
                "tensor-memory-columns",
                f"expected columns inside an allocation ({self.columns() or 'none exists'}), "
                f"got {low}..{high - 1}",
                site=site,
            )
