"""Helpers that build ops by name, at the insertion point."""

from __future__ import annotations

from tcir._mlir import ir


def effect(name: str, /, *operands: ir.Value, **attributes: ir.Attribute) -> None:
    """Adds an op without results at the insertion point."""
    ir.Operation.create(name, [], list(operands), attributes)


def value(name: str, kind: ir.Type, /, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    """Adds an op with one result, of type `kind`, at the insertion point; returns the result."""
    return ir.Operation.create(name, [kind], list(operands), attributes).result


def integer(number: int, bits: int = 32) -> ir.Attribute:
    """The attribute ``number : i<bits>``."""
    return ir.IntegerAttr.get(integer_type(bits), number)


def integer_type(bits: int) -> ir.Type:
    """The type ``i<bits>``."""
    return ir.IntegerType.get_signless(bits)


def integers(*numbers: int) -> ir.Attribute:
    """The attribute ``array<i32: numbers>``."""
    return ir.DenseI32ArrayAttr.get(list(numbers))


def attribute(name: str, text: str) -> ir.Attribute:
    """The attribute ``#name<text>``."""
    return ir.Attribute.parse(f"#{name}<{text}>")
