"""The architectures (targets) for which kernels are compiled: their limits and instructions.

The compiler and the simulated machine both use this data; the module imports nothing. No other file
names the architectures: to add one, add an entry to `TARGETS`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """An architecture, with the name that ``-arch`` of ptxas and ``.target`` of PTX have for it.

    ptx_version:  the lowest PTX version that has all instructions and forms that tcir emits
    smem_per_cta: bytes of shared memory that one CTA can use
    smem_per_sm:  bytes of shared memory of an SM; the difference from `smem_per_cta` is reserved
                  for each CTA
    memory:       bytes of global memory of the product for which kernels are tuned
    sms:          number of SMs of that product
    registers:    number of 32-bit registers of an SM
    fp8:          whether mma.sync multiplies e4m3 and e5m2, and cvt converts them
    tma:          whether there are a tensor memory accelerator, mbarrier transactions and clusters
    tma_atoms:    whether TMA has swizzles with atoms of 32 and 64 bytes
    wgmma:        whether there is the warpgroup-level tensor core, and registers can be
                  redistributed between warpgroups
    tcgen05:      whether there are the fifth-generation tensor core and tensor memory

    Sizes are from the CUDA C++ Programming Guide, "Technical Specifications per Compute
    Capability"; SM counts from device queries.
    """

    name: str
    ptx_version: str
    smem_per_cta: int
    smem_per_sm: int
    memory: int
    sms: int
    registers: int = 64 << 10
    fp8: bool = False
    tma: bool = False
    tma_atoms: bool = False
    wgmma: bool = False
    tcgen05: bool = False

    @property
    def smem_reserved(self) -> int:
        """Bytes of shared memory that the system keeps for every CTA."""
        return self.smem_per_sm - self.smem_per_cta


TARGETS = {
    target.name: target
    for target in (
        # A100; PTX 8.0 has the bf16 conversions.
        Target("sm_80", "8.0", 163 << 10, 164 << 10, 80 << 30, 108),
        # H100 SXM; PTX 8.4 has fp8 mma.sync.
        Target("sm_90", "8.4", 227 << 10, 228 << 10, 80 << 30, 132, fp8=True, tma=True),
        # The same with what Hopper alone has.
        Target(
            "sm_90a", "8.4", 227 << 10, 228 << 10, 80 << 30, 132, fp8=True, tma=True, wgmma=True
        ),
        # B200; PTX 8.8 has tcgen05 with .blockN.
        Target(
            "sm_100a",
            "8.8",
            227 << 10,
            228 << 10,
            180 << 30,
            148,
            fp8=True,
            tma=True,
            tma_atoms=True,
            tcgen05=True,
        ),
    )
}
"""Targets by name, the oldest first."""

DEFAULT_TARGET = TARGETS["sm_100a"]
"""Target of compilation and simulation if no other is named."""

EMULATED, EMULATING = DEFAULT_TARGET.name, "sm_90a"
"""Target whose kernels run by emulation, and the one that emulates them
(docs/explanation/emulation.md)."""


def architecture_of(name: str) -> str:
    """Name of a target without the letter that stands for architecture-specific features."""
    return name.rstrip("a")


def simulated(name: str) -> Target:
    """The target that the simulated machine uses for PTX with this .target. Code with
    architecture-specific features (suffix a) runs only on that architecture; other code runs on the
    default target.
    """
    return TARGETS.get(name, DEFAULT_TARGET) if name.endswith("a") else DEFAULT_TARGET


def targets_with(*features: str) -> list[str]:
    """Names of the targets that have all of `features`, fields of `Target` such as ``fp8``."""
    return [name for name, t in TARGETS.items() if all(getattr(t, f) for f in features)]


SMEM_BYTES_PER_CYCLE = 128
"""Bytes per cycle that the shared memory of one SM reads or writes, on every target (CUDA C++
Programming Guide: 32 banks of 4 bytes). All other rates are in `tcir.time.constants`."""
