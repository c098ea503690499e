"""What the targets of the warp level have (CUDA C++ Programming Guide, compute capabilities)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """smem_bytes: shared memory of one CTA; fp8: whether mma.sync multiplies e4m3 and e5m2;
    tma: whether it has the tensor memory accelerator.
    """

    smem_bytes: int
    fp8: bool
    tma: bool


TARGETS = {
    "sm_80": Target(163 * 1024, fp8=False, tma=False),
    "sm_90": Target(227 * 1024, fp8=True, tma=True),
    "sm_100a": Target(227 * 1024, fp8=True, tma=True),
}
FP8 = ("f8E4M3FN", "f8E5M2")
"""Element types that mma.sync has from sm_89 on (PTX ISA 9.7.14.5, target notes)."""

COPY_BYTES = (4, 8, 16)
"""Sizes of cp.async (PTX ISA 9.7.9.25.3)."""
