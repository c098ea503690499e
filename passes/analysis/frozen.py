"""Tensors that are the same at each call because they are made of frozen arguments only, such as
weights."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from math import prod

from tcir._mlir import arith, func, ir, tensor
from tcir.dialect.attributes import integers_of
from tcir.dialect.upstream import RESHAPES, names
from tcir.dialect.walk import walk
from tcir.passes.analysis.moves import is_widening, move_of, parallel
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.diagnostics import match_failure

FREE = names(arith.ConstantOp, "linalg.fill", tensor.EmptyOp)
"""Ops that every launch duplicates."""
MOVES = (*RESHAPES, tensor.ConcatOp, tensor.ExtractSliceOp)
FROZEN = "tc.frozen"
"""Attribute of a program: numbers of its arguments that are the same at each call."""


def freeze(module: ir.Module, numbers: Sequence[int]) -> None:
    """Marks the arguments `numbers` of the module's only function as frozen: the same at each
    call."""
    (function,) = (op for op in module.body.operations if isinstance(op, func.FuncOp))
    with module.context:
        module.context.allow_unregistered_dialects = True
        function.attributes[FROZEN] = i64s(numbers)


@dataclass(frozen=True)
class Frozen:
    """Tensors of a program that are the same at each call.

    fixed: tensors computed from frozen arguments and constants only
    made: those of `fixed` that depend on a frozen argument
    """

    fixed: Set[ir.Value]
    made: Set[ir.Value]

    @staticmethod
    def of(function: func.FuncOp) -> Frozen:
        """Returns the frozen tensors of a function."""
        arguments = list(function.entry_block.arguments)
        marked = FROZEN in function.attributes
        numbers = integers_of(function.attributes[FROZEN]) if marked else []
        if wrong := [n for n in numbers if n not in range(len(arguments))]:
            raise match_failure(
                function,
                f"expected {FROZEN} to list numbers of arguments, from 0 to {len(arguments) - 1}, "
                f"whose contents never change, got {wrong[0]}; leave the attribute out if all "
                "arguments change between calls",
            )
        fixed = {arguments[number] for number in numbers}
        made = set(fixed)
        for op in function.entry_block if numbers else ():
            if op.operation.name in FREE:
                fixed.update(op.results)
            elif _is_elementwise(op) and all(each in fixed for each in op.operands):
                fixed.update(op.results)
                made.update(op.results if any(each in made for each in op.operands) else ())
        return Frozen(fixed, made)


def computed_once(function: func.FuncOp) -> list[ir.Value]:
    """Tensors that a program should compute once for many calls. The first kind is computed from
    frozen arguments and read, together with other tensors, by a larger elementwise op: fused into
    that op, each element would be computed many times. Examples are the factors of a batch norm and
    the cosines of positions. The second kind is a concatenation of frozen arguments, because a
    product cannot read its operand in parts."""
    frozen = Frozen.of(function)
    found: dict[ir.Value, None] = {}
    for op in function.entry_block if frozen.made else ():
        if isinstance(op, tensor.ConcatOp) and all(
            isinstance(each, ir.BlockArgument) and each in frozen.made for each in op.operands
        ):
            found[op.results[0]] = None
        if not _is_elementwise(op) or op.results[0] in frozen.fixed:
            continue
        for each in map(_computed, filter(frozen.made.__contains__, op.operands)):
            argument = isinstance(each, ir.BlockArgument)
            if not argument and prod(each.type.shape) < prod(op.results[0].type.shape):
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
