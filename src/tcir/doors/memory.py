"""Allocations of device memory, and which of their bytes are initialised."""

from __future__ import annotations

import ctypes
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import RLock

import numpy as np

_NOISE = np.random.default_rng(0).integers(0, 256, (1 << 20) - 3, np.uint8)
"""Contents of uninitialised memory: this noise, repeated from the first byte of an allocation."""
SHORTEST = 8
"""Minimum number of consecutive bytes with their noise that count as unwritten; a shorter run may
have been written with the same values."""
SURE = 4
"""Number of bytes next to written ones that may have been written as well."""


@dataclass
class Allocation:
    """An allocation of device memory.

    data:    its bytes
    defined: mask of the initialised bytes
    there:   returns whether the allocation still exists
    """

    data: np.ndarray
    defined: np.ndarray
    there: Callable[[], bool]

    def noise(self, which: np.ndarray | None = None) -> None:
        """Fills the bytes that `which` selects with noise (a pattern that marks them as not
        written). None: all bytes.
        """
        for part, noise in self._parts():
            np.copyto(self.data[part], noise, where=True if which is None else which[part])

    def look(self) -> None:
        """Finds bytes that the host wrote through a pointer of its own, by looking for bytes that
        no longer contain the noise.

        The host may have written values that happen to equal the noise. Therefore, if it has
        written anything, short runs of noise (`SHORTEST`) and the ends of long runs (`SURE`) also
        count as written.
        """
        kept = np.zeros_like(self.defined)
        for part, noise in self._parts():
            kept[part] = (self.data[part] == noise) & ~self.defined[part]
        if not (kept ^ ~self.defined).any():
            return
        edges = np.flatnonzero(np.diff(kept, prepend=False, append=False)).reshape(-1, 2)
        before, self.defined[...] = self.defined.copy(), True
        for low, high in edges.tolist():
            if high - low < SHORTEST:
                continue
            low += 0 if low == 0 or before[low - 1] else SURE
            high -= 0 if high == kept.size or before[high] else SURE
            self.defined[low:high] = False

    def _parts(self) -> Iterator[tuple[slice, np.ndarray]]:
        for at in range(0, self.data.size, _NOISE.size):
            yield slice(at, at + _NOISE.size), _NOISE[: self.data.size - at]


class Allocations:
    """The allocations that are not yet completely initialised, by address. An allocation is dropped
    when all its bytes have been written.
    """

    def __init__(self) -> None:
        self._known: dict[int, Allocation] = {}
        self._bases: list[int] = []
        self._lock = RLock()

    def allocated(
        self, base: int, size: int, there: Callable[[], bool] = lambda: True, kept: int = 0
    ) -> None:
        """Records a new allocation. Its bytes are uninitialised and are filled with noise, except
        the first `kept` bytes.
        """
        with self._lock:
            for old, *_ in list(self._within(base, size)):
                self.freed(old)
            if size:
                data = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(base))
                known = self._known[base] = Allocation(data, np.zeros(size, bool), there)
                known.defined[:kept] = True
                known.noise(~known.defined if kept else None)
                insort(self._bases, base)

    def freed(self, base: int) -> None:
        """Records that the allocation at `base` was freed."""
        with self._lock:
            if self._known.pop(base, None) is not None:
                del self._bases[bisect_left(self._bases, base)]

    def wrote(self, at: int, size: int) -> None:
        """Records that the host wrote `size` bytes at an address."""
        with self._lock:
            for _, known, mine, _ in self._within(at, size):
                known.defined[mine] = True

    def copied(self, to: int, source: int, size: int) -> None:
        """Records that the host copied `size` bytes. A copied byte is initialised if its source
        byte is. The source is first searched for bytes that the host wrote through a pointer of its
        own.
        """
        with self._lock:
            given = {
                piece.start: known.defined[mine].copy()
                for _, known, mine, piece in self._unfinished(source, size)
            }
            self.wrote(to, size)
            for start, defined in given.items():
                for _, known, mine, piece in self._within(to + start, defined.size):
                    known.defined[mine] = defined[piece]
                    lost = np.zeros_like(known.defined)
                    lost[mine] = ~defined[piece]
                    known.noise(lost)

    def mask(self, at: int) -> tuple[np.ndarray, int] | None:
        """Mask of the initialised bytes of the allocation that contains `at`, and the index of `at`
        in it. None if all its bytes are known or assumed to be initialised.
        """
        with self._lock:
            return next(((k.defined, at - base) for base, k, *_ in self._within(at, 1)), None)

    def partial(self, arrays: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each allocation in these arrays that is not completely initialised: its bytes, and
        the mask of its initialised bytes.
        """
        with self._lock:
            found = {}
            for array in arrays:
                for base, known, *_ in self._unfinished(array.ctypes.data, array.nbytes):
                    found[base] = known.data, known.defined
            return list(found.values())

    def _unfinished(self, at: int, size: int) -> list[tuple[int, Allocation, slice, slice]]:
        """`_within`, after a look at what the host wrote; completely written allocations are
        dropped."""
        found = list(self._within(at, size))
        for base, known, *_ in found:
            known.look()
            if known.defined.all():
                self.freed(base)
        return [piece for piece in found if piece[0] in self._known]

    def _within(self, at: int, size: int) -> Iterator[tuple[int, Allocation, slice, slice]]:
        """Allocations that overlap these bytes: the base address, the allocation, the slice of its
        bytes, and the slice of these bytes."""
        first = max(bisect_right(self._bases, at) - 1, 0)
        for base in self._bases[first : bisect_left(self._bases, at + size)]:
            known = self._known[base]
            if not known.there():
                self.freed(base)
            elif at < base + known.data.size:
                low, high = max(at, base), min(at + size, base + known.data.size)
                yield base, known, slice(low - base, high - base), slice(low - at, high - at)
