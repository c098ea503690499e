"""Record of a run of the simulated machine, operation by operation, from which the time model
predicts the run time.

An event is one operation that one warp executes; the event of an asynchronous operation is its
issue. The plain instructions between two events become one event that counts them. The event of a
wait names the events that the wait was for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

SECTOR = 32
"""Bytes of global memory that cross together; an access is aligned, so a lane's lies in one."""
Triple = tuple[int, int, int]

OPS = frozenset(
    {
        "tcgen05.mma", "tcgen05.cp", "tcgen05.ld", "tcgen05.st", "tcgen05.shift",
        "tcgen05.commit", "tcgen05.wait",
        "tma.load", "tma.store", "bulk.load", "bulk.store", "cp.async",
        "ld.global", "st.global", "ld.shared", "st.shared", "ldmatrix", "stmatrix",
        "mma.sync", "wgmma", "wgmma.wait", "mbarrier.arrive", "mbarrier.wait", "bar.sync",
        "fence", "cp.async.wait", "bulk.wait", "alu", "sfu", "exit",
    }
)  # fmt: skip
"""The resource classes, in PTX's terms. ``alu`` is a run of plain instructions; ``cp.async.wait``,
``bulk.wait`` and ``wgmma.wait`` wait for groups; a ``wgmma`` is the share of one warp, a quarter;
a ``bar.sync`` is any named or cluster barrier, or its arrive."""


@dataclass(frozen=True, slots=True)
class Event:
    """One operation of one warp of one CTA, as the simulated machine executed it.

    cta, warp: linear indices; events with equal (cta, warp) are in program order
    op:        class of the operation, one of `OPS`
    detail:    the values on which the time of the operation depends: bytes, m, n, k, kind,
               cta_group, a_in (``smem``, ``tmem`` or ``registers``), sparse (1), columns, rows,
               inner_bytes, lanes, wavefronts, count, barrier (address); sectors (of `SECTOR` bytes
               each, that the lanes of a ld or st of global memory touch)
    after:     indices of the events for whose completion the operation waited: the arrivals and the
               bytes that completed the phase of an mbarrier; the mma of a commit; the loads of a
               ``tcgen05.wait``; the groups of a ``wgmma.wait``; the arrivals of the other warps at
               a ``bar.sync``, including later ones
    line:      line of the PTX text
    """

    cta: int
    warp: int
    op: str
    detail: Mapping[str, int | str]
    after: tuple[int, ...]
    line: int


class EventStream(list[Event]):
    """The events of the recorded CTAs of one launch, in the order in which they were executed.

    block, registers, shared_bytes: threads of a CTA, registers of a thread, and bytes of shared
        memory of a CTA. They determine how many CTAs an SM holds. registers is 0 if PTX alone does
        not determine it.
    ctas: linear indices of the recorded CTAs.
    """

    def __init__(
        self,
        events: Iterable[Event] = (),
        *,
        kernel: str = "",
        grid: Triple = (1, 1, 1),
        cluster: Triple = (1, 1, 1),
        block: Triple = (1, 1, 1),
        ctas: tuple[int, ...] = (0,),
        registers: int = 0,
        shared_bytes: int = 0,
    ) -> None:
        super().__init__(events)
        self.kernel = kernel
        self.grid, self.cluster, self.block = grid, cluster, block
        self.ctas, self.registers, self.shared_bytes = ctas, registers, shared_bytes


@dataclass(frozen=True)
class Recording:
    """A request to record the events of some CTAs of a run; each launch appends its `EventStream`.

    ctas: linear indices of CTAs; all CTAs of their clusters are recorded. If it is empty, the first
        cluster is recorded
    """

    ctas: tuple[int, ...] = ()
    streams: list[EventStream] = field(default_factory=list)
