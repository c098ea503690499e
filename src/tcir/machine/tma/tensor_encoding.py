"""The 128-byte encoding of a tensor map, and replacement of single fields.

NVIDIA's bit layout is not public, so the encoding is our own, with a magic number and a checksum.
`decode` validates the fields; `replace` does not, because a map may be inconsistent between two
replacements (PTX ISA 9.7.9.28, tensormap.replace).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from functools import lru_cache

from tcir.machine.refusal import TensorMapError
from tcir.machine.tma.map_fields import DecodedMap, MapFields
from tcir.machine.tma.tensor_limits import ENCODERS, require
from tcir.machine.tma.tensor_types import SLICE, TYPES

MAP_BYTES = 128
_MAGIC = b"tcir.tma"
_LAYOUT = struct.Struct("<8s8BQ5I4Q5B5H3h3hHH")

_MODES, _DTYPES, _INTERLEAVES, _FILLS = (
    list(ENCODERS), list(TYPES), list(SLICE), ["zero", "nan"],
)  # fmt: skip
_SWIZZLES: dict[str, tuple[int, int]] = {
    "NONE": (0, 0),
    "32B": (1, 0),
    "64B": (2, 0),
    "128B": (3, 0),
    "128B_ATOM_32B": (3, 1),
    "128B_ATOM_32B_FLIP_8B": (3, 2),
    "128B_ATOM_64B": (3, 3),
}
"""Swizzle -> values of swizzle_mode and swizzle_atomicity (PTX ISA 9.7.9.28)."""

# Positions in _LAYOUT.
_CODES = dict(
    zip(("mode", "elemtype", "rank", "swizzle_mode", "swizzle_atomicity", "interleave_layout",
         "fill_mode"), range(1, 8))
)  # fmt: skip
_ADDRESS, _DIMS, _STRIDES, _STEPS, _BOX, _LOWER, _UPPER, _CHANNELS, _PIXELS = (
    9, 10, 15, 19, 24, 29, 32, 35, 36,
)  # fmt: skip

FIELDS: dict[str, tuple[int, int, int, int]] = {
    "global_address": (_ADDRESS, 1, 0, (1 << 64) - 1),
    "rank": (_CODES["rank"], 1, 0, 4),
    "box_dim": (_BOX, 5, 1, 256),
    "global_dim": (_DIMS, 5, 1, 1 << 32),
    "global_stride": (_STRIDES, 4, 0, (1 << 40) - 1),
    "element_stride": (_STEPS, 5, 1, 8),
    "elemtype": (_CODES["elemtype"], 1, 0, 15),
    "interleave_layout": (_CODES["interleave_layout"], 1, 0, 2),
    "swizzle_mode": (_CODES["swizzle_mode"], 1, 0, 3),
    "swizzle_atomicity": (_CODES["swizzle_atomicity"], 1, 0, 3),
    "fill_mode": (_CODES["fill_mode"], 1, 0, 1),
}
"""Field of tensormap.replace -> position, number of ordinals, minimum and maximum new value."""


def _pad(values: Sequence[int], length: int, filler: int = 0) -> list[int]:
    return [*values, *[filler] * (length - len(values))]


def _seal(values: Sequence[object]) -> bytes:
    body = _LAYOUT.pack(*values).ljust(MAP_BYTES - 4, b"\0")
    return body + struct.pack("<I", zlib.crc32(body))


def encode(decoded: DecodedMap) -> bytes:
    """The bytes of a tensor map."""
    f = decoded.fields
    return _seal(
        [
            _MAGIC,
            _MODES.index(f.mode),
            _DTYPES.index(f.dtype),
            f.rank - 1,
            *_SWIZZLES[f.swizzle],
            _INTERLEAVES.index(f.interleave),
            _FILLS.index(f.oob_fill),
            0,
            decoded.address,
            *_pad([d - 1 for d in f.dims], 5),
            *_pad(f.strides_bytes, 4),
            *_pad(f.element_strides, 5, 1),
            *_pad(f.box, 5, 1),
            *_pad(f.lower_corner, 3),
            *_pad(f.upper_corner, 3),
            f.channels_per_pixel,
            f.pixels_per_column,
        ]
    )


def _open(raw: bytes) -> list[int]:
    """The encoded values, after the magic number and checksum have been verified."""
    sound = (
        len(raw) == MAP_BYTES
        and raw.startswith(_MAGIC)
        and struct.unpack("<I", raw[-4:])[0] == zlib.crc32(raw[:-4])
    )
    require(
        sound,
        "tensor map",
        f"{len(raw)} bytes starting {raw[:8].hex(' ')}",
        f"the {MAP_BYTES} bytes of an encoded tensor map",
        "the address given to the TMA instruction holds something else",
    )
    return list(_LAYOUT.unpack_from(raw))


def _blank() -> list[int]:
    values = list(_LAYOUT.unpack_from(bytes(MAP_BYTES)))
    values[0], values[_CODES["mode"]] = _MAGIC, _MODES.index("tiled")
    return values


@lru_cache(maxsize=256)
def decode(raw: bytes) -> DecodedMap:
    """Inverse of `encode`; TensorMapError on bytes that `encode` or `replace` did not produce."""
    v = _open(raw)
    rank = v[_CODES["rank"]] + 1
    mode = _MODES[v[_CODES["mode"]]]
    pair = (v[_CODES["swizzle_mode"]], v[_CODES["swizzle_atomicity"]])
    swizzle = next((name for name, codes in _SWIZZLES.items() if codes == pair), None)
    if swizzle is None:
        raise TensorMapError(
            "swizzle_mode, swizzle_atomicity", pair, "one of " + str(list(_SWIZZLES.values())),
            "an atomicity of its own is for 128-byte swizzle (PTX ISA 5.5.7, table 14)",
        )  # fmt: skip
    tiled = mode == "tiled"
    spatial = 0 if tiled else 1 if mode != "im2col" else rank - 2
    return DecodedMap(
        MapFields(
            mode,
            _DTYPES[v[_CODES["elemtype"]]],
            tuple(d + 1 for d in v[_DIMS : _DIMS + rank]),
            tuple(v[_STRIDES : _STRIDES + rank - 1]),
            tuple(v[_STEPS : _STEPS + rank]),
            swizzle,
            box=tuple(v[_BOX : _BOX + rank]) if tiled else (),
            lower_corner=tuple(v[_LOWER : _LOWER + spatial]),
            upper_corner=tuple(v[_UPPER : _UPPER + spatial]),
            channels_per_pixel=v[_CHANNELS],
            pixels_per_column=v[_PIXELS],
            interleave=_INTERLEAVES[v[_CODES["interleave_layout"]]],
            oob_fill=_FILLS[v[_CODES["fill_mode"]]],
        ),
        v[_ADDRESS],
    )


def replace(raw: bytes, field: str, value: int, ordinal: int = 0) -> bytes:
    """The map with one field changed, as tensormap.replace.tile does it.

    128 bytes of zeros are a tiled map whose fields are all zeros: Triton's kernels make their maps
    from them, field by field. What they leave at zero and must not be is refused when it is used.
    `rank` takes the rank minus one; dimensions, boxes and strides are in the driver's units. An
    enumerated field takes PTX's number. TensorMapError names a value out of range.
    """
    values = _blank() if raw == bytes(MAP_BYTES) else _open(raw)
    mode = _MODES[values[_CODES["mode"]]]
    require(mode == "tiled", "mode of the map", mode, "tiled", "tensormap.replace is .tile only")
    position, count, low, high = FIELDS[field]
    require(0 <= ordinal < count, "ord", ordinal, f"0..{count - 1}", f"field {field}")
    require(low <= value <= high, field, value, f"{low}..{high}", "PTX ISA 9.7.9.28")
    values[position + ordinal] = value - 1 if field == "global_dim" else value
    return _seal(values)
