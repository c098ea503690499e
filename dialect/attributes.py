"""Accessors for ops in Python: attributes of ops, plain attributes, types, and the ops that define
values.

``integer(op, name)`` reads an attribute *of an op*, ``integer_of(attribute)`` reads a plain
attribute, and ``integer_type(bits)`` builds a type; there are corresponding functions for strings
and lists.
"""

from __future__ import annotations

from typing import Any

from tcir._mlir import ir


def integer(op: ir.OpView, name: str) -> int:
    """The value of an integer attribute."""
    return integer_of(op.attributes[name])


def optional_integer(op: ir.OpView, name: str) -> int | None:
    """The value of a discardable integer attribute; None if the op does not have the attribute."""
    return integer(op, name) if name in op.attributes else None


def optional_number(op: ir.OpView, name: str) -> float | None:
    """Value of an optional float attribute; None if the op does not have the attribute."""
    attributes = op.operation.attributes
    return float(ir.FloatAttr(attributes[name]).value) if name in attributes else None


def is_integer(op: ir.OpView, name: str) -> bool:
    """Whether a discardable attribute is either absent or an integer."""
    return name not in op.attributes or isinstance(op.attributes[name], ir.IntegerAttr)


def flag(op: ir.OpView, name: str) -> bool:
    """Whether a one-bit attribute is true."""
    return bool(integer(op, name))


def string(op: ir.OpView, name: str) -> str:
    """The value of a string attribute."""
    return string_of(op.attributes[name])


def integers(op: ir.OpView, name: str) -> list[int]:
    """The elements of an ``array<i64: ...>`` attribute."""
    return integers_of(op.attributes[name])


def not_arrays(op: ir.OpView, **lengths: int | None) -> str | None:
    """Describes the first of the named attributes that is not an ``array<i64>`` of the given
    length; None if all of them are."""
    for name, length in lengths.items():
        if not isinstance(op.attributes[name], ir.DenseI64ArrayAttr):
            return f"{name} = {op.attributes[name]}"
        if length is not None and len(integers(op, name)) != length:
            return f"{len(integers(op, name))} in {name}"
    return None


# --- attributes alone --------------------------------------------------------------------------


def integer_of(attribute: ir.Attribute) -> int:
    """The value of an integer (or one-bit) attribute."""
    return int(ir.IntegerAttr(attribute).value)


def string_of(attribute: ir.Attribute) -> str:
    """The value of a string attribute."""
    return str(ir.StringAttr(attribute).value)


def integers_of(attribute: ir.Attribute) -> list[int]:
    """The elements of a list of integers, written as ``array<i64>``, ``array<i32>``, ``[1, 2]`` or
    as a dense attribute."""
    if isinstance(attribute, ir.ArrayAttr):
        return [integer_of(each) for each in attribute]
    if isinstance(attribute, ir.DenseIntElementsAttr | ir.DenseI32ArrayAttr):
        return [int(each) for each in attribute]
    return list(ir.DenseI64ArrayAttr(attribute))


# --- types and values --------------------------------------------------------------------------


def integer_type(bits: int) -> ir.IntegerType:
    """The signless type ``i<bits>``."""
    return ir.IntegerType.get_signless(bits)


def defining(value: ir.Value, kind: Any = ir.OpView) -> Any:
    """The op that defines ``value``, if it is of class ``kind``; None for block arguments and for
    values of other ops."""
    owner = value.owner
    view = owner.opview if isinstance(owner, ir.Operation) else owner
    return view if isinstance(view, kind) else None


def is_fill_only(argument: ir.Value) -> bool:
    """Whether a tensor argument is used only as ``outs`` of `linalg.fill`, so that its data is
    never read."""
    uses = list(argument.uses)
    return bool(uses) and all(
        use.owner.operation.name == "linalg.fill" and use.operand_number == 1 for use in uses
    )


def is_buffer(value: ir.Value) -> bool:
    """Whether a value is a memref."""
    return isinstance(value.type, ir.MemRefType)


def constant_of(value: ir.Value) -> int | None:
    """The value of an ``arith.constant`` of index or integer type; None for anything else."""
    op = defining(value)
    if op is None or op.operation.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    return integer_of(attribute) if isinstance(attribute, ir.IntegerAttr) else None


UNSIGNED = "unsigned"
"""Attribute of i8 products: 1 for each unsigned operand, 0 for a signed one; absent: both
signed."""


def unsigned_operands(op: ir.OpView) -> tuple[int, int]:
    """Returns a flag for each operand of an i8 product: 1 if the operand is unsigned, 0 if it is
    signed."""
    if UNSIGNED not in op.attributes:
        return 0, 0
    first, second = integers(op, UNSIGNED)
    return first, second
