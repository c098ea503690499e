"""Tensors that depend only on constants; the interpreter's rules for the tensor level evaluate
them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tcir._mlir import ir
from tcir.errors import IncompleteError
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array
from tcir.passes.analysis.element_graph import NotRaised

LARGEST = 1 << 24
"""Most elements of a tensor that is evaluated."""


def is_constant(tensor: ir.Value) -> bool:
    """Whether a tensor can be evaluated: it depends on no argument of the function."""
    return _ops_of(tensor) is not None


def evaluated(tensor: ir.Value) -> Array:
    """Returns the elements of a tensor for which `is_constant` is true; raises `NotRaised` if an op
    in a region has no rule."""
    ops = _ops_of(tensor)
    assert ops is not None
    interpreter, known = Interpreter(), dict[ir.Value, Array]()
    for op in ops:
        interpreter.values, interpreter.current = known, op
        operands = (known[each] for each in op.operands)
        try:
            results = evaluate[op.name](interpreter, op.opview, *operands)
        except IncompleteError as why:
            raise NotRaised(op, str(why)) from None
        known.update(zip(op.results, results))
    return known[tensor]


def _ops_of(tensor: ir.Value) -> list[ir.Operation] | None:
    """The ops by which a tensor is computed, in an order of execution; None if they read an
    argument, or one is too large or has no rule."""
    found: dict[ir.Operation, None] = {}
    left: list[tuple[ir.Value, bool]] = [(tensor, False)]
    while left:
        value, done = left.pop()
        if isinstance(value, ir.BlockArgument):
            return None
        op = value.owner.operation
        if done:
            found[op] = None
        elif op not in found:
            if op.name not in evaluate or any(map(_is_large, op.results)):
                return None
            left.append((value, True))
            left += [(each, False) for each in (*op.operands, *_captured(op))]
    return list(found)


def _captured(op: ir.Operation) -> Iterator[ir.Value]:
    """The values from outside that the regions of an op use."""
    for block in (block for region in op.regions for block in region):
        inside = {result for each in block for result in each.operation.results}
        inside |= set(block.arguments)
        for each in block:
            yield from (v for v in each.operation.operands if v not in inside)


def _is_large(value: ir.Value) -> bool:
    shaped = isinstance(value.type, ir.RankedTensorType)
    return shaped and (not value.type.has_static_shape or prod(value.type.shape) > LARGEST)
