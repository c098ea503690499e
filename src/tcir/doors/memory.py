"""Memory of the device that was allocated, and which of its bytes hold values."""

from __future__ import annotations

import ctypes
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import RLock

import numpy as np

_NOISE = np.random.default_rng(0).integers(0, 256, (1 << 20) - 3, np.uint8)
"""Contents of uninitialised memory from its first byte on, repeated."""
SHORTEST = 8
"""Bytes in a row that keep their noise: fewer may have been written with the same values."""
SURE = 4
"""Number of bytes next to written ones that may have been written as well."""


@dataclass
class Allocation:
    """data: its bytes; defined: which of them hold values; there: whether it still exists."""

    data: np.ndarray
    defined: np.ndarray
    there: Callable[[], bool]

    def noise(self, which: np.ndarray | None = None) -> None:
        """Fills uninitialised bytes with noise; None: all."""
        for part, noise in self._parts():
            np.copyto(self.data[part], noise, where=True if which is None else which[part])

    def look(self) -> None:
        """Finds what the host wrote through a pointer of its own: there the noise is gone.

        It may have written the values of the noise: where it has written anything, short rows of
        noise, and the ends of long ones, count as written.
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
    """All that is not yet written, by address; what is written all over is forgotten."""

    def __init__(self) -> None:
        self._known: dict[int, Allocation] = {}
        self._bases: list[int] = []
        self._lock = RLock()

    def allocated(
        self, base: int, size: int, there: Callable[[], bool] = lambda: True, kept: int = 0
    ) -> None:
        """New memory, whose bytes hold no values but the first `kept`; they become noise."""
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
        """It is not there any more."""
        with self._lock:
            if self._known.pop(base, None) is not None:
                del self._bases[bisect_left(self._bases, base)]

    def wrote(self, at: int, size: int) -> None:
        """The host wrote bytes."""
        with self._lock:
            for _, known, mine, _ in self._within(at, size):
                known.defined[mine] = True

    def copied(self, to: int, source: int, size: int) -> None:
        """The host copied bytes: they hold values where those of the source do."""
        with self._lock:
            given = {piece.start: known.defined[mine].copy()
                     for _, known, mine, piece in self._within(source, size)}  # fmt: skip
            self.wrote(to, size)
            for start, defined in given.items():
                for _, known, mine, piece in self._within(to + start, defined.size):
                    known.defined[mine] = defined[piece]
                    lost = np.zeros_like(known.defined)
                    lost[mine] = ~defined[piece]
                    known.noise(lost)

    def mask(self, at: int) -> tuple[np.ndarray, int] | None:
        """Mask of the initialised bytes of an allocation, and the index of `at` in it; None: all
        are initialised, as far as is known."""
        with self._lock:
            return next(((k.defined, at - base) for base, k, *_ in self._within(at, 1)), None)

    def partial(self, arrays: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Allocations in these arrays that are not written all over, and their masks."""
        with self._lock:
            found = {}
            for array in arrays:
                for base, known, *_ in list(self._within(array.ctypes.data, array.nbytes)):
                    known.look()
                    if known.defined.all():
                        self.freed(base)
                    else:
                        found[base] = known.data, known.defined
            return list(found.values())

    def _within(self, at: int, size: int) -> Iterator[tuple[int, Allocation, slice, slice]]:
        """Allocations that have some of these bytes: where, which of theirs, which of these."""
        first = max(bisect_right(self._bases, at) - 1, 0)
        for base in self._bases[first : bisect_left(self._bases, at + size)]:
            known = self._known[base]
            if not known.there():
                self.freed(base)
            elif at < base + known.data.size:
                low, high = max(at, base), min(at + size, base + known.data.size)
                yield base, known, slice(low - base, high - base), slice(low - at, high - at)
