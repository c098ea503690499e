"""Rules about bulk groups of a kernel: TMA stores that are awaited."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect.kernel.view import Found, KernelView, Site, verify_in_kernel
from tcir.dialect.ops.tma_store import BulkCommitOp, BulkWaitOp, TmaStoreOp


def _left_open(kernel: KernelView, opens: type, closes: type) -> list[Site]:
    """The last op of class `opens` of each role that none of `closes` follows there."""
    left: dict[ir.Operation | None, Site] = {}
    for site in kernel.sites:
        role = site.role.operation if site.role else None
        if isinstance(site.op, opens):
            left[role] = site
        elif isinstance(site.op, closes):
            left.pop(role, None)
    return list(left.values())


@verify_in_kernel(
    "bulk-commit",
    "PTX ISA 9.7.9.25.4",
    "no tc.bulk_commit follows this tc.tma_store in its role: no wait covers a group that is not "
    "closed",
)
def _(kernel: KernelView) -> Found:
    if kernel.asynchronous:
        yield from ((site.op, {}) for site in _left_open(kernel, TmaStoreOp, BulkCommitOp))


@verify_in_kernel(
    "bulk-wait",
    "PTX ISA 9.7.9.25.4",
    "no tc.bulk_wait follows this tc.bulk_commit in its role: the CTA could end, and its shared "
    "memory be given away, before the tiles are read",
)
def _(kernel: KernelView) -> Found:
    if kernel.asynchronous:
        yield from ((site.op, {}) for site in _left_open(kernel, BulkCommitOp, BulkWaitOp))
