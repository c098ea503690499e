"""The functions of a module that is not tiled yet: their ops are on tensors."""

from __future__ import annotations

from math import prod

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.ops.codes import PACKED_BITS

SIMT = "tc.simt"
"""Unit attribute of a function on tensors that runs on CUDA cores, without products."""


def functions_with_body(module: ir.Module) -> list[func.FuncOp]:
    """The functions of `module` that are not only declared; a list, so that they may be replaced
    meanwhile."""
    return [
        op for op in module.body.operations if isinstance(op, func.FuncOp) and not op.is_external
    ]


def is_simt(function: func.FuncOp) -> bool:
    """Whether a function on tensors runs on CUDA cores."""
    return SIMT in function.attributes


def tensor_ops(module: ir.Module) -> list[ir.OpView]:
    """The ops of all functions, in program order; a list, so that they may be replaced
    meanwhile."""
    return [op for function in functions_with_body(module) for op in function.entry_block]


def tensor_bytes(kind: ir.RankedTensorType) -> int:
    """Bytes of a tensor in memory; codes of less than a byte are packed, an i1 has a byte."""
    whole = 8 * max(1, tc.element_bytes(kind.element_type))
    bits = PACKED_BITS.get(str(kind.element_type), whole)
    return prod(kind.shape) * bits // 8
