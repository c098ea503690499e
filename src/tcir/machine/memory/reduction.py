"""Reductions of bytes in memory: red.async and cp.reduce.async.bulk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray


@dataclass(frozen=True)
class Reduction:
    """A reduction of bytes in memory: ``combine(old, new)`` computes the result for elements of
    `dtype`.
    """

    combine: Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
    dtype: DTypeLike

    def __call__(self, old: NDArray[np.uint8], new: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Returns the bytes that replace the old ones."""
        elements = np.ascontiguousarray(new).view(self.dtype)
        result = self.combine(old.copy().view(self.dtype), elements)
        return np.ascontiguousarray(result, self.dtype).view(np.uint8)
