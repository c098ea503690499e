"""Flattens the tensors of elementwise functions whose rows are not a multiple of the run of
elements that a thread loads at once."""

from __future__ import annotations

from math import prod

from tcir._mlir import arith, func, ir, linalg, tensor
from tcir.passes.analysis.contraction import value
from tcir.passes.simt.group import run_of

MAKES = arith.ConstantOp, tensor.EmptyOp
"""Ops besides elementwise ones: the tensors that `outs` names, with `linalg.fill`."""


def flatten(function: func.FuncOp) -> None:
    """Gives every tensor of a function one dimension, if its ops read and write all tensors at the
    same index, and if this makes the runs of a thread longer.

    Before::

        func.func @f(%x: tensor<64x50257xf16>) -> tensor<64x50257xf16> attributes {tc.simt} {
          %y = linalg.generic {maps = (d0, d1) -> (d0, d1)} ins(%x) outs(%e) …

    After::

        func.func @f(%x: tensor<3216448xf16>) -> tensor<3216448xf16> attributes {tc.simt} {
          %y = linalg.generic {maps = (d0) -> (d0)} ins(%x) outs(%e) …

    The bytes of the buffers, and the values computed from them, stay the same.
    """
    block = function.entry_block
    *ops, end = [op.operation for op in block]
    values = [*block.arguments, *(each for op in ops for each in op.results)]
    tensors = [each for each in values if isinstance(each.type, ir.RankedTensorType)]
    shapes = {tuple(each.type.shape) for each in tensors}
    if len(shapes) != 1 or not all(map(_is_alike, ops)):
        return
    (shape,) = shapes
    elements = [each.type.element_type for each in (*block.arguments, *end.operands)]
    if len(shape) < 2 or run_of(prod(shape), elements) == run_of(shape[-1], elements):
        return
    whole = ir.AffineMap.get_identity(1)
    for op in ops:
        if op.name == "linalg.generic":
            maps = [whole] * len(op.operands)
            op.attributes["indexing_maps"] = ir.ArrayAttr.get(list(map(ir.AffineMapAttr.get, maps)))
            parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
            op.attributes["iterator_types"] = ir.ArrayAttr.get([parallel])
    for each in tensors:
        each.set_type(ir.RankedTensorType.get([prod(shape)], each.type.element_type))
    kinds = [each.type for each in block.arguments], [each.type for each in end.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))


def _is_alike(op: ir.Operation) -> bool:
    """Whether an op computes each element from those at the same index."""
    if isinstance(op.opview, MAKES) or op.name == "linalg.fill":
        constant = isinstance(op.opview, arith.ConstantOp)
        return not (constant and isinstance(op.result.type, ir.RankedTensorType))
    if op.name != "linalg.generic":
        return False
    maps = [value(each) for each in linalg.get_indexing_maps(op)]
    body = op.regions[0].blocks[0]
    return all(each == ir.AffineMap.get_identity(each.n_dims) for each in maps) and not any(
        each.operation.name == "linalg.index" or isinstance(each, tensor.ExtractOp) for each in body
    )
