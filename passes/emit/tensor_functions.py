"""Accessors for the functions of a module before tiling, whose ops are on tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.ops.codes import PACKED_BITS
from tcir.passes.emit.diagnostics import SMALLEST_NUMBER, match_failure

SIMT = "tc.simt"
"""Unit attribute of a function on tensors that runs on CUDA cores, without products."""


def functions_with_body(module: ir.Module) -> list[func.FuncOp]:
    """The functions of `module` that have a body, as a list, so that the caller may replace them
    during iteration."""
    return [
        op for op in module.body.operations if isinstance(op, func.FuncOp) and not op.is_external
    ]


def replacement(
    old: func.FuncOp, inputs: Sequence[ir.Type], results: Sequence[ir.Type]
) -> func.FuncOp:
    """Builds an empty function before `old`, with the name and attributes of `old` and another
    type."""
    with ir.InsertionPoint(old), old.location:
        new = func.FuncOp(old.name.value, ir.FunctionType.get(list(inputs), list(results)))
    for name in old.attributes:
        if name not in ("sym_name", "function_type", "arg_attrs", "res_attrs"):
            new.attributes[name] = old.attributes[name]
    return new


def only_op(function: func.FuncOp, *kinds: type[ir.OpView]) -> ir.OpView | None:
    """The only op of a function before its return. None if the function has several ops, or if the
    op is not one of `kinds`."""
    op, *others = function.entry_block
    return op if len(others) == 1 and isinstance(op, kinds) else None


def is_simt(function: func.FuncOp) -> bool:
    """Whether a function on tensors becomes a kernel for CUDA cores."""
    return SIMT in function.attributes


def check_numbers(function: func.FuncOp) -> None:
    """Rejects a function that has scalars between its ops on tensors: as arguments, results, or
    results of its ops."""
    signature = function.type
    for words, number in (
        *((f"argument {n}", each) for n, each in enumerate(signature.inputs)),
        *((f"result {n}", each) for n, each in enumerate(signature.results)),
    ):
        if _is_number(number):
            raise match_failure(
                function,
                f"expected tensors as arguments and results, got {words} of type {number} (a "
                f"kernel's arguments are buffers in memory); write it as tensor<{number}>, which "
                "has no dimensions, and read it in a linalg.generic by the map (…) -> ()",
                SMALLEST_NUMBER,
            )
    for op in function.entry_block:
        kinds = [result.type for result in op.results if str(result.type) != "i1"]  # of cf.assert
        if op.operation.name != "arith.constant" and any(map(_is_number, kinds)):
            raise match_failure(
                op,
                f"expected ops on tensors, got {op.operation.name} with a result of type "
                f"{op.results[0].type} (a launch computes tensors only); compute it in the body "
                "of the linalg.generic that reads it",
                SMALLEST_NUMBER,
            )


def _is_number(kind: ir.Type) -> bool:
    return isinstance(kind, ir.FloatType | ir.IntegerType)


def tensor_ops(module: ir.Module) -> list[ir.OpView]:
    """The ops of all functions in program order, as a list, so that the caller may replace them
    during iteration."""
    return [op for function in functions_with_body(module) for op in function.entry_block]


def is_empty(value: ir.Value) -> bool:
    """Whether a value is a tensor without elements: one of its dimensions has size 0."""
    kind = value.type
    return isinstance(kind, ir.RankedTensorType) and any(
        not kind.is_dynamic_dim(d) and kind.get_dim_size(d) == 0 for d in range(kind.rank)
    )


def erase_unread(function: func.FuncOp) -> None:
    """Drops the ops on tensors of a function's block whose results are unused.

    ``linalg`` ops without results are also dropped: the body of such an op, with its asserts, has
    been fused into its users.
    """
    for each in reversed(list(function.entry_block)):
        pure = each.operation.name.partition(".")[0] in ("arith", "linalg", "math", "tensor")
        if pure and not any(list(result.uses) for result in each.results):
            each.operation.erase()


def tensor_bytes(kind: ir.RankedTensorType) -> int:
    """Bytes that a tensor takes in memory. Elements of less than a byte are packed, except i1,
    which takes a byte."""
    whole = 8 * max(1, tc.element_bytes(kind.element_type))
    bits = PACKED_BITS.get(str(kind.element_type), whole)
    return prod(kind.shape) * bits // 8


def drop_arguments(function: func.FuncOp, positions: Sequence[int]) -> None:
    """Removes the unused arguments at `positions` from a function: from its block, its type and its
    attributes."""
    block = function.entry_block
    keep = [i for i in range(len(block.arguments)) if i not in positions]
    kind = ir.FunctionType.get([block.arguments[i].type for i in keep], function.type.results)
    for position in sorted(positions, reverse=True):
        block.erase_argument(position)
    function.attributes["function_type"] = ir.TypeAttr.get(kind)
    if "arg_attrs" in function.attributes:
        old = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
        function.attributes["arg_attrs"] = ir.ArrayAttr.get([old[i] for i in keep])
