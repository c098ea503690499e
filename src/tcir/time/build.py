"""Builds streams of events by hand, for micro-benchmarks and published kernels that the model is
tested on.

stream = EventStream(kernel="one mma")
warp = Warp(stream, 0)
warp.wait(warp.commit(warp.mma(256)))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tcir.machine.events import Event, EventStream


@dataclass(frozen=True)
class WarpTrack:
    """Appends events of one warp. Each call returns the index of its event, which other events can
    name in `after`.
    """

    stream: EventStream
    number: int
    cta: int = 0

    def op(self, op: str, after: Iterable[int] = (), **detail: int | str) -> int:
        """Appends any operation."""
        self.stream.append(Event(self.cta, self.number, op, detail, tuple(after), 0))
        return len(self.stream) - 1

    def wait(self, *after: int) -> int:
        """Appends a wait at an mbarrier for the events `after`."""
        return self.op("mbarrier.wait", after)

    def load(self, nbytes: int, inner: int = 128) -> int:
        """Appends a TMA load; `inner`: bytes of a row of its box."""
        return self.op("tma.load", bytes=nbytes, inner_bytes=inner)

    def mma(
        self, n: int, *, m: int = 128, group: int = 1, a_in: str = "smem", kind: str = "f16"
    ) -> int:
        """Appends a tcgen05.mma; `m` and `n` are those of a whole pair."""
        return self.op("tcgen05.mma", m=m, n=n, k=16, kind=kind, cta_group=group, a_in=a_in)

    def copy(self, nbytes: int) -> int:
        """Appends a tcgen05.cp."""
        return self.op("tcgen05.cp", bytes=nbytes)

    def commit(self, *after: int) -> int:
        """Appends a commit, which arrives at an mbarrier when the mma and copies `after` are
        complete."""
        return self.op("tcgen05.commit", after)
