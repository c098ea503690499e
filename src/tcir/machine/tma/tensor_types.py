"""Element types of tensor maps, and their sizes in global and shared memory.

Elements of the packed types (4 and 6 bits) are copied in groups of 16. Two of these types are
padded in shared memory, to 16 bytes per group.

Sources: CUDA driver API 13.1, CUtensorMapDataType; PTX ISA 5.5.1 (tensor types), 9.7.9.27.1.1.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """The indivisible unit of a tensor copy: `elements` adjacent elements along dimension 0."""

    elements: int
    global_bytes: int
    shared_bytes: int
    """Bytes in shared memory, padding included."""

    @property
    def piece(self) -> int:
        """Size in bytes of the words in which a unit is copied: the largest of 1, 2, 4, 8 that
        divides the size of the unit.
        """
        return min(self.global_bytes & -self.global_bytes, 8)

    @property
    def pieces(self) -> int:
        """Number of words in a unit."""
        return self.global_bytes // self.piece


def _plain(size: int) -> Unit:
    return Unit(1, size, size)


TYPES: dict[str, Unit] = {
    "u8": _plain(1),
    "u16": _plain(2),
    "u32": _plain(4),
    "s32": _plain(4),
    "u64": _plain(8),
    "s64": _plain(8),
    "f16": _plain(2),
    "f32": _plain(4),
    "f32_ftz": _plain(4),
    "f64": _plain(8),
    "bf16": _plain(2),
    "tf32": _plain(4),
    "tf32_ftz": _plain(4),
    "u4_align8b": Unit(2, 1, 1),
    "u4_align16b": Unit(16, 8, 16),
    "u6_align16b": Unit(16, 12, 16),
}
"""Name -> unit. The order is that of the element types in tensormap.replace (PTX ISA 9.7.9.28)."""

FLOATS = frozenset({"f16", "bf16", "f32", "f32_ftz", "tf32", "tf32_ftz", "f64"})
"""Types whose out-of-bounds elements can be filled with NaN."""

PACKED = frozenset({"u4_align8b", "u4_align16b", "u6_align16b"})
PADDED = frozenset({"u4_align16b", "u6_align16b"})
"""Packed types with padding in shared memory."""

PADDED_INNER = 128
"""Box extent of a padded type along dimension 0; coordinates are multiples of it."""

SLICE = {"NONE": 0, "16B": 16, "32B": 32}
"""Interleave -> bytes of one slice of channels (PTX ISA 5.5.6)."""
