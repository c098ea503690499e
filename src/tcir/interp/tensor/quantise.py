"""Block quantisation, computed in f32 step by step, with the conversions of ml_dtypes."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from tcir.dialect import tc
from tcir.dialect.ops.quantise import LARGEST_SCALE, SMALLEST_SCALE, QuantisedFormat
from tcir.formats import to_blocked
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, DType, dtype_of, shape_of


def quantised(
    values: Array, form: QuantisedFormat, codes: DType, scales: DType
) -> tuple[Array, Array]:
    """Quantises f32 values to elements ``[..., K]`` and scales ``[..., K / block]`` of the given
    types.
    """
    blocks = values.reshape(*values.shape[:-1], -1, form.block)
    with np.errstate(all="ignore"):
        factors = scales_of(np.abs(blocks).max(axis=-1), form, scales)  # NaN if there is one
        elements = elements_of(blocks, factors, form, codes)
    return elements.reshape(values.shape), factors


def elements_of(blocks: Array, scales: Array, form: QuantisedFormat, kind: DType) -> Array:
    """Quantises blocks ``[..., block]`` with these scales; elements are 0 where the scale is
    NaN."""
    step = scales.astype(np.float32)[..., None]
    known = np.where(np.isnan(step), np.float32(0), blocks)
    quotients = known / np.where(step > 0, step, np.float32(1))
    return np.clip(quotients, -form.largest, form.largest).astype(kind)


def scales_of(amax: Array, form: QuantisedFormat, kind: DType) -> Array:
    """Returns the scales of blocks whose largest magnitudes are given; the scale is NaN if the
    magnitude is infinity or NaN.
    """
    finite = np.isfinite(amax)
    found = _scales(np.where(finite, amax, np.float32(0)), form, kind)
    return np.where(finite, found, np.array(np.nan).astype(kind))


def _scales(amax: Array, form: QuantisedFormat, kind: DType) -> Array:
    if kind == ml_dtypes.float8_e4m3fn:
        nearest = np.minimum(amax / np.float32(form.largest), np.float32(LARGEST_SCALE))
        codes = nearest.astype(kind)
        least = np.float32(SMALLEST_SCALE).astype(kind)
        return np.where((amax > 0) & (codes.view(np.uint8) == 0), least, codes)
    mantissas, exponents = np.frexp(amax)  # mantissas in [0.5, 1)
    exponents = exponents - 1 - form.exponent + 127
    if form.rounding == "rceil":
        exponents += mantissas > form.largest / 2.0 ** (form.exponent + 1)
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
    if op.row_major:
        return [elements, scales]
    blocks = to_blocked(scales.view(np.uint8)).view(kinds[1])
    return [elements, blocks.reshape(shape_of(op.scales.type))]
