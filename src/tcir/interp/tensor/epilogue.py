"""Rules of ``tc.epilogue`` and the ops of its body, on whole tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp.tensor.grouped import written
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, shape_of


@evaluate(tc.EpilogueOp)
def tc_epilogue(interpreter: Interpreter, op: tc.EpilogueOp, sums: Array) -> Sequence[Array]:
    given = [sums[..., ::2], sums[..., 1::2]] if op.gated else [sums]
    (value,) = interpreter.region(op, given)
    result = np.broadcast_to(value, shape_of(op.out.type)).copy()
    if not isinstance(op.sums, ir.BlockArgument):
        product = op.sums.owner.opview
        if isinstance(product, tc.GroupedMatmulOp):
            result = written(product, interpreter.values[product.sizes], result)
    return [result]


@evaluate(tc.ElementOp)
def tc_element(_: Interpreter, op: tc.ElementOp, tensor: Array) -> Sequence[Array]:
    """The tensor with a dimension for each of the result's, of extent 1 where it has none."""
    kept = [d for d in op.dims if d is not None]
    array = tensor.reshape([n for n, d in zip(tensor.shape, op.dims) if d is not None])
    ordered = array.transpose(np.argsort(kept).tolist())
    extents = dict(zip(sorted(kept), ordered.shape))
    rank = op.attributes["map"].value.n_dims
    return [ordered.reshape([extents.get(d, 1) for d in range(rank)])]


@evaluate(tc.YieldOp)
def tc_yield(_: Interpreter, __: ir.OpView, value: Array) -> Sequence[Array]:
    return [value]
