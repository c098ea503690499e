"""The 64-bit shared-memory descriptor of an operand layout (PTX ISA 9.7.16.4.1)."""

from __future__ import annotations

from .int_tuple import LayoutError
from .smem import OperandLayout
from .swizzle import SWIZZLES

SWIZZLE_CODES = {"NONE": 0, "128B_ATOM_32B": 1, "128B": 2, "64B": 4, "32B": 6}
"""Bits 63..61; Hopper's codes differ."""

CONSTANT = 0b001 << 46
UNIT = 16
ADDRESS_BITS = 18
"""Addresses and offsets are in units of 16 bytes, 14 bits each."""


def _field(name: str, value: int, low: int) -> int:
    if value % UNIT or not 0 <= value < 1 << ADDRESS_BITS:
        raise LayoutError(
            f"expected {name} a multiple of {UNIT} bytes below {1 << ADDRESS_BITS} (14 bits of 16 "
            f"bytes in the descriptor), got {value}"
        )
    return value // UNIT << low


def shared_descriptor(operand: OperandLayout, start: int) -> int:
    """Returns the descriptor of the tile that begins at byte address ``start`` of shared memory.

    For a K-major, swizzled tile the descriptor covers only the tile's first column, where a column
    is as wide along K as the swizzle span.
    """
    operand.at(start)  # alignment of the pattern: the base offset is 0
    mode = next(name for name, swizzle in SWIZZLES.items() if swizzle == operand.swizzle)
    return (
        _field("the start", start, 0)
        | _field("the leading dimension offset", operand.leading, 16)
        | _field("the stride dimension offset", operand.stride, 32)
        | CONSTANT
        | SWIZZLE_CODES[mode] << 61
    )
