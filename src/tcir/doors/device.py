"""Properties of the device that programs query: those of a B200, or of an H100."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.target import DEFAULT_TARGET, Target

THREADS_PER_SM, CTAS_PER_SM = 2048, 32


@dataclass(frozen=True)
class Chip:
    """Properties of a GPU model.

    clock, memory_clock: in kHz. bus: width in bits. l2: size in bytes. capability: major, minor.
    """

    name: str
    capability: tuple[int, int]
    clock: int
    memory_clock: int
    bus: int
    l2: int


_HOPPER = Chip("simulated H100", (9, 0), 1_980_000, 2_619_000, 5120, 50 << 20)
CHIPS = {
    "sm_100a": Chip("simulated B200", (10, 0), 1_965_000, 3_996_000, 8192, 126 << 20),
    "sm_90a": _HOPPER,
}
"""Chips by target. Source: NVIDIA's data sheets and device queries."""


@dataclass(frozen=True)
class SimulatedDevice:
    """The device that programs see when they query it.

    sms: number of SMs that is reported to programs; a smaller number makes them launch fewer CTAs.
        None: all SMs of the chip
    """

    target: Target = DEFAULT_TARGET
    sms: int | None = None

    @property
    def chip(self) -> Chip:
        """Properties of the target's chip."""
        return CHIPS[self.target.name]

    @property
    def multiprocessors(self) -> int:
        """Number of SMs reported to programs."""
        return self.sms or self.target.sms

    @property
    def attributes(self) -> dict[int, int]:
        """Attributes of the device, by number of CUdevice_attribute (cudaDeviceAttr uses the same
        numbers); attributes that are not listed are 0.

        Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". The
        largest sizes of textures are left out.
        """
        major, minor = self.chip.capability
        target = self.target
        yes = (15, 19, 31, 32, 41, 78, 79, 80, 83, 89, 90, 91, 95, 99, 115, 120, 125)
        return dict.fromkeys(yes, 1) | {
            1: 1024, 2: 1024, 3: 1024, 4: 64, 5: (1 << 31) - 1, 6: 65535, 7: 65535,  # block, grid
            8: 48 << 10, 9: 64 << 10, 10: 32, 11: (1 << 31) - 1, 12: target.registers,
            13: self.chip.clock, 14: 512, 16: self.multiprocessors, 30: 512,
            36: self.chip.memory_clock, 37: self.chip.bus, 38: self.chip.l2,
            39: THREADS_PER_SM, 40: 3, 51: 32, 75: major, 76: minor,
            81: target.smem_per_sm, 82: target.registers, 87: 2, 97: target.smem_per_cta,
            106: CTAS_PER_SM, 111: target.smem_reserved,
        }  # fmt: skip
