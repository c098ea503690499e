"""What the tensor core's pipe orders by itself (PTX ISA 9.7.16.6.2), and the edge to name if not.

| first -> second, same thread             | order                                  |
| mma -> mma, same D address and shape     | kept                                   |
| cp -> mma, shift -> mma, mma -> shift    | kept                                   |
| shift -> cp.4x256b                       | kept                                   |
| mma -> cp.4x256b after .ashift           | an open question, see `assumptions`    |
| a chain of these                         | kept                                   |
| anything else                            | tcgen05.commit, wait on its mbarrier   |
"""

from __future__ import annotations

from collections.abc import Hashable

from tcir.machine.assumptions import Assumptions
from tcir.machine.order.clocks import Access, Component, join

_KEPT = {("cp", "mma"), ("shift", "mma"), ("mma", "shift")}


def pipe_order(first: Access, second: Access, assumptions: Assumptions) -> bool:
    """Whether two tensor-core operations of one thread are ordered by the pipe itself."""
    pair = (first.kind, second.kind)
    if pair in _KEPT:
        return True
    if pair == ("mma", "mma"):
        return bool(first.target == second.target)
    if second.target == "4x256b":
        return pair == ("shift", "cp") or (
            pair == ("mma", "cp") and assumptions.ashift_then_cp == "ordered"
        )
    return second.kind == "commit"


Class = tuple[Component, str, Hashable]
"""Operations of one thread with the same kind and target: the pipe treats them alike."""


def class_of(access: Access) -> Class:
    """See `Class`."""
    return access.component, access.kind, access.target


class PipeOrder:
    """The order that one thread's pipe keeps, chains of the pairs above included.

    Of each class: the last operation, and what all of them together come after.
    """

    def __init__(self, assumptions: Assumptions) -> None:
        self.assumptions = assumptions
        self._last: dict[Class, Access] = {}
        self._reach: dict[Class, dict[Class, int]] = {}

    def before(self, access: Access) -> dict[Class, int]:
        """Which operations come before a new one: those of each class up to that number."""
        reach: dict[Class, int] = {}
        for group, last in self._last.items():
            if pipe_order(last, access, self.assumptions):
                join(reach, self._reach[group])
                reach[group] = last.number
        return reach

    def add(self, access: Access, reach: dict[Class, int]) -> None:
        """Notes a new operation and what comes before it."""
        group = class_of(access)
        self._last[group] = access
        join(self._reach.setdefault(group, {}), reach)


def missing_edge(first: Access, second: Access, same_thread: bool, one_cluster: bool) -> str:
    """What would order two accesses, for messages; `one_cluster`: two CTAs are in the same one."""
    if same_thread and (first.kind, second.kind) == ("mma", "mma"):
        return (
            "mma are in order only on one accumulator (same D address and shape); between others "
            "tcgen05.commit and a wait on its mbarrier"
        )
    match first.kind:
        case "mma" | "cp" | "shift":
            by = "" if same_thread else " by the thread that issued it"
            return f"tcgen05.commit after the {first.kind}{by}, and a wait on its mbarrier"
        case "TMA load":
            return "a wait on the mbarrier that the TMA load signals"
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
        return "only strong accesses (atomics, acquire and release) order two CTAs of a launch"
    return "a barrier, or an mbarrier arrival and wait, between the two warps"
