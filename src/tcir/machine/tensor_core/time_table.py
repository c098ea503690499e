"""Cycles of one ``tcgen05.mma`` when many are issued back to back; a model, not measured by this
project.

The tensor core needs N/2 cycles (N/4 when a pair shares M = 128), and shared memory needs one cycle
per 128 bytes of operands; the interval between two mma is the larger of the two numbers. For
cta_group 1 this rule fits the public B200 table of SemiAnalysisAI/microbench-blackwell exactly; for
pairs with small N it is up to 4 cycles too low. Every dense instruction takes 32 bytes of K per
row, so the number of cycles does not depend on the element type.
"""

from __future__ import annotations

from tcir.machine.refusal import TmemError
from tcir.target import SMEM_BYTES_PER_CYCLE

K_BYTES = 32
"""Bytes of K per row of A (and column of B) in one dense instruction."""


def operand_bytes(m: int, n: int, *, a_in_tmem: bool, cta_group: int = 1) -> int:
    """Bytes that one SM reads from its shared memory for one instruction."""
    a = 0 if a_in_tmem else m // cta_group * K_BYTES
    return a + n // cta_group * K_BYTES


def mma_cycles(m: int, n: int, *, a_in_tmem: bool, cta_group: int = 1) -> int:
    """Interval in cycles between the issue of one mma and the next; `m` and `n` are those of the
    whole pair.
    """
    if (cta_group, m) not in ((1, 64), (1, 128), (2, 128), (2, 256)):
        raise TmemError(
            "M",
            f"{m} with cta_group::{cta_group}",
            "64 or 128 (cta_group::1), 128 or 256 (cta_group::2)",
            "no public measurement of other forms (.ws)",
        )
    math = n // 4 if (cta_group, m) == (2, 128) else n // 2
    loaded = operand_bytes(m, n, a_in_tmem=a_in_tmem, cta_group=cta_group)
    return max(math, -(-loaded // SMEM_BYTES_PER_CYCLE))
