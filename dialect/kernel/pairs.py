"""Rules about kernels of CTA pairs: which ops act on both CTAs, and which CTA's mbarrier receives
the arrivals."""

from __future__ import annotations

from collections.abc import Iterator

from tcir._mlir import ir
from tcir.dialect.attributes import optional_integer
from tcir.dialect.cta_pair import CTA_GROUP, LEADER, PAIR, cta_group_of
from tcir.dialect.kernel.completion import barrier_of
from tcir.dialect.kernel.view import (
    Found,
    KernelOp,
    KernelView,
    attribute_of,
    triple,
    verify_in_kernel,
)
from tcir.dialect.ops.block_scale import CpScalesOp, MmaBlockScaleOp
from tcir.dialect.ops.compute import MmaOp
from tcir.dialect.ops.cp_rows import CpRowsOp
from tcir.dialect.ops.halo import RefreshOp, ShiftOp
from tcir.dialect.ops.launch_control import LaunchRequestOp
from tcir.dialect.ops.memory import TmemAllocOp, TmemDeallocOp, TmemRelinquishOp
from tcir.dialect.ops.mma_sparse import MmaBlockScaleSparseOp, MmaSparseOp, MmaWsSparseOp
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

ISSUED = (MmaOp, MmaBlockScaleOp, CpOp, CpRowsOp, CpScalesOp, RefreshOp, ShiftOp, CommitOp)
"""tcgen05 ops of one thread that act on a pair with ``cta_group = 2``."""
GROUPED = (
    *ISSUED, MmaBlockScaleSparseOp, MmaSparseOp, MmaWsOp, MmaWsSparseOp,
    TmemAllocOp, TmemDeallocOp, TmemRelinquishOp,
)  # fmt: skip
"""All tcgen05 ops that have ``.cta_group`` in PTX."""
SKIPPED = (*ISSUED, MbarrierWaitOp, MbarrierExpectTxOp, LaunchRequestOp, FenceOp, RoleOp)
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
    if has_pairs(kernel) and triple(kernel, "tc.cluster") != [PAIR, 1, 1]:
        yield kernel.func, {"got": attribute_of(kernel, "tc.cluster")}


@verify_in_kernel(
    "leader",
    "tc",
    "leader must be a unit attribute of {legal} in a kernel of pairs, got {got}: the CTA of odd "
    "rank skips the op",
)
def _(kernel: KernelView) -> Found:
    pairs = has_pairs(kernel)
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
            if isinstance(site.op, ISSUED) and not of_leader(site):
                yield site.op, {"got": site.name}


@verify_in_kernel(
    "pair-arrival",
    "PTX ISA 9.7.13.15",
    "{who} on this barrier, and the arrivals of the other are on {got}: {fix}",
)
def _(kernel: KernelView) -> Found:
    for site, waits in _arrivals(kernel):
        leads = all(map(of_leader, waits))
        at_leader = cta_group_of(site.op) == PAIR
        if leads and not at_leader and not of_leader(site):
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


def _arrivals(kernel: KernelView) -> Iterator[tuple[KernelOp, list[KernelOp]]]:
    """The arrivals of threads in a kernel of pairs, and the waits for each."""
    if not has_pairs(kernel):
        return
    awaited = [site for site in kernel.sites if isinstance(site.op, MbarrierWaitOp)]
    for site in kernel.sites:
        if isinstance(site.op, MbarrierArriveOp):
            bar = barrier_of(site.op.bar)
            waits = [each for each in awaited if barrier_of(each.op.bar) == bar]
            if waits:
                yield site, waits


def _pair_ops(kernel: KernelView) -> Iterator[KernelOp]:
    return (site for site in kernel.sites if cta_group_of(site.op) == PAIR)


def has_pairs(kernel: KernelView) -> bool:
    """Whether an op of the kernel acts on a CTA pair."""
    return any(True for _ in _pair_ops(kernel))


def of_leader(site: KernelOp) -> bool:
    """Whether only the leader of a CTA pair executes an op."""
    return LEADER in site.op.attributes or (
        site.role is not None and LEADER in site.role.attributes
    )
