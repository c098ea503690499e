"""Rules about CTAs that access each other's shared memory: CTA pairs, and multicasts within a
cluster."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from tcir._mlir import ir
from tcir.dialect.attributes import defining, integer
from tcir.dialect.cta_pair import PAIR, cta_group_of
from tcir.dialect.kernel.completion import barrier_of
from tcir.dialect.kernel.pairs import ISSUED, has_pairs, of_leader
from tcir.dialect.kernel.rings import loaded_slot
from tcir.dialect.kernel.view import Found, KernelOp, KernelView, attribute_of, verify_in_kernel
from tcir.dialect.loops import executions
from tcir.dialect.multicast import CTA_MASK, cluster_ctas, masks_of, ranks_in, transposed
from tcir.dialect.ops.cluster import ClusterBarrierOp
from tcir.dialect.ops.memory import MbarrierInitOp, TmemDeallocOp
from tcir.dialect.ops.structure import RoleOp
from tcir.dialect.ops.sync import (
    CommitOp,
    MbarrierArriveOp,
    MbarrierExpectTxOp,
    MbarrierWaitOp,
)
from tcir.dialect.ops.tma import TmaLoadOp


@verify_in_kernel(
    "cta-mask",
    "PTX ISA 9.7.9.27.5.2, 9.7.16.12",
    "cta_mask must be of CTAs of the cluster, tc.cluster = {cluster}: {want}, got {got}; legal on "
    "tc.tma_load, tc.commit and tc.mbarrier_arrive",
)
def _(kernel: KernelView) -> Found:
    for site in kernel.sites:
        if CTA_MASK not in site.op.attributes or _fits(kernel, site.op):
            continue
        cluster, ctas = attribute_of(kernel, "tc.cluster"), cluster_ctas(kernel.func)
        want = f"in [1, {2**ctas - 1}], or an array of {ctas}"
        got = f"{site.op.attributes[CTA_MASK]} on {site.name}"
        yield site.op, {"cluster": cluster, "want": want, "got": got}


@verify_in_kernel(
    "cluster-commit",
    "PTX ISA 9.7.16.12",
    "{who} wait on this barrier, and the commit arrives on {got} only: set cta_mask{fix} "
    "(.multicast::cluster), or the other wait never ends",
)
def _(kernel: KernelView) -> Found:
    awaited = [
        barrier_of(site.op.bar)
        for site in kernel.sites
        if isinstance(site.op, MbarrierWaitOp) and not of_leader(site)
    ]
    ctas = _ctas(kernel)
    for site in kernel.sites:
        if not isinstance(site.op, CommitOp) or barrier_of(site.op.bar) not in awaited:
            continue
        if CTA_MASK not in site.op.attributes and cta_group_of(site.op) != PAIR:
            continue
        reached = reduce(or_, _reached(kernel, site))
        if reached == 2**ctas - 1:
            continue
        if cta_group_of(site.op) == PAIR:
            got = "the leader's" if reached == 1 else "the other CTA's"
            values = {"who": "both CTAs of the pair", "got": got, "fix": " = 3"}
        else:
            got = "those of CTA " + ", ".join(map(str, ranks_in(reached)))
            values = {"who": f"all {ctas} CTAs of the cluster", "got": got, "fix": " for each CTA"}
        yield site.op, values


@verify_in_kernel(
    "commit-arrivals",
    "PTX ISA 9.7.13.15, 9.7.16.12",
    "the barrier must take {want} arrivals, one of each CTA whose tc.commit reaches it, got {got}: "
    "{why}",
)
def _(kernel: KernelView) -> Found:
    for site in kernel.sites:
        op = site.op
        if not isinstance(op, CommitOp) or CTA_MASK not in op.attributes or not _fits(kernel, op):
            continue
        init = defining(barrier_of(op.bar), MbarrierInitOp)
        senders = transposed(_reached(kernel, site))
        for rank, mask in enumerate(senders):
            want, got = mask.bit_count(), integer(init, "arrivals") if init else None
            if mask and got not in (None, want):
                first, last = "after the first of them", "no further one comes, and no wait ends"
                why = f"CTA {rank} goes on {first}" if got < want else last
                yield init, {"want": want, "got": got, "why": why}
                break


@verify_in_kernel(
    "multicast-reuse",
    "PTX ISA 9.7.9.27.5.2, 9.7.16.12",
    "this load overwrites a slot of CTA {reader}, which may still read it: CTA {loader} waits for "
    'no tc.commit of it; "empty" must come from every CTA of the load\'s mask, cta_mask = {want} '
    "on the commit that frees the slot",
)
def _(kernel: KernelView) -> Found:
    for number, site in enumerate(kernel.sites):
        slot = loaded_slot(site.op)
        if slot is None or site.role is None or CTA_MASK not in site.op.attributes:
            continue
        if not _fits(kernel, site.op) or executions(slot) <= slot.ring.type.count:
            continue
        needed = transposed(masks_of(site.op, _ctas(kernel)))
        freed = [*_freed(kernel, site, number)]
        missing = [
            [(reader, need & ~got) for reader, (need, got) in enumerate(zip(needed, each))]
            for each in freed
        ]
        if any(not any(mask for _, mask in each) for each in missing):
            continue
        first = missing[0] if missing else list(enumerate(needed))
        reader, mask = next((reader, mask) for reader, mask in first if mask)
        want = f"array<i64: {', '.join(map(str, needed))}>"
        yield site.op, {"reader": reader, "loader": ranks_in(mask)[0], "want": want}


def _freed(kernel: KernelView, load: KernelOp, number: int) -> Iterator[list[int]]:
    """For each barrier the load's role has waited on: the ranks that each CTA's commits signal."""
    bars = [
        barrier_of(before.op.bar)
        for before in kernel.sites[:number]
        if isinstance(before.op, MbarrierWaitOp) and before.role == load.role
    ]
    for bar in dict.fromkeys(bars):
        reached = [0] * _ctas(kernel)
        for site in kernel.sites:
            if isinstance(site.op, CommitOp | MbarrierArriveOp) and barrier_of(site.op.bar) == bar:
                reached = [a | b for a, b in zip(reached, _reached(kernel, site), strict=True)]
        yield reached


@verify_in_kernel(
    "cluster-bytes",
    "PTX ISA 9.7.9.27.5.2",
    "{whose} barrier must expect the bytes of {which} loads, {want}, got {got}: {why}",
)
def _(kernel: KernelView) -> Found:
    for site in kernel.sites:
        if not isinstance(site.op, MbarrierExpectTxOp):
            continue
        loads = [
            op
            for op in kernel.of(TmaLoadOp)
            if op.signal == site.op.bar and op.operation.block == site.op.operation.block
        ]
        if not all(_fits(kernel, op) for op in loads):
            continue
        pair = any(cta_group_of(op) == PAIR for op in loads)
        if not pair and not any(CTA_MASK in op.attributes for op in loads):
            continue
        got = integer(site.op, "nbytes")
        for rank in _executing(kernel, site):
            want = sum(_signalled(kernel, op, rank) for op in loads)
            if want != got and (want or not pair):
                whose, which, why = _PAIR_BYTES if pair else _MULTICAST_BYTES
                values = {"whose": whose.format(rank), "which": which, "why": why}
                yield site.op, {"want": want, "got": got, **values}
                break


_PAIR_BYTES = (
    "the leader's",
    "both CTAs'",
    "each CTA of the pair loads its half and counts it there",
)
_MULTICAST_BYTES = (
    "CTA {}'s",
    "all CTAs'",
    "what another CTA multicasts counts on every barrier it reaches",
)


def _signalled(kernel: KernelView, load: TmaLoadOp, rank: int) -> int:
    """Bytes that a load, executed by every CTA, counts on the barrier of one."""
    home = PAIR if cta_group_of(load) == PAIR else 1
    reached = [each for mask in masks_of(load, _ctas(kernel)) for each in ranks_in(mask)]
    return integer(load, "nbytes") * sum(each // home * home == rank for each in reached)


@verify_in_kernel(
    "cluster-barrier",
    "PTX ISA 9.7.13.4, 9.7.16.5",
    "a kernel of {what} needs tc.cluster_barrier {where}: {who} {why}",
)
def _(kernel: KernelView) -> Found:
    pairs = has_pairs(kernel)
    if not kernel.asynchronous or not (pairs or _multicasts(kernel)):
        return
    what, who = ("pairs", "the other CTA") if pairs else ("multicasts", "another CTA")
    sites = [site for site in kernel.sites if site.role is None]
    barriers = [i for i, site in enumerate(sites) if isinstance(site.op, ClusterBarrierOp)]
    inits = [i for i, site in enumerate(sites) if isinstance(site.op, MbarrierInitOp)]
    frees = [i for i, site in enumerate(sites) if isinstance(site.op, TmemDeallocOp)]
    works = [i for i, site in enumerate(sites) if site.nested or isinstance(site.op, _WORK)]
    if inits and works and not any(inits[-1] < i < works[0] for i in barriers):
        why = "signals mbarriers here that may not be initialised"
        values = {"where": "after tc.mbarrier_init", "why": why, "what": what, "who": who}
        yield sites[inits[-1]].op, values
    end, where = (frees or [len(sites) - 1])[0], "before tc.tmem_dealloc"
    if not pairs:
        where = "after its last op that reaches others, before it ends"
    if (frees or not pairs) and works and not any(works[-1] < i <= end for i in barriers):
        why = "may still use this CTA's memory"
        yield sites[end].op, {"where": where, "why": why, "what": what, "who": who}


_WORK = (RoleOp, *ISSUED, TmaLoadOp)


def _multicasts(kernel: KernelView) -> bool:
    return any(CTA_MASK in site.op.attributes for site in kernel.sites)


def _ctas(kernel: KernelView) -> int:
    """Number of CTAs of a cluster, or of a pair if the kernel declares no cluster."""
    return max(cluster_ctas(kernel.func), PAIR if has_pairs(kernel) else 1)


def _fits(kernel: KernelView, op: ir.OpView) -> bool:
    """Whether the mask of an op, if any, is one of CTAs of the cluster."""
    if CTA_MASK not in op.attributes:
        return True
    if not isinstance(op, TmaLoadOp | CommitOp | MbarrierArriveOp):
        return False
    try:
        masks_of(op, _ctas(kernel))
    except ValueError:
        return False
    return True


def _executing(kernel: KernelView, site: KernelOp) -> range:
    """Ranks of the CTAs that execute an op."""
    return range(0, _ctas(kernel), PAIR if of_leader(site) else 1)


def _reached(kernel: KernelView, site: KernelOp) -> list[int]:
    """For each CTA, the mask of the CTAs that its execution of an op reaches."""
    ctas, executing = _ctas(kernel), _executing(kernel, site)
    if not _fits(kernel, site.op):
        return [2**ctas - 1] * ctas
    masks = masks_of(site.op, ctas)
    return [mask if rank in executing else 0 for rank, mask in enumerate(masks)]
