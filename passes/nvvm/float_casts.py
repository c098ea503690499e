"""Lowering of `arith.truncf` and `arith.extf`: fp8 numbers in pairs, numbers of other types one by
one.

An fp8 number is represented by its code in an i32, and a register tile of fp8 by words of codes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import arith, ir, llvm
from tcir.dialect.attributes import integer_type
from tcir.errors import PassError
from tcir.passes.emit import simt
from tcir.passes.emit.fp8 import FP8, rounded_code, rounded_pair, widened_code, widened_pair
from tcir.passes.emit.functions import constant_number

from .converter import Converter, lower
from .scalar import convert_elementwise, converted_type, is_fp8


@lower("arith.truncf")
def convert_truncf(converter: Converter, op: ir.OpView) -> None:
    """Converts to fp8 with ``cvt.rn.satfinite``. Numbers beyond the format's largest number must
    become NaN (e4m3) or infinity (e5m2), which takes further instructions, except after a clamp to
    the format's range."""
    (source,), result = op.operation.operands, op.operation.results[0]
    if not is_fp8(result.type):
        convert_elementwise(converter, op)
        return
    x = converter.ssa(source)
    if not isinstance(result.type, ir.VectorType):
        converter.values[result] = rounded_code(x, str(result.type))
        return
    words, element = _words(result.type), str(result.type.element_type)
    wide = ir.VectorType.get(x.type.shape, ir.F32Type.get())
    if x.type != wide:
        x = arith.extf(wide, x)
    bounded = _is_bounded(source, FP8[element].beyond)
    pairs = [
        rounded_pair(low, high, element, bounded) for low, high in _twos(converter.elements(x))
    ]
    converter.values[result] = llvm.bitcast(words, converter.vector(pairs))


@lower("arith.extf")
def convert_extf(converter: Converter, op: ir.OpView) -> None:
    """Widens fp8 by way of f16, which is exact."""
    (source,), result = op.operation.operands, op.operation.results[0]
    if not is_fp8(source.type):
        convert_elementwise(converter, op)
        return
    if not isinstance(source.type, ir.VectorType):
        code = converter.ssa(source)
        converter.values[result] = widened_code(code, str(source.type), result.type)
        return
    words, row = _words(source.type), converted_type(result.type)
    halves = ir.VectorType.get([2 * words.shape[0]], integer_type(16))
    pairs = converter.elements(llvm.bitcast(halves, converter.ssa(source)))
    element = str(source.type.element_type)
    numbers = [number for pair in pairs for number in widened_pair(pair, element)]
    wide = converter.vector(numbers)
    converter.values[result] = wide if wide.type == row else arith.truncf(row, wide)


def rounded_codes(numbers: list[ir.Value], source: ir.Value, element: str) -> list[ir.Value]:
    """The fp8 codes of `numbers`, two numbers per instruction. source: operand of the op"""
    bounded = _is_bounded(source, FP8[element].beyond)
    if numbers[0].type != ir.F32Type.get():
        numbers = [arith.extf(ir.F32Type.get(), number) for number in numbers]
    codes = []
    for low, high in _twos(numbers):
        pair = rounded_pair(low, high, element, bounded)
        word = arith.extui(integer_type(32), pair)
        codes += [simt.both_bits(word, 0xFF), simt.right(word, 8)]
    return codes


def _words(kind: ir.Type) -> ir.VectorType:
    """The converted type of a register tile of fp8."""
    words = converted_type(kind)
    if not isinstance(words, ir.VectorType):
        raise PassError(
            f"expected fp8 in a register tile, got {kind} (it is converted in pairs, PTX ISA "
            "9.7.9.21); round the tile"
        )
    return words


def _is_bounded(number: ir.Value, limit: float) -> bool:
    """Whether minimum and maximum with constants keep a number in ``[-limit, limit]``, or NaN."""
    sides = {"min": False, "max": False}
    while not isinstance(number.owner, ir.Block):
        op = number.owner.operation
        side = op.name.removeprefix("arith.")[:3]
        constants = [o for o in op.operands if constant_number(o) is not None]
        if side not in sides or not op.name.endswith("f") or len(constants) != 1:
            break
        (constant,) = constants
        sides[side] |= abs(constant_number(constant) or 0.0) <= limit
        number = next(o for o in op.operands if o != constant)
    return all(sides.values())


def _twos(numbers: list[ir.Value]) -> Iterator[tuple[ir.Value, ir.Value]]:
    return zip(numbers[::2], numbers[1::2], strict=True)
