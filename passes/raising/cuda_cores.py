"""Which convolutions CUDA cores compute, and why tensor cores do not."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import MMA_K_BYTES
from tcir.passes.build.limits import MMA_N_STEP
from tcir.passes.raising.contraction import OPERAND_TYPES, Conv, is_contraction, recognise

FLAT = 2
"""Dimensions of an image in which the tilings place lanes."""


def no_tensor_core(op: ir.OpView) -> str:
    """Why no tensor core computes `op`, a convolution; "" if one does, or if it is none."""
    found = recognise(op) if is_contraction(op) else None
    if not isinstance(found, Conv):
        return ""
    if not found.channels:
        return (
            "a depthwise filter multiplies one channel, and an mma sums over 32 bytes of channels, "
            "all others would be zeros"
        )
    kind = op.operands[found.w].type
    outputs = kind.shape[found.weights[found.groups]] if found.filters else 1
    if found.groups and outputs % MMA_N_STEP:
        return (
            f"a group has {outputs} outputs, and an mma has a multiple of {MMA_N_STEP} columns, "
            "which multiply the same channels"
        )
    channels = kind.shape[found.weights[-1]]
    multiplied = str(kind.element_type) in OPERAND_TYPES
    bytes_ = channels * tc.element_bytes(kind.element_type) if multiplied else MMA_K_BYTES
    if found.groups and 2 * bytes_ < MMA_K_BYTES:
        return (
            f"a group has {channels} channels, less than half of the {MMA_K_BYTES} bytes that an "
            "mma sums over"
        )
    if len(found.strides) > FLAT:
        return f"the schedules have images of {FLAT} dimensions, it has {len(found.strides)}"
    return ""
