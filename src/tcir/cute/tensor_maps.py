"""Tensor maps as CuTe DSL's host code makes them by itself, in the hardware's own form.

The form is not documented. What is here was read off the maps of tensors of known sizes, strides,
boxes, types and swizzles; what was not seen there is refused.
"""

from __future__ import annotations

import struct

import numpy as np

from tcir.errors import LaunchError
from tcir.machine.tma.tensor_map import TYPES, TensorMap

MAP_BYTES = 128
_ELEMENTS = [*list(TYPES)[:11], "u4_align8b"]
"""By number: eleven as tensormap.replace has them, and packed elements of 4 bits; others were not
seen."""
_SWIZZLES = ("NONE", "32B", "64B", "128B")
_MARK = 0xF | 1 << 18
_TILED, _TF32, _WIDE = 2 | 1 << 18, 1 << 16, 1 << 21
_KNOWN = _MARK | 7 << 4 | 15 << 7 | 3 << 13 | _TF32 | _WIDE
"""Bits of the third word: of all tiled maps, rank - 1, element, swizzle, rounding to tf32, and one
of elements of 4 bytes or more."""


def machine_map(raw: bytes) -> bytes:
    """The machine's form of a map. Raises LaunchError for one of a kind that was not seen.

    Words: address 2, kinds, strides / 16 4, high bits, dims - 1 5, box - 1 as bytes from 55 on.
    """
    address, kinds = struct.unpack_from("<QI", raw)
    words = struct.unpack_from("<16I", raw)
    rank, element = (kinds >> 4 & 7) + 1, kinds >> 7 & 15
    if (
        kinds & _MARK != _TILED
        or kinds & ~_KNOWN
        or element >= len(_ELEMENTS)
        or rank > 5
        or words[7]
        or words[13] & 0xFF_FFFF
    ):
        raise LaunchError(
            f"tensor map: expected tiles of {', '.join(_ELEMENTS)} or tf32 with a swizzle of "
            f"{', '.join(_SWIZZLES)}, got another kind ({kinds:#x}, {words[7]:#x}, {words[13]:#x})"
        )
    kind = "tf32" if kinds & _TF32 else _ELEMENTS[element]
    return TensorMap.tiled(
        np.zeros(0, np.uint8), dtype=kind, dims=[n + 1 for n in words[8 : 8 + rank]],
        strides_bytes=[16 * n for n in words[3 : 2 + rank]],
        box=[n + 1 for n in raw[55 : 55 + rank]], swizzle=_SWIZZLES[kinds >> 13 & 3],
    ).encode(address)  # fmt: skip


def with_machine_maps(raw: bytes, align: int, held: tuple[tuple[int, int], ...]) -> bytes:
    """A kernel parameter with its maps in the machine's form: 128 bytes at multiples of 64 that
    begin with an address in `held`, the first and last + 1 of each memory."""
    out = bytearray(raw)
    at = 0
    while align >= 64 and at + MAP_BYTES <= len(raw):
        address, kinds = struct.unpack_from("<QI", raw, at)
        if kinds & _MARK == _TILED and any(low <= address < high for low, high in held):
            out[at : at + MAP_BYTES] = machine_map(raw[at : at + MAP_BYTES])
            at += MAP_BYTES
        else:
            at += 64
    return bytes(out)
