"""Stores to global memory by threads: their width, and the number of sectors per request."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tcir.machine.events import SECTOR, Event, EventStream


@dataclass(frozen=True)
class StoreSites:
    """One ``st.global`` of a kernel, with totals over the warps of the recorded CTAs.

    line:     line of the PTX
    requests: number of times that a warp executed the store; each execution is one request
    bytes:    bytes that a lane stores, which is the width of the instruction
    sectors:  average number of 32-byte sectors that a request touches
    least:    minimum number of sectors that could contain the bytes of a request
    """

    kernel: str
    line: int
    requests: int
    bytes: int
    sectors: float
    least: float


def global_stores(streams: Iterable[EventStream]) -> list[StoreSites]:
    """Returns the global stores of each launch, in the order of their lines. Stores by TMA and bulk
    copies are left out, because they are no requests of threads.
    """
    return [
        _counted(stream.kernel, line, events)
        for stream in streams
        for line, events in sorted(_by_line(stream).items())
    ]


def _by_line(stream: EventStream) -> dict[int, list[Event]]:
    found = defaultdict(list)
    for event in stream:
        if event.op == "st.global" and "sectors" in event.detail:
            found[event.line].append(event)
    return found


def _counted(kernel: str, line: int, events: list[Event]) -> StoreSites:
    moved, lanes, sectors = (
        sum(int(event.detail[name]) for event in events) for name in ("bytes", "lanes", "sectors")
    )
    count = len(events)
    return StoreSites(
        kernel, line, count, moved // lanes, sectors / count, -(-moved // SECTOR) / count
    )
