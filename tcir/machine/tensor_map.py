"""Tensor maps of the TMA engine: the driver's limits, a 128-byte encoding, and the walks.

A tensor map describes an array in global memory, innermost dimension first, and the box that one
instruction moves. `TensorMap` is what a caller builds (the arguments of cuTensorMapEncodeTiled and
cuTensorMapEncodeIm2col, with their limits); `encode` gives the 128 bytes a kernel parameter holds;
`decode` gives the `DecodedMap` that the machine executes. NVIDIA's bit layout is not public, so the
encoding is our own, with a magic number and a checksum.

Not modelled, and refused: interleaved layouts, packed 4- and 6-bit types, NaN fill, the swizzles
with 64-byte atoms or flipped halves, im2col::w.

Sources: CUDA driver API 13.1, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col; PTX ISA 5.5
(tensors), 9.7.9.27 (cp.async.bulk.tensor).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from numpy.typing import NDArray

from tcir.machine.refusal import TensorMapError
from tcir.machine.swizzle import SWIZZLES

_TILED = "cuTensorMapEncodeTiled"
_IM2COL = "cuTensorMapEncodeIm2col"

DTYPES: dict[str, int] = {
    "u8": 1,
    "u16": 2,
    "u32": 4,
    "s32": 4,
    "u64": 8,
    "s64": 8,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f32_ftz": 4,
    "tf32": 4,
    "tf32_ftz": 4,
    "f64": 8,
}
"""Element type -> bytes (CUtensorMapDataType without the packed narrow types)."""

CORNER_RANGE: dict[int, tuple[int, int]] = {
    3: (-(1 << 15), (1 << 15) - 1),
    4: (-(1 << 7), (1 << 7) - 1),
    5: (-(1 << 4), (1 << 4) - 1),
}
"""Rank -> range of the corners of an im2col bounding box."""

OFFSET_MAX: dict[int, int] = {3: (1 << 16) - 1, 4: (1 << 8) - 1, 5: (1 << 5) - 1}
"""Rank -> largest im2col offset in the instruction. PTX ISA 5.5.4."""

ALIGNMENT = 16
"""Of the global address, the strides and the inner extent of a box, in bytes."""


def _require(ok: bool, name: str, value: object, allowed: str, reason: str) -> None:
    if not ok:
        raise TensorMapError(name, value, allowed, reason)


@dataclass(frozen=True)
class MapFields:
    """What a tensor map says, beside the address. Construction checks the driver's limits."""

    mode: str
    dtype: str
    dims: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    element_strides: tuple[int, ...]
    swizzle: str
    box: tuple[int, ...] = ()
    """Tile mode: extent of the box per dimension, before element strides."""
    lower_corner: tuple[int, ...] = ()
    upper_corner: tuple[int, ...] = ()
    channels_per_pixel: int = 0
    pixels_per_column: int = 0

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.dims)

    @property
    def element_bytes(self) -> int:
        """Bytes per element."""
        return DTYPES[self.dtype]

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Elements written per shared-memory dimension, innermost first."""
        if self.mode == "im2col":
            return (self.channels_per_pixel, self.pixels_per_column)
        # The element stride of dimension 0 is ignored unless the layout is interleaved.
        steps = (1, *self.element_strides[1:])
        return tuple(-(-b // s) for b, s in zip(self.box, steps))

    @cached_property
    def box_bytes(self) -> int:
        """Bytes one instruction writes and counts on its mbarrier: the whole box, fill included."""
        return math.prod(self.counts) * self.element_bytes

    def __post_init__(self) -> None:
        function = _IM2COL if self.mode == "im2col" else _TILED
        _require(self.mode in ("tiled", "im2col"), "mode", self.mode, "tiled or im2col", "no other")
        types = "one of " + ", ".join(DTYPES)
        _require(self.dtype in DTYPES, "dtype", self.dtype, types, "narrow types are not modelled")
        modes = "one of " + ", ".join(SWIZZLES)
        _require(self.swizzle in SWIZZLES, "swizzle", self.swizzle, modes, "others not modelled")
        low = 3 if self.mode == "im2col" else 1
        _require(low <= self.rank <= 5, "rank", self.rank, f"{low}..5", function)
        for i, d in enumerate(self.dims):
            _require(1 <= d <= 1 << 32, f"dims[{i}]", d, "1..2^32", function)
        count = len(self.strides_bytes)
        _require(
            count == self.rank - 1,
            "number of strides",
            count,
            str(self.rank - 1),
            "dimension 0 is contiguous and has none",
        )
        for i, s in enumerate(self.strides_bytes):
            _require(
                0 <= s < 1 << 40 and s % ALIGNMENT == 0,
                f"strides_bytes[{i}]",
                s,
                f"a multiple of {ALIGNMENT} below 2^40",
                function,
            )
        count = len(self.element_strides)
        _require(count == self.rank, "number of element strides", count, str(self.rank), function)
        for i, s in enumerate(self.element_strides):
            _require(1 <= s <= 8, f"element_strides[{i}]", s, "1..8", function)
        if self.mode == "im2col":
            self._check_im2col()
        else:
            self._check_box()

    def _check_inner(self, name: str, elements: int) -> None:
        size = elements * self.element_bytes
        _require(
            size % ALIGNMENT == 0,
            f"{name} ({elements} × {self.element_bytes} bytes)",
            size,
            f"a multiple of {ALIGNMENT} bytes",
            "the engine writes shared memory in units of 16 bytes",
        )
        span = SWIZZLES[self.swizzle].span
        _require(
            not span or size <= span,
            f"{name} ({elements} × {self.element_bytes} bytes)",
            size,
            f"at most {span} bytes with swizzle {self.swizzle}",
            "the inner extent of a box must fit in the swizzle span",
        )

    def _check_box(self) -> None:
        _require(len(self.box) == self.rank, "length of box", len(self.box), str(self.rank), _TILED)
        for i, b in enumerate(self.box):
            _require(1 <= b <= 256, f"box[{i}]", b, "1..256", _TILED)
        self._check_inner("box[0]", self.box[0])

    def _check_im2col(self) -> None:
        spatial = self.rank - 2
        low, high = CORNER_RANGE[self.rank]
        for name, corner in (("lower", self.lower_corner), ("upper", self.upper_corner)):
            _require(
                len(corner) == spatial,
                f"length of {name}_corner",
                len(corner),
                str(spatial),
                "one value per spatial dimension, W first",
            )
            for i, c in enumerate(corner):
                allowed = f"{low}..{high} for rank {self.rank}"
                _require(low <= c <= high, f"{name}_corner[{i}]", c, allowed, _IM2COL)
        for i in range(spatial):
            first, last = self.bounds(i)
            _require(
                first <= last,
                f"bounding box along spatial dimension {i}",
                f"{first}..{last}",
                "lower_corner <= dim - 1 + upper_corner",
                "an empty box has no base position",
            )
        channels, pixels = self.channels_per_pixel, self.pixels_per_column
        _require(1 <= channels <= 256, "channels_per_pixel", channels, "1..256", _IM2COL)
        _require(1 <= pixels <= 1024, "pixels_per_column", pixels, "1..1024", _IM2COL)
        self._check_inner("channels_per_pixel", channels)
        step = self.element_strides[-1]
        _require(step == 1, "element stride of N", step, "1", "the walk strides in space only")

    def bounds(self, spatial: int) -> tuple[int, int]:
        """First and last base position along a spatial dimension (0 is W) of the im2col box."""
        return (
            self.lower_corner[spatial],
            self.dims[spatial + 1] - 1 + self.upper_corner[spatial],
        )


@dataclass(frozen=True, eq=False)
class TensorMap:
    """A tensor map over the buffer of `array`, `offset_bytes` into it; the machine binds it."""

    array: NDArray[Any] = field(repr=False)
    fields: MapFields
    offset_bytes: int = 0

    def __post_init__(self) -> None:
        _require(
            self.offset_bytes >= 0 and self.offset_bytes % ALIGNMENT == 0,
            "offset_bytes",
            self.offset_bytes,
            f"a multiple of {ALIGNMENT}, not negative",
            "the global address must be 16-byte aligned",
        )

    @classmethod
    def tiled(
        cls,
        array: NDArray[Any],
        *,
        dtype: str,
        dims: Sequence[int],
        strides_bytes: Sequence[int],
        box: Sequence[int],
        element_strides: Sequence[int] | None = None,
        swizzle: str = "NONE",
        interleave: str = "NONE",
        oob_fill: str = "zero",
        offset_bytes: int = 0,
    ) -> TensorMap:
        """As cuTensorMapEncodeTiled: innermost dimension first, strides without the innermost.

        TensorMapError names the argument, what is allowed and why.
        """
        _check_unmodelled(interleave, oob_fill)
        return cls(
            array,
            MapFields(
                "tiled",
                dtype,
                tuple(map(int, dims)),
                tuple(map(int, strides_bytes)),
                tuple(map(int, element_strides or (1,) * len(dims))),
                swizzle,
                box=tuple(map(int, box)),
            ),
            offset_bytes,
        )

    @classmethod
    def im2col(
        cls,
        array: NDArray[Any],
        *,
        dtype: str,
        dims: Sequence[int],
        strides_bytes: Sequence[int],
        lower_corner: Sequence[int],
        upper_corner: Sequence[int],
        channels_per_pixel: int,
        pixels_per_column: int,
        element_strides: Sequence[int] | None = None,
        swizzle: str = "NONE",
        interleave: str = "NONE",
        oob_fill: str = "zero",
        offset_bytes: int = 0,
    ) -> TensorMap:
        """As cuTensorMapEncodeIm2col: dims are C, W(, H(, D)), N; corners are W(, H(, D)).

        TensorMapError names the argument, what is allowed and why.
        """
        _check_unmodelled(interleave, oob_fill)
        return cls(
            array,
            MapFields(
                "im2col",
                dtype,
                tuple(map(int, dims)),
                tuple(map(int, strides_bytes)),
                tuple(map(int, element_strides or (1,) * len(dims))),
                swizzle,
                lower_corner=tuple(map(int, lower_corner)),
                upper_corner=tuple(map(int, upper_corner)),
                channels_per_pixel=int(channels_per_pixel),
                pixels_per_column=int(pixels_per_column),
            ),
            offset_bytes,
        )

    def encode(self, base_address: int) -> bytes:
        """The 128 bytes of the map, `base_address` being that of the array's buffer."""
        return encode(DecodedMap(self.fields, base_address + self.offset_bytes))

    @staticmethod
    def decode(raw: bytes) -> DecodedMap:
        """See `decode`."""
        return decode(bytes(raw))


def _check_unmodelled(interleave: str, oob_fill: str) -> None:
    _require(interleave == "NONE", "interleave", interleave, "NONE", "others are not modelled")
    _require(oob_fill == "zero", "oob_fill", oob_fill, "zero", "the NaN pattern is not public")


@dataclass(frozen=True)
class DecodedMap:
    """A tensor map as the engine sees it: fields and the global byte address of element 0."""

    fields: MapFields
    address: int

    def __post_init__(self) -> None:
        _require(
            0 <= self.address < 1 << 64 and self.address % ALIGNMENT == 0,
            "global address",
            hex(self.address),
            f"a multiple of {ALIGNMENT}",
            f"{_TILED}, {_IM2COL}",
        )


_MAGIC = b"tcir.tma"
_LAYOUT = struct.Struct("<8sBBBBQ5I4Q5B5H3h3hHH")
MAP_BYTES = 128


def _pad(values: Sequence[int], length: int) -> list[int]:
    return [*values, *[0] * (length - len(values))]


def encode(decoded: DecodedMap) -> bytes:
    """Our own encoding of a tensor map, 128 bytes; NVIDIA's is opaque."""
    f = decoded.fields
    body = _LAYOUT.pack(
        _MAGIC,
        f.mode == "im2col",
        list(DTYPES).index(f.dtype),
        f.rank,
        list(SWIZZLES).index(f.swizzle),
        decoded.address,
        *_pad([d - 1 for d in f.dims], 5),
        *_pad(f.strides_bytes, 4),
        *_pad(f.element_strides, 5),
        *_pad(f.box, 5),
        *_pad(f.lower_corner, 3),
        *_pad(f.upper_corner, 3),
        f.channels_per_pixel,
        f.pixels_per_column,
    ).ljust(MAP_BYTES - 4, b"\0")
    return body + struct.pack("<I", zlib.crc32(body))


@lru_cache(maxsize=256)
def decode(raw: bytes) -> DecodedMap:
    """Inverse of `encode`; TensorMapError on bytes that are not a tensor map of ours."""
    sound = (
        len(raw) == MAP_BYTES
        and raw.startswith(_MAGIC)
        and struct.unpack("<I", raw[-4:])[0] == zlib.crc32(raw[:-4])
    )
    _require(
        sound,
        "tensor map",
        f"{len(raw)} bytes starting {raw[:8].hex(' ')}",
        f"the {MAP_BYTES} bytes of an encoded tensor map",
        "the address given to the TMA instruction holds something else",
    )
    _, im2col, dtype, rank, swizzle, address, *rest = _LAYOUT.unpack_from(raw)
    dims, strides, steps, box, lower, upper = (
        tuple(rest[a:b]) for a, b in ((0, 5), (5, 9), (9, 14), (14, 19), (19, 22), (22, 25))
    )
    spatial = rank - 2 if im2col else 0
    return DecodedMap(
        MapFields(
            "im2col" if im2col else "tiled",
            list(DTYPES)[dtype],
            tuple(d + 1 for d in dims[:rank]),
            strides[: rank - 1],
            steps[:rank],
            list(SWIZZLES)[swizzle],
            box=() if im2col else box[:rank],
            lower_corner=lower[:spatial],
            upper_corner=upper[:spatial],
            channels_per_pixel=rest[25],
            pixels_per_column=rest[26],
        ),
        address,
    )
