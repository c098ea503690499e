"""Global memory as buffers with guard zones, and the shared memory of a CTA."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.heap import POISON, Heap
from tcir.machine.memory.undefined import Tracked
from tcir.machine.order.shadow import LastShadow, Shadow
from tcir.target import DEFAULT_TARGET

GLOBAL_BASE = 0x7000_0000_0000
GUARD = 1 << 20
RANK_SHIFT = 24
"""Lowest bit of the CTA's rank in a shared-memory address, see `tcir.machine.engine.cluster`."""
SHARED_LIMIT = DEFAULT_TARGET.smem_per_cta
"""Bytes of shared memory one CTA may use."""
_PATTERNS = POISON * 0x01010101_01010101, POISON * 0x01010101
"""Values of registers of 8 and of 4 bytes that nothing wrote."""
_NEAR = 1 << 20


def address_words(address: int) -> str:
    """Formats an address in hexadecimal. An address that equals the poison pattern of unwritten
    memory, or is near it, is called poison.
    """
    for pattern, size in zip(_PATTERNS, (8, 4), strict=True):
        bits = address & (1 << 8 * size) - 1
        if abs(bits - pattern) < _NEAR and address in (bits, bits - (1 << 8 * size)):
            return f"poison ({bits:#x}: from a register or memory that nothing wrote)"
    return f"{address:#x}"


def _span(low: int, high: int) -> str:
    return f"byte {low:#x}" if high == low + 1 else f"bytes {low:#x}..{high - 1:#x}"


@dataclass(eq=False)
class Buffer(Tracked):
    """One array bound to an address: its bytes, and which of them are defined (None: all).

    result: whether the caller reads the buffer after the launch
    kept: whether later launches read the buffer
    unfinished: granules that earlier launches may still write during a programmatic launch
    constant: whether the buffer is in the constant state space
    name: name of the buffer in reports
    array: the caller's array
    read: whether an access other than a store has been made to the buffer
    """

    base: int
    data: NDArray[np.uint8]
    defined: NDArray[np.bool_] | None
    granule: int = 4
    """Granularity of accesses in bytes: an element of the array, at most 4."""
    shadow: LastShadow | None = None
    result: bool = True
    kept: bool = False
    unfinished: Sequence[slice] = (slice(None),)
    constant: bool = False
    name: str = "a buffer"
    array: NDArray[Any] | None = None
    read: bool = False
    shift: int = 0
    """Offset in bytes from a multiple of 256, because no larger alignment was promised."""

    def words(self, low: int, high: int) -> str:
        """Describes bytes ``low`` to ``high`` (exclusive) of the buffer for a message, and the
        array elements in them.
        """
        where = f"{_span(low, high)} of {self.name}"
        array = self.array
        if array is None or not array.ndim or not 0 <= low < high <= array.nbytes:
            return where
        first, last = (
            ", ".join(str(int(n)) for n in np.unravel_index(at // array.itemsize, array.shape))
            for at in (low, high - 1)
        )
        return f"{where}: [{first}]" + f" to [{last}]" * (first != last)

    def granules(self, where: NDArray[np.int64], aligned: bool = False) -> NDArray[np.int64]:
        """Returns the index into the shadow memory for an access to these bytes, int64 [n, bytes of
        an element]. aligned: whether each element is aligned.
        """
        size = where.shape[1]
        if size % self.granule:
            finer = size & -size
            if self.shadow is not None:
                self.shadow.refine(self.granule // finer)
            self.granule = finer
        return (where[:, :: self.granule] if aligned else where) // self.granule

    @property
    def end(self) -> int:
        """Address of the first byte after the buffer."""
        return self.base + self.data.size

    @property
    def _size(self) -> int:
        return self.data.size


@dataclass(frozen=True)
class ArrayPlace:
    """Address of an array in global memory, or how to choose it.

    at: the address. If None, the array is placed at the next free address that is `offset` bytes
        after a multiple of 256. If `alignment` is below 256, the address is a multiple of
        `alignment` instead, and of no larger power of two
    """

    at: int | None = None
    offset: int = 0
    alignment: int = 256


ANYWHERE = ArrayPlace()


class GlobalMemory:
    """Global memory. Its buffers are far apart, so an access outside a buffer is an error and never
    reaches another buffer.
    """

    def __init__(self, heap: Heap | None = None) -> None:
        self.buffers: list[Buffer] = []
        self._bases: list[int] = []
        self._next = GLOBAL_BASE
        self.heap = heap or Heap()
        for base in self.heap.blocks:
            self._bind_block(base)

    def _bind_block(self, base: int) -> None:
        data, defined = self.heap.blocks[base]
        name, place = "memory of the kernel's malloc", ArrayPlace(base)
        self.bind(data, defined=defined, result=False, name=name, place=place)

    @property
    def partly_unfinished(self) -> bool:
        """Whether, during a programmatic launch, earlier launches may still write to a part of a
        buffer. If so, whether an access has to wait depends on its bytes, and not only on its
        buffer.
        """
        parts = (
            (-(-b.data.size // b.granule), part) for b in self.buffers for part in b.unfinished
        )
        return any(part.indices(size)[:2] != (0, size) for size, part in parts)

    def allocate(self, size: int) -> int:
        """Allocates undefined memory for malloc in device code and returns its address; returns 0
        if the heap is full.
        """
        if at := self.heap.allocate(size):
            self._bind_block(at)
        return at

    def free(self, base: int, site: object) -> None:
        """Frees the memory at an address that `allocate` returned. Raises MachineError for another
        address.
        """
        self.heap.free(base, address_words(base), site)
        at = bisect_left(self._bases, base)
        del self.buffers[at], self._bases[at]

    def bind(
        self,
        array: NDArray[Any],
        *,
        initialized: bool = True,
        defined: NDArray[np.bool_] | None = None,
        result: bool = True,
        kept: bool = False,
        constant: bool = False,
        name: str = "a buffer",
        place: ArrayPlace = ANYWHERE,
    ) -> int:
        """Gives ``array`` an address. The array must be C-contiguous; the launch writes to it in
        place.

        defined: mask of the array's defined bytes, written in place; None: all bytes are defined,
            or none if not ``initialized``. result: whether the caller reads the array after the
            launch; the launch must not leave undefined bits in it. kept: whether later launches
            read the array. constant: whether it is in the constant state space. name: its name in
            reports.
        """
        if not array.flags.c_contiguous:
            raise ValueError(f"expected a C-contiguous array, got strides {array.strides}")
        data = np.asarray(array).reshape(-1).view(np.uint8)  # of a matrix, too
        if not initialized:
            defined = np.zeros(data.size, bool)
        shift = place.alignment % 256
        base = self._next + place.offset % 256 + shift if place.at is None else place.at
        granule = min(4, array.itemsize)
        position = bisect_right(self._bases, base)
        made = Buffer(
            base, data, defined, granule, result=result, kept=kept, constant=constant, name=name,
            array=array, shift=shift,
        )  # fmt: skip
        self.buffers.insert(position, made)
        self._bases.insert(position, base)
        if place.at is None:
            self._next = (base + data.size + GUARD + 255) // 256 * 256
        return base

    def find(self, low: int, high: int, site: object, *, store: bool = False) -> Buffer:
        """Returns the buffer that contains bytes ``low`` (inclusive) to ``high`` (exclusive);
        raises MachineError if there is none. store: whether the access only stores to the bytes.
        """
        i = bisect_right(self._bases, low) - 1
        if i >= 0 and high <= self.buffers[i].end:
            self.buffers[i].read |= not store
            return self.buffers[i]
        raise MachineError("out-of-bounds", self._nearest(low, high), site=site)

    def unshifted(self, addresses: NDArray[np.int64]) -> NDArray[np.int64]:
        """Maps addresses in one buffer to the addresses that they would have if the buffer began at
        a multiple of 256, as buffers from allocators do.
        """
        i = bisect_right(self._bases, int(addresses.min())) - 1
        return addresses - self.buffers[i].shift if i >= 0 else addresses

    def holds(self, low: int, high: int) -> bool:
        """Whether one buffer contains all bytes from ``low`` (inclusive) to ``high``
        (exclusive).
        """
        i = bisect_right(self._bases, low) - 1
        return i >= 0 and high <= self.buffers[i].end

    def _nearest(self, low: int, high: int) -> str:
        if (words := address_words(low)) != f"{low:#x}":
            return f"expected an address in a buffer, got {words}"
        if self.heap.was_freed(low):
            return f"expected an address in a buffer, got {low:#x}: its memory was freed"
        if not self.buffers:
            return f"expected an address in a buffer, got {low:#x}, but there is no buffer"
        near = min(self.buffers, key=lambda b: max(b.base - low, high - b.end))
        return (
            f"expected an address in a buffer, got bytes {low:#x}..{high - 1:#x}: "
            f"{low - near.base} bytes from the start of the nearest, which has {near.data.size} "
            f"({near.name})"
        )


ALL_DEFINED = {1: 1, 2: 0x0101, 4: 0x01010101, 8: 0x0101010101010101}
"""Element size -> the value of `SharedMemory.defined_view` where every byte is defined."""


class SharedMemory(Tracked):
    """Shared memory of one CTA, byte by byte; unwritten bytes contain poison."""

    granule = 4
    """Granularity of accesses in bytes, until one of them is smaller: see `granules`."""

    def __init__(self, size: int, hazards: bool, *, dynamic: int = 0, start: int = 0) -> None:
        """start: number of the system's bytes, which precede the kernel's `size` bytes."""
        if size > SHARED_LIMIT:
            raise MachineError(
                "shared-memory-size",
                f"expected at most {SHARED_LIMIT} bytes per CTA (227 KB), got {size}",
            )
        self.start, self.size, self.dynamic = start, start + size, dynamic
        """First and end offset of the kernel's bytes in the window; `data` holds the whole
        window."""
        self.data = np.full(self.size, POISON, np.uint8)
        self.defined: NDArray[np.bool_] = np.zeros(self.size, bool)
        self.shadow = Shadow(self.size // 4 + 1, "shared memory") if hazards else None

    def granules(self, where: NDArray[np.int64], aligned: bool = False) -> Any:
        """Returns the index into the shadow memory for an access to these bytes, int64 [n, bytes of
        an element]. aligned: whether each element is aligned.
        """
        if self.shadow is not None and where.shape[1] % 4:
            self.shadow.split()
            return where // 4, where % 4
        return (where[:, ::4] if aligned else where) // 4

    def words(self, low: int, high: int) -> str:
        """Describes bytes ``low`` to ``high`` (exclusive) of the shared memory for a message."""
        return f"{_span(low, high)} of shared memory"

    def view(self, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The memory as elements of ``dtype``."""
        return self.data[: self.size // dtype.itemsize * dtype.itemsize].view(dtype)

    def defined_view(self, size: int) -> NDArray[Any]:
        """Mask ``defined``, for elements of ``size`` bytes: `ALL_DEFINED` for an element whose
        bytes are all defined.
        """
        return self.defined[: self.size // size * size].view(f"u{size}")

    def poison(self, start: int, size: int) -> None:
        """Makes bytes undefined."""
        self.data[start : start + size] = POISON
        self.cleared(slice(start, start + size))

    def scramble(self, where: NDArray[np.int64]) -> None:
        """Makes single bytes undefined."""
        self.data[where] = POISON
        self.cleared(where)

    def check(self, low: int, high: int, site: object) -> None:
        """Raises MachineError unless bytes [low, high) exist."""
        if 0 <= low < self.start:
            raise MachineError(
                "reserved-shared-memory",
                f"expected an offset from {self.start:#x} on in the CTA's window of shared memory, "
                f"got {_span(low, high)}: the bytes below belong to the system (ptxas reserves "
                "1,024 bytes on sm_90 and later); compute the address, or the descriptor, from "
                "that of a .shared variable",
                site=site,
            )
        if low < 0 or high > self.size:
            launch = "" if self.dynamic else "; the launch gives no dynamic_smem (--dynamic-smem)"
            raise MachineError(
                "out-of-bounds",
                f"expected shared bytes in [{self.start}, {self.size}), got {low}..{high - 1}"
                f"{launch}",
                site=site,
            )
