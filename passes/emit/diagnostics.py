"""Match failures of the passes. Their messages state the value, what is allowed, the hardware
reason, and a way out."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect.ops.highlevel import MatmulOp, k_part, out_layout
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
SMALLEST_NUMBER = (
    "#n = affine_map<(d) -> (d)> func.func @f(%x: tensor<8xf32>, %s: tensor<f32>) -> tensor<8xf32> "
    "{ %e = tensor.empty() : tensor<8xf32> %y = linalg.generic {indexing_maps = [#n, "
    'affine_map<(d) -> ()>, #n], iterator_types = ["parallel"]} ins(%x, %s : tensor<8xf32>, '
    "tensor<f32>) outs(%e : tensor<8xf32>) { ^bb0(%a: f32, %b: f32, %o: f32): %m = arith.mulf %a, "
    "%b : f32 linalg.yield %m : f32 } -> tensor<8xf32> return %y : tensor<8xf32> }"
)
SMALLEST_SIMT = (
    "func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> { "
    "%y = math.exp %x : tensor<8xf32> return %y : tensor<8xf32> }"
)
SMALLEST_BLOCK_SCALED = (
    "#a = affine_map<(m, k) -> (m, k)> #sa = affine_map<(m, k) -> (m, k floordiv 16)> "
    "#b = affine_map<(m, k) -> (k)> #sb = affine_map<(m, k) -> (k floordiv 16)> "
    "#o = affine_map<(m, k) -> (m)> "
    "func.func @f(%a: tensor<1x32xf4E2M1FN>, %sa: tensor<1x2xf8E4M3FN>, %b: tensor<32xf4E2M1FN>, "
    "%sb: tensor<2xf8E4M3FN>, %out: tensor<1xf32>) -> tensor<1xf32> { "
    "%zero = arith.constant 0.0 : f32 "
    "%init = linalg.fill ins(%zero : f32) outs(%out : tensor<1xf32>) -> tensor<1xf32> "
    "%c = linalg.generic {indexing_maps = [#a, #sa, #b, #sb, #o], "
    'iterator_types = ["parallel", "reduction"]} '
    "ins(%a, %sa, %b, %sb : tensor<1x32xf4E2M1FN>, tensor<1x2xf8E4M3FN>, tensor<32xf4E2M1FN>, "
    "tensor<2xf8E4M3FN>) outs(%init : tensor<1xf32>) { "
    "^bb0(%x: f4E2M1FN, %p: f8E4M3FN, %y: f4E2M1FN, %q: f8E4M3FN, %sum: f32): "
    "%0 = arith.extf %x : f4E2M1FN to f32 %1 = arith.extf %p : f8E4M3FN to f32 "
    "%2 = arith.extf %y : f4E2M1FN to f32 %3 = arith.extf %q : f8E4M3FN to f32 "
    "%4 = arith.mulf %0, %1 : f32 %5 = arith.mulf %2, %3 : f32 %6 = arith.mulf %4, %5 : f32 "
    "%7 = arith.addf %sum, %6 : f32 linalg.yield %7 : f32 } -> tensor<1xf32> "
    "return %c : tensor<1xf32> }"
)


def match_failure(op: ir.OpView, message: str, smallest: str = "") -> PassError:
    """Builds the error that rejects `op`, at the location of `op`. Its message ends with the
    smallest example that is accepted."""
    if smallest:
        message += f"\nsmallest accepted example: {smallest}"
    return PassError(message, op.location)


def check_whole_rows(op: ir.OpView, pass_name: str) -> None:
    """Rejects a product whose result is stored by columns or in parts, which only tile-gemm
    supports."""
    if k_part(op) is not None:
        raise match_failure(
            op,
            f"expected whole sums in {pass_name}, got k_part = {k_part(op)}; take tile-gemm",
        )
    if isinstance(op, MatmulOp) and op.a.type.rank != op.b.type.rank:
        raise match_failure(
            op,
            f"expected operands of the same batch in {pass_name}, got a b without; reshape a to "
            "[batch * rows, K] before the function, or take tile-gemm",
        )
    if out_layout(op) != "mn":
        raise match_failure(
            op,
            f'expected out_layout = "mn" in {pass_name}, got "{out_layout(op)}" (threads hold '
            "rows, and store their columns as contiguous elements); exchange a and b, or take "
            "tile-gemm",
        )


def is_op(value: ir.Value, name: str) -> bool:
    """Whether `value` is a result of an op called `name`."""
    return not isinstance(value, ir.BlockArgument) and value.owner.name == name


def describe(value: ir.Value) -> str:
    """Describes a value for an error message: the number of a constant, or else the op that defines
    the value."""
    if isinstance(value, ir.BlockArgument):
        return "an argument"
    if value.owner.name == "arith.constant":
        return str(value.owner.attributes["value"])
    return f"the result of {value.owner.name}"
