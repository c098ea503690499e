"""Lane masks: 32-bit integers in which bit n stands for lane n of the warp."""

from __future__ import annotations

import numpy as np

FULL = 0xFFFFFFFF

_CACHED = 1 << 16


class _Masks(dict[int, np.ndarray]):
    """Lane masks as arrays, made on demand; emptied when it has grown large."""

    def __init__(self, indices: bool) -> None:
        self.indices = indices

    def __missing__(self, mask: int) -> np.ndarray:
        if len(self) > _CACHED:
            self.clear()
        lanes = np.array([bool(mask >> n & 1) for n in range(32)])
        self[mask] = value = np.flatnonzero(lanes) if self.indices else lanes
        return value


#: bool[32] of a mask.
LANE_MASK = _Masks(False)
#: The numbers of a mask's lanes, in ascending order.
LANE_INDICES = _Masks(True)


def bits(lanes: np.ndarray) -> int:
    """Converts bool[32] to a mask."""
    return int.from_bytes(np.packbits(lanes, bitorder="little").tobytes(), "little")
