"""Contents of a collector buffer of the tensor core."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tcir.machine.order.clocks import Access


@dataclass(frozen=True)
class Collected:
    """State of a collector buffer after `mma` filled it or, if matrix is None, discarded it.
    matrix: the buffered matrix. versions: the last writes of the matrix's bytes when the buffer was
    filled.
    """

    mma: Access
    matrix: Hashable = None
    versions: frozenset[tuple[Hashable, ...]] = frozenset()
