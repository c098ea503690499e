"""Arithmetic on `index` values that folds constants while the ops are built.

Ops are built at the current insertion point, with the current location. A result of Python ints is
a Python int.
"""

from __future__ import annotations

from typing import TypeAlias

from tcir._mlir import arith, ir

Index: TypeAlias = "int | ir.Value"
"""A Python int, or an `ir.Value` of type `index`."""


def constant(number: int, kind: ir.Type | None = None) -> ir.Value:
    """The constant `number` of type `kind` (default `index`), built once per function, at the top
    of the function."""
    attribute = ir.IntegerAttr.get(kind or ir.IndexType.get(), number)
    block = ir.InsertionPoint.current.block
    while block.owner.operation.name != "func.func":
        block = block.owner.operation.block
    for op in block.operations:
        if op.operation.name != "arith.constant":
            place = ir.InsertionPoint(op)
            break
        if op.operation.attributes["value"] == attribute:
            return op.results[0]
    else:
        place = ir.InsertionPoint.at_block_begin(block)
    with place:
        return arith.ConstantOp(attribute.type, attribute).result


def value(number: Index) -> ir.Value:
    """`number` as an `index` value."""
    if isinstance(number, int):
        return constant(number)
    return number


def values(numbers: list[Index]) -> list[ir.Value]:
    """Each of `numbers` as an `index` value."""
    return [value(number) for number in numbers]


def add(a: Index, b: Index) -> Index:
    """``a + b``, where a negative constant becomes a subtraction."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int):
        if b == 0:
            return a
        if b < 0:
            return arith.subi(a, value(-b))
    return arith.addi(a, value(b))


def sub(a: Index, b: Index) -> Index:
    """``a - b``."""
    if isinstance(b, int):
        return add(a, -b)
    return arith.subi(value(a), b)


def mul(a: Index, b: Index) -> Index:
    """``a * b``."""
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int):
        if isinstance(a, int):
            return a * b
        if b in (0, 1):
            return a if b else 0
    return arith.muli(a, value(b))


def div(a: Index, b: int) -> Index:
    """``a / b``, for `a` of at least 0 and a positive `b`."""
    if isinstance(a, int) or b == 1:
        return a // b if isinstance(a, int) else a
    return arith.divui(a, value(b))


def rem(a: Index, b: int) -> Index:
    """``a mod b``, for `a` of at least 0 and a positive `b`."""
    if isinstance(a, int) or b == 1:
        return a % b if isinstance(a, int) else 0
    return arith.remui(a, value(b))


def delinearize(number: Index, extents: list[int]) -> list[Index]:
    """Writes `number` in the mixed radix `extents`, outermost digit first.

    The outermost digit is not reduced modulo its extent, so it shows whether a number is past the
    end.
    """
    digits: list[Index] = []
    for extent in reversed(extents[1:]):
        digits.insert(0, rem(number, extent))
        number = div(number, extent)
    return [number, *digits]
