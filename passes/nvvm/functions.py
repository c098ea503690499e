"""exp, tanh and erf on register tiles."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.passes.build.functions import FUNCTIONS, function

from .converter import Converter, lower


@lower(*FUNCTIONS)
def convert_function(converter: Converter, op: ir.OpView) -> None:
    """A few f32 instructions of stated accuracy."""
    name, given = op.operation.name, converter.ssa(op.operation.operands[0])
    converter.values[op.operation.results[0]] = function(name, given)
