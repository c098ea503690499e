"""What kernels of attention compute."""

from __future__ import annotations

from tcir.dialect import tc
from tcir.target import TARGETS

HEADS = range(16, 257, 16)
"""Elements of a head: whole steps of K, no more than N of an instruction."""


def no_kernel(op: tc.AttentionOp, target: str) -> str:
    """Why no kernel computes an attention on a target; "" if one does."""
    of = op.extents()
    for name in "de":
        if of[name] not in HEADS:
            return (
                f"expected heads of a multiple of 16 elements, 16 to 256, got {of[name]} "
                "(steps of K of 32 bytes, N of an instruction); pad them with zeros"
            )
    if not TARGETS[target].wgmma and not TARGETS[target].tcgen05:
        return f"expected a target with wgmma or tcgen05, got {target}"
    return ""
