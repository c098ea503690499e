"""Rules of `linalg`: every structured op, named or generic, is executed from its indexing maps and
its body.

Contractions (`tcir.interp.tensor.contraction`; with more than two factors `scaled_contraction`) are
summed in float64 and rounded once. Any other body is evaluated as written: all parallel loops at
once as arrays, and reduction loops one point after the other in lexicographic order, with a
rounding at each op of the body.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tcir._mlir import ir, linalg
from tcir.errors import IncompleteError
from tcir.interp.tensor.contraction import contract, recognise
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.tensor.scaled_contraction import contract_product, recognise_product
from tcir.interp.tensor.views import aligned, indexing, loop_sizes, view
from tcir.interp.types import Array

STRUCTURED = (
    "abs", "add", "batch_matmul", "batch_matmul_transpose_a", "batch_matmul_transpose_b",
    "batch_matvec", "batch_reduce_matmul", "batch_vecmat", "broadcast", "ceil", "contract",
    "conv_1d", "conv_1d_ncw_fcw", "conv_1d_nwc_wcf", "conv_2d", "conv_2d_nchw_fchw",
    "conv_2d_nchw_fchw_q", "conv_2d_ngchw_fgchw", "conv_2d_ngchw_gfchw", "conv_2d_nhwc_fhwc",
    "conv_2d_nhwc_hwcf", "conv_2d_nhwc_hwcf_q", "conv_2d_nhwgc_gfhwc", "conv_3d_ncdhw_fcdhw",
    "conv_3d_ndhwc_dhwcf", "copy", "depthwise_conv_1d_ncw_cw", "depthwise_conv_1d_nwc_wc",
    "depthwise_conv_1d_nwc_wcm", "depthwise_conv_2d_nchw_chw", "depthwise_conv_2d_nhwc_hwc",
    "depthwise_conv_2d_nhwc_hwcm", "depthwise_conv_3d_ncdhw_cdhw", "depthwise_conv_3d_ndhwc_dhwc",
    "depthwise_conv_3d_ndhwc_dhwcm", "div", "div_unsigned", "dot", "elementwise", "erf", "exp",
    "fill", "floor", "generic", "log", "map", "matmul", "matmul_transpose_a", "matmul_transpose_b",
    "matvec", "max", "min", "mmt4d", "mul", "negf", "pooling_nchw_max", "pooling_nchw_sum",
    "pooling_ncw_max", "pooling_ncw_sum", "pooling_ndhwc_max", "pooling_ndhwc_sum",
    "pooling_nhwc_max", "pooling_nhwc_min", "pooling_nhwc_sum", "powf", "quantized_batch_matmul",
    "quantized_matmul", "reciprocal", "reduce", "round", "rsqrt", "select", "sqrt", "square", "sub",
    "tanh", "transpose", "vecmat",
)  # fmt: skip


@evaluate("linalg.yield")
def linalg_yield(_: Interpreter, __: ir.OpView, *operands: Array) -> Sequence[Array]:
    return operands


@evaluate("linalg.index")
def linalg_index(interpreter: Interpreter, op: ir.OpView) -> Sequence[Array]:
    return [interpreter.iteration[ir.IntegerAttr(op.attributes["dim"]).value]]


@evaluate(*(f"linalg.{name}" for name in STRUCTURED))
def structured(interpreter: Interpreter, op: ir.OpView, *operands: Array) -> Sequence[Array]:
    outputs = len(list(op.operation.regions[0].blocks[0])[-1].operands)
    results = _results(interpreter, op, operands, outputs)
    if op.operation.results:
        return results
    for buffer, result in zip(operands[len(operands) - outputs :], results, strict=True):
        buffer[...] = result
    return ()


def _results(
    interpreter: Interpreter, op: ir.OpView, operands: Sequence[Array], outputs: int
) -> list[Array]:
    """Returns the new values of the outputs of `op`; all of its inputs are read first."""
    affine_maps = linalg.get_indexing_maps(op.operation)
    if affine_maps is None:
        raise IncompleteError(f"{op.operation.name}: no indexing maps")
    arrays = [np.asarray(o) for o in operands]
    if not op.operation.results:
        _check_overlap(op, operands, [m.value for m in affine_maps], outputs)
    if not all(each.size for each in arrays):  # no point in the loops: a sum of nothing adds no +0
        return [each.copy() for each in arrays[len(arrays) - outputs :]]
    factors = recognise_product(op.operation.regions[0].blocks[0]) if outputs == 1 else None
    if factors is not None:
        block = op.operation.regions[0].blocks[0]
        return [contract_product(factors, block, arrays, [m.value for m in affine_maps])]
    maps = [indexing(m.value) for m in affine_maps]
    sizes = loop_sizes(affine_maps[0].value.n_dims, maps, [a.shape for a in arrays])
    block = op.operation.regions[0].blocks[0]
    found = recognise(block) if outputs == 1 else None
    if found is not None:
        return [contract(found, block, arrays, maps, sizes)]
    return _pointwise(interpreter, op, block, arrays, maps, sizes, outputs)


def _check_overlap(
    op: ir.OpView, operands: Sequence[Array], maps: Sequence[ir.AffineMap], outputs: int
) -> None:
    """IncompleteError if an input reads elements of an output other than those it writes, so that
    the result depends on the order of loops."""
    inputs = len(operands) - outputs
    for a, read in zip(operands[:inputs], maps):
        for b, written in zip(operands[inputs:], maps[inputs:]):
            if not isinstance(a, np.ndarray) or not np.shares_memory(a, b):
                continue
            if read != written or a.__array_interface__ != b.__array_interface__:
                raise IncompleteError(f"{op.operation.name} reads other elements than it writes")


def _pointwise(
    interpreter: Interpreter,
    op: ir.OpView,
    block: ir.Block,
    arrays: list[Array],
    maps: Any,
    sizes: list[int],
    outputs: int,
) -> list[Array]:
    inputs = len(arrays) - outputs
    results = [a.copy() for a in arrays[inputs:]]
    views = [view(a, m, sizes) for a, m in zip(arrays[:inputs], maps)]
    views += [view(r, m, sizes, writeable=True) for r, m in zip(results, maps[inputs:])]
    parallel = views[inputs][1] if outputs else list(range(len(sizes)))  # none: of assertions only
    if any(sorted(dims) != sorted(parallel) for _, dims in views[inputs:]):
        raise IncompleteError(f"{op.operation.name}: outputs over different loops have no rule")
    reduction = [d for d in range(len(sizes)) if d not in parallel]
    space = [sizes[d] for d in parallel]
    grid = np.indices(space, sparse=True) if parallel else ()
    outer_iteration = interpreter.iteration
    # `linalg.map` and friends pass only inputs to the body where it ignores the outputs.
    wanted = len(block.arguments)
    for point in itertools.product(*(range(sizes[d]) for d in reduction)):
        at = dict(zip(reduction, point))
        arguments = []
        for array, dims in views[:wanted]:
            picked = array[tuple(at.get(d, slice(None)) for d in dims)]
            arguments.append(aligned(picked, [d for d in dims if d not in at], parallel))
        loops: dict[int, Any] = {d: np.asarray(v, np.int64) for d, v in at.items()}
        loops |= {d: grid[i] for i, d in enumerate(parallel)}
        interpreter.iteration = [loops[d] for d in range(len(sizes))]
        try:
            yielded = interpreter.region(op, arguments)
        finally:
            interpreter.iteration = outer_iteration
        for (target, dims), value in zip(views[inputs:], yielded, strict=True):
            order = [parallel.index(d) for d in dims]
            target[...] = np.broadcast_to(value, space).transpose(order)
    return results
