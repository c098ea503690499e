"""Distinct numbers of an array; numpy.unique does the same, but would first import numpy.ma, which
takes 25 ms.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Integer = TypeVar("_Integer", bound=np.generic)


def distinct(values: NDArray[_Integer]) -> NDArray[_Integer]:
    """Distinct integers of an array, in ascending order."""
    ordered = np.sort(values, axis=None)
    first = np.ones(ordered.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
