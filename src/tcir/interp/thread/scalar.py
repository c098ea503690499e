"""Arithmetic of `arith`, and the corresponding ops of `llvm`, one scalar at a time."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeAlias

from tcir._mlir import ir
from tcir.dialect.attributes import defining
from tcir.errors import IncompleteError
from tcir.interp.thread.speller import (
    CONSTANTS,
    Registers,
    Speller,
    bits,
    expect,
    only,
    register_class,
    scalars,
    spelling,
)

# Instruction by op; {w} is the width in bits. One entry for `arith`, one for `llvm`.
_INTEGER = {
    "add.s{w}": ("arith.addi", "llvm.add"),
    "sub.s{w}": ("arith.subi", "llvm.sub"),
    "mul.lo.s{w}": ("arith.muli", "llvm.mul"),
    "div.s{w}": ("arith.divsi", "llvm.sdiv"),
    "div.u{w}": ("arith.divui", "llvm.udiv"),
    "rem.s{w}": ("arith.remsi", "llvm.srem"),
    "rem.u{w}": ("arith.remui", "llvm.urem"),
    "min.s{w}": ("arith.minsi", "llvm.intr.smin"),
    "min.u{w}": ("arith.minui", "llvm.intr.umin"),
    "max.s{w}": ("arith.maxsi", "llvm.intr.smax"),
    "max.u{w}": ("arith.maxui", "llvm.intr.umax"),
}
_BITWISE = {
    "and": ("arith.andi", "llvm.and"),
    "or": ("arith.ori", "llvm.or"),
}
_SHIFT = {
    "shl.b{w}": ("arith.shli", "llvm.shl"),
    "shr.u{w}": ("arith.shrui", "llvm.lshr"),
    "shr.s{w}": ("arith.shrsi", "llvm.ashr"),
}
_FLOAT = {
    "add.rn.{t}": ("arith.addf", "llvm.fadd"),
    "sub.rn.{t}": ("arith.subf", "llvm.fsub"),
    "mul.rn.{t}": ("arith.mulf", "llvm.fmul"),
    "max.NaN.{t}": ("arith.maximumf", "llvm.intr.maximum"),
    "min.NaN.{t}": ("arith.minimumf", "llvm.intr.minimum"),
    "max.{t}": ("arith.maxnumf", "llvm.intr.maxnum"),
    "min.{t}": ("arith.minnumf", "llvm.intr.minnum"),
    "neg.{t}": ("arith.negf", "llvm.fneg"),
}
_INTEGER_PREDICATES = (
    "eq.b", "ne.b", "lt.s", "le.s", "gt.s", "ge.s", "lt.u", "le.u", "gt.u", "ge.u",
)  # fmt: skip
"""PTX comparison by predicate number, which is the same in both dialects."""
_FLOAT_PREDICATES = (
    "", "eq", "gt", "ge", "lt", "le", "ne", "num",
    "equ", "gtu", "geu", "ltu", "leu", "neu", "nan", "",
)  # fmt: skip
"""PTX comparison by predicate number: false, ordered ones, "ordered", unordered ones, "unordered",
true."""

Spell: TypeAlias = Callable[..., None]
"""Spells one scalar: ``(speller, op, register, *registers of the operands)``."""
Pattern: TypeAlias = Callable[[ir.Type, ir.Type], str]
"""An instruction, from the types of the scalars of result and first operand."""


def per_scalar(*names: str, attributes: Sequence[str] = ()) -> Callable[[Spell], Spell]:
    """Decorator that makes a function the rule of ops on scalars, and on vectors of one shape,
    whose scalars it translates one after the other.

    attributes: attributes that the function reads
    """

    def register(spell: Spell) -> Spell:
        def convert(speller: Speller, op: ir.Operation) -> None:
            only(op, *attributes)
            sources = [speller.read(operand) for operand in op.operands]
            for target, *scalar in zip(speller.define(op.results[0]), *sources, strict=True):
                spell(speller, op, target, *scalar)

        convert.__doc__ = spell.__doc__
        spelling(*names)(convert)
        return spell

    return register


def instruction(pattern: Pattern, *names: str) -> None:
    """Adds a rule for ops each of which is one instruction per scalar."""

    @per_scalar(*names)
    def spell(speller: Speller, op: ir.Operation, target: str, *sources: str) -> None:
        speller.emit(f"{pattern(*_kinds(op))} {target}, {', '.join(sources)}")


def _kinds(op: ir.Operation) -> tuple[ir.Type, ir.Type]:
    """Types of the scalars of the result and the first operand."""
    return scalars(op.results[0].type)[0], scalars(op.operands[0].type)[0]


def _wide(template: str) -> Pattern:
    def pattern(_: ir.Type, kind: ir.Type) -> str:
        if bits(kind) == 1:
            raise IncompleteError(f"no rule for {template} of i1")
        return template.format(w=bits(kind))

    return pattern


def _by_register(template: str) -> Pattern:
    return lambda _, kind: f"{template}.{register_class(kind)}"


def _by_number(template: str) -> Pattern:
    return lambda _, kind: template.format(t=float_name(kind))


def float_name(kind: ir.Type) -> str:
    """Returns PTX's name of a float type: ``f16``, ``bf16``, ``f32`` or ``f64``."""
    if not isinstance(kind, ir.F16Type | ir.BF16Type | ir.F32Type | ir.F64Type):
        raise IncompleteError(f"no rule for numbers of type {kind}")
    return str(kind)


def _division(_: ir.Type, kind: ir.Type) -> str:
    """``div.rn``, which PTX does not have for 16-bit types (PTX ISA 9.7.3.8)."""
    if bits(kind) == 16:
        raise IncompleteError(f"no rule for a division of {kind}")
    return f"div.rn.{float_name(kind)}"


def _to_float(sign: str) -> Pattern:
    def pattern(new: ir.Type, old: ir.Type) -> str:
        if bits(old) == 1:
            raise IncompleteError("no rule for an i1 as a float")
        return f"cvt.rn.{float_name(new)}.{sign}{bits(old)}"

    return pattern


def _to_integer(sign: str) -> Pattern:
    def pattern(new: ir.Type, old: ir.Type) -> str:
        if bits(new) == 1:
            raise IncompleteError("no rule for a float as an i1")
        return f"cvt.rzi.{sign}{bits(new)}.{float_name(old)}"

    return pattern


for _template, _names in _INTEGER.items():
    instruction(_wide(_template), *_names)
for _template, _names in _BITWISE.items():
    instruction(_by_register(_template), *_names)
for _template, _names in _FLOAT.items():
    instruction(_by_number(_template), *_names)
instruction(_by_number("fma.rn.{t}"), "llvm.intr.fma")
instruction(_division, "arith.divf", "llvm.fdiv")
instruction(lambda new, old: f"cvt.{float_name(new)}.{float_name(old)}", "arith.extf", "llvm.fpext")
for _sign in "su":
    instruction(_to_float(_sign), f"arith.{_sign}itofp", f"llvm.{_sign}itofp")
    instruction(_to_integer(_sign), f"arith.fpto{_sign}i", f"llvm.fpto{_sign}i")


@per_scalar("arith.xori", "llvm.xor")
def _exclusive_or(speller: Speller, op: ir.Operation, target: str, a: str, b: str) -> None:
    """Spells ``xor``; ``not`` for a predicate and true, as LLVM does, so that a loop around a wait
    does nothing but wait (`tcir.interp.ptx.idle`)."""
    if _is_true(op.operands[1]):
        speller.emit(f"not.pred {target}, {a}")
    else:
        speller.emit(f"{_by_register('xor')(*_kinds(op))} {target}, {a}, {b}")


def _is_true(value: ir.Value) -> bool:
    op = defining(value)
    if op is None or op.operation.name not in CONSTANTS or str(value.type) != "i1":
        return False
    return _literal(op.operation.attributes["value"], value.type) == "1"


def _shift(template: str) -> Spell:
    def spell(speller: Speller, op: ir.Operation, target: str, value: str, amount: str) -> None:
        width = bits(_kinds(op)[1])
        if width != 32:  # the amount is always 32 bits (PTX ISA 9.7.8)
            wide, amount = amount, speller.fresh("b32")
            speller.emit(f"cvt.u32.u{width} {amount}, {wide}")
        speller.emit(f"{template.format(w=width)} {target}, {value}, {amount}")

    return spell


for _template, _names in _SHIFT.items():
    per_scalar(*_names)(_shift(_template))


@per_scalar("arith.cmpi", "llvm.icmp", attributes=("predicate",))
def _compare_integers(speller: Speller, op: ir.Operation, target: str, a: str, b: str) -> None:
    kind, sign = _INTEGER_PREDICATES[ir.IntegerAttr(op.attributes["predicate"]).value].split(".")
    if (width := bits(_kinds(op)[1])) != 1:
        speller.emit(f"setp.{kind}.{sign}{width} {target}, {a}, {b}")
        return
    if kind not in ("eq", "ne"):
        raise IncompleteError(f"no rule for {kind} of i1")
    speller.emit(f"xor.pred {target}, {a}, {b}")
    if kind == "eq":
        speller.emit(f"not.pred {target}, {target}")


@per_scalar("arith.cmpf", "llvm.fcmp", attributes=("predicate",))
def _compare_floats(speller: Speller, op: ir.Operation, target: str, a: str, b: str) -> None:
    number = ir.IntegerAttr(op.attributes["predicate"]).value
    kind = _FLOAT_PREDICATES[number]
    if not kind:
        raise IncompleteError(f"no rule for predicate {number}, a constant")
    speller.emit(f"setp.{kind}.{float_name(_kinds(op)[1])} {target}, {a}, {b}")


@spelling("arith.select", "llvm.select")
def _select(speller: Speller, op: ir.Operation) -> None:
    only(op)
    condition, yes, no = (speller.read(operand) for operand in op.operands)
    types = scalars(op.results[0].type)
    conditions = condition if len(condition) == len(types) else condition * len(types)
    targets = speller.define(op.results[0])
    for target, p, a, b, kind in zip(targets, conditions, yes, no, types, strict=True):
        if bits(kind) == 1:
            taken, other = speller.fresh("pred"), speller.fresh("pred")
            speller.emit(f"and.pred {taken}, {p}, {a}")
            speller.emit(f"not.pred {other}, {p}")
            speller.emit(f"and.pred {other}, {other}, {b}")
            speller.emit(f"or.pred {target}, {taken}, {other}")
        else:
            speller.emit(f"selp.{register_class(kind)} {target}, {a}, {b}, {p}")


def _extend(sign: str) -> Spell:
    def spell(speller: Speller, op: ir.Operation, target: str, source: str) -> None:
        new, old = map(bits, _kinds(op))
        if old == 1:
            true = 1 if sign == "u" else -1
            speller.emit(f"selp.b{new} {target}, {true}, 0, {source}")
        else:
            speller.emit(f"cvt.{sign}{new}.{sign}{old} {target}, {source}")

    return spell


per_scalar("arith.extui", "llvm.zext")(_extend("u"))
per_scalar("arith.extsi", "llvm.sext")(_extend("s"))


@per_scalar("arith.trunci", "llvm.trunc")
def _truncate(speller: Speller, op: ir.Operation, target: str, source: str) -> None:
    new, old = map(bits, _kinds(op))
    if new == 1:
        bit = speller.fresh(f"b{old}")
        speller.emit(f"and.b{old} {bit}, {source}, 1")
        speller.emit(f"setp.ne.b{old} {target}, {bit}, 0")
    else:
        speller.emit(f"cvt.u{new}.u{old} {target}, {source}")


@per_scalar("arith.truncf", "llvm.fptrunc", attributes=("roundingmode",))
def _round(speller: Speller, op: ir.Operation, target: str, source: str) -> None:
    expect(op, "roundingmode", "", "0 : i32", "to_nearest_even")
    new, old = map(float_name, _kinds(op))
    speller.emit(f"cvt.rn.{new}.{old} {target}, {source}")


@spelling("arith.index_cast", "arith.index_castui")
def _index_cast(speller: Speller, op: ir.Operation) -> None:
    only(op)
    new, old = bits(op.results[0].type), bits(op.operands[0].type)
    source = speller.read_one(op.operands[0])
    if new == old:
        speller.rename(op.results[0], [source])
        return
    sign = "s" if op.name == "arith.index_cast" else "u"
    speller.emit(f"cvt.{sign}{new}.{sign}{old} {speller.define_one(op.results[0])}, {source}")


@spelling("arith.bitcast", "llvm.bitcast")
def _bitcast(speller: Speller, op: ir.Operation) -> None:
    only(op)
    old, new = scalars(op.operands[0].type), scalars(op.results[0].type)
    sources = speller.read(op.operands[0])
    if [register_class(kind) for kind in old] == [register_class(kind) for kind in new]:
        speller.rename(op.results[0], sources)
        return
    targets = speller.define(op.results[0])
    if len(old) > len(new):
        for target, kind, group in zip(targets, new, _groups(sources, len(new)), strict=True):
            speller.emit(f"mov.{register_class(kind)} {target}, {{{', '.join(group)}}}")
    else:
        for source, kind, group in zip(sources, old, _groups(targets, len(old)), strict=True):
            speller.emit(f"mov.{register_class(kind)} {{{', '.join(group)}}}, {source}")


def _groups(registers: Registers, count: int) -> list[Registers]:
    size = len(registers) // count
    return [registers[i : i + size] for i in range(0, len(registers), size)]


@spelling(*CONSTANTS)
def _constant(speller: Speller, op: ir.Operation) -> None:
    only(op, "value")
    result, value = op.results[0], op.attributes["value"]
    kinds = scalars(result.type)
    if isinstance(result.type, ir.VectorType):
        dense = ir.DenseElementsAttr(value)
        if not dense.is_splat:
            raise IncompleteError(f"no rule for the constant {value}")
        value = dense.get_splat_value()
    for target, kind in zip(speller.define(result), kinds, strict=True):
        speller.emit(f"mov.{register_class(kind)} {target}, {_literal(value, kind)}")


def _literal(value: ir.Attribute, kind: ir.Type) -> str:
    if isinstance(value, ir.BoolAttr):
        return str(int(value.value))
    if isinstance(value, ir.IntegerAttr):
        number = value.value
        return str(int(bool(number))) if bits(kind) == 1 else str(number)
    if isinstance(value, ir.FloatAttr) and isinstance(kind, ir.F32Type):
        return f"0x{struct.unpack('<I', struct.pack('<f', value.value))[0]:08X}"
    if isinstance(value, ir.FloatAttr) and isinstance(kind, ir.F64Type):
        return f"0d{struct.unpack('<Q', struct.pack('<d', value.value))[0]:016X}"
    if isinstance(value, ir.FloatAttr) and isinstance(kind, ir.F16Type):
        return f"0x{struct.unpack('<H', struct.pack('<e', value.value))[0]:04X}"
    if isinstance(value, ir.FloatAttr) and isinstance(kind, ir.BF16Type):
        word = struct.unpack("<I", struct.pack("<f", value.value))[0]
        return f"0x{word >> 16:04X}"  # the attribute holds a bf16, so nothing is cut off
    raise IncompleteError(f"no rule for the constant {value}")
