"""Moves scalars between the tensor ops of a function into the bodies that use them."""

from __future__ import annotations

from tcir._mlir import func, ir, passmanager
from tcir.dialect.walk import walk
from tcir.passes.emit.clone import clone
from tcir.passes.emit.generic import zero
from tcir.passes.emit.tensor_functions import erase_unread, functions_with_body


def read_in_bodies(module: ir.Module) -> None:
    """Moves ops that compute scalars (``tensor.extract %t[]``, and ``arith`` ops on it) into the
    bodies of the ``linalg`` ops that read the scalars. Named ops with such operands become
    ``linalg.generic``.
    """
    for function in functions_with_body(module):
        if len(function.regions[0].blocks) != 1 or not _numbers(function):
            continue
        if any(_given(op) and op.operation.name != "linalg.generic" for op in function.entry_block):
            passes = passmanager.PassManager.parse("func.func(linalg-generalize-named-ops)")
            passes.run(function.operation)
        for op in list(function.entry_block):
            if op.operation.name == "linalg.generic":
                _read_inside(op)
        erase_unread(function)


def _numbers(function: func.FuncOp) -> list[ir.Value]:
    """Scalars that depend on a tensor."""
    return [r for op in function.entry_block for r in op.operation.results if _is_made(r)]


def _is_made(value: ir.Value) -> bool:
    if isinstance(value, ir.BlockArgument) or not isinstance(
        value.type, ir.FloatType | ir.IntegerType
    ):
        return False
    op = value.owner
    if op.parent.name != "func.func":
        return False
    if op.name == "tensor.extract":
        return len(op.operands) == 1
    return op.name.startswith("arith.") and any(map(_is_made, op.operands))


def _given(op: ir.OpView) -> list[int]:
    """Numbers of the operands of a ``linalg`` op that are scalars which depend on a tensor."""
    if not op.operation.name.startswith("linalg."):
        return []
    return [n for n, each in enumerate(op.operation.operands) if _is_made(each)]


def _read_inside(op: ir.OpView) -> None:
    block = op.regions[0].blocks[0]
    for number in _given(op):
        value, argument = op.operands[number], block.arguments[number]
        argument.replace_all_uses_with(value)
        with ir.InsertionPoint(op), op.location:
            op.operation.operands[number] = zero(value.type)
    known: dict[ir.Value, ir.Value] = {}
    inner = [each for each in walk(op) if each.operation != op.operation]
    with ir.InsertionPoint.at_block_begin(block):
        for each in inner:
            for number, operand in enumerate(each.operation.operands):
                if _is_made(operand):
                    each.operation.operands[number] = _inside(operand, known)


def _inside(value: ir.Value, known: dict[ir.Value, ir.Value]) -> ir.Value:
    """The number, made where ops are inserted."""
    if value not in known and not isinstance(value, ir.BlockArgument):
        for operand in value.owner.operands:
            if not isinstance(operand.type, ir.ShapedType):
                _inside(operand, known)
        clone(value.owner.opview, known)
    return known.get(value, value)
