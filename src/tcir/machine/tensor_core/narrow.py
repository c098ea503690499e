"""Storage of 4- and 6-bit elements for the kinds of mma that widen them to bytes (f8f6f4,
mxf8f6f4).

In shared memory, 16 elements are packed densely, little-endian, at the start of each 16-byte unit.
They occupy 8 or 12 bytes; the rest of the unit is padding. In tensor memory each element has its
own byte, called its *holder*: 4-bit codes are in bits 5..2, 6-bit codes in bits 6..1. `tcgen05.cp`
with `.b4x16_p64` or `.b6x16_p32` converts the first form to the second.

The kinds mxf4 and mxf4nvf4 store two 4-bit elements per byte, the even k in the low half.

Sources: PTX ISA 9.7.16.10.4 (packing formats), 9.7.16.9 (cp, decompression). The bits of the holder
are those of CUTLASS's CuTeDSL example cp_narrow_a_to_tmem_mma, which shows only that cp and mma use
the same bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tcir.machine.numerics.formats import ELEMENT_BITS
from tcir.machine.refusal import ElementTypeError

UNIT = 16
"""Bytes of a padded unit; also its number of elements."""

HOLDER_SHIFT = {4: 2, 6: 1}
"""Element bits -> lowest bit of the code in its tensor-memory byte (an open question for 6)."""

CP_FORMATS = {"b4x16_p64": 4, "b6x16_p32": 6}
"""Source format of tcgen05.cp .b8x16 -> element bits. PTX ISA 9.7.16.9."""


def storage(kind: str, element: str) -> str:
    """Storage of an operand of tcgen05.mma: "plain", "padded" (padded units in shared memory,
    holders in tensor memory), or "pairs" (two per byte).
    """
    if kind in ("mxf4", "mxf4nvf4"):
        return "pairs"
    return "padded" if ELEMENT_BITS[element] < 8 else "plain"


def _check(bits: int) -> None:
    if bits not in HOLDER_SHIFT:
        raise ElementTypeError(
            "bits of a padded element", bits, "4 or 6", "wider types are not padded"
        )


def data_bytes(bits: int, width: int) -> NDArray[np.int64]:
    """Mask, for `width` bytes of padded units, of the bytes that contain elements: the first 8 or
    12 of every 16.
    """
    _check(bits)
    if width % UNIT:
        raise ElementTypeError(
            "bytes of padded units", width, "a multiple of 16", "a unit has 16 bytes"
        )
    at = np.arange(width)
    return at[at % UNIT < 2 * bits]


def unpack_stream(stream: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Codes of a dense little-endian bit stream: uint8 [..., n] -> uint8 [..., 8 n / bits]."""
    fields = np.unpackbits(stream, axis=-1, bitorder="little")
    fields = fields.reshape(*stream.shape[:-1], -1, bits)
    return np.packbits(fields, axis=-1, bitorder="little")[..., 0]


def unpack_units(units: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Codes of the 16 elements of each padded unit: uint8 [..., 16] -> uint8 [..., 16]."""
    _check(bits)
    if units.shape[-1:] != (UNIT,):
        raise ElementTypeError(
            "padded units", units.shape, "[..., 16] bytes", "a unit has 16 bytes"
        )
    return unpack_stream(units[..., : 2 * bits], bits)


def unpack_pairs(packed: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """4-bit codes stored two per byte, the even one in the low half: [..., n] -> [..., 2 n]."""
    codes = np.stack([packed & np.uint8(0xF), packed >> np.uint8(4)], axis=-1)
    return codes.reshape(*packed.shape[:-1], -1)


def decompressed(data: NDArray[np.uint8], bits: int, shift: int | None = None) -> NDArray[np.uint8]:
    """Returns the bytes that tcgen05.cp with a source format writes for the data bytes of whole
    units.

    uint8 [..., n · 2 bits] (padding already left out, see `data_bytes`) -> holders [..., 16 n].
    """
    return to_holders(unpack_stream(data, bits), bits, shift)


def to_holders(codes: NDArray[np.uint8], bits: int, shift: int | None = None) -> NDArray[np.uint8]:
    """Bytes of tensor memory that contain these codes. `shift`: lowest bit of the code in its byte;
    None: that of `HOLDER_SHIFT`.
    """
    _check(bits)
    return (codes << np.uint8(HOLDER_SHIFT[bits] if shift is None else shift)).astype(np.uint8)


def from_holders(
    holders: NDArray[np.uint8], bits: int, shift: int | None = None
) -> NDArray[np.uint8]:
    """Codes in these bytes of tensor memory; the other bits of the bytes are ignored."""
    _check(bits)
    lowest = np.uint8(HOLDER_SHIFT[bits] if shift is None else shift)
    return (holders >> lowest) & np.uint8((1 << bits) - 1)
