"""Recognition of block scales in the tensor core's 128x4 layout, by the offsets of their map.

The layout can be indexed in many ways, ``(m mod 128) floordiv 32`` or ``(m floordiv 32) mod 4``,
over tensors of three to five dimensions after the batch. So the code computes the offset that a map
gives for every row and every k, and compares it with the offset in the layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from tcir._mlir import ir
from tcir.dialect.ops.block_scaled import BLOCK_BYTES, BLOCK_ROWS, BLOCK_SCALES

CONSTANT = -1
Parts: TypeAlias = dict[int, "np.ndarray[Any, Any]"]
"""A constant plus a sum of functions of one loop each, tabulated for all values of the loop."""


def offsets(
    affine_map: ir.AffineMap, shape: Sequence[int], sizes: Mapping[int, int]
) -> Parts | None:
    """The row-major element numbers that a map gives in a tensor of `shape`.

    None if the number is not a sum of functions of one loop each, or if an index is outside the
    tensor.
    """
    total: Parts = {CONSTANT: np.zeros(1, np.int64)}
    for n, (expression, extent) in enumerate(zip(affine_map.results, shape, strict=True)):
        parts = _parts(expression, sizes)
        if parts is None:
            return None
        low, high = (sum(int(pick(a)) for a in parts.values()) for pick in (np.min, np.max))
        if low < 0 or high >= extent:
            return None
        total = _sum(total, {loop: prod(shape[n + 1 :]) * a for loop, a in parts.items()})
    return total


def _parts(expression: ir.AffineExpr, sizes: Mapping[int, int]) -> Parts | None:
    if isinstance(expression, ir.AffineDimExpr):
        loop = expression.position
        return {loop: np.arange(sizes[loop])} if loop in sizes else None
    if isinstance(expression, ir.AffineConstantExpr):
        return {CONSTANT: np.array([expression.value])}
    if not isinstance(expression, ir.AffineBinaryExpr):
        return None
    left, right = _parts(expression.lhs, sizes), _parts(expression.rhs, sizes)
    if left is None or right is None:
        return None
    if isinstance(expression, ir.AffineAddExpr):
        return _sum(left, right)
    if isinstance(expression, ir.AffineMulExpr) and set(left) == {CONSTANT}:
        left, right = right, left
    if set(right) != {CONSTANT}:
        return None
    by = right[CONSTANT]
    if isinstance(expression, ir.AffineMulExpr):
        return {loop: array * by for loop, array in left.items()}
    loops = [loop for loop in left if loop != CONSTANT]
    if len(loops) > 1 or by[0] <= 0:
        return None
    whole: np.ndarray[Any, Any] = sum(left.values(), np.zeros(1, np.int64))
    if isinstance(expression, ir.AffineModExpr):
        divided = whole % by
    else:
        divided = whole // by if isinstance(expression, ir.AffineFloorDivExpr) else -(-whole // by)
    return {(loops or [CONSTANT])[0]: divided}


def _sum(a: Parts, b: Parts) -> Parts:
    zero = np.zeros(1, np.int64)
    return {loop: a.get(loop, zero) + b.get(loop, zero) for loop in {*a, *b}}


def is_layout(
    found: Parts, batch: Mapping[int, int], row: Mapping[int, int], k: Mapping[int, int], step: int
) -> bool:
    """Whether the offsets are those of the 128x4 layout. Loops are given by their sizes; `step`
    values of k share a scale.

    `batch` and `row` have at most one loop, `k` has exactly one.
    """
    ((_, length),) = k.items()
    rows = next(iter(row.values()), 1)
    across = -(-length // step // BLOCK_SCALES) if length % step == 0 else 0
    line = across * BLOCK_BYTES
    want: Parts = {}
    for loop, size in batch.items():
        want[loop] = np.arange(size) * (-(-rows // BLOCK_ROWS) * line)
    for loop, size in row.items():
        r = np.arange(size)
        want[loop] = r // BLOCK_ROWS * line + r % 32 * 16 + r % BLOCK_ROWS // 32 * BLOCK_SCALES
    for loop, size in k.items():
        s = np.arange(size) // step
        want[loop] = s // BLOCK_SCALES * BLOCK_BYTES + s % BLOCK_SCALES
    zero = np.zeros(1, np.int64)
    return across > 0 and all(
        bool((found.get(loop, zero) == want.get(loop, zero)).all()) for loop in {*found, *want}
    )


def groups(shape: Sequence[int], wanted: Sequence[int]) -> list[list[int]] | None:
    """Groups of neighbouring dimensions of `shape`, one for each dimension of `wanted`, whose sizes
    multiply to it; None if there are no such groups."""
    found: list[list[int]] = []
    rest = list(range(len(shape)))
    for n, extent in enumerate(wanted):
        group = [rest.pop(0)] if rest else []
        last = n == len(wanted) - 1
        while rest and (last or prod(shape[d] for d in group) < extent):
            group.append(rest.pop(0))
        if not group or prod(shape[d] for d in group) != extent:
            return None
        found.append(group)
    return found
