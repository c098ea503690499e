"""Saves the contents of buffers before a launch, in case the launch must run again from the
beginning.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PART = 1 << 20
"""Bytes of a part, which is saved as one word if it repeats that word."""


class Saved:
    """Saved bytes of a buffer. For an output that is filled with one value, only that value is
    saved.
    """

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._parts = [_saved(data[at : at + PART]) for at in range(0, data.size, PART)]

    def restore(self, data: NDArray[np.uint8]) -> None:
        """Restores the buffer's bytes."""
        for n, part in enumerate(self._parts):
            own = data[n * PART : (n + 1) * PART]
            own.view(part.dtype)[...] = part


def _saved(part: NDArray[np.uint8]) -> NDArray[np.uint8] | NDArray[np.uint64]:
    if part.size % 8 == 0:
        words = part.view(np.uint64)
        if (words[:8] == words[0]).all() and (words == words[0]).all():
            return words[:1].copy()
    return part.copy()
