"""Record of a run of the machine, operation by operation, for the time model. An event is one
operation executed by one warp; for an asynchronous operation, its issue. Plain instructions between
two events are counted. The event of a wait names the events that it waited for.
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
    """One operation of one warp of one CTA, as the machine executed it.

    cta, warp: linear; the order of events with equal (cta, warp) is program order
    op:        its class, one of `OPS`
    detail:    what its time depends on: bytes, m, n, k, kind, cta_group, a_in (``smem``, ``tmem``
               or ``registers``), sparse (1), columns, rows, inner_bytes, lanes, wavefronts, count,
               barrier (address); sectors (of `SECTOR` bytes each, touched by the lanes of an ld or
               st of global memory)
    after:     indices of the events whose completion it waited for: the arrivals and the bytes that
               completed the phase of an mbarrier; the mma of a commit; the loads of a
               ``tcgen05.wait``; the groups of a ``wgmma.wait``; the other warps' arrivals at a
               ``bar.sync``, including later ones
    line: line of the PTX
    """

    cta: int
    warp: int
    op: str
    detail: Mapping[str, int | str]
    after: tuple[int, ...]
    line: int


class EventStream(list[Event]):
    """The events of the recorded CTAs of one launch, in the order in which they were executed.

    block, registers, shared_bytes: threads of a CTA, registers of a thread, bytes of shared memory
    of a CTA; they determine how many CTAs an SM holds. registers 0: not known from PTX alone.
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
    """Requests the events of some CTAs from a run; each launch appends a stream.

    ctas: linear indices; the whole cluster of each is recorded. Empty: the first cluster
    """

    ctas: tuple[int, ...] = ()
    streams: list[EventStream] = field(default_factory=list)
