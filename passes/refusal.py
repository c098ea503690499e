"""How a pass says no: the value, what is allowed, the hardware's reason, a way out."""

from __future__ import annotations

from typing import Any

from tcir._mlir import ir
from tcir.errors import PassError

SMALLEST_CONV = (
    "func.func @f(%x: tensor<1x1x1x8xf16>, %w: tensor<1x1x8x8xf16>, %out: tensor<1x1x1x8xf32>) "
    "-> tensor<1x1x1x8xf32> { %zero = arith.constant 0.0 : f32 "
    "%init = linalg.fill ins(%zero : f32) outs(%out : tensor<1x1x1x8xf32>) -> tensor<1x1x1x8xf32> "
    "%y = linalg.conv_2d_nhwc_hwcf "
    "ins(%x, %w : tensor<1x1x1x8xf16>, tensor<1x1x8x8xf16>) "
    "outs(%init : tensor<1x1x1x8xf32>) -> tensor<1x1x1x8xf32> "
    "return %y : tensor<1x1x1x8xf32> }"
)
SMALLEST_MATMUL = (
    "func.func @f(%a: tensor<1x8xf16>, %b: tensor<8x8xf16>, %out: tensor<1x8xf32>) "
    "-> tensor<1x8xf32> { %zero = arith.constant 0.0 : f32 "
    "%init = linalg.fill ins(%zero : f32) outs(%out : tensor<1x8xf32>) -> tensor<1x8xf32> "
    "%c = linalg.matmul ins(%a, %b : tensor<1x8xf16>, tensor<8x8xf16>) "
    "outs(%init : tensor<1x8xf32>) -> tensor<1x8xf32> "
    "return %c : tensor<1x8xf32> }"
)


def refuse(op: Any, message: str, smallest: str = "") -> PassError:
    """The error that refuses `op`, at its location, ending with the smallest accepted example."""
    if smallest:
        message += f"\nsmallest accepted example: {smallest}"
    return PassError(message, op.location)


def is_op(value: ir.Value, name: str) -> bool:
    """Whether `value` is a result of an op called `name`."""
    return not isinstance(value, ir.BlockArgument) and value.owner.name == name


def describe(value: Any) -> str:
    """A value, for a message: the number of a constant, else what makes it."""
    if isinstance(value, ir.BlockArgument):
        return "an argument"
    if value.owner.name == "arith.constant":
        return str(value.owner.attributes["value"])
    return f"the result of {value.owner.name}"
