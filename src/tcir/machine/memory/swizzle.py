"""Shared-memory swizzles: each XORs bits of a shared-memory byte address with higher bits of the
same absolute address.

Sources: PTX ISA 5.5.7 (swizzling modes), 9.7.16.10.6; CUTLASS cute/swizzle.hpp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tcir.machine.refusal import DescriptorError

Address = TypeVar("Address", int, NDArray[np.int64])


@dataclass(frozen=True)
class ChunkSwizzle:
    """A swizzle that XORs bits of the number of a 128-byte line into the position of a chunk within
    the line.
    """

    span: int
    """Bytes of one row of the pattern (0: rows have no span)."""
    lines_mask: int
    """Mask of the bits of address >> 7 that are XORed."""
    chunk_shift: int
    """log2 of the bytes that stay together."""
    flip: bool = False
    """Whether the two 8-byte halves of every 16 bytes change places in every other line."""

    @property
    def period(self) -> int:
        """Bytes after which the swizzle's pattern repeats; the pattern is also aligned to this
        number.
        """
        return (self.lines_mask + 1) * 128 if self.lines_mask else 1


SWIZZLES: dict[str, ChunkSwizzle] = {
    "NONE": ChunkSwizzle(0, 0, 4),
    "32B": ChunkSwizzle(32, 1, 4),
    "64B": ChunkSwizzle(64, 3, 4),
    "128B": ChunkSwizzle(128, 7, 4),
    "128B_ATOM_32B": ChunkSwizzle(128, 3, 5),
    "128B_ATOM_32B_FLIP_8B": ChunkSwizzle(128, 3, 5, flip=True),
    "128B_ATOM_64B": ChunkSwizzle(128, 1, 6),
}


def swizzle(mode: str) -> ChunkSwizzle:
    """Returns the swizzle called `mode`; raises DescriptorError if there is none of that name."""
    try:
        return SWIZZLES[mode]
    except KeyError:
        raise DescriptorError(
            "swizzle mode", mode, "one of " + ", ".join(SWIZZLES), "PTX ISA 9.7.16.10.6"
        ) from None


def swizzle_address(address: Address, mode: str, flipped: int = 1) -> Address:
    """Returns the address to which the swizzle `mode` maps a linear byte address. Applying it twice
    gives the original address.

    flipped: parity of the numbers of the lines in which FLIP_8B acts; no document states which
        parity it is.
    """
    s = swizzle(mode)
    lines = address >> 7
    swizzled = address ^ ((lines & s.lines_mask) << s.chunk_shift)
    return swizzled ^ ((lines & 1 ^ flipped ^ 1) << 3) if s.flip else swizzled
