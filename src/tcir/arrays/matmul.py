"""`compile_matmul`: a matrix product from two arrays."""

from __future__ import annotations

from typing import Any

from numpy.typing import DTypeLike

from tcir.arrays.epilogue import RESULTS, finish
from tcir.arrays.kernel import ArrayKernel, build
from tcir.arrays.text import FunctionBuilder, element_of
from tcir.errors import InputError
from tcir.interp.types import Array
from tcir.target import DEFAULT_TARGET

OPERANDS = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8")


def compile_matmul(
    a: Array,
    b: Array,
    *,
    bias: Array | None = None,
    residual: Array | None = None,
    activation: str | None = None,
    out: DTypeLike | str | None = None,
    pipeline: str = "gemm",
    target: str = DEFAULT_TARGET.name,
    **options: Any,
) -> ArrayKernel:
    """Compiles act(a @ b + bias + residual) to one kernel; sums are in f32 (in i32 for int8), and
    rounded once.

    a, b:       [M, K] @ [K, N], or batched [L, M, K] @ [L, K, N], both of one type: f16, bf16, f32
                (multiplied as tf32, 10 mantissa bits), ml_dtypes fp8 e4m3 or e5m2 (or one of each),
                or int8
    bias:       [N], of type f32, f16 or bf16
    residual:   an array of the result's shape, of type f32, f16 or bf16
    activation: relu, gelu, silu, sigmoid or tanh
    out:        the result's type: f32 (i32 for int8) by default, or f16, bf16
    pipeline:   gemm or matmul-warp; keyword options are its options, as in `tcir.compile`

    Raises InputError for other shapes, types or names.
    """
    function = FunctionBuilder("matmul")
    left = function.argument("a", a, (2, 3))
    right = function.argument("b", b, (2, 3))
    mixed = {left.element, right.element} <= {"f8E4M3FN", "f8E5M2"}
    if left.element not in OPERANDS or (left.element != right.element and not mixed):
        raise InputError(
            f"matmul: a and b must have the same type, one of {', '.join(OPERANDS)}, or both f8 "
            f"(the tensor core multiplies no others), got {left.element} and {right.element}"
        )
    if left.shape[:-2] != right.shape[:-2] or left.shape[-1] != right.shape[-2]:
        raise InputError(
            f"matmul: expected a of [M, K] and b of [K, N], or [L, M, K] and [L, K, N], got "
            f"{list(left.shape)} and {list(right.shape)}"
        )
    whole = left.element == "i8"
    element = element_of(
        "matmul",
        ("i32" if whole else "f32") if out is None else out,
        ("i32",) if whole else RESULTS,
    )
    start = function.zeros((*left.shape[:-1], right.shape[-1]), "i32" if whole else "f32")
    name = "matmul" if len(left.shape) == 2 else "batch_matmul"
    sums = function.linalg(name, (left, right), start)
    result = finish(function, sums, element, bias, residual, activation)
    return build(function, (result,), pipeline, target, options)
