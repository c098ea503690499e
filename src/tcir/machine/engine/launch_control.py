"""Cluster launch control: a running cluster takes over the work of a cluster that has not been
launched.

PTX ISA 9.7.13.17. The 16-byte response is written to shared memory through the async proxy. The
encoding of the response is specific to the simulated machine; programs may decode it only with
query_cancel.
"""

from __future__ import annotations

import struct

import numpy as np

from tcir.machine.errors import MachineError
from tcir.machine.memory.generic import Memory
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import Access
from tcir.machine.order.operation import AsyncOperation

BYTES = 16
_MAGIC = 0xC1C
"""Upper 32 bits of every answer, with bit 0 of the lowest for a granted one."""


def encode(first: tuple[int, int, int] | None) -> bytes:
    """Encodes the response to a request: the first CTA of the cluster taken over, or "declined"."""
    x, y, z = first or (0, 0, 0)
    return struct.pack("<4I", x, y, z, _MAGIC << 1 | (first is not None))


def granted(answer: bytes, site: object) -> tuple[int, int, int] | None:
    """Index of the first CTA of the cluster that a response grants; None if the request was
    declined."""
    x, y, z, word = struct.unpack("<4I", answer)
    if word >> 1 != _MAGIC:
        raise MachineError(
            "launch-control-answer",
            "expected 16 bytes that clusterlaunchcontrol.try_cancel wrote, got others",
            site=site,
        )
    return (x, y, z) if word & 1 else None


class LaunchControl:
    """clusterlaunchcontrol.try_cancel of an agent."""

    def __init__(self, agent: AgentProtocol, memory: Memory) -> None:
        self.agent, self.memory = agent, memory

    def try_cancel(self, target: int, mbar: int, multicast: bool, *, site: object) -> None:
        """Requests a cluster to take over; the response is written to `target`, and in every CTA of
        the cluster if `multicast`.
        """
        agent = self.agent
        agent.proceed(site)
        cluster = agent.cta.cluster
        if cluster.declined is not None:
            raise MachineError(
                "cancel-after-refusal",
                "expected no further clusterlaunchcontrol.try_cancel once a refusal has been seen "
                f"(at {cluster.declined}), got one",
                site=site,
            )
        if target % BYTES:
            raise MachineError(
                "misaligned", f"expected a multiple of {BYTES}, got {target:#x}", site=site
            )
        for address in (target, mbar):
            agent.peers.cta_of(address, site, own=True)
        mask = (1 << len(cluster.ctas)) - 1 if multicast else None
        places = list(
            zip(
                agent.peers.multicast(target, mask, site),
                agent.peers.multicast(mbar, mask, site),
                strict=True,
            )
        )
        parts = []
        for address, bar in places:
            cta = agent.peers.cta_of(address, site)
            barrier = agent.mbarrier.at(bar, site, proxy="async")
            start = address - cta.window
            cta.smem.check(start, start + BYTES, site)
            where = np.arange(start, start + BYTES, dtype=np.int64)[None, :]
            self.memory.spare_mbarriers(where, site, "written", cta)
            number = barrier.load(agent.clock)
            if agent.machine.checking:
                barrier.users[barrier.tma] = (number, site)
                access = Access(barrier.tma, number, "try_cancel", site, "async")
                agent.checks.note_write(cta.smem.shadow, cta.smem.granules(where), access)
            parts.append((cta.smem, slice(start, start + BYTES), barrier, number))

        def run() -> None:
            answer = np.frombuffer(encode(agent.machine.take_over()), np.uint8)
            for smem, place, barrier, number in parts:
                smem.data[place] = answer
                smem.written(place, None, site)
                barrier.complete_tx(BYTES, number, site)

        agent.cta.launch(AsyncOperation(site, run))
