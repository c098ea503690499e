"""constants-to-arguments: turns the weights in a program into arguments that no caller passes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir, tensor
from tcir.dialect.upstream import names
from tcir.dialect.walk import walk
from tcir.passes.analysis.reductions import is_product
from tcir.passes.emit.calls import inline_calls
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, match_failure
from tcir.passes.emit.tensor_functions import functions_with_body
from tcir.passes.module.fold_empty import structured
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.program.constants import CONSTANTS, constants_of

_MOVES = names(
    "linalg.transpose", "linalg.broadcast", tensor.CollapseShapeOp, tensor.ExpandShapeOp,
    tensor.PadOp,
)  # fmt: skip
"""Ops between a factor of a product and what is in memory."""


@register_pass
@dataclass(frozen=True)
class ConstantsToArguments(Pass):
    """Turns the constant tensors of a function into additional arguments, after its own arguments.

    Before::

        func.func @f(%x) {
          %w = arith.constant dense<"0x…"> : tensor<32x48xbf16>
          %y = linalg.matmul ins(%x, %w); return %y

    After::

        builtin.module attributes {tc.constants = [dense<"0x…"> : tensor<32x48xbf16>]}
        func.func @f(%x, %w) { %y = linalg.matmul ins(%x, %w); return %y }

    A constant whose elements are all the same number stays in the function, and later in registers,
    unless a product multiplies it, because factors must be in memory. Constants of type ``index``
    also stay. Equal constants are merged. A constant that the function returns is copied, because
    each result must be written by a launch. If the module has a constant, calls are inlined first.
    Preserves every value, bit for bit.
    """

    name: ClassVar[str] = "constants-to-arguments"

    def run(self, module: ir.Module) -> None:
        if not any(map(_in_memory, functions_with_body(module))):
            return
        inline_calls(module)
        functions = functions_with_body(module)
        if len(functions) != 1 or len(functions[0].regions[0].blocks) != 1:
            return  # raise-to-tc says what it expects
        (function,) = functions
        if "tc.args" in function.attributes:
            return
        values = constants_of(module)
        arguments = dict(zip(values, list(function.entry_block.arguments)[-len(values) :]))
        for op in _in_memory(function):
            value, result = op.attributes["value"], op.results[0]
            _check(op)
            if value not in arguments:
                arguments[value] = function.entry_block.add_argument(result.type, op.location)
            result.replace_all_uses_with(arguments[value])
            op.erase()
        _copy_returned(function, set(arguments.values()))
        module.operation.attributes[CONSTANTS] = ir.ArrayAttr.get(list(arguments))
        kinds = [each.type for each in function.entry_block.arguments]
        kind = ir.FunctionType.get(kinds, function.type.results)
        function.attributes["function_type"] = ir.TypeAttr.get(kind)
        if "arg_attrs" in function.attributes:
            given = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
            given += [ir.DictAttr.get({})] * (len(kinds) - len(given))
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(given)


def _in_memory(function: func.FuncOp) -> list[ir.Operation]:
    """The constants of a function that are to be arguments."""
    constants = [each.operation for each in walk(function) if _is_tensor(each.operation)]
    return [op for op in constants if _is_weight(op)]


def _is_tensor(op: ir.Operation) -> bool:
    return op.name == "arith.constant" and isinstance(op.results[0].type, ir.RankedTensorType)


def _is_weight(op: ir.Operation) -> bool:
    (result,) = op.results
    uses = [(use.owner, use.operand_number) for use in result.uses]
    if str(result.type.element_type) == "index" or not uses:
        return False
    if all(owner.name == "linalg.fill" and number == 1 for owner, number in uses):
        return False  # whose elements nobody reads
    value = op.attributes["value"]
    is_splat = isinstance(value, ir.DenseElementsAttr) and value.is_splat
    return not is_splat or _is_factor(result)


def _copy_returned(function: func.FuncOp, arguments: set[ir.Value]) -> None:
    """Makes results that are constants tensors of their own."""
    end = list(function.entry_block)[-1]
    with ir.InsertionPoint(end), end.location:
        for number, value in enumerate(end.operands):
            if value in arguments:
                empty = tensor.EmptyOp(value.type.shape, value.type.element_type).result
                end.operands[number] = structured("linalg.copy", value, empty)


def _is_factor(tensor: ir.Value) -> bool:
    """Whether a product multiplies a tensor, or a moved copy of it."""
    for use in tensor.uses:
        op = use.owner.operation
        if op.name in _MOVES and use.operand_number == 0 and _is_factor(op.results[0]):
            return True
        if is_product(op) and use.operand_number < len(op.operands) - 1:
            return True
    return False


def _check(op: ir.Operation) -> None:
    from tcir.interp.types import DTYPES  # needs numpy, as programs without constants do not

    element, value = str(op.results[0].type.element_type), op.attributes["value"]
    if not isinstance(value, ir.DenseElementsAttr):
        raise match_failure(
            op.opview,
            f"expected a constant dense<…> or dense_resource<…>, got {str(value)[:40]} (its bytes "
            "become a buffer that kernels read); write all its elements",
            SMALLEST_MATMUL,
        )
    if element not in DTYPES:
        raise match_failure(
            op.opview,
            f"expected a constant tensor with elements of {', '.join(DTYPES)}, got {element} (its "
            "bytes become a buffer that kernels read); convert it where the program is made",
            SMALLEST_MATMUL,
        )
