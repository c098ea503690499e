"""Contents of a collector buffer of the tensor core."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tcir.machine.order.clocks import Access


@dataclass(frozen=True)
class Collected:
    """`mma` filled the buffer, or gave it up (matrix None).

    matrix: the matrix that it holds. versions: the last writes of its bytes at the fill.
    """

    mma: Access
    matrix: Hashable = None
    versions: frozenset[tuple[Hashable, ...]] = frozenset()
