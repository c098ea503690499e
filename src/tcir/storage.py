"""Memory of which numpy arrays are views."""

from __future__ import annotations

import numpy as np


def outermost(array: np.ndarray, *, contiguous: bool = False) -> np.ndarray:
    """The array that this one is a view of, or itself; contiguous: of those on the way, the last
    one up to which all are C-contiguous."""
    while isinstance(array.base, np.ndarray):
        if contiguous and not array.base.flags.c_contiguous:
            break
        array = array.base
    return array
