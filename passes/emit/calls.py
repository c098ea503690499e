"""Calls of private functions, which are parts of the program; they are inlined before any other
pass."""

from __future__ import annotations

from tcir._mlir import func, ir, passmanager
from tcir.dialect.walk import nested
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.tensor_functions import functions_with_body

CHOOSE = (
    "choose the program by --entry={0} (tc-opt) or entry='{0}' (Python), or make the others, which "
    "it calls, private (func.func private @g)"
)
"""Way out of the error for a module with several public functions, with the name of one."""


def inline_calls(module: ir.Module) -> None:
    """Inlines the calls of functions on tensors, and drops private functions.

    A module stays as it is if it has no calls, or if all its functions are private. (Upstream's
    inliner is not used because it does not inline functions with ``tc`` ops, and moves constants
    out of the regions of ops.)
    """
    if not _calls(module) and not _left_over(module):
        return
    while leaves := [(call, f) for call in _calls(module) if (f := _leaf(module, call))]:
        for call, callee in leaves:
            _inline(call, callee)
    passmanager.PassManager.parse("builtin.module(symbol-dce)").run(module.operation)
    for call in _calls(module):
        raise match_failure(
            call,
            "expected a call of a function with a body of one block, without recursion, got "
            f"func.call {call.attributes['callee']} (a kernel calls no functions: its body is "
            "inlined); give it such a body, or put its ops where it is called",
        )


def _leaf(module: ir.Module, call: ir.OpView) -> func.FuncOp | None:
    """The function that is called, if it has one block and calls nothing."""
    named = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
    for each in functions_with_body(module):
        if ir.StringAttr(each.attributes["sym_name"]).value == named:
            leaf = len(each.body.blocks) == 1 and not _calls_of(each)
            return each if leaf else None
    return None


def _inline(call: ir.OpView, callee: func.FuncOp) -> None:
    copy = callee.operation.clone(ir.InsertionPoint(callee))
    block = copy.regions[0].blocks[0]
    for argument, value in zip(list(block.arguments), list(call.operands), strict=True):
        argument.replace_all_uses_with(value)
    *body, end = list(block.operations)
    for op in body:
        op.operation.move_before(call.operation)
    for result, value in zip(list(call.results), list(end.operands), strict=True):
        result.replace_all_uses_with(value)
    call.operation.erase()
    copy.erase()


def inlined(module: ir.Module) -> ir.Module:
    """The module itself if it has no calls, else a copy with the calls inlined."""
    if not _calls(module):
        return module
    copy = ir.Module.parse(
        module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True), module.context
    )
    inline_calls(copy)
    return copy


def _left_over(module: ir.Module) -> bool:
    """Whether there are private functions next to public ones; they have no callers."""
    functions = functions_with_body(module)
    private = sum(_is_private(each) for each in functions)
    return 0 < private < len(functions)


def _is_private(function: func.FuncOp) -> bool:
    visibility = function.attributes.get("sym_visibility")
    return visibility is not None and visibility.value == "private"


def _calls(module: ir.Module) -> list[ir.OpView]:
    functions = [op for op in module.body.operations if isinstance(op, func.FuncOp)]
    return [call for each in functions for call in _calls_of(each)]


def _calls_of(function: func.FuncOp) -> list[ir.OpView]:
    return [op for op in nested(function) if isinstance(op, func.CallOp)]
