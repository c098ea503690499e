"""Different numbers of an array, as numpy.unique, which would import numpy.ma (25 ms) first."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Integer = TypeVar("_Integer", bound=np.generic)


def distinct(values: NDArray[_Integer]) -> NDArray[_Integer]:
    """The different integers of it, ascending."""
    ordered = np.sort(values, axis=None)
    first = np.ones(ordered.size, bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
