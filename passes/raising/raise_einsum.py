"""A sum of products over several loops as ``tc.matmul`` of operands in other dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passes.build.clone import clone_epilogue
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.build.repack import is_copied, repacked
from tcir.passes.build.reshape import reshape
from tcir.passes.build.tensor_functions import tensor_bytes
from tcir.passes.raising.einsum import Einsum, Side
from tcir.passes.raising.wrappers import Tail
from tcir.passmanager.remarks import remark


def raise_einsum(op: ir.OpView, einsum: Einsum, inputs: Sequence[ir.Value], tail: Tail) -> None:
    """Replaces `op` and the rounding of its result; an epilogue gets the product's dimensions.

    A vector, or a dimension of one index, costs nothing; dimensions that a group of loops does not
    have next to each other are repacked by a kernel (``tc.repack``).
    """
    a, b = (_operand(op, side, inputs[side.number]) for side in (einsum.a, einsum.b))
    result = tail.result.type
    out = ir.RankedTensorType.get(einsum.shape, result.element_type)
    layouts = [ir.StringAttr.get(side.layout) for side in (einsum.a, einsum.b)]
    product = tc.MatmulOp(a, b, *layouts, out).out
    after = tail.kept[0].opview if tail.kept else None
    if not isinstance(after, tc.EpilogueOp):
        tail.result.replace_all_uses_with(reshape(product, result.shape))
        return
    with ir.InsertionPoint(after), after.location:
        made = _epilogue(after, einsum, product)
        after.out.replace_all_uses_with(reshape(made, after.out.type.shape))


def _operand(op: ir.OpView, side: Side, value: ir.Value) -> ir.Value:
    if side.order is not None:
        value = repacked(value, side.order)
        if is_copied(value):
            remark(
                op,
                f"operand {side.number} repacked by a kernel of its own, dimensions "
                f"{list(side.order)}: a matrix has one dimension of rows and one of K; "
                f"{tensor_bytes(value.type)} bytes read and written",
            )
    return reshape(value, side.shape)


def _epilogue(after: tc.EpilogueOp, einsum: Einsum, sums: ir.Value) -> ir.Value:
    """`after` on the sums of the product."""
    old = list(after.out.type.shape)
    shape = [prod(old[d] for d in group) for group in einsum.groups]
    out = ir.RankedTensorType.get(shape, after.out.type.element_type)
    reads = [_read(each, einsum) for each in after.elements]
    tensors = [reshape(each.tensor, sizes) for each, (sizes, _) in zip(after.elements, reads)]
    new = iter(zip(tensors, reads, strict=True))

    def element(each: tc.ElementOp) -> tc.ElementOp:
        tensor, (_, dims) = next(new)
        return tc.ElementOp(tensor, _map(dims, len(shape)), each.value.type)

    return clone_epilogue(after, sums, out, element)


def _read(element: tc.ElementOp, einsum: Einsum) -> tuple[list[int], list[int]]:
    """The shape in which a tensor is read, and the group that indexes each of its dimensions."""
    shape = element.tensor.type.shape
    dims = [d for d, n in zip(element.dims, shape, strict=True) if d is not None and n != 1]
    sizes, read = list[int](), list[int]()
    while dims:
        number = next((n for n, group in enumerate(einsum.groups) if group[:1] == (dims[0],)), None)
        group = () if number is None else einsum.groups[number]
        if number is None or tuple(dims[: len(group)]) != group:
            raise match_failure(
                element,
                f"expected a tensor indexed by all of a group of dimensions of the result or by "
                f"none, got dimensions {dims} of groups {[list(g) for g in einsum.groups]} (a "
                "matrix product has one number of a row and one of a column); broadcast it to all",
            )
        sizes.append(prod(shape[element.dims.index(dim)] for dim in group))
        read.append(number)
        dims = dims[len(group) :]
    return sizes, read


def _map(dims: Sequence[int], rank: int) -> ir.Attribute:
    results = [ir.AffineDimExpr.get(d) for d in dims]
    return ir.AffineMapAttr.get(ir.AffineMap.get(rank, 0, results))
