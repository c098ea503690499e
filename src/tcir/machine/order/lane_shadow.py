"""Shadow memory by lane: which lanes of a warp wrote and read each granule last."""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tcir.machine.order.lanes import EACH, TOGETHER, LaneNumbers

Lane = TypeVar("Lane", np.int64, np.uint32)

Granules = slice | NDArray[np.int64] | tuple[slice | NDArray[np.int64], ...]
"""Index of granules of a memory."""


class LaneShadow:
    """Lanes of the last accesses to the granules of a memory.

    writer: lane that wrote a granule last
    warp: number of the warp that read it last
    readers: mask of that warp's lanes that have read it since they were last synchronised
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.writer = np.zeros(shape, np.int8)
        self.readers = np.zeros(shape, np.uint32)
        self.warp = np.zeros(shape, np.int32)

    def split(self) -> None:
        """Refines the record from words to single bytes, as
        `tcir.machine.order.shadow.Shadow.split` does.
        """
        self.writer = np.repeat(self.writer[:, None], 4, axis=1)
        self.readers = np.repeat(self.readers[:, None], 4, axis=1)
        self.warp = np.repeat(self.warp[:, None], 4, axis=1)

    def refine(self, pieces: int) -> None:
        """Divides each granule into pieces, as `tcir.machine.order.shadow.Shadow.refine` does."""
        self.writer = np.repeat(self.writer, pieces)
        self.readers = np.repeat(self.readers, pieces)
        self.warp = np.repeat(self.warp, pieces)

    def write(self, where: Granules, lanes: LaneNumbers) -> None:
        """Records that ``lanes`` write the granules."""
        self.writer[where] = lanes if isinstance(lanes, int) else self._rows(lanes, where)

    def read(
        self, where: Granules, lanes: LaneNumbers, warp: int, fresh: NDArray[np.bool_] | bool
    ) -> None:
        """Records that ``lanes`` of a warp read the granules. ``fresh``: mask of the granules whose
        earlier readers need not be kept.
        """
        self.warp[where] = warp
        kept: NDArray[np.uint32] | int = 0
        if fresh is not True:
            kept = np.where(fresh, 0, self.readers[where])
        if isinstance(lanes, int):
            self.readers[where] = kept | _BITS[lanes]
            return
        bits = self._rows(_BITS[lanes], where)
        first = self._first(where)
        if len(set(first)) == len(first):
            self.readers[where] = kept | bits
        else:  # some lanes read the same granules
            self.readers[where] = kept
            np.bitwise_or.at(self.readers, cast("NDArray[np.int64]", where), bits)

    def _first(self, where: Granules) -> list[int]:
        """The first granule of each row, by number."""
        if isinstance(where, tuple):
            words, bytes_ = where
            assert not isinstance(words, slice) and not isinstance(bytes_, slice)
            where = 4 * words + bytes_
        assert not isinstance(where, slice)
        return (where if where.ndim == 1 else where[:, 0]).tolist()

    def _rows(self, values: NDArray[Lane], where: Granules) -> NDArray[Lane]:
        """One value for each row of granules."""
        if isinstance(where, tuple):
            return values[:, None]
        assert not isinstance(where, slice)
        return values.reshape(-1, *(1,) * (where.ndim + self.writer.ndim - 2))

    def other_writers(
        self, where: Granules, chosen: NDArray[np.bool_] | None, mine: LaneNumbers
    ) -> int:
        """Mask of the lanes, other than the given ones, that wrote the chosen granules (None: all
        granules).
        """
        found = self.writer[where]
        own = mine if isinstance(mine, int) else self._rows(mine, where)
        others = (found != own) | (found == TOGETHER)
        if chosen is not None:
            others &= chosen
        return sum(1 << lane for lane in set(found[others].tolist())) if others.any() else 0

    def read_by_another(self, where: Granules, chosen: NDArray[np.bool_] | None, warp: int) -> bool:
        """Whether a warp other than `warp` was the last to read any of the chosen granules (None:
        all granules).
        """
        found = self.warp[where] != warp
        return bool((found if chosen is None else found & chosen).any())

    def other_readers(
        self, where: Granules, chosen: NDArray[np.bool_] | None, mine: LaneNumbers
    ) -> int:
        """Mask of the lanes, other than the given ones, that read the chosen granules (None: all
        granules).
        """
        found = self.readers[where]
        own = _BITS[mine] if isinstance(mine, int) else self._rows(_BITS[mine], where)
        others = found & ~own
        if chosen is not None:
            others = others[chosen]
        return int(np.bitwise_or.reduce(others.ravel(), initial=0)) if others.any() else 0


_BITS = np.array([1 << lane if lane < TOGETHER else 0 for lane in range(EACH + 1)], np.uint32)
