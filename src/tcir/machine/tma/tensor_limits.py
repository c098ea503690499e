"""The driver's limits on tensor maps. Each error gives the value, the allowed range and the reason.

Sources: CUDA driver API 13.1, cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col,
cuTensorMapEncodeIm2colWide; PTX ISA 5.5, 9.7.9.27.1.1.
"""

from __future__ import annotations

from tcir.machine.memory.swizzle import SWIZZLES
from tcir.machine.refusal import TensorMapError
from tcir.machine.tma.tensor_fields import Fields
from tcir.machine.tma.tensor_types import FLOATS, PACKED, PADDED, PADDED_INNER, SLICE, TYPES

ENCODERS = {
    "tiled": "cuTensorMapEncodeTiled",
    "im2col": "cuTensorMapEncodeIm2col",
    "im2col_w": "cuTensorMapEncodeIm2colWide",
    "im2col_w128": "cuTensorMapEncodeIm2colWide",
}
"""Mode of a map -> the driver function that encodes it."""

CORNER_BITS = {3: 16, 4: 8, 5: 5}
"""Rank -> bits of a corner of an im2col bounding box (signed) and of an offset (unsigned)."""

OFFSET_MAX: dict[int, int] = {rank: (1 << bits) - 1 for rank, bits in CORNER_BITS.items()}
"""Rank -> largest im2col offset in the instruction. PTX ISA 5.5.4."""

HALO_MAX = {"im2col_w": 511, "im2col_w128": 31}
"""Mode -> largest wHalo of the instruction. PTX ISA 9.7.9.27."""

W_OFFSET_MAX = 31
"""Largest wOffset of the instruction."""

WIDE_SWIZZLES = ("64B", "128B", "128B_ATOM_32B")
PADDED_SWIZZLES = ("NONE", "128B", "128B_ATOM_32B")

ALIGNMENT = 16
"""Alignment of the global address, the strides and the inner extent of a box, in bytes."""


def require(ok: bool, name: str, value: object, allowed: str, reason: str) -> None:
    """Raises TensorMapError unless ``ok``."""
    if not ok:
        raise TensorMapError(name, value, allowed, reason)


def _one_of(name: str, value: str, allowed: object, reason: str) -> None:
    values = list(allowed)  # type: ignore[call-overload]
    require(value in values, name, value, "one of " + ", ".join(values), reason)


def alignment(f: Fields) -> int:
    """Required alignment of the global address and of the strides, in bytes."""
    return 32 if f.interleave == "32B" or f.dtype in PADDED else ALIGNMENT


def check_address(name: str, f: Fields, address: int) -> None:
    """Checks the alignment and the range of a global address."""
    step = alignment(f)
    reason = f"the driver; {step} for this type and interleave"
    ok = 0 <= address < 1 << 64 and address % step == 0
    require(ok, name, hex(address), f"a multiple of {step}", reason)


def check_fields(f: Fields) -> None:
    """Checks every limit that does not involve the address."""
    _one_of("mode", f.mode, ENCODERS, "no other")
    function = ENCODERS[f.mode]
    _one_of("dtype", f.dtype, TYPES, "CUtensorMapDataType")
    _one_of("swizzle", f.swizzle, SWIZZLES, "CUtensorMapSwizzle")
    _one_of("interleave", f.interleave, SLICE, "CUtensorMapInterleave")
    _one_of("oob_fill", f.oob_fill, ("zero", "nan"), "CUtensorMapFloatOOBfill")
    require(
        f.oob_fill == "zero" or f.dtype in FLOATS,
        "oob_fill",
        f.oob_fill,
        f"zero with dtype {f.dtype}",
        "only floating-point types fill NaN",
    )
    _check_shape(f, function)
    if f.interleaved:
        _check_interleave(f)
    if f.dtype in PACKED:
        _check_packed(f)
    if f.mode == "tiled":
        _check_box(f, function)
    else:
        _check_im2col(f, function)


def _check_shape(f: Fields, function: str) -> None:
    low = 1 if f.mode == "tiled" and not f.interleaved else 3
    require(low <= f.rank <= 5, "rank", f.rank, f"{low}..5", function)
    for i, d in enumerate(f.dims):
        require(1 <= d <= 1 << 32, f"dims[{i}]", d, "1..2^32", function)
    count = len(f.strides_bytes)
    require(
        count == f.rank - 1,
        "number of strides",
        count,
        str(f.rank - 1),
        "dimension 0 is contiguous and has none",
    )
    step = alignment(f)
    for i, s in enumerate(f.strides_bytes):
        require(
            0 <= s < 1 << 40 and s % step == 0,
            f"strides_bytes[{i}]",
            s,
            f"a multiple of {step} below 2^40",
            function,
        )
    count = len(f.element_strides)
    require(count == f.rank, "number of element strides", count, str(f.rank), function)
    for i, s in enumerate(f.element_strides):
        require(1 <= s <= 8, f"element_strides[{i}]", s, "1..8", function)


def _check_interleave(f: Fields) -> None:
    wide = f.mode.startswith("im2col_w")
    require(not wide, "interleave", f.interleave, "NONE in the w modes", "PTX ISA 5.5.6")
    require(
        f.interleave != "32B" or f.swizzle == "32B",
        "swizzle",
        f.swizzle,
        "32B with interleave 32B",
        "a slice is a row of that pattern",
    )
    require(
        f.dtype not in PADDED,
        "interleave",
        f.interleave,
        f"NONE with dtype {f.dtype}",
        "padded types fill no slice",
    )


def _check_packed(f: Fields) -> None:
    if f.dtype not in PADDED:
        require(f.dims[0] % 2 == 0, "dims[0]", f.dims[0], "even", "two elements share a byte")
        return
    require(
        f.dims[0] % PADDED_INNER == 0,
        "dims[0]",
        f.dims[0],
        f"a multiple of {PADDED_INNER}",
        f"dtype {f.dtype}",
    )
    _one_of("swizzle", f.swizzle, PADDED_SWIZZLES, f"dtype {f.dtype}")


def _check_inner(f: Fields, name: str, elements: int) -> None:
    if f.dtype in PADDED:
        reason = f"dtype {f.dtype} fills rows of {PADDED_INNER} bytes"
        require(elements == PADDED_INNER, name, elements, str(PADDED_INNER), reason)
        return
    unit = TYPES[f.dtype]
    bits = elements * unit.global_bytes * 8 // unit.elements
    shown = f"{name} ({elements} × {unit.global_bytes * 8 // unit.elements} bits)"
    require(
        bits % (8 * ALIGNMENT) == 0,
        shown,
        f"{bits / 8:g} bytes",
        f"a multiple of {ALIGNMENT} bytes",
        "the engine writes shared memory in units of 16 bytes",
    )
    span = 0 if f.interleaved else SWIZZLES[f.swizzle].span
    require(
        not span or bits // 8 <= span,
        shown,
        f"{bits // 8} bytes",
        f"at most {span} bytes with swizzle {f.swizzle}",
        "the inner extent of a box must fit in the swizzle span",
    )


def _check_box(f: Fields, function: str) -> None:
    require(len(f.box) == f.rank, "length of box", len(f.box), str(f.rank), function)
    for i, b in enumerate(f.box):
        require(1 <= b <= 256, f"box[{i}]", b, "1..256", function)
    _check_inner(f, "box[0]", f.box[0])


def _check_im2col(f: Fields, function: str) -> None:
    wide = f.mode != "im2col"
    bits = 16 if wide else CORNER_BITS[f.rank]
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    allowed = f"{low}..{high}" + ("" if wide else f" for rank {f.rank}")
    for name, corner in (("lower", f.lower_corner), ("upper", f.upper_corner)):
        require(
            len(corner) == f.spatial,
            f"length of {name}_corner",
            len(corner),
            str(f.spatial),
            "one value: the box has only W" if wide else "one value per spatial dimension, W first",
        )
        for i, c in enumerate(corner):
            require(low <= c <= high, f"{name}_corner[{i}]", c, allowed, function)
    for i in range(f.spatial):
        first, last = f.bounds(i)
        require(
            first <= last,
            f"bounding box along spatial dimension {i}",
            f"{first}..{last}",
            "lower_corner <= dim - 1 + upper_corner",
            "an empty box has no base position",
        )
    channels, pixels = f.channels_per_pixel, f.pixels_per_column
    require(1 <= channels <= 256, "channels_per_pixel", channels, "1..256", function)
    require(1 <= pixels <= 1024, "pixels_per_column", pixels, "1..1024", function)
    if wide:
        _one_of("swizzle", f.swizzle, WIDE_SWIZZLES, function)
    _check_inner(f, "channels_per_pixel", channels)
