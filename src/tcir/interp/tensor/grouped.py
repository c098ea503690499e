"""Rules of grouped products: rows that belong to no group are never written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import EllipsisType
from typing import Any

import numpy as np

from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.ops.highlevel import k_part
from tcir.interp import OutputSpec
from tcir.interp.tensor.arith import convert
from tcir.interp.tensor.interpreter import Interpreter, evaluate
from tcir.interp.types import Array, dtype_of, shape_of


@evaluate(tc.GroupedMatmulOp)
def tc_grouped_matmul(
    _: Interpreter, op: tc.GroupedMatmulOp, a: Array, b: Array, sizes: Array
) -> Sequence[Array]:
    """Multiplies each group's rows by its matrix; rows of no group keep the unwritten value of a
    result."""
    if string(op, "b_layout") == "nk":
        b = b.swapaxes(-1, -2)
    type_ = op.out.type
    whole = dtype_of(type_) == np.int32  # sums wrap
    wide: Any = np.int64 if whole else np.float64
    out = OutputSpec(shape_of(type_), dtype_of(type_)).unwritten()
    for group, rows in enumerate(groups_of(op, sizes)):
        total = in_parts(a[rows].astype(wide), b[group].astype(wide), k_part(op))
        out[rows] = (
            total.astype(np.int32) if whole else convert(total.astype(np.float32), dtype_of(type_))
        )
    return [out]


def in_parts(a: Array, b: Array, part: int | None) -> Array:
    """Computes the product of two matrices. part: length of the ranges along K, each of which gets
    a product of its own
    """
    if part is None:
        return a @ b
    ranges = [slice(first, first + part) for first in range(0, a.shape[-1], part)]
    return np.stack([a[..., each] @ b[..., each, :] for each in ranges])


def groups_of(
    op: tc.GroupedMatmulOp | tc.SumPartsOp, sizes: Array
) -> Iterator[tuple[EllipsisType | int | slice, ...]]:
    """Yields, for each group, the index of its rows in an array whose last dimension is the
    columns.
    """
    first = 0
    for group, size in enumerate(int(n) for n in sizes):
        rows = (group, slice(0, size)) if op.masked else (slice(first, first + size),)
        yield (..., *rows, slice(None))
        first += size


def written(op: tc.GroupedMatmulOp | tc.SumPartsOp, sizes: Array, values: Array) -> Array:
    """Returns an array with `values` in the rows that belong to groups, and with the value of an
    unwritten result in all other rows.
    """
    out = OutputSpec(values.shape, values.dtype).unwritten()
    for rows in groups_of(op, sizes):
        out[rows] = values[rows]
    return out
