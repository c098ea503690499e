"""Rules about accumulators that each iteration of a loop over output tiles uses again."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import ir
from tcir.dialect.attributes import defining, string
from tcir.dialect.kernel.completion import barrier_of
from tcir.dialect.kernel.view import Found, KernelOp, KernelView, verify_in_kernel
from tcir.dialect.loops import executions
from tcir.dialect.ops.block_scale import MmaBlockScaleOp
from tcir.dialect.ops.compute import MmaOp
from tcir.dialect.ops.lanes import EnableLanesOp
from tcir.dialect.ops.memory import SlotOp
from tcir.dialect.ops.movement import TmemLdOp, TmemWaitOp
from tcir.dialect.ops.sync import FenceOp, MbarrierArriveOp, MbarrierWaitOp


@verify_in_kernel(
    "accumulator-reuse",
    "PTX ISA 9.7.16.6.4",
    "{count} accumulators for {tiles} tiles: the mma overwrites one that the epilogue may still "
    "read; wait before it on a barrier on which the epilogue arrives after its last tc.tmem_ld",
)
def _(kernel: KernelView) -> Found:
    for slot, first, last in _reused(kernel):
        released = [barrier_of(site.op.bar) for site in _arrivals(kernel, last)]
        if not any(barrier_of(site.op.bar) in released for site in _waits(kernel, first)):
            yield first.op, {"count": slot.ring.type.count, "tiles": executions(slot)}


@verify_in_kernel(
    "accumulator-release",
    "PTX ISA 9.7.16.6.4, 9.7.16.8.5",
    "the arrival that lets the mma overwrite an accumulator needs {want} between it and the last "
    "tc.tmem_ld: the loads may still be under way",
)
def _(kernel: KernelView) -> Found:
    for _, first, last in _reused(kernel):
        awaited = [barrier_of(site.op.bar) for site in _waits(kernel, first)]
        for site in _arrivals(kernel, last):
            if barrier_of(site.op.bar) not in awaited:
                continue
            between = kernel.sites[kernel.sites.index(last) : kernel.sites.index(site)]
            kinds = {
                string(each.op, "kind") for each in between if isinstance(each.op, _ENDS_LOADS)
            }
            for want, op in (("ld", "tc.tmem_wait"), ("tcgen05.before", "tc.fence")):
                if want not in kinds:
                    yield site.op, {"want": f'{op} "{want}"'}


_ENDS_LOADS = (TmemWaitOp, FenceOp)


def _reused(kernel: KernelView) -> Iterator[tuple[SlotOp, KernelOp, KernelOp]]:
    """Accumulators with fewer slots than tiles: the slot, its first mma, and the last ld."""
    if not kernel.asynchronous:
        return
    writes: dict[ir.Value, tuple[SlotOp, KernelOp]] = {}
    reads: dict[ir.Value, KernelOp] = {}
    for site in kernel.sites:
        if isinstance(site.op, MmaOp | MmaBlockScaleOp) and (slot := _slot(site.op.d)):
            writes.setdefault(slot.ring, (slot, site))
        elif isinstance(site.op, TmemLdOp) and (slot := _slot(site.op.source)):
            reads[slot.ring] = site
    for ring, (slot, first) in writes.items():
        if ring in reads and executions(slot) > ring.type.count:
            yield slot, first, reads[ring]


def _slot(tile: ir.Value) -> SlotOp | None:
    """The slot that an accumulator, or a lane-masked view of one, is."""
    masked = defining(tile, EnableLanesOp)
    found: SlotOp | None = defining(masked.d if masked else tile, SlotOp)
    return found


def _arrivals(kernel: KernelView, last: KernelOp) -> list[KernelOp]:
    """Arrivals after `last` in its role."""
    behind = kernel.sites[kernel.sites.index(last) :]
    return [s for s in behind if isinstance(s.op, MbarrierArriveOp) and s.role == last.role]


def _waits(kernel: KernelView, first: KernelOp) -> list[KernelOp]:
    """Waits before `first` in its role."""
    before = kernel.sites[: kernel.sites.index(first)]
    return [s for s in before if isinstance(s.op, MbarrierWaitOp) and s.role == first.role]
