"""Reading attributes and values of ops as Python values."""

from __future__ import annotations

from typing import Any

from tcir._mlir import ir


def integer(op: ir.OpView, name: str) -> int:
    """The value of an integer attribute."""
    return ir.IntegerAttr(op.attributes[name]).value


def optional_integer(op: ir.OpView, name: str) -> int | None:
    """The value of a discardable integer attribute; None when the op has none."""
    return integer(op, name) if name in op.attributes else None


def is_integer(op: ir.OpView, name: str) -> bool:
    """Whether a discardable attribute, if there, is an integer."""
    return name not in op.attributes or isinstance(op.attributes[name], ir.IntegerAttr)


def string(op: ir.OpView, name: str) -> str:
    """The value of a string attribute."""
    return ir.StringAttr(op.attributes[name]).value


def integers(op: ir.OpView, name: str) -> list[int]:
    """The elements of an ``array<i64: ...>`` attribute."""
    return list(ir.DenseI64ArrayAttr(op.attributes[name]))


def not_arrays(op: ir.OpView, **lengths: int | None) -> str | None:
    """The first attribute that is no ``array<i64>`` of the given length, described; else None."""
    for name, length in lengths.items():
        if not isinstance(op.attributes[name], ir.DenseI64ArrayAttr):
            return f"{name} = {op.attributes[name]}"
        if length is not None and len(integers(op, name)) != length:
            return f"{len(integers(op, name))} in {name}"
    return None


def defining(value: ir.Value, kind: Any = ir.OpView) -> Any:
    """The op of class ``kind`` that defines ``value``; None for block arguments and other ops."""
    owner = value.owner
    view = owner.opview if isinstance(owner, ir.Operation) else owner
    return view if isinstance(view, kind) else None


def constant(value: ir.Value) -> int | None:
    """The value of an ``arith.constant`` of index or integer type; None for anything else."""
    op = defining(value)
    if op is None or op.operation.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
