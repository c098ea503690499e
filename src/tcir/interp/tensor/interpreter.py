"""The evaluator of programs on whole tensors. It walks the ops of a block, calls the rule of each
op, and keeps the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from tcir._mlir import ir
from tcir.errors import IncompleteError, InputError
from tcir.interp.rules import Rules
from tcir.interp.types import Array

Values: TypeAlias = Mapping["ir.Value", Array]

evaluate: Rules[Callable[..., Sequence[Array]]] = Rules("tensor")
"""The rules of this level: ``@evaluate(op)`` of ``(interpreter, op, *operands) -> results``.

Operands and results are numpy: arrays for tensors and vectors, numpy scalars for scalars (``index``
is int64, i1 bool). Inside the region of a structured op scalars are arrays over the iteration
space, so arithmetic rules must broadcast. A rule never writes into an operand other than a memref,
whose array several values may share. The rule of a terminator returns its operands.
"""


class Interpreter:
    """Evaluates blocks of one function."""

    def __init__(self) -> None:
        self.iteration: Sequence[Array] = ()
        """Value of each loop inside a structured op's region (`linalg.index`)."""
        self.values: Values = {}
        """Values visible at the current op."""
        self.current: ir.Operation | None = None
        """The operation being executed."""

    def block(self, block: ir.Block, arguments: Sequence[Array], outer: Values) -> Sequence[Array]:
        """Runs `block` and returns the operands of its terminator. outer: values from outside the
        block
        """
        values = dict(outer)
        values.update(zip(block.arguments, arguments, strict=True))
        results: Sequence[Array] = ()
        for view in block.operations:
            op = view.operation
            self.values, self.current = values, op
            if op.name not in evaluate:
                raise IncompleteError("no rule at tensor level")
            results = evaluate[op.name](self, view, *(values[o] for o in op.operands))
            if op.results:
                _check_results(op, results)
            values.update(zip(op.results, results))
        return results

    def region(self, op: ir.OpView, arguments: Sequence[Array], number: int = 0) -> Sequence[Array]:
        """Runs the single block of one of the regions of `op`, with the values visible at `op`."""
        outer = self.values
        try:
            return self.block(op.operation.regions[number].blocks[0], arguments, outer)
        finally:
            self.values = outer


def _check_results(op: ir.Operation, results: object) -> None:
    """InputError unless a rule, which a plugin may define, returned one value per result."""
    many = len(results) if isinstance(results, list | tuple) else -1
    if many != len(op.results):
        got = type(results).__name__ if many < 0 else f"one of {many}"
        raise InputError(
            f"{op.name}: expected its @evaluate rule to return a list of {len(op.results)}, "
            f"got {got}; for example: return [x + 1]"
        )
