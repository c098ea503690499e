"""Finds the operands and results of a block quantisation in ``linalg``: values, maximum, codes and
scales."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir, linalg
from tcir.dialect.upstream import MAXIMA
from tcir.passes.analysis.contraction import is_contraction, value
from tcir.passes.analysis.element_graph import (
    AMAX,
    COLUMN,
    VALUE,
    Dims,
    ElementGraph,
    NotRaised,
    Number,
)
from tcir.passes.emit.diagnostics import is_op

LOCAL = ("arith.", "linalg.", "math.", "tensor.")
"""Dialects of the ops that may compute a quantisation."""


@dataclass(frozen=True)
class Maximum:
    """The largest number of every block, computed by an op with one reduction loop over `tensor`.

    absolute: whether the op's body takes magnitudes
    combiner: maximumf or maxnumf
    """

    op: ir.Operation
    tensor: ir.Value
    absolute: bool
    combiner: ir.Operation

    @staticmethod
    def of(view: ir.OpView) -> Maximum | None:
        """Returns the maximum that an op computes over the last dimension of its operand; None if
        the op computes no such maximum."""
        op = view.operation
        if not op.name.startswith("linalg.") or len(op.results) != 1 or len(op.operands) != 2:
            return None
        maps = [value(each) for each in linalg.get_indexing_maps(op) or ()]
        loops = maps[0].n_dims if maps else 0
        if not maps or maps[0] != ir.AffineMap.get_identity(loops) or loops - 1 in _loops(maps[1]):
            return None
        block = op.regions[0].blocks[0]
        *ops, last = (each.operation for each in block)
        names = [each.name for each in ops]
        if not names or names[-1] not in MAXIMA or names[:-1] not in ([], ["math.absf"]):
            return None
        element, most = block.arguments
        number = ops[0].results[0] if len(ops) == 2 else element
        plain = len(ops) == 1 or ops[0].operands[0] == element
        both = list(ops[-1].operands) in ([number, most], [most, number])
        if plain and both and list(last.operands) == list(ops[-1].results):
            return Maximum(op, op.operands[0], len(ops) == 2, ops[-1])
        return None

    @property
    def blocks(self) -> tuple[int, int]:
        """Number of blocks in a row, and number of columns in a block."""
        *_, count, block = self.tensor.type.shape
        return count, block


def _loops(read: ir.AffineMap) -> list[int]:
    return [e.position for e in read.results if isinstance(e, ir.AffineDimExpr)]


@dataclass(frozen=True)
class Values:
    """The values to be quantised: `tensor`, multiplied by `norm` if there is one.

    blocked: the tensor with its columns divided into blocks, if the program has that tensor
    """

    tensor: ir.Value
    norm: ir.Value | None
    blocked: ir.Value | None


def values_of(maximum: Maximum) -> Values:
    """Traces the operand of the maximum back to the tensor as it was before its division into
    blocks."""
    tensor = maximum.tensor
    if str(tensor.type.element_type) != "f32":
        words = f"expected values of f32, got {tensor.type}; extend them before the blocks are made"
        raise NotRaised(maximum.op, words)
    if not maximum.absolute:
        source = _operand(tensor, "tensor.expand_shape")
        if source is not None and (whole := _magnitudes_of(source)) is not None:
            return Values(whole, None, None)
        within = _magnitudes_of(tensor)
        if within is None:
            words = "expected the largest magnitude of a block, got a maximum without math.absf"
            raise NotRaised(maximum.op, words)
        tensor = within
    blocked, norm = tensor, None
    if (factors := _normed(tensor)) is not None:
        tensor, norm = factors
    source = _operand(tensor, "tensor.expand_shape")
    if source is None or list(source.type.shape[:-1]) != list(tensor.type.shape[:-2]):
        raise NotRaised(
            maximum.op,
            "expected values whose columns tensor.expand_shape divides into blocks, or these "
            f"times a tensor<f32>, got another {tensor.type}; divide the columns after all other "
            "ops",
        )
    return Values(source, norm, blocked)


def _operand(tensor: ir.Value, name: str) -> ir.Value | None:
    """The first operand of the op called `name` that makes `tensor`."""
    return tensor.owner.operands[0] if is_op(tensor, name) else None


def _magnitudes_of(tensor: ir.Value) -> ir.Value | None:
    """The tensor whose magnitudes are in `tensor`."""
    if (source := _operand(tensor, "math.absf")) is not None:
        return source
    return tensor.owner.operands[0] if _single_op(tensor) == "math.absf" else None


def _normed(tensor: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """The tensor and the number whose product `tensor` is."""
    if _single_op(tensor) != "arith.mulf":
        return None
    *factors, _ = tensor.owner.operands
    scalars = [each for each in factors if str(each.type) == "tensor<f32>"]
    others = [each for each in factors if each not in scalars]
    return (others[0], scalars[0]) if len(factors) == 2 == len(scalars) + len(others) else None


def _single_op(tensor: ir.Value) -> str:
    """The name of the op that the ``linalg`` op of `tensor` computes from its operands, at the same
    place of each or of numbers; "" if there are several, or none."""
    if isinstance(tensor, ir.BlockArgument) or not tensor.owner.name.startswith("linalg."):
        return ""
    op = tensor.owner.operation
    maps = [value(each) for each in linalg.get_indexing_maps(op) or ()]
    identity = ir.AffineMap.get_identity(tensor.type.rank)
    if not maps or any(len(m.results) and m != identity for m in maps):
        return ""
    block = op.regions[0].blocks[0]
    *ops, last = (each.operation for each in block)
    inputs = list(block.arguments)[: len(op.operands) - 1]
    plain = len(ops) == 1 and list(last.operands) == list(ops[0].results)
    return (
        ops[0].name
        if plain and sorted(map(_number, ops[0].operands)) == [a.arg_number for a in inputs]
        else ""
    )


def _number(operand: ir.Value) -> int:
    return operand.arg_number if isinstance(operand, ir.BlockArgument) else -1


def outputs_of(maximum: Maximum, values: Values) -> tuple[ir.Value, ir.Value]:
    """Finds codes and scales: results that are computed from the maxima, and that other ops
    read."""
    made: list[ir.Operation] = [maximum.op]
    for view in maximum.op.block:
        op = view.operation
        reads = any(not isinstance(o, ir.BlockArgument) and o.owner in made for o in op.operands)
        if reads and op.name.startswith(LOCAL) and not is_contraction(view):
            made.append(op)
    found = [
        result
        for op in made
        for result in op.results
        if any(_in_function(use.owner, maximum.op) not in made for use in result.uses)
    ]
    shape = list(values.tensor.type.shape)
    codes = [each for each in found if list(each.type.shape) == shape]
    if len(found) != 2 or len(codes) != 1:
        raise NotRaised(
            maximum.op,
            "expected two results that depend on this maximum, one of them of the values' shape "
            f"{shape}, got {', '.join(str(each.type) for each in found) or 'none'}",
        )
    return codes[0], next(each for each in found if each != codes[0])


def _in_function(op: ir.OpView, beside: ir.Operation) -> ir.Operation:
    """The op around `op` in the block of `beside`."""
    found = op.operation
    while found.block != beside.block:
        found = found.parent.operation
    return found


def elements_of(maximum: Maximum, values: Values) -> ElementGraph:
    """Expresses elements as functions of a value and of the largest magnitude in the value's
    block."""
    rank = maximum.tensor.type.rank
    rows = tuple(range(rank - 2))
    result, read = maximum.op.results[0], value(linalg.get_indexing_maps(maximum.op)[1])
    own: Dims = tuple(e.position if isinstance(e, ir.AffineDimExpr) else None for e in read.results)
    places: dict[ir.Value, Dims] = {result: own}
    if values.norm is None:
        places[values.tensor] = (*rows, COLUMN)
    if values.blocked is not None:
        places[values.blocked] = (*rows, rank - 2, rank - 1)

    def leaf(tensor: ir.Value, dims: Dims) -> Number | None:
        if tensor not in places:
            return None
        shape = tensor.type.shape
        if any(a != b and n > 1 for a, b, n in zip(dims, places[tensor], shape, strict=True)):
            words = "expected every element made of the value and the block at its own place"
            raise NotRaised(maximum.op, f"{words}, got those of another")
        return Number(None, name=AMAX if tensor == result else VALUE)

    return ElementGraph(rank, maximum.blocks, leaf)
