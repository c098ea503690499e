"""Tensors that are the same at each call: made of frozen arguments alone, such as weights."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tcir._mlir import func, ir, tensor
from tcir.dialect.attributes import integers_of
from tcir.dialect.walk import walk
from tcir.passes.analysis.moves import is_widening, move_of, parallel
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.reshape import RESHAPES

FREE = ("arith.constant", "linalg.fill", "tensor.empty")
"""Ops that every launch duplicates."""
MOVES = (*RESHAPES, tensor.ConcatOp, tensor.ExtractSliceOp)
FROZEN = "tc.frozen"
"""Attribute of a program: numbers of its arguments that are the same at each call."""


def freeze(module: ir.Module, numbers: Sequence[int]) -> None:
    """Marks arguments of the module's only function as the same at each call."""
    (function,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
    with module.context:
        module.context.allow_unregistered_dialects = True
        function.attributes[FROZEN] = i64s(numbers)


def computed_once(function: func.FuncOp) -> list[ir.Value]:
    """Tensors made of frozen arguments that a larger elementwise op reads beside others: it would
    compute each element many times. A batch norm's factors, a norm's weights plus one, the cosines
    of positions."""
    if FROZEN not in function.attributes:
        return []
    arguments = list(function.entry_block.arguments)
    numbers = integers_of(function.attributes[FROZEN])
    if wrong := [n for n in numbers if n not in range(len(arguments))]:
        raise match_failure(
            function,
            f"expected {FROZEN} to have numbers of arguments, 0 to {len(arguments) - 1}, got "
            f"{wrong[0]}; leave it out if arguments change between calls",
        )
    frozen = {arguments[number] for number in numbers}
    fixed, made = set(frozen), set(frozen)
    found: dict[ir.Value, None] = {}
    for op in function.entry_block:
        if not _is_elementwise(op):
            if op.operation.name in FREE:
                fixed.update(op.results)
            continue
        (result,), read = op.results, list(op.operands)
        if all(each in fixed for each in read):
            fixed.add(result)
            if any(each in made for each in read):
                made.add(result)
            continue
        for each in map(_computed, filter(made.__contains__, read)):
            if each not in arguments and prod(each.type.shape) < prod(result.type.shape):
                found[each] = None
    return list(found)


def _computed(value: ir.Value) -> ir.Value:
    """The tensor that another one is a reshape, a move or a wider copy of."""
    while not isinstance(value, ir.BlockArgument):
        move = move_of(value)
        if isinstance(value.owner.opview, RESHAPES) or is_widening(value):
            value = value.owner.operands[0]
        elif move is not None:
            value = move.source
        else:
            break
    return value


def _is_elementwise(op: ir.OpView) -> bool:
    """Whether an element of an op's result is made of at most one of each operand, and of nothing
    else but numbers of its body."""
    if len(op.results) != 1 or not isinstance(op.results[0].type, ir.RankedTensorType):
        return False
    if op.operation.name.startswith(("arith.", "math.")) or isinstance(op, MOVES):
        return op.operation.name != "arith.constant"
    if parallel(op.results[0]) is None:
        return False
    inside = [each.operation for each in walk(op)]
    return not any(each.name in ("tensor.extract", "cf.assert") for each in inside)
