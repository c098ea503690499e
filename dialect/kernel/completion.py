"""Rules about the completion of asynchronous ops."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect.attributes import defining, integer
from tcir.dialect.kernel.view import (
    Found,
    KernelOp,
    KernelView,
    verify_in_kernel,
)
from tcir.dialect.ops.launch_control import LaunchRequestOp
from tcir.dialect.ops.memory import (
    SlotOp,
)
from tcir.dialect.ops.sync import CommitOp, MbarrierArriveOp, MbarrierExpectTxOp, MbarrierWaitOp
from tcir.dialect.ops.tma import TmaLoadOp


@verify_in_kernel(
    "sequential",
    "tc",
    "{got} has no meaning in a kernel without tc.async: there every op takes effect in program "
    "order",
)
def _(kernel: KernelView) -> Found:
    if kernel.asynchronous:
        return
    for site in kernel.sites:
        if site.traits.async_only:
            yield site.op, {"got": site.name}
    for op in kernel.of(TmaLoadOp):
        if op.signal is not None:
            yield op, {"got": "tc.tma_load with signal"}


@verify_in_kernel(
    "load-signal",
    "PTX ISA 9.7.9.27",
    "a load in a tc.async kernel needs a signal: nothing else tells when its bytes are there",
)
def _(kernel: KernelView) -> Found:
    if kernel.asynchronous:
        yield from ((op, {}) for op in kernel.of(TmaLoadOp) if op.signal is None)


@verify_in_kernel(
    "commit",
    "PTX ISA 9.7.16.12",
    "no tc.commit follows this {got} in its role: nothing tells when it is complete",
)
def _(kernel: KernelView) -> Found:
    if not kernel.asynchronous:
        return
    unfinished: dict[ir.Operation | None, KernelOp] = {}
    for site in kernel.sites:
        thread = site.role.operation if site.role else None
        if site.traits.completed_by == CommitOp.OPERATION_NAME:
            unfinished[thread] = site
        elif isinstance(site.op, CommitOp):
            unfinished.pop(thread, None)
    for site in unfinished.values():
        yield site.op, {"got": site.name}


def barrier_of(value: ir.Value) -> ir.Value:
    """The ring if ``value`` is one slot of a ring of mbarriers, else ``value`` itself."""
    slot = defining(value, SlotOp)
    return value if slot is None else slot.ring


@verify_in_kernel(
    "wait-arrival",
    "PTX ISA 9.7.13.15",
    "nothing arrives on this barrier (no tc.commit, no tc.mbarrier_expect_tx, no "
    "tc.mbarrier_arrive): the wait never ends",
)
def _(kernel: KernelView) -> Found:
    arrivals = [
        barrier_of(op.bar) for op in kernel.of(CommitOp, MbarrierExpectTxOp, MbarrierArriveOp)
    ]
    for op in kernel.of(MbarrierWaitOp):
        if barrier_of(op.bar) not in arrivals:
            yield op, {}


@verify_in_kernel(
    "expect-signal",
    "PTX ISA 9.7.13.15",
    "no tc.tma_load and no tc.launch_request signals this barrier: the announced {got} bytes never "
    "arrive",
)
def _(kernel: KernelView) -> Found:
    loads = kernel.of(TmaLoadOp, LaunchRequestOp)
    signalled = [barrier_of(op.signal) for op in loads if op.signal is not None]
    for op in kernel.of(MbarrierExpectTxOp):
        if barrier_of(op.bar) not in signalled:
            yield op, {"got": integer(op, "nbytes")}


@verify_in_kernel(
    "signal-expect",
    "PTX ISA 9.7.13.15",
    "no tc.mbarrier_expect_tx announces the bytes of this load on its barrier: its phase could "
    "complete without them",
)
def _(kernel: KernelView) -> Found:
    if not kernel.asynchronous:
        return
    announced = [barrier_of(op.bar) for op in kernel.of(MbarrierExpectTxOp)]
    for op in kernel.of(TmaLoadOp):
        if op.signal is not None and barrier_of(op.signal) not in announced:
            yield op, {}
