"""Lowering of `arith.fptosi`, `fptoui`, `trunci` and `extsi`: i8 numbers in words of four, numbers
of other types one by one."""

from __future__ import annotations

from tcir._mlir import arith, ir, llvm
from tcir.dialect.attributes import integer_type
from tcir.passes.emit import simt

from .converter import Converter, lower
from .scalar import WORD_BYTES, convert_elementwise, converted_type, is_i8

WORD = 8 * WORD_BYTES


@lower("arith.fptosi", "arith.fptoui", "arith.trunci")
def convert_to_integer(converter: Converter, op: ir.OpView) -> None:
    """Converts a float to an i32 first; the bytes of four columns form a word.

    ``cvt.rzi`` to a type of less than 32 bits would clamp the number to the range of that type;
    here the low bits are kept, as in the reference interpreter. An i8 number is held in an i32,
    whose low byte is stored.
    """
    (source,), result = op.operation.operands, op.operation.results[0]
    of_float = op.operation.name != "arith.trunci"
    width = getattr(result.type, "element_type", result.type).width
    if not is_i8(result.type) and not (of_float and width < WORD):
        convert_elementwise(converter, op)
        return
    number = converter.ssa(source)
    shape = number.type.shape if isinstance(number.type, ir.VectorType) else None
    wide = integer_type(WORD) if shape is None else ir.VectorType.get(shape, integer_type(WORD))
    if of_float:
        number = ir.Operation.create(op.operation.name, [wide], [number]).result
    elif number.type != wide:
        number = arith.extsi(wide, number)
    kind = converted_type(result.type)
    converter.values[result] = (
        arith.trunci(kind, number)
        if not is_i8(result.type)
        else _words(converter, number, kind)
        if shape
        else number
    )


@lower("arith.extsi")
def convert_extsi(converter: Converter, op: ir.OpView) -> None:
    """Extends the bytes of a register tile, each to an i32 or wider."""
    (source,), result = op.operation.operands, op.operation.results[0]
    if not (is_i8(source.type) and isinstance(source.type, ir.VectorType)):
        convert_elementwise(converter, op)
        return
    words = converter.ssa(source)
    kind = ir.VectorType.get(source.type.shape[1:], integer_type(WORD))
    numbers, top = llvm.mlir_poison(kind), converter.constant(WORD - 8)
    for place in range(kind.shape[0]):
        number, byte = divmod(place, WORD_BYTES)
        word = llvm.extractelement(words, converter.constant(number))
        moved = simt.left(word, WORD - 8 - 8 * byte)
        signed = arith.ShRSIOp(moved, top).result
        numbers = llvm.insertelement(numbers, signed, converter.constant(place))
    row = converted_type(result.type)
    converter.values[result] = numbers if row == kind else _resized(numbers, row)


def _resized(numbers: ir.Value, kind: ir.VectorType) -> ir.Value:
    wider = kind.element_type.width > WORD
    return (arith.ExtSIOp if wider else arith.TruncIOp)(kind, numbers).result


def _words(converter: Converter, numbers: ir.Value, kind: ir.Type) -> ir.Value:
    """The low bytes of four i32 each, the first column lowest."""
    words = llvm.mlir_poison(kind)
    for place in range(kind.shape[0]):
        word: ir.Value | None = None
        for byte in range(WORD_BYTES):
            number = llvm.extractelement(numbers, converter.constant(WORD_BYTES * place + byte))
            part = simt.left(simt.both_bits(number, 0xFF), 8 * byte)
            word = part if word is None else simt.either_bits(word, part)
        words = llvm.insertelement(words, word, converter.constant(place))
    return words
