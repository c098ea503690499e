"""One function for each nvvm op that passes create; the bindings' module would define some 250 op
classes.

A function has the name of its op (``nvvm.mbarrier.init``: `mbarrier_init`, ``nvvm.tcgen05.ld``:
`tcgen05.ld`), creates the op at the insertion point, and returns the op's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tcir._mlir import ir

from ..build import attribute, effect, integer, integer_type, integers, value
from . import tcgen05 as tcgen05

Scope = Literal["cta", "cluster"]
"""Whom an mbarrier operation orders the thread's accesses with."""


def read_ptx_sreg(name: str) -> ir.Value:
    """A special register of 32 bits, such as ``tid.x``."""
    return value(f"nvvm.read.ptx.sreg.{name}", integer_type(32))


def elect_sync() -> ir.Value:
    """Whether this thread is the elected one of its warp."""
    return value("nvvm.elect.sync", integer_type(1))


def vote_sync_ballot(mask: ir.Value, predicate: ir.Value) -> ir.Value:
    """A word in which the bit of each lane whose predicate is true is set."""
    kind = attribute("nvvm", "vote_sync_kind ballot")
    return value("nvvm.vote.sync", integer_type(32), mask, predicate, kind=kind)


def shfl_sync_bfly(mask: ir.Value, of: ir.Value, lanes: ir.Value, clamp: ir.Value) -> ir.Value:
    """The value that `of` has in the lane whose number is this lane's number XOR `lanes`."""
    kind = attribute("nvvm", "shfl_kind bfly")
    return value("nvvm.shfl.sync", of.type, mask, of, lanes, clamp, kind=kind)


def shfl_sync_idx(mask: ir.Value, of: ir.Value, lane: ir.Value, clamp: ir.Value) -> ir.Value:
    """The value that `of` has in the lane with the number `lane`."""
    kind = attribute("nvvm", "shfl_kind idx")
    return value("nvvm.shfl.sync", of.type, mask, of, lane, clamp, kind=kind)


def setmaxregister(action: Literal["increase", "decrease"], count: int) -> None:
    """Gives each thread of the warpgroup `count` registers."""
    kind = attribute("nvvm", f"action {action}")
    effect("nvvm.setmaxregister", regCount=integer(count), action=kind)


def barrier(number: ir.Value | None = None, threads: ir.Value | None = None) -> None:
    """``bar.sync 0``, or ``bar.sync number, threads``."""
    given = [each for each in (number, threads) if each is not None]
    sizes = integers(*(int(each is not None) for each in (number, threads)))
    effect("nvvm.barrier", *given, operandSegmentSizes=sizes)


def cluster_barrier(*, relaxed: bool = False) -> None:
    """``barrier.cluster.arrive`` and ``.wait`` of all threads; relaxed: without memory ordering."""
    for half in ("arrive.relaxed" if relaxed else "arrive", "wait"):
        effect(f"nvvm.cluster.{half}", aligned=ir.UnitAttr.get())


def fence_mbarrier_init() -> None:
    """Makes initialised mbarriers visible to the cluster."""
    effect("nvvm.fence.mbarrier.init")


def fence_proxy(kind: str, space: str = "") -> None:
    """Orders accesses through different proxies. It orders all accesses, or only accesses to one
    space of shared memory.
    """
    where = {"space": attribute("nvvm.shared_space", space)} if space else {}
    effect("nvvm.fence.proxy", kind=attribute("nvvm.proxy_kind", kind), **where)


def griddepcontrol(kind: Literal["wait", "launch_dependents"]) -> None:
    """``griddepcontrol.wait`` or ``.launch_dependents``, for programmatic dependent launch."""
    effect("nvvm.griddepcontrol", kind=attribute("nvvm", f"grid_dep_action {kind}"))


def mbarrier_init(pointer: ir.Value, arrivals: ir.Value) -> None:
    """Initialises an mbarrier that expects a number of arrivals."""
    effect("nvvm.mbarrier.init", pointer, arrivals)


def mbarrier_arrive(pointer: ir.Value, scope: Scope = "cta") -> None:
    """Arrives once; this releases the thread's earlier accesses to the CTA or the cluster."""
    effect("nvvm.mbarrier.arrive", pointer, scope=attribute("nvvm.mem_scope", scope))


def mbarrier_arrive_expect_tx(pointer: ir.Value, nbytes: ir.Value) -> None:
    """Arrives once, and adds `nbytes` to the number of bytes that the phase waits for."""
    effect("nvvm.mbarrier.arrive.expect_tx", pointer, nbytes)


def mbarrier_try_wait(pointer: ir.Value, parity: ir.Value, scope: Scope = "cta") -> ir.Value:
    """Whether the phase with that parity has completed, after a wait of limited time."""
    kind = attribute("nvvm.mem_scope", scope)
    return value("nvvm.mbarrier.try_wait", integer_type(1), pointer, parity, scope=kind)


def mapa(pointer: ir.Value, rank: ir.Value, target: ir.Type) -> ir.Value:
    """Maps `pointer` to the same offset in the shared memory of the cluster's CTA `rank`; returns a
    ``!llvm.ptr<7>``."""
    return value("nvvm.mapa", target, pointer, rank)


def cp_async_bulk_tensor_shared_cluster_global(
    target: ir.Value,
    tensor_map: ir.Value,
    coordinates: Sequence[ir.Value],
    mbarrier: ir.Value,
    offsets: Sequence[ir.Value],
    *,
    mode: str,
    cta_group: int = 1,
    more: Sequence[ir.Value | None] = (None, None),
) -> None:
    """A TMA load to this CTA (a `target` in address space 3) or to CTAs of the cluster (in 7).

    offsets: offsets of the im2col modes; cta_group: 2 for a pair, where the mbarrier may be the
        other CTA's;
    more: a mask of the CTAs that receive the box and count its bytes, and an L2 cache policy
    """
    masks, policies = ([] if each is None else [each] for each in more)
    effect(
        "nvvm.cp.async.bulk.tensor.shared.cluster.global",
        target, tensor_map, *coordinates, mbarrier, *offsets, *masks, *policies,
        mode=attribute("nvvm.tma_load_mode", mode),
        isCTAOnly=ir.BoolAttr.get(str(target.type) == "!llvm.ptr<3>"),
        operandSegmentSizes=integers(
            1, 1, len(coordinates), 1, len(offsets), len(masks), len(policies), 0
        ),
        **tcgen05.group_of(cta_group),
    )  # fmt: skip


def cp_async_bulk_tensor_global_shared_cta(
    tensor_map: ir.Value, source: ir.Value, coordinates: Sequence[ir.Value], *, mode: str
) -> None:
    """A TMA store."""
    effect(
        "nvvm.cp.async.bulk.tensor.global.shared.cta",
        tensor_map,
        source,
        *coordinates,
        mode=attribute("nvvm.tma_store_mode", mode),
        operandSegmentSizes=integers(1, 1, len(coordinates), 0, 0),
    )


def cp_async_bulk_commit_group() -> None:
    """Combines the thread's bulk copies to global memory since the last commit into a group."""
    effect("nvvm.cp.async.bulk.commit.group")


def cp_async_bulk_wait_group(pending: int, *, read: bool) -> None:
    """Waits until at most `pending` groups are incomplete. With `read`, waits until at most
    `pending` groups have not yet finished reading shared memory.
    """
    more = {"read": ir.UnitAttr.get()} if read else {}
    effect("nvvm.cp.async.bulk.wait_group", group=integer(pending), **more)


def bar_warp_sync(mask: ir.Value) -> None:
    """A barrier of the warp's threads in `mask`."""
    effect("nvvm.bar.warp.sync", mask)


def cp_async_shared_global(
    target: ir.Value, source: ir.Value, size: int, modifier: str, cp_size: ir.Value | None = None
) -> None:
    """Copies `size` bytes asynchronously; the bytes from `cp_size` on are filled with zeros."""
    read = [] if cp_size is None else [cp_size]
    cached = attribute("nvvm", f"load_cache_modifier {modifier}")
    effect(
        "nvvm.cp.async.shared.global", target, source, *read, size=integer(size), modifier=cached
    )


def cp_async_commit_group() -> None:
    """Combines the copies since the last commit into a group."""
    effect("nvvm.cp.async.commit.group")


def cp_async_wait_group(pending: int) -> None:
    """Waits until at most `pending` groups are incomplete."""
    effect("nvvm.cp.async.wait.group", n=integer(pending))


def ldmatrix(kind: ir.Type, pointer: ir.Value, count: int, layout: str) -> ir.Value:
    """Loads `count` matrices of 8 x 8 b16; layout "col" transposes them."""
    return value(
        "nvvm.ldmatrix",
        kind,
        pointer,
        num=integer(count),
        layout=attribute("nvvm.mma_layout", layout),
        shape=attribute("nvvm.ld_st_matrix_shape", "m = 8, n = 8"),
        eltType=attribute("nvvm.ld_st_matrix_elt_type", "b16"),
    )
