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

from tcir.machine.agent import Agent
from tcir.machine.errors import MachineError
from tcir.machine.hazards import Access
from tcir.machine.operation import Operation

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
    agent: Agent, target: int, space: str, source: int, nbytes: int, mbar: int, *, site: Any
) -> None:
    """`nbytes` from global (or shared) memory to shared memory; they count on the mbarrier."""
    agent._at(site)
    for what, value in (("target", target), ("source", source), ("size", nbytes)):
        _check(what, value, site)
    barrier = agent._mbarrier(mbar, site, proxy="async")
    counters = agent.machine.counters
    counters.global_to_shared += nbytes
    counters.global_to_shared_read += nbytes
    barrier.loads += 1
    number = barrier.loads
    cta = agent.cta_of(target, site)
    if agent.cta_of(mbar, site) is not cta:
        raise MachineError(
            "foreign-mbarrier",
            f"expected the mbarrier in the CTA that the bytes go to, got {mbar:#x} and "
            f"{target:#x} (PTX ISA 9.7.9.25.4)",
            site=site,
        )
    target -= cta.window
    smem = cta.smem
    if nbytes:
        smem.check(target, target + nbytes, site)
        agent.spare_mbarriers(_bytes(target, nbytes), site, "written", cta)
        origin, where = agent.place(space, np.array([source]), nbytes, site)
        if agent.machine.checking:
            barrier.users[barrier.tma] = (number, site)
            access = Access(barrier.tma, number, "TMA load", site, "async")
            agent.note_read(origin.shadow, np.unique(where // origin.granule), access)
            agent.note_write(smem.shadow, slice(target // 4, (target + nbytes) // 4), access)
    issued = dict(agent.clock)

    def run() -> None:
        if nbytes:
            _look(agent, origin, where, space, site)
            smem.data[target : target + nbytes] = origin.data[where[0]]
            smem.defined[target : target + nbytes] = True
        barrier.complete_tx(nbytes, number, issued, site)

    agent.cta.launch(Operation(site, run))


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
    site: Any,
) -> None:
    """`nbytes` from shared to global memory, as part of the open bulk group.

    byte_mask: which bytes of every 16 are written. combine(old, new) on elements of `dtype`: a
    reduction.
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
        reads = Access(agent.bulk_reads, number, kind, site, "async")
        agent.note_read(smem.shadow, slice(source // 4, (source + nbytes) // 4), reads)
        writes = Access(agent.bulk_writes, number, kind, site, "async")
        agent.note_write(memory.shadow, np.unique(places // memory.granule), writes)

    def run() -> None:
        _look(agent, smem, np.arange(source, source + nbytes)[chosen], "shared", site)
        data = smem.data[source : source + nbytes].copy()
        if combine is not None:
            old = memory.data[where[0]].view(dtype)
            data = np.ascontiguousarray(combine(old, data.view(dtype)), dtype).view(np.uint8)
        memory.data[places] = data[chosen]
        if memory.defined is not None:
            memory.defined[places] = True

    agent.launch_in_group(Operation(site, run))
