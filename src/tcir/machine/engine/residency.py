"""Number of CTAs of a launch that are resident at a time; a further CTA starts when a resident CTA
has ended.

The limits are from the CUDA C++ Programming Guide, "Technical Specifications per Compute
Capability", 9.0 and 10.0. CTAs are started in the order of their indices (`Assumptions.cta_order`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tcir.machine.engine.cta import Cta
from tcir.machine.memory.protocols import Triple
from tcir.machine.memory.tensor_memory import COLUMNS
from tcir.target import Target

CTAS, THREADS, WARP = 32, 2048, 32
"""CTAs and threads of an SM; threads of a warp."""


def most_resident(
    target: Target, block: Triple, cluster: Triple, smem: int, registers: int, ctas: Iterable[Cta]
) -> tuple[int, str]:
    """Number of CTAs that all SMs together can hold at a time, with at least one CTA per SM, and
    the resource that limits this number, in words.

    smem: bytes of shared memory per CTA
    registers: registers per thread; 0: unknown
    ctas: waiting CTAs, which keep their columns of tensor memory allocated
    """
    threads = -(-math.prod(block) // WARP) * WARP
    shared = smem + target.smem_reserved
    columns = max((int(cta.tmem.allocated.sum()) for cta in ctas), default=0)
    limits = [
        (CTAS, f"{CTAS} CTAs"),
        (THREADS // threads, f"{THREADS} threads, a CTA {threads}"),
        (
            target.smem_per_sm // shared,
            f"{target.smem_per_sm} bytes of shared memory, a CTA {shared}",
        ),
    ]
    if registers:
        each = registers * threads
        limits.append((target.registers // each, f"{target.registers} registers, a CTA {each}"))
    if columns:
        limits.append((COLUMNS // columns, f"{COLUMNS} columns of tensor memory, a CTA {columns}"))
    each, why = min(limits)
    size = math.prod(cluster)
    return max(1, each) * (target.sms // size * size), f"an SM has {why}"
