"""Decodes the tensor maps that CuTe DSL's host code creates by itself, in the form that the
hardware uses.

The form is not documented. This decoder was derived from maps of tensors with known sizes, strides,
boxes, types and swizzles; it rejects maps with bits that did not occur in those maps.
"""

from __future__ import annotations

import struct

import numpy as np

from tcir.errors import LaunchError
from tcir.machine.tma.tensor_map import TYPES, TensorMap

MAP_BYTES = 128
_ELEMENTS = [*list(TYPES)[:11], "u4_align8b"]
"""Element types by number: the first eleven of tensormap.replace, and packed 4-bit elements; other
numbers were not observed."""
_SWIZZLES = ("NONE", "32B", "64B", "128B")
_MARK = 0xF | 1 << 18
_TILED, _TF32, _WIDE = 2 | 1 << 18, 1 << 16, 1 << 21
_KNOWN = _MARK | 7 << 4 | 15 << 7 | 3 << 13 | _TF32 | _WIDE
"""Known bits of the third word: the mark of tiled maps, rank - 1, element type, swizzle, rounding
to tf32, and a bit that is set for elements of 4 bytes or more."""


def machine_map(raw: bytes) -> bytes:
    """Converts a tensor map to the form of the simulated machine. Raises LaunchError for a kind of
    map that was not observed.

    The 32-bit words of the original are, in order: address (2 words), kinds (1), strides / 16 (4),
    high bits of the strides (1), dims - 1 (5). From byte 55 on, each byte is an extent of the box,
    minus 1.
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
        np.zeros(0, np.uint8),
        dtype=kind,
        dims=[n + 1 for n in words[8 : 8 + rank]],
        strides_bytes=[16 * n for n in words[3 : 2 + rank]],
        box=[n + 1 for n in raw[55 : 55 + rank]],
        swizzle=_SWIZZLES[kinds >> 13 & 3],
    ).encode(address)


def with_machine_maps(raw: bytes, align: int, held: tuple[tuple[int, int], ...]) -> bytes:
    """Returns a kernel parameter with its tensor maps converted to the form of the simulated
    machine. 128 bytes at a 64-byte-aligned offset in the parameter are taken for a tensor map if
    their first 8 bytes are an address in one of the ranges `held` and the next word marks a tiled
    tensor map.

    held: first address, and last address + 1, of each array that the kernel may access
    """
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
