"""Rules of ``tc.epilogue`` and the ops of its body, on whole tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.interp.tensor.grouped import groups_of, written
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, shape_of


@evaluate(tc.EpilogueOp)
def tc_epilogue(interpreter: Interpreter, op: tc.EpilogueOp, sums: Array) -> Sequence[Array]:
    given = [half(n, op.gate_block, sums) for n in range(2)] if op.gated else [sums]
    (value,) = interpreter.region(op, given)
    result = np.broadcast_to(value, shape_of(op.out.type)).copy()
    if op.grouped is not None:
        result = written(op.grouped, interpreter.values[op.grouped.sizes], result)
    return [result]


def half(number: int, block: int, sums: Array) -> Array:
    """Returns the columns of gates (half 0) or of values (half 1); the two alternate in blocks of
    `block` columns.
    """
    rows = sums.shape[:-1]
    return sums.reshape(*rows, -1, 2, block)[..., number, :].reshape(*rows, -1)


@evaluate(tc.ElementOp)
def tc_element(interpreter: Interpreter, op: tc.ElementOp, tensor: Array) -> Sequence[Array]:
    return [spread(op, tensor, interpreter.values)]


def spread(op: tc.ElementOp, tensor: Array, values: Mapping[ir.Value, Array]) -> Array:
    """Reshapes the tensor to the rank of the result; a dimension that the tensor lacks has extent
    1.

    values: the values known at the op; the group sizes among them decide the group of each row
    """
    dims = op.dims
    if op.of_group:
        tensor, dims = _of_rows(op, tensor, values), [0, *dims]
    kept = [d for d in dims if d is not None]
    array = tensor.reshape([n for n, d in zip(tensor.shape, dims) if d is not None])
    ordered = array.transpose(np.argsort(kept).tolist())
    extents = dict(zip(sorted(kept), ordered.shape))
    return ordered.reshape([extents.get(d, 1) for d in range(op.out_rank)])


def _of_rows(op: tc.ElementOp, tensor: Array, values: Mapping[ir.Value, Array]) -> Array:
    """Returns, for each row, the elements of its group in a tensor indexed by group; rows of no
    group read those of an arbitrary one."""
    around = op.operation.parent.opview
    product = around.grouped
    groups = np.zeros((shape_of(around.out.type)[0], 1), np.intp)
    for group, rows in enumerate(groups_of(product, values[product.sizes])):
        groups[rows] = group
    return tensor[groups[:, 0]]


@evaluate(tc.YieldOp)
def tc_yield(_: Interpreter, __: ir.OpView, value: Array) -> Sequence[Array]:
    return [value]
