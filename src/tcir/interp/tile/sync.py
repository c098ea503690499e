"""Rules of synchronisation."""

from __future__ import annotations

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.attributes import integer, string
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.limits import WARP, WARPGROUP
from tcir.dialect.multicast import CTA_MASK, ranks_in
from tcir.interp.tile.compiler import (
    Blocking,
    Compiler,
    Frame,
    Step,
    execute,
    in_cta,
    in_leader,
    nothing,
)
from tcir.machine.order.mbarrier import MemoryOrder


@execute(tc.MbarrierWaitOp)
def mbarrier_wait(compiler: Compiler, op: tc.MbarrierWaitOp) -> Step:
    bar, parity = compiler.operands(op)
    site, order = compiler.site(op), _order(op)

    def wait(frame: Frame) -> Blocking:
        v = frame.values
        if v[parity] not in (0, 1):
            raise frame.cta_run.error("bad-parity", f"expected 0 or 1, got {v[parity]}", site)
        yield from frame.agent.mbarrier.wait(v[bar].address, v[parity], order=order, site=site)

    return wait


@execute(tc.MbarrierExpectTxOp)
def mbarrier_expect_tx(compiler: Compiler, op: tc.MbarrierExpectTxOp) -> Step:
    (bar,) = compiler.operands(op)
    site, nbytes = compiler.site(op), integer(op, "nbytes")

    def expect(frame: Frame) -> None:
        if frame.elected():
            frame.agent.mbarrier.arrive(frame.values[bar].address, expect_tx=nbytes, site=site)

    return expect


@execute(tc.MbarrierArriveOp)
def mbarrier_arrive(compiler: Compiler, op: tc.MbarrierArriveOp) -> Step:
    """Arrives at an mbarrier once per thread: a warp of a role arrives for its own threads, and an
    agent that is the whole CTA arrives for the threads of all warps of a sub-partition.

    With ``once``, a warp of a role arrives once, and the whole CTA arrives once for each consumer
    warp. In a CTA pair, the arrivals are on the leader's barrier.
    """
    (bar,) = compiler.operands(op)
    site, warps, pair = compiler.site(op), compiler.warps_of_quarter, cta_group_of(op) == PAIR
    order, once, consumers = _order(op), "once" in op.attributes, compiler.consumers
    masks = compiler.masks(op) if CTA_MASK in op.attributes else None

    def arrive(frame: Frame) -> None:
        count = frame.threads if frame.in_role else WARP * warps
        if once:
            count = 1 if frame.in_role else consumers
        address = frame.values[bar].address
        if pair:
            address = in_leader(address)
        places = [address]
        if masks is not None:
            ranks = ranks_in(masks[frame.cta.rank_in_cluster])
            places = [in_cta(address, rank) for rank in ranks]
        for place in places:
            frame.agent.mbarrier.arrive(place, count, order=order, site=site)

    return arrive


def _order(op: ir.OpView) -> MemoryOrder:
    """Order of an arrival (release) or a wait (acquire): in a pair or cluster also with respect to
    other CTAs."""
    far = cta_group_of(op) == PAIR or "cluster" in op.attributes or CTA_MASK in op.attributes
    return MemoryOrder(scope="cluster" if far else "cta")


@execute(tc.CommitOp)
def commit(compiler: Compiler, op: tc.CommitOp) -> Step:
    (bar,) = compiler.operands(op)
    site, cta_group = compiler.site(op), cta_group_of(op)
    masks = compiler.masks(op) if CTA_MASK in op.attributes else None

    def commit(frame: Frame) -> None:
        if frame.elected():
            mask = None if masks is None else masks[frame.cta.rank_in_cluster]
            address = frame.values[bar].address
            frame.agent.tensor_core.commit(address, mask, cta_group, site=site)

    return commit


@execute(tc.FenceOp)
def fence(compiler: Compiler, op: tc.FenceOp) -> Step:
    kind, site = string(op, "kind"), compiler.site(op)
    return lambda frame: frame.agent.fence(kind, site=site)


@execute(tc.CtaBarrierOp)
def cta_barrier(compiler: Compiler, op: tc.CtaBarrierOp) -> Step:
    site = compiler.site(op)

    def barrier(frame: Frame) -> Blocking:
        yield from frame.agent.barrier.sync(0, None, site=site)

    return barrier


@execute(tc.FirstWarpBarrierOp)
def first_warp_barrier(compiler: Compiler, op: tc.FirstWarpBarrierOp) -> Step:
    """Does nothing: without roles one agent executes all warps, and its accesses are in program
    order.
    """
    return nothing


@execute(tc.WarpsBarrierOp)
def warps_barrier(compiler: Compiler, op: tc.WarpsBarrierOp) -> Step:
    """Synchronises warps. Does nothing without roles, because one agent then executes all warps."""
    (number,) = compiler.operands(op)
    threads, site = WARP * integer(op, "warps"), compiler.site(op)

    def barrier(frame: Frame) -> Blocking:
        if not frame.whole:
            yield from frame.agent.barrier.sync(1 + frame.values[number], threads, site=site)

    return barrier


@execute(tc.TurnOp)
def turn(compiler: Compiler, op: tc.TurnOp) -> Step:
    """Synchronises warpgroups. Does nothing without roles, because one agent then executes all
    warps.
    """
    kind, count, site = string(op, "kind"), integer(op, "warpgroups"), compiler.site(op)
    threads = 2 * WARPGROUP

    def take(frame: Frame) -> Blocking:
        if frame.whole:
            return
        group, barrier = frame.warp // (WARPGROUP // WARP), frame.agent.barrier
        if kind == "pass" or (kind == "begin" and group == count - 1):
            barrier.arrive(1 + (group + 1) % count, threads, site=site)
        elif kind == "wait" or (kind == "end" and group == 0):
            yield from barrier.sync(1 + group, threads, site=site)

    return take


@execute(tc.WarpBarrierOp)
def warp_barrier(compiler: Compiler, op: tc.WarpBarrierOp) -> Step:
    """Does nothing: at this level one agent executes a warp, and its accesses are in program
    order.
    """
    return nothing
