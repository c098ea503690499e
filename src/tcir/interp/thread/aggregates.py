"""Vectors and structs: their ops emit no PTX, because they only give other names to scalars."""

from __future__ import annotations

from tcir._mlir import ir, llvm
from tcir.errors import IncompleteError
from tcir.interp.rules import site_of
from tcir.interp.thread.speller import (
    CONSTANTS,
    Speller,
    only,
    register_class,
    scalars,
    spelling,
)
from tcir.machine import MachineError


def _known_index(value: ir.Value) -> int:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name not in CONSTANTS:
        raise IncompleteError("no rule for a position in a vector that is not a constant")
    return int(ir.IntegerAttr(owner.attributes["value"]).value)


def _element(op: ir.Operation, index: int, count: int) -> int:
    """Returns `index`; an error unless it is one of `count` elements."""
    if not 0 <= index < count:
        words = f"expected an element of 0 to {count - 1}, got {index}"
        raise MachineError("bad-element", words, site=site_of(op))
    return index


@spelling("llvm.extractelement")
def _extract_element(speller: Speller, op: ir.Operation) -> None:
    only(op)
    vector, position = op.operands
    registers = speller.read(vector)
    index = _element(op, _known_index(position), len(registers))
    speller.rename(op.results[0], [registers[index]])


@spelling("llvm.insertelement")
def _insert_element(speller: Speller, op: ir.Operation) -> None:
    only(op)
    vector, value, position = op.operands
    registers = list(speller.read(vector))
    index = _element(op, _known_index(position), len(registers))
    registers[index] = speller.read_one(value)
    speller.rename(op.results[0], registers)


@spelling("llvm.shufflevector")
def _shuffle(speller: Speller, op: ir.Operation) -> None:
    only(op, "mask")
    both = [register for operand in op.operands for register in speller.read(operand)]
    mask = list(ir.DenseI32ArrayAttr(op.attributes["mask"]))
    kind = register_class(scalars(op.results[0].type)[0])
    picked = [
        both[_element(op, index, len(both))] if index >= 0 else speller.fresh(kind)
        for index in mask
    ]
    speller.rename(op.results[0], picked)


def _range(kind: ir.Type, position: list[int]) -> range:
    """Range of the scalars that the struct member at `position` occupies."""
    first = 0
    for index in position:
        if not isinstance(kind, llvm.StructType):
            raise IncompleteError(f"no rule for a member of {kind}")
        first += sum(len(scalars(part)) for part in kind.body[:index])
        kind = kind.body[index]
    return range(first, first + len(scalars(kind)))


@spelling("llvm.extractvalue")
def _extract_value(speller: Speller, op: ir.Operation) -> None:
    only(op, "position")
    container = op.operands[0]
    place = _range(container.type, list(ir.DenseI64ArrayAttr(op.attributes["position"])))
    registers = speller.read(container)
    speller.rename(op.results[0], [registers[i] for i in place])


@spelling("llvm.insertvalue")
def _insert_value(speller: Speller, op: ir.Operation) -> None:
    only(op, "position")
    container, value = op.operands
    place = _range(container.type, list(ir.DenseI64ArrayAttr(op.attributes["position"])))
    registers = list(speller.read(container))
    registers[place.start : place.stop] = speller.read(value)
    speller.rename(op.results[0], registers)


@spelling("llvm.mlir.poison", "llvm.mlir.undef", "ub.poison")
def _undefined(speller: Speller, op: ir.Operation) -> None:
    """Defines unwritten registers: reading one is an error on the machine."""
    speller.define(op.results[0])


@spelling("builtin.unrealized_conversion_cast")
def _cast(speller: Speller, op: ir.Operation) -> None:
    """Renames the registers, which keep their bits under another type."""
    only(op)
    if len(op.operands) != 1 or len(op.results) != 1:
        raise IncompleteError("no rule for a cast that is not of one value to one value")
    old, new = (
        [register_class(kind) for kind in scalars(v.type)] for v in (op.operands[0], op.results[0])
    )
    if old != new:
        types = f"{op.operands[0].type} to {op.results[0].type}"
        raise IncompleteError(f"no rule for a cast of {types}")
    speller.rename(op.results[0], speller.read(op.operands[0]))
