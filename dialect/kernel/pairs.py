"""Rules about kernels of CTA pairs: who acts on both CTAs, and what both have to see."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import ir
from tcir.dialect.attributes import integer, optional_integer
from tcir.dialect.cta_pair import BOTH, CTA_GROUP, CTA_MASK, LEADER, PAIR, cta_group_of
from tcir.dialect.kernel.completion import barrier_of
from tcir.dialect.kernel.view import (
    Found,
    KernelView,
    Site,
    attribute_of,
    triple,
    verify_in_kernel,
)
from tcir.dialect.ops.block_scale import CpScalesOp, MmaBlockScaleOp
from tcir.dialect.ops.cluster import ClusterBarrierOp
from tcir.dialect.ops.compute import MmaOp
from tcir.dialect.ops.cp_rows import CpRowsOp
from tcir.dialect.ops.halo import RefreshOp, ShiftOp
from tcir.dialect.ops.memory import MbarrierInitOp, TmemAllocOp, TmemDeallocOp, TmemRelinquishOp
from tcir.dialect.ops.mma_sparse import MmaSparseOp
from tcir.dialect.ops.mma_ws import MmaWsOp
from tcir.dialect.ops.movement import CpOp
from tcir.dialect.ops.structure import RoleOp
from tcir.dialect.ops.sync import (
    CommitOp,
    FenceOp,
    MbarrierArriveOp,
    MbarrierExpectTxOp,
    MbarrierWaitOp,
)
from tcir.dialect.ops.tma import TmaLoadOp

ISSUED = (MmaOp, MmaBlockScaleOp, CpScalesOp, CommitOp)
"""tcgen05 ops of one thread that act on a pair with ``cta_group = 2``."""
GROUPED = (
    *ISSUED, CpOp, CpRowsOp, MmaSparseOp, MmaWsOp, RefreshOp, ShiftOp,
    TmemAllocOp, TmemDeallocOp, TmemRelinquishOp,
)  # fmt: skip
"""All tcgen05 ops that PTX has a ``.cta_group`` for."""
SKIPPED = (*ISSUED, MbarrierWaitOp, MbarrierExpectTxOp, FenceOp, RoleOp)
"""Ops that the other CTA of a pair can skip."""


@verify_in_kernel(
    "cta-group",
    "PTX ISA 9.7.16.5",
    "cta_group must be the same on all tcgen05 ops of a kernel, {want} as on its first, got {got}: "
    "an SM works for one CTA or for a pair; legal: 1, or 2 on {legal}",
)
def _(kernel: KernelView) -> Found:
    ops = kernel.of(*GROUPED)
    for op in ops:
        want, got = cta_group_of(ops[0]), optional_integer(op, CTA_GROUP) or 1
        pairs = (*ISSUED, TmemAllocOp, TmemDeallocOp, TmemRelinquishOp)
        if got not in (1, PAIR) or got != want or (got == PAIR and not isinstance(op, pairs)):
            legal = ", ".join(str(each.OPERATION_NAME) for each in pairs)
            yield op, {"want": want, "got": got, "legal": legal}


@verify_in_kernel(
    "pair-cluster",
    "PTX ISA 9.7.16.5",
    "cta_group = 2 needs tc.cluster = array<i64: 2, 1, 1>, got {got}: a pair is two CTAs of a "
    "cluster, of ranks that differ in bit 0 only",
)
def _(kernel: KernelView) -> Found:
    if _has_pairs(kernel) and triple(kernel, "tc.cluster") != [PAIR, 1, 1]:
        yield kernel.func, {"got": attribute_of(kernel, "tc.cluster")}


@verify_in_kernel(
    "leader",
    "tc",
    "leader must be a unit attribute of {legal} in a kernel of pairs, got {got}: the CTA of odd "
    "rank skips the op",
)
def _(kernel: KernelView) -> Found:
    pairs = _has_pairs(kernel)
    legal = ", ".join(str(each.OPERATION_NAME) for each in SKIPPED)
    for site in kernel.sites:
        if LEADER not in site.op.attributes:
            continue
        got = site.op.attributes[LEADER]
        if not (pairs and isinstance(got, ir.UnitAttr) and isinstance(site.op, SKIPPED)):
            yield site.op, {"legal": legal, "got": f"{got} on {site.name}"}


@verify_in_kernel(
    "pair-leader",
    "PTX ISA 9.7.16.5, table 46",
    "{got} of cta_group = 2 must be the leader's (attribute leader, of the op or its role): one "
    "thread of the pair issues it, and issued by both CTAs it takes effect twice",
)
def _(kernel: KernelView) -> Found:
    if kernel.asynchronous:
        for site in _pair_ops(kernel):
            if isinstance(site.op, ISSUED) and not _of_leader(site):
                yield site.op, {"got": site.name}


@verify_in_kernel(
    "pair-commit",
    "PTX ISA 9.7.16.12",
    "both CTAs of the pair wait on this barrier, and the commit arrives on {got} only: set "
    "cta_mask = 3 (.multicast::cluster), or the other wait never ends",
)
def _(kernel: KernelView) -> Found:
    awaited = [
        barrier_of(site.op.bar)
        for site in kernel.sites
        if isinstance(site.op, MbarrierWaitOp) and not _of_leader(site)
    ]
    for site in _pair_ops(kernel):
        op = site.op
        if not isinstance(op, CommitOp) or barrier_of(op.bar) not in awaited:
            continue
        mask = optional_integer(op, CTA_MASK) or 1
        if mask != BOTH:
            yield op, {"got": "the leader's" if mask == 1 else "the other CTA's"}


@verify_in_kernel(
    "pair-arrival",
    "PTX ISA 9.7.13.15",
    "{who} on this barrier, and the arrivals of the other are on {got}: {fix}",
)
def _(kernel: KernelView) -> Found:
    for site, waits in _arrivals(kernel):
        leads = all(map(_of_leader, waits))
        at_leader = cta_group_of(site.op) == PAIR
        if leads and not at_leader and not _of_leader(site):
            fix = "set cta_group = 2 (the leader's barrier), or its mma do not wait for them"
            yield site.op, {"who": "only the leader waits", "got": "its own", "fix": fix}
        elif at_leader and not leads:
            fix = "leave out cta_group, or its own wait never ends"
            yield site.op, {"who": "both CTAs of the pair wait", "got": "the leader's", "fix": fix}


@verify_in_kernel(
    "pair-wait",
    "PTX ISA 9.7.13.15.16, 8.5",
    "a wait for arrivals of both CTAs must have cta_group = 2, {want}, got {got}: by default it "
    "acquires from the threads of its own CTA only",
)
def _(kernel: KernelView) -> Found:
    for site, waits in _arrivals(kernel):
        if cta_group_of(site.op) != PAIR:
            continue
        for wait in waits:
            if cta_group_of(wait.op) != PAIR:
                yield wait.op, {"want": ".acquire.cluster", "got": ".acquire.cta"}


def _arrivals(kernel: KernelView) -> Iterator[tuple[Site, list[Site]]]:
    """The arrivals of threads in a kernel of pairs, and the waits for each."""
    if not _has_pairs(kernel):
        return
    awaited = [site for site in kernel.sites if isinstance(site.op, MbarrierWaitOp)]
    for site in kernel.sites:
        if isinstance(site.op, MbarrierArriveOp):
            bar = barrier_of(site.op.bar)
            waits = [each for each in awaited if barrier_of(each.op.bar) == bar]
            if waits:
                yield site, waits


@verify_in_kernel(
    "pair-bytes",
    "PTX ISA 9.7.9.27.5.2",
    "the leader's barrier must expect the bytes of both CTAs' loads, {want}, got "
    "{got}: each CTA of the pair loads its half and counts it there",
)
def _(kernel: KernelView) -> Found:
    loads = [op for op in kernel.of(TmaLoadOp) if cta_group_of(op) == PAIR and op.signal]
    for expect in kernel.of(MbarrierExpectTxOp):
        block, got = expect.operation.block, integer(expect, "nbytes")
        mine = [o for o in loads if o.signal == expect.bar and o.operation.block == block]
        want = PAIR * sum(integer(load, "nbytes") for load in mine)
        if mine and got != want:
            yield expect, {"want": want, "got": got}


@verify_in_kernel(
    "pair-barrier",
    "PTX ISA 9.7.13.4, 9.7.16.5",
    "a kernel of pairs needs tc.cluster_barrier {where}: the other CTA {why}",
)
def _(kernel: KernelView) -> Found:
    if not kernel.asynchronous or not _has_pairs(kernel):
        return
    sites = [site for site in kernel.sites if site.role is None]
    barriers = [i for i, site in enumerate(sites) if isinstance(site.op, ClusterBarrierOp)]
    inits = [i for i, site in enumerate(sites) if isinstance(site.op, MbarrierInitOp)]
    frees = [i for i, site in enumerate(sites) if isinstance(site.op, TmemDeallocOp)]
    works = [i for i, site in enumerate(sites) if site.nested or isinstance(site.op, _WORK)]
    if inits and works and not any(inits[-1] < i < works[0] for i in barriers):
        why = "signals mbarriers here that may not be initialised"
        yield sites[inits[-1]].op, {"where": "behind tc.mbarrier_init", "why": why}
    if frees and works and not any(works[-1] < i < frees[0] for i in barriers):
        why = "may still use this CTA's memory"
        yield sites[frees[0]].op, {"where": "in front of tc.tmem_dealloc", "why": why}


_WORK = (RoleOp, *ISSUED, TmaLoadOp)


def _pair_ops(kernel: KernelView) -> Iterator[Site]:
    return (site for site in kernel.sites if cta_group_of(site.op) == PAIR)


def _has_pairs(kernel: KernelView) -> bool:
    return any(True for _ in _pair_ops(kernel))


def _of_leader(site: Site) -> bool:
    return LEADER in site.op.attributes or (
        site.role is not None and LEADER in site.role.attributes
    )
