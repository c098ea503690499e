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
        return "they would cut f32 to tf32, which tf32=false rules out"
    if found is not None and (reason := _other_types(op)):
        return reason
    if not isinstance(found, Conv):
        return _no_matrix(op, found)
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
    if max(found.strides) not in TMA_ELEMENT_STRIDE:
        return (
            f"tensor maps step over {TMA_ELEMENT_STRIDE} elements ({TMA_ELEMENT_STRIDE.source}), "
            f"got strides {list(found.strides)} of windows that are not apart"
        )
    if len(found.strides) > FLAT:
        return f"the schedules have images of {FLAT} dimensions, it has {len(found.strides)}"
    return ""


def _other_types(op: ir.OpView) -> str:
    """Why a product of two elements of a type is none for tensor cores."""
    first, second = (str(each.type.element_type) for each in list(op.operands)[:2])
    alike = first == second and first in ("f64", "i16", "i32", "i64")
    return f"it multiplies {first}, which the tensor cores of this target do not" if alike else ""


def _no_matrix(op: ir.OpView, found: Matmul | Einsum | None) -> str:
    """Why a product that is no convolution is none of matrices."""
    if found is None:
        return ""
    rows = op.results[0].type.shape if isinstance(found, Matmul) else found.shape
    if list(rows[-2:]) != [1, 1] or str(op.operands[0].type.element_type) != "f32":
        return ""
    return (
        "each result has factors of its own, so that tensor cores would compute one of 128 x 8, "
        "and cut f32 to tf32"
    )
