"""st.async and red.async: stores and reductions by threads whose completion is signalled on an
mbarrier.

PTX ISA 9.7.9.12, 9.7.13.8: each is a relaxed access, through the generic proxy, to the memory of
the CTA that the address names. Its bytes count on an mbarrier of the same CTA; a thread that waits
on the mbarrier observes them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcir.machine.errors import MachineError
from tcir.machine.memory.generic import Memory
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.memory.reduction import Reduction
from tcir.machine.memory.undefined import Undefined
from tcir.machine.order.clocks import Access
from tcir.machine.order.operation import AsyncOperation


class StAsync:
    """Stores and reductions in the shared memory of a CTA of the cluster."""

    def __init__(self, agent: AgentProtocol, memory: Memory) -> None:
        self.agent, self.memory = agent, memory

    def store(
        self,
        target: int,
        data: NDArray[np.uint8],
        mbar: int,
        reduction: Reduction | None = None,
        *,
        undefined: Undefined | None = None,
        site: object,
    ) -> None:
        """Writes `data`; with a `reduction`, writes its result for the old bytes and `data`.

        undefined: mask of the undefined bytes of `data`.
        """
        agent = self.agent
        agent.proceed(site)
        nbytes, names = data.size, agent.machine.shared_names
        cta = agent.peers.cta_of(target, site)
        if target % nbytes:
            raise MachineError(
                "misaligned-address", f"expected a multiple of {nbytes}, got {target:#x}", site=site
            )
        if agent.peers.cta_of(mbar, site) is not cta:
            raise MachineError(
                "foreign-mbarrier",
                f"expected the mbarrier in the CTA that the bytes go to "
                f"({names.address(target)}), got {names.address(mbar)}",
                site=site,
            )
        barrier = agent.mbarrier.at(mbar, site, operation=True)
        target -= cta.window
        smem = cta.smem
        smem.check(target, target + nbytes, site)
        where = np.arange(target, target + nbytes, dtype=np.int64)[None, :]
        self.memory.spare_mbarriers(where, site, "written", cta)
        number = barrier.load(agent.clock)
        agent.machine.counters.shared_store += nbytes
        if agent.machine.checking:
            barrier.users[barrier.tma] = (number, site)
            kind = "red.async" if reduction else "st.async"
            # PTX ISA 9.7.9.12, 9.7.13.8: st.async is weak or relaxed, red.async a relaxed atomic.
            strong = agent.scope("cluster") if reduction else None
            access = Access(barrier.tma, number, kind, site, strong=strong)
            agent.checks.note_write(smem.shadow, smem.granules(where), access)
        place = slice(target, target + nbytes)

        def run() -> None:
            new = data
            if reduction is not None:
                unwritten = self.memory.origin(f"shared bytes at {target:#x}", site)
                if before := smem.missing(place, unwritten):
                    agent.cta.report_undefined(before.origin, site)
                new = reduction(smem.data[place], data)
            smem.data[place] = new
            smem.written(place, undefined, site)
            barrier.complete_tx(nbytes, number, site)

        agent.cta.launch(AsyncOperation(site, run))
