"""Kernels of CTA pairs: decides which ops are executed by both CTAs and which by the leader
only."""

from __future__ import annotations

from collections.abc import Sequence

from tcir._mlir import func, ir
from tcir.dialect import tc
from tcir.dialect.cta_pair import BOTH, LEADER
from tcir.dialect.multicast import CTA_MASK
from tcir.dialect.warp_map import MMA, role_of
from tcir.passes.emit.builders import i64, of_pair
from tcir.passes.emit.kernel_ops import walk_body


def lead(kernel: func.FuncOp) -> None:
    """Lets only the leader of a CTA pair execute the mma ops and the ops that order them.

    These tcgen05 ops read and write the memory of both CTAs, so their commits arrive on the
    barriers of both CTAs: the producer of each CTA waits for "empty", and the epilogue of each CTA
    waits for "done".
    """
    for op in walk_body(kernel):
        if role_of(op) != MMA:
            continue
        of_leader(op)
        if isinstance(op, tc.CommitOp):
            of_pair(op)
            op.attributes[CTA_MASK] = i64(BOTH)


def of_leader(op: ir.OpView) -> None:
    """Marks an op so that only the leader of the pair executes it."""
    op.attributes[LEADER] = ir.UnitAttr.get()


def share_leader(role: tc.RoleOp, ops: Sequence[ir.OpView]) -> None:
    """Marks a whole role as the leader's if all its ops, `ops`, are marked."""
    if all(LEADER in op.attributes for op in ops):
        of_leader(role)
        for op in ops:
            del op.attributes[LEADER]
