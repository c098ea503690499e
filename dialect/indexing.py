"""How ops on tensors that compute sums of products declare their loops, and the loops that index
their operands."""

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
    """A factor of an op's products, and for each dimension of the factor the loop that indexes it.

    scales_of: set only for block scales stored in the tensor core's 128x4 layout. The indices then
        refer to this shape, which the scales would have if row-major; None: they refer to the
        operand itself
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
