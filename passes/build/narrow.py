"""Numbers of a byte on CUDA cores: in memory as they are, in a register as an i32.

A byte has no register (PTX ISA 5.2.2): an i8 is its sign-extended number there, an f8 its code. An
i1 in memory is a byte, 0 or 1, and in a register a predicate.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import arith, ir
from tcir.dialect.attributes import integer_type
from tcir.passes.build import simt
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.build.fp8 import FP8, rounded_code, widened_code
from tcir.passes.build.functions import (
    FUNCTIONS,
    NAMES,
    NO_EXPONENT,
    POWERS,
    constant_number,
    divided,
    function,
)

LOW, WORD = 0xFF, 32
WRAPPING = ("arith.addi", "arith.muli", "arith.shli", "arith.subi", "arith.xori")
"""Ops on i8 whose result may leave its range in a word."""
CLOSED = (
    "arith.andi", "arith.cmpi", "arith.maxsi", "arith.maxui", "arith.minsi", "arith.minui",
    "arith.ori", "arith.select", "arith.shrsi",
)  # fmt: skip
"""Ops that are the same on sign-extended words: these keep the order, the unsigned one, too."""


def is_fp8(kind: ir.Type) -> bool:
    """Whether it is a number of fp8."""
    return str(kind) in FP8


def is_byte(kind: ir.Type) -> bool:
    """Whether a number has a byte."""
    return is_fp8(kind) or str(kind) == "i8"


def register(kind: ir.Type) -> ir.Type:
    """The type in a register: of a byte i32, of an index i64."""
    kind = getattr(kind, "element_type", kind)
    if isinstance(kind, ir.IndexType):
        return integer_type(64)
    return integer_type(WORD) if is_byte(kind) else kind


def load(address: ir.Value, kind: ir.Type) -> ir.Value:
    """One element."""
    if is_fp8(kind):
        return simt.load_byte(address)
    if str(kind) == "i8":
        return wrapped(simt.load_byte(address))
    if str(kind) == "i1":
        return resized(simt.load_byte(address), 1)
    return simt.load(address, kind)


def store(address: ir.Value, value: ir.Value, kind: ir.Type) -> None:
    """One element."""
    if is_byte(kind):
        simt.store_byte(address, value)
    elif str(kind) == "i1":
        simt.store_byte(address, arith.ExtUIOp(integer_type(WORD), value).result)
    else:
        simt.store(address, value)


def constant(kind: ir.Type, value: ir.Attribute) -> ir.Value:
    """A number; value: an attribute of its type."""
    if is_fp8(kind):
        return rounded_code(simt.number(ir.FloatAttr(value).value), str(kind))
    held = register(kind)
    if held != kind:
        value = ir.IntegerAttr.get(held, ir.IntegerAttr(value).value)
    return arith.ConstantOp(held, value).result


def wrapped(word: ir.Value) -> ir.Value:
    """The low byte, sign-extended."""
    left = simt.left(word, WORD - 8)
    return arith.ShRSIOp(left, simt.constant(WORD - 8)).result


def resized(number: ir.Value, width: int, signed: bool = True) -> ir.Value:
    """An integer of another width."""
    kind = integer_type(width)
    if number.type.width < width:
        return (arith.ExtSIOp if signed else arith.ExtUIOp)(kind, number).result
    return number if number.type == kind else arith.TruncIOp(kind, number).result


def computed(op: ir.OpView, operands: Sequence[ir.Value]) -> ir.Value:
    """An op of ``arith`` or ``math`` on numbers in registers."""
    name = op.operation.name
    source, result = (
        getattr(v.type, "element_type", v.type)
        for v in (op.operation.operands[-1], op.operation.results[0])
    )
    held = register(result)
    if name.startswith("arith.index_cast"):
        return resized(operands[0], held.width, name == "arith.index_cast")
    if name in ("arith.fptosi", "arith.fptoui") and result.width < WORD:
        word = scalar(op, operands, [integer_type(WORD)])
        return _narrowed(word, result)
    if not is_byte(source) and not is_byte(result):
        return scalar(op, operands, [held])
    if is_fp8(source) or is_fp8(result):
        return _of_fp8(op, operands, source, result)
    if name in CLOSED:
        return scalar(op, operands, [held])
    if name in WRAPPING:
        return wrapped(scalar(op, operands, [held]))
    (number, *rest) = operands
    if name == "arith.shrui":
        return wrapped(scalar(op, [simt.both_bits(number, LOW), *rest], [held]))
    if name == "arith.extui" and source != result and is_byte(source):
        return resized(simt.both_bits(number, LOW), result.width)
    if name == "arith.extsi" and is_byte(source):
        return resized(number, result.width)
    if name == "arith.uitofp":
        return scalar(op, [simt.both_bits(number, LOW)], [held])
    if name == "arith.trunci":
        return _narrowed(number, result)
    return scalar(op, operands, [held])  # from i1, to floats


def _narrowed(number: ir.Value, kind: ir.Type) -> ir.Value:
    """The low bits of an integer, as a number of a narrower type."""
    if is_byte(kind):
        return wrapped(resized(number, WORD))
    return resized(number, kind.width)


def _of_fp8(
    op: ir.OpView, operands: Sequence[ir.Value], source: ir.Type, result: ir.Type
) -> ir.Value:
    """Conversions, which there are of pairs (PTX ISA 9.7.9.21), and moves of the code."""
    name, number = op.operation.name, operands[0]
    if name == "arith.select":
        return scalar(op, operands, [register(result)])
    if name == "arith.bitcast":
        return wrapped(number) if is_fp8(source) else simt.both_bits(number, LOW)
    if name == "arith.extf":
        return widened_code(number, str(source), result)
    if name == "arith.truncf" and source.width <= WORD:
        return rounded_code(number, str(result))
    raise match_failure(
        op,
        f"expected {name} on f32, f16 or bf16, got {source} and {result} (fp8 is only converted, "
        "PTX ISA 9.7.9.21); extend with arith.extf first, and round last",
    )


def scalar(
    op: ir.OpView, operands: Sequence[ir.Value], kinds: Sequence[ir.Type] | None = None
) -> ir.Value:
    """An op of ``arith`` or ``math`` on numbers; kinds: of its results, if not its own."""
    name = op.operation.name
    if name in FUNCTIONS or name in POWERS:
        if isinstance(operands[0].type, ir.F64Type):
            raise match_failure(
                op,
                f"expected {name} of f32 or narrower, got one of f64 (PTX ISA 9.7.3: its "
                "instruction has no such form); round with arith.truncf in front",
            )
        if name in FUNCTIONS:
            return function(name, operands[0])
        exponent = constant_number(op.operation.operands[1])
        if exponent is None:
            raise match_failure(op, NO_EXPONENT.format(name))
        return function(name, operands[0], exponent)
    if name == "math.fma":
        return simt.fma(*operands)
    if name.startswith("math."):
        raise match_failure(
            op,
            f"expected arith ops, {', '.join(NAMES)} in an epilogue, got {name}, which has no "
            "lowering; compute it in a function of its own",
        )
    if name == "arith.divf":
        return divided(*operands)
    attributes = {each: op.operation.attributes[each] for each in op.operation.attributes}
    own = [getattr(r.type, "element_type", r.type) for r in op.operation.results]
    return ir.Operation.create(name, kinds or own, operands, attributes).result
