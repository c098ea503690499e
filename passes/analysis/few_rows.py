"""Products with few rows or columns, for which each element of the large matrix is read once and
goes through registers."""

from __future__ import annotations

from math import prod

from tcir._mlir import ir, linalg
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.fragments import ROW_BYTES
from tcir.dialect.limits import GRID
from tcir.dialect.ops.highlevel import k_part, out_layout
from tcir.passes.analysis.computed import UNIT, Computed, NotComputedError

FEW = 16
"""Rows that are few: those of all CTAs are read again by each of them."""
FEW_COMPUTED = 32
"""The same where the matrix is computed from narrower numbers."""
TYPES = ("f16", "bf16", "f32")
COMPUTED_TYPES = ("f16", "bf16")
MEMBERS = 4
"""Threads that share a row of an ``mma.sync``'s factor."""


def has_few_rows(op: tc.MatmulOp) -> bool:
    """Whether the op multiplies a large matrix by at most 16 rows or columns, and both factors have
    K as their last dimension."""
    a, b = op.a.type, op.b.type
    whole = a.shape[-1] * tc.element_bytes(a.element_type) % ROW_BYTES == 0
    alike = a.element_type == b.element_type and str(a.element_type) in TYPES
    layouts = (string(op, "a_layout"), string(op, "b_layout"), out_layout(op))
    given = all(isinstance(each, ir.BlockArgument) for each in (op.a, op.b))
    if layouts != ("mk", "nk", "mn") or not (whole and alike and given) or k_part(op) is not None:
        return False
    if prod(a.shape[:-2]) > GRID[-1]:
        return False  # a matrix is along z
    return a.rank == b.rank and min(a.shape[-2], b.shape[-2]) <= FEW


def narrow_matrix(op: tc.MatmulOp) -> Computed | None:
    """Describes how the matrix that few rows or columns multiply is computed from narrower numbers;
    None for other products."""
    if k_part(op) is not None:
        return None
    sides = (op.a, string(op, "a_layout")), (op.b, string(op, "b_layout"))
    for (many, layout), (few, other) in (sides, sides[::-1]):
        if isinstance(few, ir.BlockArgument) and not isinstance(many, ir.BlockArgument):
            if few.type.rank != 2 or other[1] != "k" or few.type.shape[0] > FEW_COMPUTED:
                return None
            return _streamed(many, layout)
    return None


def reads_narrow_matrix(op: ir.Operation) -> bool:
    """Whether a factor of a ``linalg`` product (before it becomes a ``tc`` op) is a matrix computed
    from narrower numbers."""
    maps = [ir.AffineMapAttr(each).value for each in linalg.get_indexing_maps(op)]
    kept = _dims(maps[-1])
    for factor, read in zip(op.operands, maps[:-1]):
        layout = "".join("n" if each in kept else "k" for each in _dims(read))
        computed = len(layout) == len(read.results) and not isinstance(factor, ir.BlockArgument)
        if computed and _streamed(factor, layout) is not None:
            return True
    return False


def _dims(read: ir.AffineMap) -> list[int]:
    """The loops that index a tensor's dimensions."""
    return [each.position for each in read.results if isinstance(each, ir.AffineDimExpr)]


def _streamed(matrix: ir.Value, layout: str) -> Computed | None:
    """How a matrix is computed, if each thread of four computes whole units of every row."""
    if str(matrix.type.element_type) not in COMPUTED_TYPES:
        return None
    try:
        how = Computed.of(matrix, layout)
    except NotComputedError:
        return None
    stored = how.k // how.count * tc.element_bytes(how.stored.element)
    return None if stored % (MEMBERS * UNIT) else how
