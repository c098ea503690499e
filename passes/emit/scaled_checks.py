"""Requirements on the operands of a block-scaled product that every tiling has."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect.ops.block_scaled import ZERO_PADDING
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.limits import PADDED_UNIT, round_up
from tcir.passes.emit.scaled_shape import ScaledRows, ScaledShape

SMALLEST_SCALED = (
    "func.func @f(%a: tensor<1x64xf4E2M1FN>, %sa: tensor<1x1x512xf8E4M3FN>, "
    "%b: tensor<64xf4E2M1FN>, %sb: tensor<4xf8E4M3FN>) -> tensor<1xf32> { "
    '%c = "tc.block_scaled_matmul"(%a, %sa, %b, %sb) {block = 16 : i64, '
    'a_scale_layout = "blocked_128x4", b_scale_layout = "row_major", '
    "operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>} : (tensor<1x64xf4E2M1FN>, "
    "tensor<1x1x512xf8E4M3FN>, tensor<64xf4E2M1FN>, tensor<4xf8E4M3FN>) -> tensor<1xf32> "
    "return %c : tensor<1xf32> }"
)

PITCH = 16
"""Divisor of a tensor map's strides in bytes; that of padded types follows from their K."""


def loadable_k(shape: ScaledShape) -> int:
    """K rounded up to a number of elements for which TMA can load the rows of both operands."""
    units = [
        PADDED_UNIT
        if operand.padded
        else PITCH * 8 // operand.bits
        if operand.rows * shape.batch > 1
        else 1
        for operand in (shape.a, shape.b)
    ]
    return round_up(shape.k, max(units))


def check_scaled(op: ir.OpView, shape: ScaledShape) -> None:
    """Rejects operands that TMA or the tensor core cannot read."""
    if shape.a.layout != "blocked_128x4":
        raise match_failure(
            op,
            'expected a_scale_layout = "blocked_128x4", got "row_major": tensor memory needs the '
            "scales of rows r, r + 32, r + 64 and r + 96 side by side, and TMA moves at least 16 "
            "bytes at a time; store the scales of A blocked (tcir.formats.to_blocked)",
            SMALLEST_SCALED,
        )
    for name, operand in (("A", shape.a), ("B", shape.b)):
        _check_pitch(op, name, operand, shape)
    step = shape.step.k
    blocked = "blocked_128x4" in (shape.a.layout, shape.b.layout)
    if blocked and shape.k % step and ZERO_PADDING not in op.attributes:
        raise match_failure(
            op,
            f"expected K to be a multiple of {step}, got {shape.k}: an instruction of kind "
            f"{shape.step.kind} reads {shape.step.scales} scales of each row, and the scales past "
            "K are padding of the 128x4 layout, which may be NaN; pass row-major scales, which a "
            "separate kernel copies into blocks padded with zeros",
            SMALLEST_SCALED,
        )
    if shape.b.layout == "row_major" and shape.n * shape.batch > 1 and shape.scales % 16:
        raise match_failure(
            op,
            f"expected rows of B's scales to be multiples of 16 bytes, got {shape.scales} (a "
            "tensor map requires it of strides; PTX ISA 5.5); pad K to a multiple of "
            f'{16 * shape.step.block}, or store them with b_scale_layout = "blocked_128x4"',
            SMALLEST_SCALED,
        )


_PAD = "pad K with zeros, or pass row-major scales: then repack-gemm has kernels pad both operands"


def _check_pitch(op: ir.OpView, name: str, operand: ScaledRows, shape: ScaledShape) -> None:
    if operand.padded and shape.k % PADDED_UNIT:
        raise match_failure(
            op,
            f"expected K to be a multiple of {PADDED_UNIT} with {operand.element} in kind "
            f"{shape.step.kind}, got {shape.k}: TMA pads {PADDED_UNIT} elements at a time (CUDA "
            f"driver API); {_PAD}",
            SMALLEST_SCALED,
        )
    pitch = operand.row_bytes(shape.k)
    if operand.rows * shape.batch > 1 and pitch % PITCH:
        raise match_failure(
            op,
            f"expected rows of {name} to be multiples of {PITCH} bytes, got {pitch} (strides of a "
            f"tensor map are; CUDA driver API); {_PAD}",
            SMALLEST_SCALED,
        )
