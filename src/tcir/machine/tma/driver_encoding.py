"""Decodes the 128 bytes into which the CUDA driver encodes a tensor map.

NVIDIA does not publish the layout. It was inferred from maps that cuTensorMapEncodeTiled and
cuTensorMapEncodeIm2col made on an H200 (driver 580) while one argument at a time was varied; the
maps are in test/machine/tensor_maps.json. Some codes are not known, because a Hopper rejects these
maps: the codes of 4- and 6-bit types, of swizzles whose atom is not 16 bytes, and of the im2col_w
modes. L2 promotion (bits 17 and 18 of word 2) was always 128 bytes. All other fields are known.

The 32-bit words contain: 0 and 1 the address; 2 mode, rank, type, interleave, swizzle, fill; 3 to 6
the strides in units of 16 bytes, with bits 32 and up in word 7; 8 to 12 the dimensions minus one;
13 the element strides minus one and the innermost extent of the box; 14 its other extents, or the
corners; 15 pixels per column. The hardware reads only these 64 bytes. Word 16 contains the bytes of
a copy, word 18 the alignment of its tile in shared memory; the other words are zero.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from tcir.machine.tma.map_fields import DecodedMap, MapFields
from tcir.machine.tma.tensor_encoding import MAP_BYTES
from tcir.machine.tma.tensor_limits import require
from tcir.machine.tma.tensor_types import SLICE, TYPES

_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32_ftz", "f64", "bf16")
_TF32 = {"f32": "tf32", "f32_ftz": "tf32_ftz"}
_SWIZZLES = ("NONE", "32B", "64B", "128B")
_ALIGNMENTS = (16, 256, 512, 1024)
_L2_PROMOTION = 3 << 17
_CORNER_BITS = {1: 16, 2: 8, 3: 5}
"""Number of spatial dimensions -> bits of one corner coordinate."""


def decode_driver(raw: bytes) -> DecodedMap:
    """Returns the tensor map that `raw` encodes. Raises TensorMapError, which names a word that
    this decoding cannot explain.
    """
    require(len(raw) == MAP_BYTES, "tensor map", len(raw), f"{MAP_BYTES} bytes", "a CUtensorMap")
    words = struct.unpack("<32I", raw)
    head = words[2]
    rank = _bits(head, 4, 3) + 1
    dtype = _named("type", _bits(head, 7, 4), _TYPES)
    swizzle, interleave = _bits(head, 13, 2), _bits(head, 11, 2)
    im2col = bool(head & 1)
    low = 3 if im2col else 1
    require(low <= rank <= 5, "rank of a map", rank, f"{low}..5", "of its mode")
    steps = tuple(_bits(words[13], 3 * n, 3) + 1 for n in range(rank))
    inner = _bits(words[13], 24, 8) + 1
    outer = tuple(_bits(words[14], 8 * n, 8) + 1 for n in range(rank - 1))
    fields = MapFields(
        "im2col" if im2col else "tiled",
        _TF32.get(dtype, dtype) if head >> 16 & 1 else dtype,
        tuple(words[8 + n] + 1 for n in range(rank)),
        tuple((words[3 + n] | _bits(words[7], 4 * n, 4) << 32) << 4 for n in range(rank - 1)),
        steps,
        _SWIZZLES[swizzle],
        box=() if im2col else (inner, *outer),
        lower_corner=_corner(words[14], rank - 2) if im2col else (),
        upper_corner=_corner(words[14] >> 16, rank - 2) if im2col else (),
        channels_per_pixel=inner if im2col else 0,
        pixels_per_column=words[15] + 1 if im2col else 0,
        interleave=_named("interleave", interleave, tuple(SLICE)),
        oob_fill="nan" if head >> 15 & 1 else "zero",
    )
    decoded = DecodedMap(fields, words[0] | words[1] << 32)
    expected = _words(decoded)
    expected[2] |= head & _L2_PROMOTION
    strange = [n for n, word in enumerate(words) if word != expected[n]]
    require(not strange, "words of a map", strange, "none", "bits that no map was seen with")
    return decoded


def _words(decoded: DecodedMap) -> list[int]:
    """Returns the driver's encoding of a map as 32 words, without the L2 promotion."""
    f = decoded.fields
    im2col = f.mode == "im2col"
    dtype = next((name for name, other in _TF32.items() if other == f.dtype), f.dtype)
    words = [0] * 32
    words[0], words[1] = decoded.address & 0xFFFFFFFF, decoded.address >> 32
    words[2] = (
        im2col
        | f.rank - 1 << 4
        | _TYPES.index(dtype) << 7
        | list(SLICE).index(f.interleave) << 11
        | _SWIZZLES.index(f.swizzle) << 13
        | (f.oob_fill == "nan") << 15
        | (dtype != f.dtype) << 16
    )
    for n, stride in enumerate(f.strides_bytes):
        words[3 + n] = stride >> 4 & 0xFFFFFFFF
        words[7] |= stride >> 36 << 4 * n
    words[8 : 8 + f.rank] = [dim - 1 for dim in f.dims]
    inner = f.channels_per_pixel if im2col else f.box[0]
    words[13] = _packed([step - 1 for step in f.element_strides], 3) | inner - 1 << 24
    if im2col:
        count = _CORNER_BITS[f.rank - 2]
        words[14] = _packed(f.lower_corner, count) | _packed(f.upper_corner, count) << 16
        words[15] = f.pixels_per_column - 1
    else:
        words[14] = _packed([extent - 1 for extent in f.box[1:]], 8)
    words[16], words[18] = _copied(f), _ALIGNMENTS[_SWIZZLES.index(f.swizzle)]
    return words


def _packed(values: Sequence[int], count: int) -> int:
    """Packs values into fields of `count` bits, the first one lowest."""
    return sum((value & (1 << count) - 1) << count * n for n, value in enumerate(values))


def _bits(word: int, low: int, count: int) -> int:
    return word >> low & (1 << count) - 1


def _named(what: str, code: int, names: tuple[str, ...]) -> str:
    require(
        code < len(names), f"{what} of a map", code, f"below {len(names)}", "others are unknown"
    )
    return names[code]


def _corner(word: int, spatial: int) -> tuple[int, ...]:
    """Returns the signed coordinates of a corner, W first."""
    count = _CORNER_BITS[spatial]
    found = [_bits(word, count * n, count) for n in range(spatial)]
    return tuple(value - (1 << count) * (value >> count - 1) for value in found)


def _copied(fields: MapFields) -> int:
    """Bytes of one copy as the driver counts them: extents over element strides, rounded down."""
    size = TYPES[fields.dtype].global_bytes
    if fields.mode == "im2col":
        return fields.pixels_per_column * fields.channels_per_pixel * size
    extents = (e // s for e, s in zip(fields.box, fields.element_strides, strict=True))
    return math.prod(extents) * size
