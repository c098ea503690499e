"""Block quantisation, in f32 step by step, with the conversions of ml_dtypes."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from tcir.dialect import tc
from tcir.dialect.ops.quantise import LARGEST_SCALE, SMALLEST_SCALE, BlockFormat
from tcir.formats import to_blocked
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, DType, dtype_of, shape_of


def quantised(values: Array, form: BlockFormat, codes: DType, scales: DType) -> tuple[Array, Array]:
    """Elements ``[..., K]`` and scales ``[..., K / block]`` of f32 values, in these types."""
    blocks = values.reshape(*values.shape[:-1], -1, form.block)
    with np.errstate(all="ignore"):
        amax = np.abs(blocks).max(axis=-1)  # NaN if there is one
        finite = np.isfinite(amax)
        factors = _scales(np.where(finite, amax, 0), form, scales)
        step = factors.astype(np.float32)
        step = np.where(step > 0, step, np.float32(1))[..., None]
        quotients = np.where(finite[..., None], blocks, np.float32(0)) / step
        elements = np.clip(quotients, -form.largest, form.largest).astype(codes)
    factors = np.where(finite, factors, np.array(np.nan).astype(scales))
    return elements.reshape(values.shape), factors


def _scales(amax: Array, form: BlockFormat, kind: DType) -> Array:
    """Of blocks with these largest magnitudes, which are finite."""
    if kind == ml_dtypes.float8_e4m3fn:
        nearest = np.minimum(amax / np.float32(form.largest), np.float32(LARGEST_SCALE))
        codes = nearest.astype(kind)
        least = np.float32(SMALLEST_SCALE).astype(kind)
        return np.where((amax > 0) & (codes.view(np.uint8) == 0), least, codes)
    exponents = np.frexp(amax)[1] - 1 - form.exponent + 127
    return np.where(amax > 0, np.maximum(exponents, 0), 0).astype(np.uint8).view(kind)


@evaluate(tc.QuantiseBlocksOp)
def tc_quantise_blocks(
    _: Interpreter, op: tc.QuantiseBlocksOp, values: Array, *norm: Array
) -> Sequence[Array]:
    if norm:
        with np.errstate(all="ignore"):
            values = values * norm[0]
    kinds = dtype_of(op.codes.type), dtype_of(op.scales.type)
    elements, scales = quantised(values, op.format, *kinds)
    blocks = to_blocked(scales.view(np.uint8)).view(kinds[1])
    return [elements, blocks.reshape(shape_of(op.scales.type))]
