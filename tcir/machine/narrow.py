"""Storage of 4- and 6-bit elements in the kinds that widen them to bytes (f8f6f4, mxf8f6f4).

In shared memory 16 elements lie densely, little-endian, at the start of each 16-byte unit (8 or 12
bytes; the rest is padding). In tensor memory each has a byte of its own, its *holder*: 4-bit codes
in bits 5..2, 6-bit codes in bits 6..1. `tcgen05.cp` with `.b4x16_p64` or `.b6x16_p32` turns the
first form into the second.

Sources: PTX ISA 9.7.16.10.4 (packing formats), 9.7.16.9 (cp, decompression); the holder bits are
those of CUTLASS's CuTeDSL example cp_narrow_a_to_tmem_mma, which shows only that cp and mma agree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcir.machine.refusal import FormatError

UNIT = 16
"""Bytes of a padded unit, and elements in it."""

HOLDER_SHIFT = {4: 2, 6: 1}
"""Element bits -> lowest bit of the code in its tensor-memory byte."""


def _check(bits: int) -> None:
    if bits not in HOLDER_SHIFT:
        raise FormatError("bits of a padded element", bits, "4 or 6", "wider types are not padded")


def unpack_units(units: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Codes of the 16 elements of each padded unit: uint8 [..., 16] -> uint8 [..., 16]."""
    _check(bits)
    if units.shape[-1:] != (UNIT,):
        raise FormatError("padded units", units.shape, "[..., 16] bytes", "a unit has 16 bytes")
    stream = np.unpackbits(units[..., : 2 * bits], axis=-1, bitorder="little")
    fields = stream.reshape(*units.shape[:-1], UNIT, bits)
    return np.packbits(fields, axis=-1, bitorder="little")[..., 0]


def to_holders(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Tensor-memory bytes that hold these codes."""
    _check(bits)
    return (codes << np.uint8(HOLDER_SHIFT[bits])).astype(np.uint8)


def from_holders(holders: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Codes in these tensor-memory bytes; the other bits are not looked at."""
    _check(bits)
    return (holders >> np.uint8(HOLDER_SHIFT[bits])) & np.uint8((1 << bits) - 1)
