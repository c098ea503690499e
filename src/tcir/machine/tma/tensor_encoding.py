"""The encoding of a tensor map in 128 bytes, and replacement of single fields.

The encoding is tcir's own and not the hardware's (`driver_encoding`). Like the hardware's, it
occupies the first 64 bytes, because CuTe DSL kernels that change a map copy only these bytes. A
checksum distinguishes a map from other bytes. `decode` validates the fields; `replace` does not,
because a map may be inconsistent between two replacements (PTX ISA 9.7.9.28, tensormap.replace).
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache

from tcir.machine.refusal import TensorMapError
from tcir.machine.tma.map_fields import DecodedMap, MapFields
from tcir.machine.tma.tensor_limits import ENCODERS, require
from tcir.machine.tma.tensor_types import SLICE, TYPES

MAP_BYTES = 128
USED_BYTES = 64
_BODY_BYTES = 61
_CLEARED = 8 * 8 + 21
"""A bit of a map that CuTe DSL clears after a change of global_dim: always 0 here."""

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

Values = dict[str, list[int]]
"""Field -> values: fields of tensormap.replace and those of im2col maps; rank and dimensions are
minus one."""

_COMMON = {
    "mode": (1, 3), "elemtype": (1, 4), "rank": (1, 3), "swizzle_mode": (1, 2),
    "swizzle_atomicity": (1, 2), "interleave_layout": (1, 2), "fill_mode": (1, 1),
    "global_address": (1, 64), "global_dim": (5, 32), "global_stride": (4, 40),
    "element_stride": (5, 4),
}  # fmt: skip
"""Field -> (number of values, bits per value)."""
_TILED = _COMMON | {"box_dim": (5, 9)}
_IM2COL = _COMMON | {"corner": (2, 16), "channels": (1, 9), "pixels": (1, 11)}
_CORNER_BITS = {0: 0, 1: 16, 2: 8, 3: 5}
"""Number of spatial dimensions -> bits of one corner coordinate."""

LIMITS: dict[str, tuple[int, int]] = {
    "global_address": (0, (1 << 64) - 1),
    "rank": (0, 4),
    "box_dim": (1, 256),
    "global_dim": (1, 1 << 32),
    "global_stride": (0, (1 << 40) - 1),
    "element_stride": (1, 8),
    "elemtype": (0, 15),
    "interleave_layout": (0, 2),
    "swizzle_mode": (0, 3),
    "swizzle_atomicity": (0, 3),
    "fill_mode": (0, 1),
}
"""Field of tensormap.replace -> minimum and maximum new value."""


def _layout(values: Values) -> dict[str, tuple[int, int]]:
    return _TILED if _MODES[values["mode"][0]] == "tiled" else _IM2COL


def _seal(values: Values) -> bytes:
    number = place = 0
    for field, (count, width) in _layout(values).items():
        for value in (values.get(field, []) + [0] * count)[:count]:
            number |= value << place
            place += width
    low = number & (1 << _CLEARED) - 1
    body = (low | number >> _CLEARED << _CLEARED + 1).to_bytes(_BODY_BYTES, "little")
    return (body + _check(body)).ljust(MAP_BYTES, b"\0")


def _check(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(4, "little")[: USED_BYTES - _BODY_BYTES]


def _corner(coordinates: Sequence[int]) -> int:
    width = _CORNER_BITS[len(coordinates)]
    return sum((c & (1 << width) - 1) << width * n for n, c in enumerate(coordinates))


def _coordinates(corner: int, spatial: int) -> tuple[int, ...]:
    width = _CORNER_BITS[spatial]
    parts = [corner >> width * n & (1 << width) - 1 for n in range(spatial)]
    return tuple(c - (c >> width - 1 << width) for c in parts)


def encode(decoded: DecodedMap) -> bytes:
    """The 128 bytes of a tensor map."""
    f = decoded.fields
    mode, atomicity = _SWIZZLES[f.swizzle]
    return _seal(
        {
            "mode": [_MODES.index(f.mode)],
            "elemtype": [_DTYPES.index(f.dtype)],
            "rank": [f.rank - 1],
            "swizzle_mode": [mode],
            "swizzle_atomicity": [atomicity],
            "interleave_layout": [_INTERLEAVES.index(f.interleave)],
            "fill_mode": [_FILLS.index(f.oob_fill)],
            "global_address": [decoded.address],
            "global_dim": [d - 1 for d in f.dims],
            "global_stride": [*f.strides_bytes],
            "element_stride": [*f.element_strides, *[1] * (5 - f.rank)],
            "box_dim": [*f.box, *[1] * (5 - len(f.box))],
            "corner": [_corner(f.lower_corner), _corner(f.upper_corner)],
            "channels": [f.channels_per_pixel],
            "pixels": [f.pixels_per_column],
        }
    )


def _open(raw: bytes) -> Values:
    """Verifies the checksum and returns the encoded values."""
    body = raw[:_BODY_BYTES]
    require(
        len(raw) in (USED_BYTES, MAP_BYTES) and raw[_BODY_BYTES:USED_BYTES] == _check(body),
        "tensor map",
        f"{len(raw)} bytes starting {raw[:8].hex(' ')}",
        f"the {MAP_BYTES} bytes of an encoded tensor map, or the first {USED_BYTES}",
        "the address given to the TMA instruction holds something else",
    )
    number = int.from_bytes(body, "little")
    return _values(number & (1 << _CLEARED) - 1 | number >> _CLEARED + 1 << _CLEARED)


def _values(number: int) -> Values:
    count, width = _COMMON["mode"]
    values = {"mode": [number & (1 << width) - 1]}
    for field, (count, width) in _layout(values).items():
        values[field] = [number >> width * n & (1 << width) - 1 for n in range(count)]
        number >>= width * count
    return values


@lru_cache(maxsize=256)
def decode(raw: bytes) -> DecodedMap:
    """Inverse of `encode`. Raises TensorMapError for bytes that neither `encode` nor `replace`
    produced.
    """
    v = _open(raw)
    one = {field: values[0] for field, values in v.items()}
    rank, mode = one["rank"] + 1, _MODES[one["mode"]]
    pair = one["swizzle_mode"], one["swizzle_atomicity"]
    swizzle = next((name for name, codes in _SWIZZLES.items() if codes == pair), None)
    if swizzle is None:
        raise TensorMapError(
            "swizzle_mode, swizzle_atomicity",
            pair,
            "one of " + str(list(_SWIZZLES.values())),
            "an atomicity of its own is for 128-byte swizzle (PTX ISA 5.5.7, table 14)",
        )
    tiled = mode == "tiled"
    spatial = 0 if tiled else 1 if mode != "im2col" else rank - 2
    lower, upper = (_coordinates(corner, spatial) for corner in v.get("corner", [0, 0]))
    return DecodedMap(
        MapFields(
            mode,
            _DTYPES[one["elemtype"]],
            tuple(d + 1 for d in v["global_dim"][:rank]),
            tuple(v["global_stride"][: rank - 1]),
            tuple(v["element_stride"][:rank]),
            swizzle,
            box=tuple(v["box_dim"][:rank]) if tiled else (),
            lower_corner=lower,
            upper_corner=upper,
            channels_per_pixel=one.get("channels", 0),
            pixels_per_column=one.get("pixels", 0),
            interleave=_INTERLEAVES[one["interleave_layout"]],
            oob_fill=_FILLS[one["fill_mode"]],
        ),
        one["global_address"],
    )


def replace(raw: bytes, field: str, value: int, ordinal: int = 0) -> bytes:
    """Returns the map with one field changed, as tensormap.replace.tile does.

    All-zero bytes are a tiled map whose fields are all zero; Triton's kernels start from such bytes
    and set one field after the other. A field that is still at an illegal zero is rejected when the
    map is used. For `rank` the value is the rank minus one; dimensions, boxes and strides are in
    the driver's units. For an enumerated field the value is PTX's number. Raises TensorMapError,
    which names a value out of range.
    """
    values = _open(raw) if any(raw[:USED_BYTES]) else _values(0)
    mode = _MODES[values["mode"][0]]
    require(mode == "tiled", "mode of the map", mode, "tiled", "tensormap.replace is .tile only")
    (count, _), (low, high) = _TILED[field], LIMITS[field]
    require(0 <= ordinal < count, "ord", ordinal, f"0..{count - 1}", f"field {field}")
    require(low <= value <= high, field, value, f"{low}..{high}", "PTX ISA 9.7.9.28")
    values[field][ordinal] = value - 1 if field == "global_dim" else value
    return _seal(values)
