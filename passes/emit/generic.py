"""Builders for rewrites of tensor programs: zeros, padding, and `linalg.generic` from a Python
function of elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcir._mlir import arith, ir, linalg, tensor
from tcir.passes.emit.builders import i64


def zero(kind: ir.Type) -> ir.Value:
    """The number 0 of an element type."""
    attribute = ir.FloatAttr if isinstance(kind, ir.FloatType) else ir.IntegerAttr
    return arith.ConstantOp(kind, attribute.get(kind, 0)).result


def zeros(shape: Sequence[int], kind: ir.Type) -> ir.Value:
    """A tensor of zeros."""
    number, empty = zero(kind), tensor.EmptyOp(shape, kind).result
    return linalg.fill(number, outs=[empty])


def padded(value: ir.Value, low: Sequence[int], high: Sequence[int]) -> ir.Value:
    """Pads a tensor with the given numbers of zeros before and after each dimension."""
    if not any((*low, *high)):
        return value
    kind = value.type.element_type
    shape = [sum(sizes) for sizes in zip(low, value.type.shape, high, strict=True)]
    number = zero(kind)
    op = ir.Operation.create(
        "tensor.pad",
        results=[ir.RankedTensorType.get(shape, kind)],
        operands=[value],
        attributes={
            "static_low": ir.DenseI64ArrayAttr.get(low),
            "static_high": ir.DenseI64ArrayAttr.get(high),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0]),
        },
        regions=1,
    )
    body = op.regions[0].blocks.append(*[ir.IndexType.get()] * len(shape))
    with ir.InsertionPoint(body):
        ir.Operation.create("tensor.yield", operands=[number])
    return op.result


def loop_index(loop: int) -> ir.Value:
    """The index of a loop, in the body of a `linalg.generic`."""
    kind, number = ir.IndexType.get(), i64(loop)
    return ir.Operation.create("linalg.index", results=[kind], attributes={"dim": number}).result


def generic(
    inputs: Sequence[ir.Value],
    out: ir.Value,
    maps: Sequence[ir.AffineMapAttr],
    loops: Sequence[str],
    element: Callable[..., ir.Value],
) -> ir.Value:
    """Builds a `linalg.generic`.

    maps: maps of the inputs and of `out`
    loops: "parallel" or "reduction" for each loop
    element: computes the yielded value from the elements
    """
    op = ir.Operation.create(
        "linalg.generic",
        results=[out.type],
        operands=[*inputs, out],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([*maps]),
            "iterator_types": ir.ArrayAttr.get(
                [ir.Attribute.parse(f"#linalg.iterator_type<{loop}>") for loop in loops]
            ),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), 1]),
        },
        regions=1,
    )
    body = op.regions[0].blocks.append(*[each.type.element_type for each in (*inputs, out)])
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=[element(*body.arguments)])
    return op.result
