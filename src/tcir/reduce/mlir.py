"""Moves on MLIR text: they remove ops, results and arguments, and shrink shapes.

A smaller program that the verifier rejects is no candidate: the functions return `None` for it, or
do not yield it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import prod

from tcir._mlir import func, ir
from tcir.errors import Error
from tcir.program.source import mlir_context

TYPE = re.compile(r"(?:tensor|memref|vector)<((?:\d+x)+)")
Move = Callable[[str, bool], Iterator[str]]
"""Maps the text of a module, and whether it may have unknown ops, to smaller modules."""
WITH_BODY = ("linalg.generic", "linalg.map", "linalg.reduce")
"""Ops of linalg whose region states what they compute."""


def canonical(text: str, unregistered: bool) -> str | None:
    """The module as MLIR prints it; None if the text is not a valid module."""
    return _edited(text, unregistered, lambda module: True)


def count_ops(text: str, unregistered: bool) -> int:
    """Number of ops that can be removed."""
    with mlir_context(allow_unregistered=unregistered) as context:
        module = ir.Module.parse(text, context)  # whose ops end with it
        return len(_removable(module))


def count_elements(text: str, unregistered: bool) -> int:
    """Number of elements of all arguments of all functions."""
    with mlir_context(allow_unregistered=unregistered) as context:
        module = ir.Module.parse(text, context)
        functions = _functions(module)
        kinds = [str(value.type) for each in functions for value in each.entry_block.arguments]
    shapes = [found[1].split("x")[:-1] for kind in kinds if (found := TYPE.match(kind))]
    return sum(prod(map(int, shape)) for shape in shapes)


def with_ops(text: str, unregistered: bool, kept: Sequence[int]) -> str | None:
    """Returns the program with only the removable ops in `kept`.

    A result of a removed op is replaced by the op's first operand of the same type or, in a
    function on tensors, by a new argument.
    """

    def edit(module: ir.Module) -> bool:
        ops = _removable(module)
        return all(_left_out(ops[n]) for n in reversed(range(len(ops))) if n not in set(kept))

    return _edited(text, unregistered, edit)


def returning_less(text: str, unregistered: bool) -> Iterator[str]:
    """Yields programs that return one result fewer, or that return an operand of the op that
    computes a result instead of the result.
    """
    for number in range(_most_results(text, unregistered)):
        for operand in (None, 0, 1, 2):
            found = _edited(text, unregistered, partial(_returned, number=number, operand=operand))
            if found is not None:
                yield found


def without_arguments(text: str, unregistered: bool) -> Iterator[str]:
    """Yields the program without unused arguments."""
    found = _edited(text, unregistered, _drop_arguments)
    if found is not None:
        yield found


def extents(text: str) -> list[int]:
    """Extents in shapes that can be reduced (all but 0 and 1), the largest first."""
    found = {int(n) for m in TYPE.finditer(text) for n in m[1].split("x")[:-1]}
    return sorted(found - {0, 1}, reverse=True)


def with_extents(text: str, unregistered: bool, to: Mapping[int, int]) -> str | None:
    """Replaces extents in the shapes of the program, as the mapping `to` says; None if no shape has
    any of them.
    """

    def shape(match: re.Match[str]) -> str:
        extents = (int(n) for n in match[1].split("x")[:-1])
        new = "".join(f"{to.get(n, n)}x" for n in extents)
        return match[0].replace(match[1], new)

    found = TYPE.sub(shape, text)
    return None if found == text else canonical(found, unregistered)


def _edited(text: str, unregistered: bool, edit: Callable[[ir.Module], bool]) -> str | None:
    """The module after `edit`; None if `edit` returns false, or the result is not valid."""
    with mlir_context(allow_unregistered=unregistered) as context:
        context.emit_error_diagnostics = True
        handler = context.attach_diagnostic_handler(lambda _: True)
        try:
            module = ir.Module.parse(text, context)
            with module.context, ir.Location.unknown():
                if not edit(module):
                    return None
            return str(module) if module.operation.verify() else None
        except (ir.MLIRError, Error, ValueError):
            return None
        finally:
            handler.detach()


def _removable(module: ir.Module) -> list[ir.Operation]:
    """All ops except terminators and those inside a named op of linalg, which the name implies."""
    return list(_inside(module.operation))


def _inside(op: ir.Operation) -> Iterator[ir.Operation]:
    for region in op.regions:
        for block in region:
            ops = [each.operation for each in block]
            for each in ops if op.name == "builtin.module" else ops[:-1]:
                yield each
                if not each.name.startswith("linalg.") or each.name in WITH_BODY:
                    yield from _inside(each)


def _left_out(op: ir.Operation) -> bool:
    """Erases an op if its results can be replaced; returns whether that was possible."""
    for result in op.results:
        if not list(result.uses):
            continue
        same = [each for each in op.operands if each.type == result.type]
        instead = same[0] if same else _argument(op, result.type)
        if instead is None:
            return False
        result.replace_all_uses_with(instead)
    op.erase()
    return True


def _argument(op: ir.Operation, kind: ir.Type) -> ir.Value | None:
    """Adds an argument to the function of an op; None unless that function and `kind` are of
    tensors."""
    function = op.parent.opview
    if not isinstance(function, func.FuncOp) or not isinstance(kind, ir.RankedTensorType):
        return None
    value = function.entry_block.add_argument(kind, op.location)
    _retype(function, function.type.results)
    return value


def _retype(function: func.FuncOp, results: Sequence[ir.Type]) -> None:
    kinds = [each.type for each in function.entry_block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, results))
    for name in ("arg_attrs", "res_attrs"):
        if name in function.attributes:
            del function.attributes[name]


def _functions(module: ir.Module) -> list[func.FuncOp]:
    found = [op for op in module.body if isinstance(op, func.FuncOp)]
    return [each for each in found if not each.is_external]


def _most_results(text: str, unregistered: bool) -> int:
    with mlir_context(allow_unregistered=unregistered) as context:
        module = ir.Module.parse(text, context)
        return max((len(each.type.results) for each in _functions(module)), default=0)


def _returned(module: ir.Module, number: int, operand: int | None) -> bool:
    for function in _functions(module):
        end = list(function.entry_block)[-1].operation
        values = list(end.operands)
        if number >= len(values):
            continue
        if operand is None:
            del values[number]
        else:
            made = values[number].owner
            if isinstance(made, ir.Block) or operand >= len(made.operands):
                return False
            values[number] = made.operands[operand]
            if isinstance(values[number].owner, ir.Block):
                return False  # an argument: no program
        with ir.InsertionPoint(end):
            func.ReturnOp(values, loc=end.location)
        end.erase()
        _retype(function, [value.type for value in values])
        return True
    return False


def _drop_arguments(module: ir.Module) -> bool:
    dropped = False
    for function in _functions(module):
        block = function.entry_block
        for number in reversed(range(len(block.arguments))):
            if not list(block.arguments[number].uses):
                block.erase_argument(number)
                dropped = True
        _retype(function, function.type.results)
    return dropped
