"""XOR swizzles of shared-memory addresses."""

from __future__ import annotations

from dataclasses import dataclass

from .int_tuple import IntTuple, LayoutError
from .layout import Layout


@dataclass(frozen=True)
class Swizzle:
    """CuTe's ``Swizzle<B, M, S>``: XORs address bits ``[base, base + bits)`` with the bits
    ``shift`` positions higher. It is its own inverse.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0 or self.shift < self.bits:
            raise LayoutError(
                f"expected bits >= 0, base >= 0 and shift >= bits (the fields must not overlap), "
                f"got {self}"
            )

    def __call__(self, address: int) -> int:
        mask = ((1 << self.bits) - 1) << (self.base + self.shift)
        return address ^ ((address & mask) >> self.shift)


SWIZZLES = {
    "NONE": Swizzle(0, 4, 3),
    "32B": Swizzle(1, 4, 3),
    "64B": Swizzle(2, 4, 3),
    "128B": Swizzle(3, 4, 3),
    "128B_ATOM_32B": Swizzle(2, 5, 2),
}
"""Modes of TMA and of tcgen05 descriptors, on byte addresses (PTX ISA 9.7.16.10.6; CUTLASS
``mma_traits_sm100.hpp``). They act on absolute shared-memory addresses."""


@dataclass(frozen=True)
class SwizzledLayout:
    """Layout of a tile at byte address ``start``: ``swizzle(start + layout(coordinate))``."""

    swizzle: Swizzle
    layout: Layout
    start: int = 0

    def __call__(self, *coordinate: IntTuple) -> int:
        return self.swizzle(self.start + self.layout(*coordinate))
