"""The functions of a module that is not tiled yet: their ops are on tensors."""

from __future__ import annotations

from tcir._mlir import func, ir

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
