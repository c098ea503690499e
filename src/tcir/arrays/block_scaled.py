"""`compile_block_scaled_matmul`: a kernel that multiplies block-scaled matrices, given their codes
and scales."""

from __future__ import annotations

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import DTypeLike

from tcir import formats
from tcir.arrays.epilogue import RESULTS, finish
from tcir.arrays.kernel import ArrayKernel, build
from tcir.arrays.text import FunctionBuilder, TensorValue, element_of
from tcir.errors import InputError
from tcir.interp.types import Array
from tcir.target import DEFAULT_TARGET

Scaled: TypeAlias = "formats.BlockScaled | tuple[Array, Array]"
"""A result of `tcir.formats.quantise`, or a pair of ml_dtypes arrays: elements and scales."""
CODES = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "ue4m3": ml_dtypes.float8_e4m3fn,
    "ue8m0": ml_dtypes.float8_e8m0fnu,
}
"""Maps the element names of `tcir.formats` to types of ml_dtypes."""


def compile_block_scaled_matmul(
    a: Scaled,
    b: Scaled,
    *,
    global_scales: tuple[float, float] | None = None,
    bias: Array | None = None,
    residual: Array | None = None,
    activation: str | None = None,
    out: DTypeLike | str | None = None,
    pipeline: str | None = None,
    target: str = DEFAULT_TARGET.name,
    **options: Any,
) -> ArrayKernel:
    """Compiles act(dequantise(a) @ dequantise(b).T + bias + residual) to one kernel.

    a:    [M, K] or [L, M, K]
    b:    [N, K] or [L, N, K]; or a vector, [K] or [L, K]

    Each of a and b is a result of `tcir.formats.quantise`, or a pair of row-major arrays, elements
    (float4_e2m1fn, float6, float8) and scales. There is one scale per 16 elements of a row
    (float8_e4m3fn: NVFP4) or per 32 elements (float8_e8m0fnu: MX).

    global_scales: the global scales of a and b; by default those that `quantise` computed
    bias, residual, activation, out: as in `tcir.compile_matmul`
    pipeline: ``gemm`` by default for matrices, ``gemv-padded-n`` for a vector

    Raises InputError for other shapes, types or names.
    """
    function = FunctionBuilder("block_scaled_matmul")
    left, left_scales = scaled_operand(function, "a", a)
    right, right_scales = scaled_operand(function, "b", b)
    vector = len(right.shape) < len(left.shape)
    operands = [left, left_scales, right, right_scales]
    factors = _global_scales(a, b) if global_scales is None else _two(global_scales)
    if factors is not None:
        for name, factor in zip("ab", factors, strict=True):
            operands.append(function.argument(f"{name}_global", np.float32(factor)))
    some = int(factors is not None)
    element = element_of("block_scaled_matmul", "f32" if out is None else out, RESULTS)
    follows = bias is not None or residual is not None or activation is not None
    rows = left.shape[:-1] if vector else (*left.shape[:-1], *right.shape[-2:-1])
    sums = function.op(
        f'"tc.block_scaled_matmul"({", ".join(map(str, operands))})\n'
        f"      {{block = {left.shape[-1] // left_scales.shape[-1]} : i64,\n"
        '      a_scale_layout = "row_major", b_scale_layout = "row_major",\n'
        f"      operandSegmentSizes = array<i32: 1, 1, 1, 1, {some}, {some}>}}\n"
        f"      : ({', '.join(each.type for each in operands)}) -> {{type}}",
        rows,
        "f32" if follows else element,
    )
    result = finish(function, sums, element, bias, residual, activation) if follows else sums
    usual = "gemv-padded-n" if vector else "gemm"
    chosen = usual if pipeline is None else pipeline
    return build(function, (result,), chosen, target, options)


def scaled_operand(
    function: FunctionBuilder, name: str, given: Array | Scaled
) -> tuple[TensorValue, TensorValue]:
    """Adds to the function an argument for the elements and one for their scales, both row by
    row.
    """
    if isinstance(given, formats.BlockScaled):
        codes = given.codes.view(CODES[given.format.element])
        scales = given.scales.view(CODES[given.format.scale])
    elif isinstance(given, tuple | list) and len(given) == 2:
        codes, scales = given
    else:
        raise InputError(
            f"{function.name}: {name}: expected a result of tcir.formats.quantise, or a pair "
            f"of arrays (elements, scales), got {type(given).__name__}"
        )
    values = function.argument(name, codes), function.argument(f"{name}_scales", scales)
    if not all(value.shape and value.shape[-1] for value in values):
        raise InputError(
            f"{function.name}: {name}: expected elements of [..., K] and scales of "
            f"[..., K / block], got {list(values[0].shape)} and {list(values[1].shape)}"
        )
    return values


def _two(given: object) -> tuple[float, float]:
    """Checks and returns the caller's pair of global scales."""
    try:
        left, right = (float(each) for each in given)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise InputError(
            "block_scaled_matmul: global_scales: expected two numbers, the scales of a and b, "
            f"got {given!r}"
        ) from None
    return left, right


def _global_scales(a: Scaled, b: Scaled) -> tuple[float, float] | None:
    """Global scales of the operands whose format has one; None if neither has."""
    both = [x for x in (a, b) if isinstance(x, formats.BlockScaled) and x.format.has_global_scale]
    return (global_scale(a), global_scale(b)) if both else None


def global_scale(operand: Array | Scaled) -> float:
    """Global scale of an operand; 1 if it has none."""
    return float(operand.global_scale) if isinstance(operand, formats.BlockScaled) else 1.0
