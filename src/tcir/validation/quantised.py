"""Errors of block-quantised results whose inputs have errors.

A scale grows with the largest magnitude of its block. The magnitude of an element grows with that
of its number, and shrinks as the scale grows. So all scales and elements lie between their values
for the ends of the numbers' intervals.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from tcir.interp.types import Array, dtype_of

if TYPE_CHECKING:
    from tcir._mlir import ir


def hull(op: ir.OpView, values: Array, error: Array) -> list[Array]:
    """Largest errors of the elements and scales of ``tc.quantise_blocks``.

    values, error: the input of the op times the norm constant, and the error of this product
    """
    from tcir.formats import to_blocked
    from tcir.interp.tensor.quantise import elements_of, scales_of

    form, kinds = op.format, (dtype_of(op.codes.type), dtype_of(op.scales.type))

    def blocks(array: Array) -> Array:
        return np.asarray(array).reshape(*values.shape[:-1], -1, form.block)

    size, off = blocks(np.abs(values)), blocks(np.broadcast_to(error, values.shape))
    sign = np.where(np.signbit(blocks(values)), np.float32(-1), np.float32(1))
    with np.errstate(all="ignore"):
        ends = [np.maximum(size - off, 0), size, size + off]
        amax = [each.max(axis=-1).astype(np.float32) for each in ends]
        scales = [scales_of(each, form, kinds[1]) for each in amax]
        codes = [
            elements_of((sign * end).astype(np.float32), scale, form, kinds[0])
            for end, scale in product(ends, scales)
        ]
    at = len(codes) // 2  # the numbers as they are
    elements = np.stack([np.asarray(each, np.float64) for each in codes])
    # A number whose sign is open may be anything up to its own size on the other side.
    open_ = (blocks(np.abs(values)) < off)[None]
    widest = np.where(open_, 2 * np.abs(elements), np.abs(elements - elements[at])).max(axis=0)
    if not op.row_major:
        scales = [to_blocked(each.view(np.uint8)).view(kinds[1]) for each in scales]
    factors = [np.asarray(each, np.float64) for each in scales]
    with np.errstate(all="ignore"):
        most = np.maximum(np.abs(factors[2] - factors[1]), np.abs(factors[1] - factors[0]))
    shape = tuple(op.scales.type.shape)
    return [
        np.where(np.isfinite(widest), widest, 0).reshape(values.shape),
        np.where(np.isfinite(most), most, 0).reshape(shape),
    ]


def rows_of(op: ir.OpView, rows: Array) -> list[Array]:
    """Masks of the elements and scales of ``tc.quantise_blocks`` that belong to the given rows."""
    from tcir.formats import to_blocked

    width = op.codes.type.shape[-1]
    elements = np.broadcast_to(rows[..., None], (*rows.shape, width))
    scales = elements[..., :: op.format.block]
    if not op.row_major:
        scales = to_blocked(np.ascontiguousarray(scales).view(np.uint8)).astype(bool)
    return [elements, scales.reshape(tuple(op.scales.type.shape))]
