"""Calls of private functions, which are parts of the program: inlined before anything else."""

from __future__ import annotations

from tcir._mlir import func, ir, passmanager
from tcir.dialect.walk import nested
from tcir.passes.build.diagnostics import match_failure

UPSTREAM = "builtin.module(inline,symbol-dce)"


def inline_calls(module: ir.Module) -> None:
    """Inlines the calls of functions on tensors, and drops private functions; by upstream's passes.

    A module without calls stays as it is.
    """
    if not _calls(module):
        return
    passmanager.PassManager.parse(UPSTREAM).run(module.operation)
    for call in _calls(module):
        raise match_failure(
            call,
            f"expected calls of functions with a body, without recursion, got func.call "
            f"{call.attributes['callee']} (a kernel calls no functions: they are inlined); give it "
            "a body of one block that does not call itself",
        )


def inlined(module: ir.Module) -> ir.Module:
    """The module, or where it has calls a copy without."""
    if not _calls(module):
        return module
    copy = ir.Module.parse(
        module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True), module.context
    )
    inline_calls(copy)
    return copy


def _calls(module: ir.Module) -> list[ir.OpView]:
    functions = [op for op in module.body.operations if isinstance(op, func.FuncOp)]
    return [op for each in functions for op in nested(each) if isinstance(op, func.CallOp)]
