"""fold-empty: removes the computation of tensors without elements, and replaces sums over nothing
by their initial values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import func, ir, linalg, tensor
from tcir.dialect import tc
from tcir.dialect.attributes import is_fill_only
from tcir.dialect.upstream import names
from tcir.dialect.walk import nested
from tcir.passes.analysis.on_tensors import check_on_tensors
from tcir.passes.emit.calls import inline_calls
from tcir.passes.emit.diagnostics import SMALLEST_MATMUL, is_op, match_failure
from tcir.passes.emit.generic import zero
from tcir.passes.emit.tensor_functions import (
    drop_arguments,
    erase_unread,
    functions_with_body,
    is_empty,
)
from tcir.passmanager.pipeline import Pass, register_pass
from tcir.passmanager.remarks import remark

SUMS = names(tc.Conv2dOp, tc.MatmulOp)
"""Ops that sum products, from +0."""


@register_pass
@dataclass(frozen=True)
class FoldEmpty(Pass):
    """Folds ops with a dimension of size 0, so that no kernel without work is launched.

    Before::

        func.func @f(%a: tensor<40x0xf16>, %b: tensor<0x96xf16>, %c: tensor<40x96xf32>,
                     %x: tensor<0x7xf32>) -> (tensor<40x96xf32>, tensor<0x7xf32>) {
          %sums = linalg.matmul ins(%a, %b) outs(%c)
          %y = math.exp %x
          return %sums, %y

    After::

          %sums = linalg.copy ins(%c) outs(%empty)
          %none = tensor.empty() : tensor<0x7xf32>
          return %sums, %none

    A structured op whose loops have no iteration is replaced by the initial values of its outputs:
    a product with K = 0 by its accumulator, and an empty maximum by its initial value;
    ``tc.matmul`` and ``tc.conv2d`` give zeros. A padding of an empty tensor becomes a tensor of the
    padding number, and an empty part of a concatenation is left out. Calls are inlined first; a
    remark names each replaced sum. A ``tensor.cast`` to a type of unknown sizes and back is
    dropped. Functions without empty tensors stay as they are. Functions on memrefs are rejected
    here, because this is the first pass of every pipeline. Preserves every value, bit for bit.
    """

    name: ClassVar[str] = "fold-empty"

    def run(self, module: ir.Module) -> None:
        inline_calls(module)
        check_on_tensors(module)
        for function in functions_with_body(module):
            _drop_casts(function)
            values = [r for op in nested(function) for r in op.operation.results]
            one_block = len(function.regions[0].blocks) == 1
            if one_block and any(map(is_empty, [*function.arguments, *values])):
                _fold(function)


def _drop_casts(function: func.FuncOp) -> None:
    """Replaces values that are cast to another type and back by the original ones."""
    dropped = False
    for op in [each for each in nested(function) if isinstance(each, tensor.CastOp)]:
        source = op.source
        while is_op(source, "tensor.cast") and source.type != op.dest.type:
            source = source.owner.operands[0]
        if source.type == op.dest.type:
            op.dest.replace_all_uses_with(source)
            dropped = True
    if dropped:
        erase_unread(function)


def _fold(function: func.FuncOp) -> None:
    unread = [a for a in function.arguments if is_fill_only(a)]
    *ops, end = function.entry_block
    for op in ops:
        if all(map(is_empty, op.operation.results)) or not any(map(is_empty, op.operands)):
            continue
        with ir.InsertionPoint(op), op.location:
            values = _values(op)
        for result, value in zip(op.operation.results, values, strict=True):
            result.replace_all_uses_with(value)
    with ir.InsertionPoint(end):
        for number, returned in enumerate(end.operands):
            if is_empty(returned):
                kind = returned.type
                end.operands[number] = tensor.EmptyOp(kind.shape, kind.element_type).result
    for op in reversed(ops):
        results = list(op.operation.results)
        without = any(map(is_empty, [*op.operands, *results]))
        if without and results and not any(list(each.uses) for each in results):
            op.operation.erase()
    erase_unread(function)
    drop_arguments(function, [a.arg_number for a in unread if not list(a.uses)])


def _values(op: ir.OpView) -> list[ir.Value]:
    """Results of an op that has operands without elements and reads none."""
    name, operands = op.operation.name, list(op.operands)
    results = list(op.operation.results)
    if name.startswith("linalg.") and linalg.get_indexing_maps(op.operation) is not None:
        remark(
            op,
            f"{name} has loops without iterations: its result is the initial value of its output",
        )
        return [_initial(each) for each in operands[len(operands) - len(results) :]]
    if name in SUMS:
        remark(op, f"{name} sums no elements: its result is zeros")
        return [_filled(results[0].type, zero(results[0].type.element_type))]
    if name == "tensor.pad":
        (number,) = list(op.regions[0].blocks[0])[-1].operands
        return [_filled(results[0].type, _outside(number, op))]
    if name == "tensor.concat":
        parts = [each for each in operands if not is_empty(each)]
        made = ir.Operation.create(name, [results[0].type], parts, {"dim": op.attributes["dim"]})
        return [parts[0] if len(parts) == 1 else made.result]
    if name == "tensor.insert_slice":
        return [operands[1]]
    raise match_failure(
        op,
        "expected a linalg op, "
        f"{', '.join(sorted(SUMS))}, tensor.pad, tensor.concat or tensor.insert_slice to make a "
        f"result from a tensor without elements, got {name}; write it with these, or leave it out",
        SMALLEST_MATMUL,
    )


def _initial(output: ir.Value) -> ir.Value:
    """Copies an output's initial values to a tensor of their own, since only one launch writes a
    buffer."""
    kind = output.type
    if is_op(output, "linalg.fill"):
        return _filled(kind, output.owner.operands[0])
    if is_op(output, "arith.constant"):
        return output.owner.clone().results[0]
    empty = tensor.EmptyOp(kind.shape, kind.element_type).result
    return structured("linalg.copy", output, empty)


def _filled(kind: ir.RankedTensorType, number: ir.Value) -> ir.Value:
    empty = tensor.EmptyOp(kind.shape, kind.element_type).result
    return structured("linalg.fill", number, empty)


def structured(name: str, value: ir.Value, output: ir.Value) -> ir.Value:
    """Builds a named op that copies the elements of its single input."""
    segments = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])}
    op = ir.Operation.create(name, [output.type], [value, output], segments, regions=1)
    elements = [getattr(each.type, "element_type", each.type) for each in (value, output)]
    body = op.regions[0].blocks.append(*elements)
    with ir.InsertionPoint(body):
        ir.Operation.create("linalg.yield", operands=[body.arguments[0]])
    return op.result


def _outside(number: ir.Value, pad: ir.OpView) -> ir.Value:
    """The number that `pad` pads with; a match failure if its region computes it."""
    if is_op(number, "arith.constant"):
        return number.owner.clone().results[0]
    region = pad.regions[0].blocks[0]
    if number in [*region.arguments, *(r for op in region for r in op.operation.results)]:
        raise match_failure(
            pad,
            "expected tensor.pad with one number around a tensor without elements, got one that "
            "its region computes; yield a constant",
            SMALLEST_MATMUL,
        )
    return number
