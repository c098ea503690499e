"""st.async and red.async: stores and reductions of threads that complete on an mbarrier.

PTX ISA 9.7.9.12, 9.7.13.8: a relaxed access of the CTA that the address names, through the generic
proxy; its bytes count on an mbarrier of the same CTA, which releases them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tcir.machine.engine.agent import Agent
from tcir.machine.engine.operation import Operation
from tcir.machine.errors import MachineError
from tcir.machine.memory.bulk_copy import Combine
from tcir.machine.order.hazards import Access


def async_store(
    agent: Agent,
    target: int,
    data: NDArray[np.uint8],
    mbar: int,
    *,
    combine: Combine | None = None,
    dtype: Any = np.uint8,
    site: Any,
) -> None:
    """Writes `data` to shared memory, or combine(old, data) on elements of `dtype`."""
    agent._at(site)
    nbytes = data.size
    cta = agent.cta_of(target, site)
    if target % nbytes:
        raise MachineError(
            "misaligned-address", f"expected a multiple of {nbytes}, got {target:#x}", site=site
        )
    if agent.cta_of(mbar, site) is not cta:
        raise MachineError(
            "foreign-mbarrier",
            f"expected the mbarrier in the CTA that the bytes go to, got {mbar:#x} and {target:#x}",
            site=site,
        )
    barrier = agent._mbarrier(mbar, site)
    target -= cta.window
    smem = cta.smem
    smem.check(target, target + nbytes, site)
    where = np.arange(target, target + nbytes, dtype=np.int64)[None, :]
    agent.spare_mbarriers(where, site, "written", cta)
    barrier.loads += 1
    number = barrier.loads
    agent.machine.counters.shared_store += nbytes
    if agent.machine.checking:
        barrier.users[barrier.tma] = (number, site)
        kind = "red.async" if combine else "st.async"
        # PTX ISA 9.7.9.12, 9.7.13.8: st.async is weak or relaxed, red.async a relaxed atomic.
        strong = agent.scope("cluster") if combine else None
        access = Access(barrier.tma, number, kind, site, strong=strong)
        agent.note_write(smem.shadow, smem.granules(where), access)
    issued = agent.release()
    place = slice(target, target + nbytes)

    def run() -> None:
        new = data
        if combine is not None:
            if not smem.defined[place].all():
                agent.cta.report(
                    "error", "undefined-read", site, f"shared bytes at {target:#x}",
                    "nothing wrote them before",
                )  # fmt: skip
            old = smem.data[place].copy().view(dtype)
            new = np.ascontiguousarray(combine(old, data.view(dtype)), dtype).view(np.uint8)
        smem.data[place] = new
        smem.defined[place] = True
        barrier.complete_tx(nbytes, number, issued, site)

    agent.cta.launch(Operation(site, run))
