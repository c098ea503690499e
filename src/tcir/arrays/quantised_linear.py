"""`quantised_linear`: a linear layer with block-scaled weights, whose program quantises its
input.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from tcir import formats
from tcir.arrays.block_scaled import CODES
from tcir.arrays.epilogue import finish
from tcir.arrays.kernel import ArrayKernel, build
from tcir.arrays.text import NAMES, FunctionBuilder, TensorValue
from tcir.errors import InputError
from tcir.interp.types import Array
from tcir.target import DEFAULT_TARGET

FORMATS = ("nvfp4", "mxfp4", "mxfp8_e4m3", "mxfp8_e5m2")
"""Formats that ``tc.quantise_blocks`` produces."""
BLOCKED, ROWS = "blocked_128x4", "row_major"


def layer_format(name: str) -> formats.BlockFormat:
    """The format called `name`. Raises InputError if inputs cannot be quantised to it."""
    if not isinstance(name, str) or name not in FORMATS:
        raise InputError(
            f"quantised linear: format: expected {', '.join(FORMATS)}, got {name!r}: a kernel "
            "quantises the input, and PTX's cvt converts to these only; "
            "tcir.compile_block_scaled_matmul multiplies arrays of other formats"
        )
    return formats.block_format(name)


def scale_layout(k: int) -> str:
    """Layout of the weight's scales: the tensor core's layout if K is a multiple of 128, so that
    the mma has only whole steps; otherwise row-major.
    """
    return ROWS if k % 128 else BLOCKED


def scales_shape(rows: int, k: int, block: int, layout: str) -> tuple[int, ...]:
    """Shape of the scales of a matrix of `rows` rows in a layout."""
    across = k // block
    return (rows, across) if layout == ROWS else (-(-rows // 128), -(-across // 4), 512)


def quantised_linear(
    m: int,
    n: int,
    k: int,
    format: str,
    *,
    out: str = "f16",
    bias: str | None = None,
    activation: str | None = None,
    target: str = DEFAULT_TARGET.name,
) -> ArrayKernel:
    """Compiles act(dequantise(quantise(x)) @ dequantise(w).T + bias) for x of [m, k] in f32 and w
    of [n, k].

    The kernel's inputs are, in order: x; for NVFP4, norm (1 over the global scale of x); the
    weight's elements; its scales in `scale_layout`; for NVFP4, alpha (the product of the global
    scales of x and w); the bias, of MLIR type `bias`. The kernel has two launches or more:
    ``tc.quantise_blocks`` of x, and the product by `gemm`, or by `gemv-padded-n` for a single row.

    Raises InputError for sizes and formats that are not supported.
    """
    form = layer_format(format)
    if min(m, n, k) < 1 or k % form.block:
        raise InputError(
            f"quantised linear: expected [m, k] by [n, k], k a multiple of {form.block} (the "
            f"{format} block, whose elements share a scale), got {[m, k]} by {[n, k]}; pad k with "
            "zeros"
        )
    function, row = FunctionBuilder("quantised_linear"), m == 1
    x = function.argument("x", _shaped(np.float32, m, k))
    norms = [_number(function, "norm")] if form.has_global_scale else []
    layout = scale_layout(k)
    left_layout = ROWS if row else layout
    codes, scales = _quantised(function, x, norms, form, left_layout)
    if row:
        codes, scales = _vector(function, codes), _vector(function, scales)
    element, scale = CODES[form.element], CODES[form.scale]
    weight = function.argument("weight", _shaped(element, n, k))
    shape = scales_shape(n, k, form.block, layout)
    weights = weight, function.argument("weight_scale", _shaped(scale, *shape))
    alphas = [_number(function, "alpha")] if form.has_global_scale else []
    operands = [*weights, codes, scales] if row else [codes, scales, *weights]
    layouts = (layout, left_layout) if row else (left_layout, layout)
    operands += alphas
    sums = function.op(
        f'"tc.block_scaled_matmul"({", ".join(map(str, operands))})\n'
        f'      {{block = {form.block} : i64, a_scale_layout = "{layouts[0]}", '
        f'b_scale_layout = "{layouts[1]}",\n'
        f"      operandSegmentSizes = array<i32: 1, 1, 1, 1, {len(alphas)}, 0>}}\n"
        f"      : ({', '.join(each.type for each in operands)}) -> {{type}}",
        (n,) if row else (m, n),
        "f32",
    )
    vector = None if bias is None else _shaped(DTYPES[bias], n)
    result = finish(function, sums, out, vector, None, activation)
    if row:
        text = f"tensor.expand_shape {result} [[0, 1]] output_shape [1, {n}] : {result.type}"
        result = function.op(f"{text} into {{type}}", (1, n), out)
        return build(function, (result,), "gemv-padded-n", target, {})
    return build(function, (result,), "gemm", target, {"quantise_apart": True})


DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


def _shaped(dtype: type, *shape: int) -> Array:
    """An array of a shape that takes no memory for its elements."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def _number(function: FunctionBuilder, name: str) -> TensorValue:
    return function.argument(name, _shaped(np.float32))


def _quantised(
    function: FunctionBuilder,
    x: TensorValue,
    norms: list[TensorValue],
    form: formats.BlockFormat,
    layout: str,
) -> tuple[TensorValue, TensorValue]:
    """Adds the op that quantises a matrix; returns its codes and scales."""
    codes = TensorValue("%q#0", x.shape, _name(form.element))
    rows, k = x.shape
    shape = scales_shape(rows, k, form.block, layout)
    scales = TensorValue("%q#1", shape, _name(form.scale))
    operands = [x, *norms]
    function.lines.append(
        f'%q:2 = "tc.quantise_blocks"({", ".join(map(str, operands))})\n'
        f"      {{operandSegmentSizes = array<i32: 1, {len(norms)}>}}\n"
        f"      : ({', '.join(each.type for each in operands)}) -> ({codes.type}, {scales.type})"
    )
    return codes, scales


def _vector(function: FunctionBuilder, row: TensorValue) -> TensorValue:
    text = f"tensor.collapse_shape {row} [[0, 1]] : {row.type} into {{type}}"
    return function.op(text, row.shape[1:], row.element)


def _name(kind: str) -> str:
    """The MLIR type of elements or scales."""
    return NAMES[np.dtype(CODES[kind])]
