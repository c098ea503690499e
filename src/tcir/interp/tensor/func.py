"""Rules of `func`: calls and returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array


def function_named(module_op: ir.OpView, name: str) -> Any:
    """Returns the `func.func` called `name`; IncompleteError if the module has none with a body."""
    for view in module_op.regions[0].blocks[0].operations:
        op = view.operation
        if op.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == name:
            if not len(op.regions[0].blocks):
                raise IncompleteError(f"func.func @{name} has no body: nothing to execute")
            return op
    raise IncompleteError(f"expected a func.func @{name} in the module, got none")


def module_of(operation: ir.Operation) -> ir.Operation:
    """Returns the outermost operation that contains `operation`."""
    while operation.parent is not None:
        operation = operation.parent.operation
    return operation


@evaluate("func.return")
def func_return(_: Interpreter, __: ir.OpView, *operands: Array) -> Sequence[Array]:
    return operands


@evaluate("func.call")
def func_call(interpreter: Interpreter, op: ir.OpView, *operands: Array) -> Sequence[Array]:
    callee = function_named(module_of(op.operation), op.attributes["callee"].value)
    outer = interpreter.values
    try:
        return interpreter.block(callee.regions[0].blocks[0], operands, {})
    finally:
        interpreter.values = outer
