"""Rules about the bulk groups of a kernel: the kernel must wait for every TMA store."""

from __future__ import annotations

from collections.abc import Callable

from tcir._mlir import ir
from tcir.dialect.attributes import defining, integer, integers
from tcir.dialect.kernel.view import Found, KernelOp, KernelView, verify_in_kernel
from tcir.dialect.loops import executions
from tcir.dialect.ops.memory import SlotOp
from tcir.dialect.ops.staged_fragment import StoreFragmentStagedOp
from tcir.dialect.ops.store_shared import StoreSharedOp
from tcir.dialect.ops.tma_store import BulkCommitOp, BulkWaitOp, TmaStoreOp

GROUPS = (BulkCommitOp, StoreFragmentStagedOp)
"""Ops that close a bulk group."""


def _left_open(
    kernel: KernelView, opens: type | tuple[type, ...], closes: Callable[[ir.OpView], bool]
) -> list[KernelOp]:
    """Returns the last op of a class `opens` of each role, unless an op that `closes` follows it in
    that role."""
    left: dict[ir.Operation | None, KernelOp] = {}
    for site in kernel.sites:
        role = site.role.operation if site.role else None
        if isinstance(site.op, opens):
            left[role] = site
        elif closes(site.op):
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
        yield from ((site.op, {}) for site in _left_open(kernel, TmaStoreOp, _commits))


def _commits(op: ir.OpView) -> bool:
    return isinstance(op, BulkCommitOp)


@verify_in_kernel(
    "bulk-wait",
    "PTX ISA 9.7.9.25.4",
    "no tc.bulk_wait of pending = 0 follows this group of stores in its role: the CTA could end, "
    "and its shared memory be given away, before the tiles are read",
)
def _(kernel: KernelView) -> Found:
    if kernel.asynchronous:
        yield from ((site.op, {}) for site in _left_open(kernel, GROUPS, _waits_for_all))


def _waits_for_all(op: ir.OpView) -> bool:
    return isinstance(op, BulkWaitOp) and integer(op, "pending") == 0


@verify_in_kernel(
    "staged-tile-reuse",
    "PTX ISA 9.7.9.25.4",
    "{tiles} tiles of a warp for {stores} stores: tc.store_shared overwrites one that TMA may "
    "still read; in the loop of the stores, wait with tc.bulk_wait of pending at most {most}, got "
    "{got}: that many groups are of the other tiles",
)
def _(kernel: KernelView) -> Found:
    if not kernel.asynchronous:
        return
    for site in kernel.sites:
        store, slot = site.op, defining(site.op.tile, SlotOp) if _stores(site.op) else None
        if slot is None or site.role is None or not _written(kernel, slot):
            continue
        tiles = max(1, slot.ring.type.count // len(integers(site.role, "warps")))
        stores, waits = executions(store), _waits_beside(kernel, site)
        if stores > tiles and min(waits, default=tiles) >= tiles:
            got = ", ".join(map(str, waits)) or "none"
            yield store, {"tiles": tiles, "stores": stores, "most": tiles - 1, "got": got}


def _stores(op: ir.OpView) -> bool:
    return isinstance(op, TmaStoreOp)


def _written(kernel: KernelView, slot: SlotOp) -> bool:
    """Whether threads write to tiles of the slot's ring."""
    slots = [defining(op.tile, SlotOp) for op in kernel.of(StoreSharedOp)]
    return any(each is not None and each.ring == slot.ring for each in slots)


def _waits_beside(kernel: KernelView, site: KernelOp) -> list[int]:
    """``pending`` of each wait in the block of a store, which the loop around it repeats."""
    block = site.op.operation.block
    waits = [op for op in kernel.of(BulkWaitOp) if op.operation.block == block]
    return [integer(op, "pending") for op in waits]
