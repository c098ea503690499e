"""The order that the tensor core's pipe keeps by itself (PTX ISA 9.7.16.6.2), and the
synchronisation that is missing between operations that it does not order.

| first -> second, same thread             | order                                  |
| mma -> mma, same D address and shape     | listed                                 |
| cp -> mma, shift -> mma, mma -> shift    | listed                                 |
| shift -> cp.4x256b                       | listed                                 |
| mma -> cp.4x256b after .ashift           | an open question, see `assumptions`    |
| a chain of these                         | listed                                 |
| mma -> mma, mma -> cp, cp -> cp          | kept, as kernels in production prove;  |
|                                          | the ISA does not list it               |
| anything else                            | tcgen05.commit, wait on its mbarrier   |

Kernels in production prove of the "kept" pairs that the second operation may overwrite bytes that
the first reads or writes. No kernel relies on this order to read, as an operand, bytes that an
earlier mma wrote, or to overwrite an A that .ashift moves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from tcir.machine.assumptions import Assumptions
from tcir.machine.order.clocks import PIPED, Access, Clock, Component, join

_LISTED = {("cp", "mma"), ("shift", "mma"), ("mma", "shift")}
_SCALES = "DeepGEMM's block-scaled kernels and CUTLASS's example 72b"
SHIPPED = {("mma", "cp"): _SCALES, ("cp", "cp"): _SCALES, ("mma", "mma"): "CUTLASS's example 77"}
"""Pairs in order of issue beyond the ISA's list, and what relies on it."""


class PipeProduct(NamedTuple):
    """The properties of an mma that decide its order in the pipe.

    accumulator: D's address, M and N; ashift: whether it shifts its A.
    """

    accumulator: tuple[int, int, int]
    ashift: bool


def listed(assumptions: Assumptions, first: Access, second: Access) -> bool:
    """Whether PTX ISA 9.7.16.6.2 lists an order for two tensor-core operations of one thread."""
    pair = (first.kind, second.kind)
    if pair in _LISTED:
        return True
    one, other = first.target, second.target
    if isinstance(one, PipeProduct) and isinstance(other, PipeProduct):
        return one.accumulator == other.accumulator
    if other == "4x256b":
        return pair == ("shift", "cp") or (
            pair == ("mma", "cp") and assumptions.ashift_then_cp == "ordered"
        )
    return second.kind == "commit"


def kept(assumptions: Assumptions, first: Access, second: Access) -> bool:
    """Whether the pipe keeps two tensor-core operations of one thread in order."""
    if listed(assumptions, first, second):
        return True
    if assumptions.pipe_order == "listed" or (first.kind, second.kind) not in SHIPPED:
        return False
    return second.kind != "cp" or not _moves_a(class_of(first))


MISSING_WARP_SYNC = (
    "bar.warp.sync between the lanes: those of one warp are threads of their own, and neither "
    "convergence nor shfl, vote or .aligned instructions order memory (PTX ISA 9.7.13.2)"
)

Class = tuple[Component, str, Hashable]
"""Operations of one thread with the same kind and target: the pipe treats them alike."""


def class_of(access: Access) -> Class:
    """The class of a tensor-core operation that determines its order in the pipe: see `Class`."""
    return access.component, access.kind, access.target


def piped(clock: Clock, access: Access) -> bool:
    """Whether a tensor-core operation precedes, in the pipe, an operation that another thread's
    commit tracked.
    """
    return clock.get((PIPED, class_of(access)), 0) >= access.number


def _moves_a(group: Class) -> bool:
    _, kind, target = group
    return kind == "shift" or (isinstance(target, PipeProduct) and target.ashift)


class PipeOrder:
    """The order of one thread's operations in the pipe, including chains of the pairs that `keeps`
    orders.

    For each class of operations it stores the last operation, and the operations that precede at
    least one operation of the class.
    """

    def __init__(self, keeps: Callable[[Access, Access], bool]) -> None:
        self.keeps = keeps
        self._last: dict[Class, Access] = {}
        self._reach: dict[Class, dict[Class, int]] = {}

    def before(self, access: Access) -> dict[Class, int]:
        """Operations that precede a new operation: for each class, the number of the last one."""
        reach: dict[Class, int] = {}
        for group, last in self._last.items():
            if self.keeps(last, access):
                join(reach, _chained(self._reach[group], last, access))
                reach[group] = last.number
        return reach

    def add(self, access: Access, reach: dict[Class, int]) -> None:
        """Records a new operation and the operations before it."""
        group = class_of(access)
        self._last[group] = access
        join(self._reach.setdefault(group, {}), reach)


def _chained(reach: dict[Class, int], last: Access, access: Access) -> dict[Class, int]:
    """Operations that precede `access` because `last` does. A cp comes after operations that move A
    only through a shift."""
    if access.kind != "cp" or last.kind == "shift":
        return reach
    return {group: number for group, number in reach.items() if not _moves_a(group)}


def missing_edge(first: Access, second: Access, same_thread: bool, one_cluster: bool) -> str:
    """Names the synchronisation that would order two accesses, for messages. one_cluster: whether
    the CTAs of the accesses are in the same cluster.
    """
    if same_thread and (first.kind, second.kind) == ("mma", "mma"):
        return (
            "what an mma writes, mma are in order to read only as one accumulator (same D address "
            "and shape); otherwise tcgen05.commit and a wait on its mbarrier"
        )
    match first.kind:
        case "earlier launch":
            return (
                "griddepcontrol.wait before it, by this thread or one it synchronises with: "
                "until then a programmatic launch runs beside the one before it (PTX ISA 9.7.13, "
                "griddepcontrol)"
            )
        case "mma" | "cp" | "shift":
            by = "" if same_thread else " by the thread that issued it"
            return f"tcgen05.commit after the {first.kind}{by}, and a wait on its mbarrier"
        case "TMA load" | "TMA reduce" | "try_cancel" | "st.async" | "red.async" if (
            first.component[0] == "tma"
        ):
            return (
                f"a wait on the mbarrier that the {first.kind} signals; CTA and cluster barriers "
                "do not wait for it"
            )
        case "wgmma":
            return "wgmma.commit_group and wait_group, then a barrier or an arrival"
        case "cp.async":
            return "cp.async.wait_group (or an arrival that tracks it), then a barrier"
        case "TMA store":
            return "cp.async.bulk.commit_group and wait_group"
        case "tcgen05.ld":
            return "tcgen05.wait::ld, then a barrier or an arrival that the other side waits for"
        case "tcgen05.st":
            return "tcgen05.wait::st, then a barrier or an arrival that the other side waits for"
    if first.cta is not None and second.cta is not None and first.cta != second.cta:
        if one_cluster:
            return "barrier.cluster.arrive and .wait, or an arrival at an mbarrier of the other CTA"
        if first.strong and second.strong:
            return "strong accesses order two CTAs whose scope (.cta, .cluster) includes both"
        return (
            "between two CTAs of a launch a release and an acquire of enough scope, or relaxed "
            "accesses with a fence before the write and one after the read (PTX ISA 8.8)"
        )
    return "a barrier, or an mbarrier arrival and wait, between the two warps"
