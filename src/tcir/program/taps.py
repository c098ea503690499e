"""Finds the taps of windows that never read padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcir._mlir import ir

Taps = dict[int, range]
"""Loop over taps -> the taps at which no product has an element of padding; empty if none."""


def clear_taps(
    taps: int, step: int, windows: int, stride: int, size: int, pads: tuple[int, int]
) -> range:
    """Returns the taps r with ``0 <= p * stride + r * step - pads[0] < size`` for all windows p:
    those that never read padding.

    size: extent of the dimension without padding
    """
    first = -(-pads[0] // step)
    end = (size - 1 + pads[0] - (windows - 1) * stride) // step + 1
    return range(first, max(first, min(taps, end)))


def taps_of_convolution(op: ir.Operation) -> Taps:
    """Returns the taps of a tc.conv2d that never read padding."""
    (x, w), out = (value.type.shape for value in op.operands), op.results[0].type.shape
    filters = w[1:3] if str(op.attributes["filter"]) == '"fhwc"' else w[:2]
    pads, strides, dilations = (
        list(op.attributes[name]) for name in ("pads", "strides", "dilations")
    )
    return {
        4 + n: clear_taps(
            filters[n],
            dilations[n],
            out[1 + n],
            strides[n],
            x[1 + n],
            (pads[2 * n], pads[2 * n + 1]),
        )
        for n in range(2)
    }


def taps_of_maps(
    op: ir.Operation,
    maps: Sequence[ir.AffineMap],
    sizes: Mapping[int, int],
    parallel: frozenset[int],
) -> Taps:
    """Returns the taps that never read padding, for a structured op with padded operands.

    sizes: trip counts of the op's loops
    """
    found: Taps = {}
    for value, index_map in zip(op.operands, maps[:-1]):
        dimensions = zip(value.type.shape, _padding(value), index_map.results, strict=True)
        for size, pads, expression in dimensions:
            steps = _steps(expression)
            if any(pads) and len(steps) == 2 and len(steps.keys() & parallel) == 1:
                (window,), (tap,) = steps.keys() & parallel, steps.keys() - parallel
                found[tap] = clear_taps(
                    sizes[tap], steps[tap], sizes[window], steps[window], size - sum(pads), pads
                )
    return found


def _steps(expression: ir.AffineExpr) -> dict[int, int]:
    """Returns the step per loop of an expression such as ``d0 * 2 + d3``; empty for other forms."""
    from tcir._mlir import ir

    if isinstance(expression, ir.AffineDimExpr):
        return {expression.position: 1}
    if isinstance(expression, ir.AffineAddExpr):
        return _steps(expression.lhs) | _steps(expression.rhs)
    if isinstance(expression, ir.AffineMulExpr) and isinstance(
        expression.rhs, ir.AffineConstantExpr
    ):
        return dict.fromkeys(_steps(expression.lhs), expression.rhs.value)
    return {}


def _padding(value: ir.Value) -> list[tuple[int, int]]:
    """Returns the elements that `tensor.pad` adds before and after each dimension of `value`."""
    from tcir._mlir import ir

    owner = value.owner
    while not isinstance(owner, ir.Block) and owner.operation.name in ("arith.extf", "tensor.pad"):
        op = owner.operation
        if op.name == "tensor.pad":
            low, high = (op.attributes[f"static_{end}"] for end in ("low", "high"))
            return list(zip(low, high, strict=True))
        owner = op.operands[0].owner
    return [(0, 0)] * len(value.type.shape)
