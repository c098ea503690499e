"""cp.async.bulk without a tensor map: contiguous bytes between global and shared memory.

PTX ISA 9.7.9.25.4: addresses and sizes are multiples of 16 bytes. Copies into shared memory
complete on an mbarrier, copies and reductions into global memory in bulk groups. All of them go
through the async proxy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.engine.agent import Agent
from tcir.machine.engine.cluster import RANK_SHIFT
from tcir.machine.engine.operation import Operation
from tcir.machine.errors import MachineError
from tcir.machine.order.hazards import Access, Scope

UNIT = 16
Combine = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]


def _check(what: str, value: int, site: Any) -> None:
    if value % UNIT or value < 0:
        raise MachineError(
            "misaligned", f"expected a {what} that is a multiple of {UNIT}, got {value:#x}",
            site=site,
        )  # fmt: skip


def _bytes(start: int, nbytes: int) -> NDArray[np.int64]:
    return np.arange(start, start + nbytes, dtype=np.int64)[:, None]


def bulk_load(
    agent: Agent,
    target: int,
    space: str,
    source: int,
    nbytes: int,
    mbar: int,
    *,
    cta_mask: int | None = None,
    ignore: tuple[int, int] = (0, 0),
    combine: Combine | None = None,
    dtype: Any = np.uint8,
    scope: str | None = None,
    site: Any,
) -> None:
    """`nbytes` from global (or shared) memory to shared memory; they count on the mbarrier.

    cta_mask: data and signal go to the same offsets in each CTA of the mask. ignore: bytes at the
    start and the end that may lie outside the source; what they become is anybody's guess.
    combine(old, new) on elements of `dtype`: a reduction. scope: of a relaxed copy or reduction.
    """
    agent._at(site)
    for what, value in (("target", target), ("source", source), ("size", nbytes)):
        _check(what, value, site)
    for what, value in zip(("start", "end"), ignore, strict=True):
        if not 0 <= value < UNIT:
            raise MachineError(
                "ignore-oob", f"expected 0..{UNIT - 1} bytes to ignore at the {what}, got {value}",
                site=site,
            )  # fmt: skip
    copies = agent._destinations(target, mbar, cta_mask, 1, site)
    counters = agent.machine.counters
    counters.global_to_shared += nbytes * len(copies)
    counters.global_to_shared_read += nbytes
    first, last = ignore[0], max(ignore[0], nbytes - ignore[1])
    origin, where = None, np.empty((1, 0), np.int64)
    if last > first:
        origin, where = agent.place(space, np.array([source + first]), last - first, site)
    at = target & (1 << RANK_SHIFT) - 1
    kind = "TMA reduce" if combine else "TMA load"
    strong = _strong(agent, scope, combine)
    signals = []
    for cta, barrier in copies:
        barrier.loads += 1
        number = barrier.loads
        signals.append((cta.smem, barrier, number))
        if not nbytes:
            continue
        cta.smem.check(at, at + nbytes, site)
        agent.spare_mbarriers(_bytes(at, nbytes), site, "written", cta)
        if agent.machine.checking:
            barrier.users[barrier.tma] = (number, site)
            access = Access(barrier.tma, number, kind, site, "async", strong=strong)
            if origin is not None:
                copied = strong if combine is None else None
                reads = Access(barrier.tma, number, kind, site, "async", strong=copied)
                agent.note_read(origin.shadow, np.unique(where // origin.granule), reads)
            agent.note_write(cta.smem.shadow, slice(at // 4, (at + nbytes) // 4), access)
    issued = dict(agent.clock)

    def run() -> None:
        place = slice(at + first, at + last)
        for smem, barrier, number in signals:
            if origin is not None:
                _look(agent, origin, where, space, site)
                data = origin.data[where[0]]
                if combine is not None:
                    _look(agent, smem, np.arange(at, at + nbytes), "shared", site)
                    data = _combined(combine, smem.data[place], data, dtype)
                smem.data[place] = data
                smem.defined[place] = True
            smem.poison(at, first)
            smem.poison(at + last, nbytes - last)
            barrier.complete_tx(nbytes, number, issued, site)

    agent.cta.launch(Operation(site, run))


def _strong(agent: Agent, scope: str | None, combine: Combine | None) -> Scope | None:
    """A copy is weak and a reduction relaxed at gpu scope, unless they say otherwise."""
    if scope is None and combine is None:
        return None
    return agent.scope(scope or "gpu")


def _combined(
    combine: Combine, old: NDArray[np.uint8], new: NDArray[np.uint8], dtype: Any
) -> NDArray[np.uint8]:
    """combine(old, new) of bytes that are elements of `dtype`."""
    result = combine(old.copy().view(dtype), np.ascontiguousarray(new).view(dtype))
    return np.ascontiguousarray(result, dtype).view(np.uint8)


def _look(agent: Agent, memory: Any, where: Any, space: str, site: Any) -> None:
    if memory.defined is not None and not memory.defined[where].all():
        agent.cta.report(
            "error", "undefined-read", site, f"{space} memory", "nothing wrote the bytes before"
        )


def bulk_store(
    agent: Agent,
    target: int,
    source: int,
    nbytes: int,
    *,
    byte_mask: int = 0xFFFF,
    combine: Combine | None = None,
    dtype: Any = np.uint8,
    scope: str | None = None,
    site: Any,
) -> None:
    """`nbytes` from shared to global memory, as part of the open bulk group.

    byte_mask: which bytes of every 16 are written. combine(old, new) on elements of `dtype`: a
    reduction. scope: of a relaxed copy or reduction.
    """
    agent._at(site)
    for what, value in (("target", target), ("source", source), ("size", nbytes)):
        _check(what, value, site)
    agent.machine.counters.shared_to_global += nbytes
    if not nbytes:
        return
    source -= agent.cta_of(source, site, own=True).window
    smem = agent.cta.smem
    smem.check(source, source + nbytes, site)
    agent.spare_mbarriers(_bytes(source, nbytes), site, "read")
    memory, where = agent.place("global", np.array([target]), nbytes, site)
    chosen = np.tile(byte_mask >> np.arange(UNIT) & 1, nbytes // UNIT).astype(bool)
    places = where[0][chosen]
    if agent.machine.checking:
        kind = "TMA reduce" if combine else "TMA store"
        number = agent.bulk_number
        strong = _strong(agent, scope, combine)
        copied = strong if combine is None else None
        reads = Access(agent.bulk_reads, number, kind, site, "async", strong=copied)
        agent.note_read(smem.shadow, slice(source // 4, (source + nbytes) // 4), reads)
        writes = Access(agent.bulk_writes, number, kind, site, "async", strong=strong)
        agent.note_write(memory.shadow, np.unique(places // memory.granule), writes)

    def run() -> None:
        _look(agent, smem, np.arange(source, source + nbytes)[chosen], "shared", site)
        data = smem.data[source : source + nbytes].copy()
        if combine is not None:
            data = _combined(combine, memory.data[where[0]], data, dtype)
        memory.data[places] = data[chosen]
        if memory.defined is not None:
            memory.defined[places] = True

    agent.launch_in_group(Operation(site, run))
