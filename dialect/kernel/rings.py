"""Rules about rings of tiles that loads fill again."""

from __future__ import annotations

from tcir.dialect.attributes import defining
from tcir.dialect.kernel.completion import barrier_of
from tcir.dialect.kernel.view import Found, KernelView, verify_in_kernel
from tcir.dialect.loops import executions
from tcir.dialect.ops.memory import SlotOp
from tcir.dialect.ops.sync import CommitOp, MbarrierArriveOp, MbarrierWaitOp
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
        slot = defining(site.op.tile, SlotOp) if isinstance(site.op, TmaLoadOp) else None
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
