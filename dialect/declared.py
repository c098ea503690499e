"""Checks whether an op has the operands, attributes, results and regions that its class declares.

MLIR calls the verifier of the op's class before it checks these declarations, so the verifier rules
call this check first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin

from tcir._mlir import ext, ir

OPERAND_SIZES = "operandSegmentSizes"
"""Attribute with the number of values of each operand of an op."""
RESULT_SIZES = "resultSegmentSizes"
"""The same of results; without it the last result may be missing."""

Field: TypeAlias = Any
"""A field of an op's class, as `ext` declares it: operand, attribute, result or region."""


def as_declared(op: ir.OpView) -> bool:
    """Whether every operand, attribute, result and region of ``op`` is present and of the kind that
    the op's class declares."""
    operands, attributes, results, regions = _fields(type(op))  # type: ignore[arg-type]
    given = op.attributes
    return (
        all(f.name in given and _is_a(given[f.name], f.constraint) for f in attributes)
        and _values(op, OPERAND_SIZES, operands, list(op.operands))
        and _values(op, RESULT_SIZES, results, list(op.results))
        and len(op.regions) == len(regions)
    )


def wrong_sizes(op: ir.OpView) -> list[str] | None:
    """Names of the operands if ``operandSegmentSizes`` does not match them; None if it does.

    MLIR ignores the attribute if only one operand is optional or variadic. The accessors of the op
    classes read the attribute, except the accessors of classes with the trait ``counted``.
    """
    fields = _fields(type(op))[0]  # type: ignore[arg-type]
    if all(f.variadicity.name == "single" for f in fields):
        return None
    sizes = _segments(op, OPERAND_SIZES, fields, len(op.operands))
    fits = sizes is not None and sum(sizes) == len(op.operands)
    return None if fits else [f.name for f in fields]


@cache
def _fields(op: type[ir.OpView]) -> tuple[list[Field], list[Field], list[Field], list[Field]]:
    """Operands, attributes, results and regions that a class declares."""
    operands, attributes, results, regions = ext.partition_fields(op._fields)
    return operands, attributes, results, regions


def counted_sizes(kinds: Sequence[str], count: int) -> list[int]:
    """Number of values that each operand (or result) field of an op takes, if the op has `count`
    values in all. Exactly one field is optional or variadic and takes the values that are left;
    each "single" field takes one."""
    return [1 if kind == "single" else count - len(kinds) + 1 for kind in kinds]


def _values(op: ir.OpView, sizes_name: str, fields: list[Field], values: list[ir.Value]) -> bool:
    sizes = _segments(op, sizes_name, fields, len(values))
    if sizes is None or sum(sizes) != len(values):
        return False
    rest = iter(values)
    return all(
        _is_a(next(rest).type, field.constraint)
        for field, size in zip(fields, sizes, strict=True)
        for _ in range(size)
    )


def _segments(op: ir.OpView, sizes_name: str, fields: list[Field], count: int) -> list[int] | None:
    """How many of `count` values each field takes; None if the op's segment sizes are malformed."""
    least_most = {"single": (1, 1), "optional": (0, 1), "variadic": (0, count)}
    bounds = [least_most[f.variadicity.name] for f in fields]
    if all(low == high for low, high in bounds):
        return [1] * len(fields)
    if sizes_name not in op.attributes:
        sizes = counted_sizes([f.variadicity.name for f in fields], count)
        known = type(op).traits.counted or sizes_name == RESULT_SIZES
        fits = all(low <= n <= high for n, (low, high) in zip(sizes, bounds, strict=True))
        return sizes if known and fits else None
    attribute = op.attributes[sizes_name]
    if not isinstance(attribute, ir.DenseI32ArrayAttr):
        return None
    sizes = list(attribute)
    fits = len(sizes) == len(bounds) and all(a <= n <= b for n, (a, b) in zip(sizes, bounds))
    return sizes if fits else None


def _is_a(thing: Any, constraint: Any) -> bool:
    if constraint is Any:
        return True
    if get_origin(constraint) in (Union, UnionType):
        return any(_is_a(thing, each) for each in get_args(constraint))
    if constraint is ir.IntegerAttr:  # a BoolAttr is a builtin.integer to MLIR
        return isinstance(thing, ir.IntegerAttr | ir.BoolAttr)
    return isinstance(thing, constraint)
