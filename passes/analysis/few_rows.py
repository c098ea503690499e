"""Products with few rows or columns, whose matrix streams through registers on sm_90a."""

from __future__ import annotations

from math import prod

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import string
from tcir.dialect.fragments import ROW_BYTES
from tcir.dialect.limits import GRID
from tcir.dialect.ops.highlevel import k_part, out_layout

FEW = 16
"""Rows that are few: those of all CTAs are read again by each of them."""
TYPES = ("f16", "bf16", "f32")


def has_few_rows(op: tc.MatmulOp) -> bool:
    """Whether at most 16 rows or columns multiply a matrix of many; both factors have K last."""
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
