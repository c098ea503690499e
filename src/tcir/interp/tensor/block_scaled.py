"""Rules of ``tc.block_scaled_matmul`` and ``tc.scales_to_blocked``, written from the definitions of
these ops.

Elements and scales are decoded by ml_dtypes. Products and sums are computed in float64, where every
product is exact, and rounded once to f32.
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.ops.highlevel import k_part, out_layout
from tcir.formats import blocked_offset, to_blocked
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, dtype_of, shape_of

ROWS_AT_ONCE = 256
"""Rows of A widened to float64 at a time."""


def scale_values(scales: Array) -> Array:
    """Converts scales to float64; f8E4M3FN is read as ue4m3, whose bit 7 is ignored."""
    if scales.dtype == ml_dtypes.float8_e4m3fn:
        scales = (scales.view(np.uint8) & 0x7F).view(scales.dtype)
    return scales.astype(np.float64)


def row_major(scales: Array, shape: Sequence[int], vector: bool, block: int) -> Array:
    """Extracts the row-major scales of an operand of this shape from blocks of 128 x 4; the array
    may also contain other numbers in this layout.
    """
    *outer, k = shape
    rows, each = np.arange(1 if vector else outer[-1]), np.arange(k // block)
    places = blocked_offset(rows[:, None], each, len(each))
    flat = scales.reshape(*scales.shape[:-3], -1)
    return flat[..., places].reshape(*outer, len(each))


def widened(elements: Array, scales: Array, block: int) -> Array:
    """Multiplies elements by their row-major scales in float64, where every product is exact."""
    values: Array = elements.astype(np.float64)
    values *= np.repeat(scale_values(scales), block, axis=-1)
    return values


@evaluate(tc.BlockScaledMatmulOp)
def tc_block_scaled_matmul(
    _: Interpreter,
    op: tc.BlockScaledMatmulOp,
    a: Array,
    a_scales: Array,
    b: Array,
    b_scales: Array,
    *factors: Array,
) -> Sequence[Array]:
    attributes, type_ = op.operation.attributes, op.operation.results[0].type
    block = ir.IntegerAttr(attributes["block"]).value
    if ir.StringAttr(attributes["a_scale_layout"]).value == "blocked_128x4":
        a_scales = row_major(a_scales, a.shape, False, block)
    if ir.StringAttr(attributes["b_scale_layout"]).value == "blocked_128x4":
        b_scales = row_major(b_scales, b.shape, b.ndim < a.ndim, block)
    right = widened(b, b_scales, block)
    right = right[..., None] if b.ndim < a.ndim else right.swapaxes(-1, -2)
    part = k_part(op) or a.shape[-1]
    spans = [slice(k, k + part) for k in range(0, a.shape[-1], part)]
    total = np.empty((len(spans), *a.shape[:-1], right.shape[-1]), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, a.shape[-2], ROWS_AT_ONCE):
            rows = (..., slice(first, first + ROWS_AT_ONCE), slice(None))
            left = widened(a[rows], a_scales[rows], block)
            for sums, span in zip(total, spans, strict=True):
                sums[rows] = left[..., span] @ right[..., span, :]
        if out_layout(op) == "nm":
            total = np.ascontiguousarray(total.swapaxes(-1, -2))
        total = total.reshape(shape_of(type_))
        if factors:
            total = total * np.prod(np.stack(factors), dtype=np.float32)
    return [convert(total, dtype_of(type_))]


@evaluate(tc.ScalesToBlockedOp)
def tc_scales_to_blocked(
    _: Interpreter, op: tc.ScalesToBlockedOp, scales: Array
) -> Sequence[Array]:
    shape = shape_of(op.operation.results[0].type)
    if len(shape) == scales.ndim + 2:
        scales = scales[..., None, :]
    return [to_blocked(scales.view(np.uint8)).view(scales.dtype).reshape(shape)]
