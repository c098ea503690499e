"""Raises a sum of products over several loops to a ``tc.matmul`` of regrouped operands."""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.passes.analysis.contraction import set_unsigned
from tcir.passes.analysis.einsum import Einsum, Side
from tcir.passes.analysis.regroup import replace_result
from tcir.passes.analysis.wrappers import Tail
from tcir.passes.emit.repack import is_copied, repacked
from tcir.passes.emit.reshape import reshape
from tcir.passes.emit.tensor_functions import tensor_bytes
from tcir.passmanager.remarks import remark


def raise_einsum(op: ir.OpView, einsum: Einsum, inputs: Sequence[ir.Value], tail: Tail) -> None:
    """Replaces `op` and the rounding of its result by a ``tc.matmul``; an epilogue gets the
    dimensions of that product.

    A vector, or a dimension of extent 1, costs nothing. If the dimensions of a group are not
    adjacent in an operand, a kernel repacks that operand (``tc.repack``).
    """
    a, b = (_operand(op, side, inputs[side.number]) for side in (einsum.a, einsum.b))
    result = tail.result.type
    out = ir.RankedTensorType.get(einsum.shape, result.element_type)
    layouts = [ir.StringAttr.get(side.layout) for side in (einsum.a, einsum.b)]
    product = tc.MatmulOp(a, b, *layouts, out)
    set_unsigned(product, op, einsum.a.number, einsum.b.number)
    replace_result(tail, product.out, einsum.groups)


def _operand(op: ir.OpView, side: Side, value: ir.Value) -> ir.Value:
    if side.order is not None:
        value = repacked(value, side.order)
        if is_copied(value):
            remark(
                op,
                f"operand {side.number} repacked by a separate kernel, with its dimensions in the "
                f"order {list(side.order)}: a matrix has one dimension of rows and one of K; "
                f"{tensor_bytes(value.type)} bytes read and written",
            )
    return reshape(value, side.shape)
