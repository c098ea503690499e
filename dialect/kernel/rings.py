"""Rules about rings of tiles: when a slot may be filled again."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect.attributes import defining, string
from tcir.dialect.kernel.completion import barrier_of
from tcir.dialect.kernel.view import Found, KernelView, verify_in_kernel
from tcir.dialect.loops import executions
from tcir.dialect.ops.load_shared import LoadSharedOp
from tcir.dialect.ops.memory import SlotOp
from tcir.dialect.ops.smem_part import whole_tile
from tcir.dialect.ops.structure import RoleOp
from tcir.dialect.ops.sync import CommitOp, FenceOp, MbarrierArriveOp, MbarrierWaitOp
from tcir.dialect.ops.tma import TmaLoadOp


@verify_in_kernel(
    "ring-reuse",
    "PTX ISA 9.7.16.6, 9.7.16.12",
    "{count} slots for {loads} loads: this one overwrites a slot that another role may still read; "
    "wait before it on a barrier on which that role arrives (tc.commit, tc.mbarrier_arrive) when "
    'the slot is empty: "full" alone says when data are there',
)
def _(kernel: KernelView) -> Found:
    told: set[SlotOp] = set()
    for number, site in enumerate(kernel.sites):
        slot = loaded_slot(site.op)
        if slot is None or site.role is None or slot.ring in told:
            continue
        released = [
            barrier_of(other.op.bar)
            for other in kernel.sites
            if isinstance(other.op, CommitOp | MbarrierArriveOp) and other.role != site.role
        ]
        waits = [
            barrier_of(before.op.bar)
            for before in kernel.sites[:number]
            if isinstance(before.op, MbarrierWaitOp) and before.role == site.role
        ]
        if executions(slot) > slot.ring.type.count and not set(waits) & set(released):
            told.add(slot.ring)
            yield site.op, {"count": slot.ring.type.count, "loads": executions(slot)}


@verify_in_kernel(
    "ring-release",
    "PTX ISA 9.7.13.4, fence.proxy.async",
    'the arrival that lets TMA fill a slot again needs tc.fence "proxy.async" between it and the '
    "last tc.load_shared of the slot, got none: threads read it through the generic proxy, TMA "
    "writes through the async proxy",
)
def _(kernel: KernelView) -> Found:
    filling = {
        barrier_of(site.op.bar)
        for site in kernel.sites
        if isinstance(site.op, MbarrierWaitOp) and site.role and _loads(kernel, site.role)
    }
    for number, site in enumerate(kernel.sites):
        if not isinstance(site.op, MbarrierArriveOp) or barrier_of(site.op.bar) not in filling:
            continue
        before = [each for each in kernel.sites[:number] if _same(each.role, site.role)]
        reads = [i for i, each in enumerate(before) if isinstance(each.op, LoadSharedOp)]
        if reads and not any(_is_proxy_fence(each.op) for each in before[reads[-1] :]):
            yield site.op, {}


def loaded_slot(op: ir.OpView) -> SlotOp | None:
    """The slot of a ring of tiles that a TMA load fills, as a whole or in part."""
    if not isinstance(op, TmaLoadOp):
        return None
    found: SlotOp | None = defining(whole_tile(op.tile), SlotOp)
    return found


def _loads(kernel: KernelView, role: RoleOp) -> bool:
    return any(isinstance(site.op, TmaLoadOp) and _same(site.role, role) for site in kernel.sites)


def _same(role: RoleOp | None, other: RoleOp | None) -> bool:
    return role == other if role is not None and other is not None else role is other


def _is_proxy_fence(op: ir.OpView) -> bool:
    return isinstance(op, FenceOp) and string(op, "kind") == "proxy.async"
