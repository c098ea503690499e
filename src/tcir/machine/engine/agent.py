"""An agent: one warp, or a role of a tile program, and all it can ask of the machine.

Its methods are in the classes it is made of: fences (`happens_before`), barriers and mbarriers
(`barriers`, `cluster_barrier`), loads and stores (`global_and_shared`), tensor memory
(`tmem_access`), TMA (`tma`), cp, shift and commit (`tensor_core`), mma (`mma`, `block_scale`).
``site`` is what a report shows of an operation.
"""

from __future__ import annotations

from tcir.machine.order.hazards import join
from tcir.machine.sync.cluster_barrier import ClusterBarrier
from tcir.machine.tensor_core.block_scale import BlockScale
from tcir.machine.tma.unit import Tma
from tcir.machine.tmem.access import TmemAccess


class Agent(BlockScale, Tma, TmemAccess, ClusterBarrier):
    """See `tcir.machine`."""

    def drain(self) -> None:
        """Finishes everything in flight in this cluster and makes it visible to this agent.

        For programs that run in program order, without barriers.
        """
        cta = self.cta
        cluster = cta.cluster
        while cluster.in_flight:
            cluster.complete(next(o for o in cluster.in_flight if o.ready))
        for thread in self.tensor_threads:
            self.clock[thread.component] = thread.issued
        self.clock[self.bulk_reads] = self.clock[self.bulk_writes] = self.bulk_issued
        for barrier in cta.mbarriers.values():
            join(self.clock, barrier.released)
            join(self.clock, barrier.collected)
            self.clock[barrier.tma] = barrier.loads
        self.tmem_wait("ld", site=self.site)
        self.tmem_wait("st", site=self.site)
        self.after_clock = dict(self.clock)
