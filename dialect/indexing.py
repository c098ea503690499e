"""How ops on tensors that compute sums of products declare the loops and operand indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tcir._mlir import ir

Index: TypeAlias = tuple[int, int]
"""(loop, divisor): ``loop floordiv divisor``, the index of a dimension."""
Dims: TypeAlias = tuple[Index | None, ...]
"""The index of each dimension; None for an index that is not one loop."""
BATCH, M, N, K = range(4)
"""The loops of a matrix product."""


@dataclass(frozen=True)
class IndexedOperand:
    """A factor of an op, and the index of each of its dimensions.

    scales_of: for block scales in the tensor core's 128x4 layout: their row-major shape, to which
               the indices refer; None: they refer to the operand itself
    batch:     number of batch dimensions of such scales
    """

    value: ir.Value
    dims: Dims
    scales_of: tuple[int, ...] | None = None
    batch: int = 0


@dataclass(frozen=True)
class Indexing:
    """The factors of a sum of products, and the loops of its result.

    windows: whether the op is a convolution, with ``strides``, ``dilations`` and ``pads`` as in
             ``tc.conv2d``
    """

    factors: tuple[IndexedOperand, ...]
    parallel: frozenset[int]
    windows: bool = False
