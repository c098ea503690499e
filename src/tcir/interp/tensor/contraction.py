"""Recognises structured ops whose body is ``out + ext(a) * ext(b)``, and computes their sums fast.

Products and sums are computed in float64 and rounded once to the accumulator's type. This is a
mathematical reference: for f16 and bf16 operands every product is exact, and integer-valued sums
below 2^53 are exact. Bodies on integers are summed in int64 and wrapped to the accumulator's width.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcir._mlir import ir
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.views import AffineExpression, view
from tcir.interp.types import Array, dtype_of

_SIGNED = ("arith.extf", "arith.extsi")


@dataclass(frozen=True)
class ContractionBody:
    """Positions of the block arguments that are multiplied, and whether each of them is
    zero-extended (unsigned).
    """

    a: int
    b: int
    unsigned: tuple[bool, bool]


def _producer(value: ir.Value, name: str) -> ir.Operation | None:
    owner = value.owner
    return owner if not isinstance(owner, ir.Block) and owner.name == name else None


def _extended_argument(value: ir.Value, block: ir.Block) -> tuple[int, bool] | None:
    unsigned = False
    while not isinstance(value.owner, ir.Block):
        name = value.owner.name
        if name not in (*_SIGNED, "arith.extui"):
            return None
        unsigned |= name == "arith.extui"
        value = value.owner.operands[0]
    argument = ir.BlockArgument(value)
    return (argument.arg_number, unsigned) if argument.owner == block else None


def recognise(block: ir.Block) -> ContractionBody | None:
    """Returns the contraction that `block` (two inputs and one accumulator) computes, or None."""
    if len(block.arguments) != 3:
        return None
    (result,) = list(block.operations)[-1].operation.operands
    for kind in "fi":
        add = _producer(result, f"arith.add{kind}")
        if add is None:
            continue
        for total, term in itertools.permutations(add.operands):
            if total != block.arguments[2]:
                continue
            mul = _producer(term, f"arith.mul{kind}")
            factors = [_extended_argument(v, block) for v in mul.operands] if mul else [None]
            match factors:
                case [(a, ua), (b, ub)] if {a, b} == {0, 1}:
                    return ContractionBody(a, b, (ua, ub))
    return None


def _widen(array: Array, unsigned: bool) -> Array:
    if array.dtype.kind not in "biu":
        return array.astype(np.float64)
    if unsigned and array.dtype != np.bool_:
        array = array.view(array.dtype.str.replace("i", "u"))
    elif array.dtype == np.bool_ and not unsigned:
        return -array.astype(np.int64)
    return array.astype(np.int64)


def contract(
    found: ContractionBody,
    block: ir.Block,
    operands: Sequence[Array],
    maps: Sequence[list[AffineExpression]],
    sizes: Sequence[int],
) -> Array:
    """Returns the new value of the output operand."""
    arrays = [_widen(operands[i], u) for i, u in zip((found.a, found.b), found.unsigned)]
    map_a, map_b = maps[found.a], maps[found.b]
    target = operands[2].astype(arrays[0].dtype)
    out, out_dims = view(target, maps[2], sizes, writeable=True)
    # Loops of a window (d1 + d4) are run one by one; what remains is a batched matrix product.
    mixed = {
        d for m in (map_a, map_b) for e in m if len(e.coefficients) > 1 for d in e.coefficients
    }
    window = sorted(mixed - set(out_dims))
    total: Array = np.zeros(out.shape, arrays[0].dtype)
    view_a, dims_a = view(arrays[0], map_a, sizes)
    view_b, dims_b = view(arrays[1], map_b, sizes)
    for point in itertools.product(*(range(sizes[d]) for d in window)):
        at = dict(zip(window, point))
        a = view_a[tuple(at.get(d, slice(None)) for d in dims_a)]
        b = view_b[tuple(at.get(d, slice(None)) for d in dims_b)]
        rest_a = [d for d in dims_a if d not in at]
        rest_b = [d for d in dims_b if d not in at]
        total += batched_product(a, rest_a, b, rest_b, out_dims)
    out += total
    dtype = dtype_of(block.arguments[2].type)
    return convert(target, dtype) if target.dtype == np.float64 else target.astype(dtype)


def batched_product(
    a: Array, dims_a: Sequence[int], b: Array, dims_b: Sequence[int], dims_out: Sequence[int]
) -> Array:
    """Computes ``sum a * b`` over the loops that are not in `dims_out`, by one matrix product. The
    axes of the result are `dims_out`; an axis has size 1 if neither operand uses its loop.
    """
    for dims, keep in ((dims_a, dims_b), (dims_b, dims_a)):  # loops only one side sums over
        alone = [d for d in dims if d not in keep and d not in dims_out]
        if alone:
            axes = tuple(dims.index(d) for d in alone)
            if dims is dims_a:
                a = a.sum(axis=axes)
            else:
                b = b.sum(axis=axes)
    dims_a = [d for d in dims_a if d in dims_b or d in dims_out]
    dims_b = [d for d in dims_b if d in dims_a or d in dims_out]
    batch = [d for d in dims_a if d in dims_b and d in dims_out]
    inner = [d for d in dims_a if d in dims_b and d not in dims_out]
    rows = [d for d in dims_a if d not in dims_b]
    columns = [d for d in dims_b if d not in dims_a]
    sizes = dict(zip(dims_a, a.shape)) | dict(zip(dims_b, b.shape))

    def matrix(x: Array, dims: Sequence[int], order: list[list[int]]) -> Array:
        flat = [d for group in order for d in group]
        shape = [sizes[d] for d in order[0]]
        shape += [int(np.prod([sizes[d] for d in g], dtype=np.int64)) for g in order[1:]]
        return x.transpose([list(dims).index(d) for d in flat]).reshape(shape)

    product = matrix(a, dims_a, [batch, rows, inner]) @ matrix(b, dims_b, [batch, inner, columns])
    loops = batch + rows + columns
    loops += [d for d in dims_out if d not in loops]
    product = product.reshape([sizes.get(d, 1) for d in loops])
    return product.transpose([loops.index(d) for d in dims_out])
