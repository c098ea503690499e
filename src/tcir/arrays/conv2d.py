"""`compile_conv2d`: a 2-D convolution from two arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from numpy.typing import DTypeLike

from tcir.arrays.epilogue import RESULTS, finish
from tcir.arrays.kernel import ArrayKernel, build
from tcir.arrays.text import FunctionBuilder, TensorValue, element_of
from tcir.errors import InputError
from tcir.interp.types import Array
from tcir.target import DEFAULT_TARGET

OPERANDS = ("f16", "bf16", "f32")
Pair: TypeAlias = int | tuple[int, int]


def compile_conv2d(
    x: Array,
    w: Array,
    *,
    stride: Pair = 1,
    padding: Pair | tuple[tuple[int, int], tuple[int, int]] | str = 0,
    dilation: Pair = 1,
    bias: Array | None = None,
    residual: Array | None = None,
    activation: str | None = None,
    out: DTypeLike | str | None = None,
    pipeline: str = "conv",
    target: str = DEFAULT_TARGET.name,
    **options: Any,
) -> ArrayKernel:
    """Compiles act(conv(x, w) + bias + residual) to one kernel; sums are in f32, and rounded once.

    x:          [N, H, W, C], of type f16, bf16 or f32 (multiplied as tf32)
    w:          [R, S, C, K], of the same type (a PyTorch filter after ``w.permute(2, 3, 1, 0)``)
    stride, dilation: one number, or (rows, columns)
    padding:    zeros on all sides; or (rows, columns); or ((top, bottom), (left, right)); or
                "valid" (none); or "same" (output as large as the image; stride 1 only)
    bias:       [K]
    residual:   an array of the result's shape
    activation: relu, gelu, silu, sigmoid or tanh
    out:        the result's type: f32 by default, or f16, bf16; its shape is [N, P, Q, K]
    pipeline:   ``conv`` selects the schedule; keyword options are its options, as in `tcir.compile`

    Raises InputError for other shapes, types or names.
    """
    function = FunctionBuilder("conv2d")
    image, taps = function.argument("x", x, (4,)), function.argument("w", w, (4,))
    if image.element not in OPERANDS or image.element != taps.element:
        raise InputError(
            f"conv2d: x and w must have the same type, one of {', '.join(OPERANDS)} (the types "
            f"that the schedules multiply), got {image.element} and {taps.element}"
        )
    if image.shape[3] != taps.shape[2]:
        raise InputError(
            f"conv2d: expected x of [N, H, W, C] and w of [R, S, C, K] with the same C, got "
            f"{list(image.shape)} and {list(taps.shape)}; compile one convolution per group"
        )
    strides, steps = _pair("stride", stride, 1), _pair("dilation", dilation, 1)
    reach = [step * (size - 1) + 1 for step, size in zip(steps, taps.shape, strict=False)]
    rows, columns = _sides(padding, reach, strides)
    padded = _padded(function, image, rows, columns)
    sizes = [
        (size - need) // step + 1
        for size, need, step in zip(padded.shape[1:3], reach, strides, strict=True)
    ]
    if min(sizes) < 1:
        raise InputError(
            f"conv2d: expected an image of at least {reach[0]} x {reach[1]} with its padding, got "
            f"{padded.shape[1]} x {padded.shape[2]}: the output would have no pixels"
        )
    attributes = (
        f"{{dilations = dense<[{steps[0]}, {steps[1]}]> : tensor<2xi64>, "
        f"strides = dense<[{strides[0]}, {strides[1]}]> : tensor<2xi64>}} "
    )
    start = function.zeros((image.shape[0], *sizes, taps.shape[3]), "f32")
    sums = function.linalg("conv_2d_nhwc_hwcf", (padded, taps), start, attributes)
    element = element_of("conv2d", "f32" if out is None else out, RESULTS)
    result = finish(function, sums, element, bias, residual, activation)
    return build(function, (result,), pipeline, target, options)


def _pair(name: str, value: object, least: int) -> tuple[int, int]:
    given = list(value) if isinstance(value, tuple | list) else [value, value]
    pair = [v for v in given if isinstance(v, int)]
    if len(pair) != 2 or pair != given or min(pair) < least:
        raise InputError(
            f"conv2d: {name}: expected an integer of at least {least}, or two, got {value!r}"
        )
    return pair[0], pair[1]


def _sides(
    padding: object, reach: Sequence[int], strides: tuple[int, int]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Number of zeros before and after the image, for rows and columns.

    reach: extent of a dilated window
    """
    named = padding if isinstance(padding, str) else ""  # "==" of an array has an array's answer
    if named == "valid":
        return (0, 0), (0, 0)
    if named == "same":
        if strides != (1, 1):
            raise InputError(
                f"conv2d: padding: expected stride 1 with 'same', as in PyTorch, got {strides}: "
                "with a stride the result is smaller than the image; give the padding in numbers"
            )
        rows, columns = ((n - 1) // 2 for n in reach)
        return (rows, reach[0] - 1 - rows), (columns, reach[1] - 1 - columns)
    if isinstance(padding, int):
        return _pair("padding", padding, 0), _pair("padding", padding, 0)
    sides = tuple(padding) if isinstance(padding, tuple | list) else ()
    if len(sides) != 2:
        raise InputError(
            "conv2d: padding: expected an integer, (rows, columns), ((top, bottom), (left, "
            f"right)), 'same' or 'valid', got {padding!r}"
        )
    return _pair("padding", sides[0], 0), _pair("padding", sides[1], 0)


def _padded(
    function: FunctionBuilder, image: TensorValue, rows: tuple[int, int], columns: tuple[int, int]
) -> TensorValue:
    """`image` with zeros around it."""
    if not any((*rows, *columns)):
        return image
    n, h, w, c = image.shape
    zero = function.constant(0.0, image.element)
    text = (
        f"tensor.pad {image} low[0, {rows[0]}, {columns[0]}, 0] "
        f"high[0, {rows[1]}, {columns[1]}, 0] {{\n"
        "  ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):\n"
        f"    tensor.yield {zero} : {image.element}\n  }} : {image.type} to {{type}}"
    )
    return function.op(text, (n, h + sum(rows), w + sum(columns), c), image.element)
