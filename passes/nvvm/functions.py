"""Lowering of mathematical functions and powers on register tiles."""

from __future__ import annotations

from tcir._mlir import ir, llvm
from tcir.errors import PassError
from tcir.passes.emit.functions import FUNCTIONS, NO_EXPONENT, POWERS, constant_number, function

from .converter import Converter, lower


@lower(*FUNCTIONS)
def convert_function(converter: Converter, op: ir.OpView) -> None:
    """Lowers a function to a few f32 instructions of documented accuracy."""
    name, given = op.operation.name, converter.ssa(op.operation.operands[0])
    converter.values[op.operation.results[0]] = function(name, given)


@lower(*POWERS)
def convert_power(converter: Converter, op: ir.OpView) -> None:
    """Lowers a power. Depending on its exponent, it becomes products, a root, or a logarithm and an
    exponential."""
    given, exponent = op.operation.operands
    number = constant_number(exponent)
    if number is None:
        raise PassError(NO_EXPONENT.format(op.operation.name), op.location)
    name = op.operation.name
    converter.values[op.operation.results[0]] = function(name, converter.ssa(given), number)


@lower("math.fma")
def convert_fma(converter: Converter, op: ir.OpView) -> None:
    """Lowers to a single fma instruction, which rounds once."""
    operands = [converter.ssa(each) for each in op.operation.operands]
    converter.values[op.operation.results[0]] = llvm.intr_fma(*operands)
