"""Calls of private functions, which are parts of the program: inlined before anything else."""

from __future__ import annotations

from tcir._mlir import func, ir, passmanager
from tcir.dialect.walk import nested
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.build.tensor_functions import functions_with_body

UPSTREAM = "builtin.module(inline,symbol-dce)"
CHOOSE = (
    "choose the program by --entry={0} (tc-opt) or entry='{0}' (Python), or make the others, which "
    "it calls, private (func.func private @g)"
)
"""The way out where a module has several public functions, with the name of one."""


def inline_calls(module: ir.Module) -> None:
    """Inlines the calls of functions on tensors, and drops private functions; by upstream's passes.

    A module without calls, and one whose functions are all private, stays as it is.
    """
    if not _calls(module) and not _left_over(module):
        return
    passmanager.PassManager.parse(UPSTREAM).run(module.operation)
    for call in _calls(module):
        raise match_failure(
            call,
            "expected calls of functions with a body, without ops of tc or recursion, got "
            f"func.call {call.attributes['callee']} (a kernel calls no functions: "
            "upstream's inline inlines them); give it a body of one block of linalg, tensor, arith "
            "and math ops, or put its ops where it is called",
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


def _left_over(module: ir.Module) -> bool:
    """Whether there are private functions beside public ones; nobody calls them."""
    functions = functions_with_body(module)
    private = sum(_is_private(each) for each in functions)
    return 0 < private < len(functions)


def _is_private(function: func.FuncOp) -> bool:
    visibility = function.attributes.get("sym_visibility")
    return visibility is not None and visibility.value == "private"


def _calls(module: ir.Module) -> list[ir.OpView]:
    functions = [op for op in module.body.operations if isinstance(op, func.FuncOp)]
    return [op for each in functions for op in nested(each) if isinstance(op, func.CallOp)]
