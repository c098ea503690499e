"""Finds products that CUDA cores must compute, and the reason why tensor cores cannot."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import MMA_K_BYTES, TMA_ELEMENT_STRIDE
from tcir.passes.analysis.contraction import OPERAND_TYPES, Conv, Matmul, is_contraction, recognise
from tcir.passes.analysis.einsum import Einsum
from tcir.passes.emit.limits import MMA_N_STEP

FLAT = 2
"""Dimensions of an image in which the tilings place lanes."""


def no_tensor_core(op: ir.OpView, tf32: bool = True) -> str:
    """Reason why no tensor core computes the product `op`; "" if a tensor core computes it, or if
    `op` is not a product.

    tf32: whether f32 factors may be truncated to tf32
    """
    found = recognise(op) if is_contraction(op) else None
    if found is not None and not tf32 and str(op.operands[0].type.element_type) == "f32":
        return (
            "tensor cores would truncate the f32 factors to tf32, which the option tf32=false "
            "forbids"
        )
    if found is not None and (reason := _other_types(op)):
        return reason
    if not isinstance(found, Conv):
        return _no_matrix(op, found)
    if not found.channels:
        return (
            "each output channel of a depthwise filter multiplies one input channel, but an mma "
            "sums over 32 bytes of channels, so all other channels would be zeros"
        )
    kind = op.operands[found.w].type
    outputs = kind.shape[found.weights[found.groups]] if found.filters else 1
    if found.groups and outputs % MMA_N_STEP:
        return (
            f"a group has {outputs} output channels, but N of an mma is a multiple of "
            f"{MMA_N_STEP}, and all its columns multiply the same input channels"
        )
    channels = kind.shape[found.weights[-1]]
    multiplied = str(kind.element_type) in OPERAND_TYPES
    bytes_ = channels * tc.element_bytes(kind.element_type) if multiplied else MMA_K_BYTES
    if found.groups and 2 * bytes_ < MMA_K_BYTES:
        return (
            f"a group has {channels} input channels, less than half of the {MMA_K_BYTES} bytes "
            "over which an mma sums"
        )
    if max(found.strides) not in TMA_ELEMENT_STRIDE:
        return (
            f"the windows overlap and have strides {list(found.strides)}, but a tensor map can "
            f"step over {TMA_ELEMENT_STRIDE} elements only ({TMA_ELEMENT_STRIDE.source})"
        )
    if len(found.strides) > FLAT:
        return (
            f"the tensor-core schedules take images of {FLAT} dimensions, and this "
            f"convolution has {len(found.strides)}"
        )
    return ""


def _other_types(op: ir.OpView) -> str:
    """Why a product of two elements of a type is none for tensor cores."""
    first, second = (str(each.type.element_type) for each in list(op.operands)[:2])
    alike = first == second and first in ("f64", "i16", "i32", "i64")
    return (
        f"it multiplies elements of {first}, and the tensor cores of this target do not"
        if alike
        else ""
    )


def _no_matrix(op: ir.OpView, found: Matmul | Einsum | None) -> str:
    """Why a product that is no convolution is none of matrices."""
    if found is None:
        return ""
    rows = op.results[0].type.shape if isinstance(found, Matmul) else found.shape
    if list(rows[-2:]) != [1, 1] or str(op.operands[0].type.element_type) != "f32":
        return ""
    return (
        "no two results share a factor: of the 128 x 8 results of an mma one would be used, with "
        "its factors truncated from f32 to tf32"
    )
