"""Finds the array of which a numpy array is a view."""

from __future__ import annotations

import numpy as np


def outermost(array: np.ndarray, *, contiguous: bool = False) -> np.ndarray:
    """The array of which `array` is a view, directly or indirectly; `array` itself if it is not a
    view.

    contiguous: stops before the first array that is not C-contiguous
    """
    while isinstance(array.base, np.ndarray):
        if contiguous and not array.base.flags.c_contiguous:
            break
        array = array.base
    return array
