"""CTA pairs (``cta_group = 2``): two CTAs of a cluster whose ranks differ in bit 0 only.

The CTA of even rank is the *leader*: it issues the tcgen05 instructions that act on both CTAs. Ops
that act on a pair carry discardable attributes: `CTA_GROUP`, `LEADER` and, if the op is a commit,
``cta_mask`` (see `tcir.dialect.multicast`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tcir._mlir import ir
from tcir.dialect.attributes import optional_integer
from tcir.dialect.limits import TMEM_LANES, Legal
from tcir.dialect.walk import nested

CTA_GROUP = "cta_group"
"""Attribute of tcgen05 ops and TMA loads: 2 in a kernel of pairs (PTX ISA 9.7.16.5). An arrival
with this attribute goes to the leader's mbarrier; a wait for such arrivals also has it."""
LEADER = "leader"
"""Unit attribute of an op or a role: only the leader executes it."""

PAIR = 2
"""CTAs of a pair."""
BOTH = 0b11
"""Mask of both CTAs of a pair."""


def cta_group_of(op: ir.OpView) -> int:
    """Number of CTAs that a tcgen05 op acts on: 1 or 2."""
    return PAIR if CTA_GROUP in op.attributes and optional_integer(op, CTA_GROUP) == PAIR else 1


def wrong_group(op: ir.OpView) -> Mapping[str, object] | None:
    """Value for the error message if ``cta_group`` is present and neither 1 nor 2; else None."""
    got = op.attributes.get(CTA_GROUP, None)
    legal = got is None or (isinstance(got, ir.IntegerAttr) and got.value in (1, PAIR))
    return None if legal else {"got": got}


def kernel_cta_group(kernel: ir.OpView | ir.Operation) -> int:
    """Returns 2 if an op of the kernel acts on CTA pairs, else 1."""
    return max((cta_group_of(op.operation.opview) for op in nested(kernel)), default=1)


def columns_of(op: ir.OpView) -> int:
    """N of an mma, which is the number of rows of B. In a CTA pair each CTA has half of B; N counts
    the rows of both halves."""
    return int(op.b.type.shape[0]) * cta_group_of(op)


def wrong_n(legal: Legal, n: int, group: int) -> Mapping[str, object]:
    """Values for the error message about an illegal N of an mma."""
    m, nearest = TMEM_LANES * group, legal.nearest(n)
    return {"legal": legal, "m": m, "group": group, "got": n, "nearest": nearest}
