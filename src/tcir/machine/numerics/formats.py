"""Number formats as the tensor core reads them: a code stands for a value and a raw exponent.

The *raw exponent* of a non-zero finite code is its unbiased exponent field; every subnormal has the
raw exponent of the smallest normal number. The raw exponent is not normalised, because the results
of the fused sum of ``tcgen05.mma`` depend on the exponent field itself (see `fused`). Zeros,
infinities and NaNs have ``NO_EXPONENT``: they do not count when the largest exponent is computed.

Sources: PTX ISA 5.2.3 (alternate formats), OCP Microscaling Formats 1.0, IEEE 754.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tcir.machine.refusal import ElementTypeError

NO_EXPONENT = -4096
"""Raw exponent of a missing term; two of them add without overflow."""


@dataclass(frozen=True)
class Format:
    """A binary floating-point format: fields for sign, exponent and mantissa, followed by
    ``ignored`` low bits.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    special: Literal["ieee", "nan_only", "none"]
    ignored: int = 0
    """Low bits of the code that the tensor core ignores (tf32)."""

    @property
    def bits(self) -> int:
        """Width of the code in bits, the ignored low bits included."""
        return 1 + self.exponent_bits + self.mantissa_bits + self.ignored

    @property
    def smallest_exponent(self) -> int:
        """Raw exponent of the smallest normal number, and of all subnormal numbers."""
        return 1 - self.bias


FLOATS: dict[str, Format] = {
    f.name: f
    for f in (
        Format("f16", 5, 10, 15, "ieee"),
        Format("bf16", 8, 7, 127, "ieee"),
        Format("f32", 8, 23, 127, "ieee"),
        Format("tf32", 8, 10, 127, "ieee", ignored=13),
        Format("e5m2", 5, 2, 15, "ieee"),
        Format("e4m3", 4, 3, 7, "nan_only"),
        Format("e3m2", 3, 2, 3, "none"),
        Format("e2m3", 2, 3, 1, "none"),
        Format("e2m1", 2, 1, 1, "none"),
    )
}

INTEGERS: dict[str, type[np.signedinteger] | type[np.unsignedinteger]] = {
    "s8": np.int8,
    "u8": np.uint8,
}

SCALES = ("ue8m0", "ue4m3")
"""Types of block scales; both without a sign."""

ELEMENT_BITS: dict[str, int] = {
    **{name: f.bits for name, f in FLOATS.items()},
    **dict.fromkeys(INTEGERS, 8),
    "s32": 32,
}
"""Bits per code: 4 and 6 for the narrow types, in whatever form they are stored."""


def float_format(name: str) -> Format:
    """Returns the format called `name`; raises ElementTypeError if there is none."""
    try:
        return FLOATS[name]
    except KeyError:
        raise ElementTypeError(
            "element type", name, "one of " + ", ".join(FLOATS), "PTX ISA 5.2.3 knows no other"
        ) from None


def _decode(codes: NDArray[np.int64], f: Format) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    codes = codes >> f.ignored
    mantissa = codes & ((1 << f.mantissa_bits) - 1)
    field = (codes >> f.mantissa_bits) & ((1 << f.exponent_bits) - 1)
    negative = (codes >> (f.mantissa_bits + f.exponent_bits)) & 1
    exponent = np.maximum(field, 1) - f.bias
    significand = np.where(field > 0, mantissa + (1 << f.mantissa_bits), mantissa)
    value = np.ldexp(significand.astype(np.float64), (exponent - f.mantissa_bits).astype(np.int32))
    top = (1 << f.exponent_bits) - 1
    if f.special == "ieee":
        value = np.where(field == top, np.where(mantissa == 0, np.inf, np.nan), value)
    elif f.special == "nan_only":
        value = np.where((field == top) & (mantissa == (1 << f.mantissa_bits) - 1), np.nan, value)
    value = np.where(negative == 1, -value, value)
    takes_part = np.isfinite(value) & (significand != 0)
    return value, np.where(takes_part, exponent, NO_EXPONENT).astype(np.int32)


@cache
def decode_table(name: str) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Returns the results of `decode` for all codes, in ascending order, of a format of at most 16
    bits.
    """
    f = FLOATS[name]
    value, exponent = _decode(np.arange(1 << f.bits, dtype=np.int64), f)
    value.flags.writeable = exponent.flags.writeable = False
    return value, exponent


def decode(codes: NDArray[Any], name: str) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Exact values (float64) and raw exponents (int32) of an array of unsigned codes.

    Raises ElementTypeError if bits above the format's width are set, because then the codes were
    unpacked incorrectly.
    """
    f = float_format(name)
    if f.bits > 16:
        return _decode(codes.astype(np.int64) & 0xFFFFFFFF, f)
    check_codes(codes, name)
    values, exponents = decode_table(name)
    return values.take(codes), exponents.take(codes)


def check_codes(codes: NDArray[np.unsignedinteger], name: str) -> None:
    """Raises ElementTypeError if bits above the width of a format of at most 16 bits are set."""
    bits = FLOATS[name].bits
    if codes.dtype.itemsize * 8 > bits and codes.size and int(codes.max()) >> bits:
        raise ElementTypeError(
            f"{name} code",
            hex(int(codes.max())),
            f"below {hex(1 << bits)}",
            f"{name} has {bits} bits",
        )


NO_BIT = 1 << 14
"""Stands for the lowest bit of a zero; its negative stands for that of an infinity or a NaN."""


@cache
def _lowest_table(name: str) -> NDArray[np.int16]:
    values, _ = decode_table(name)
    mantissa, exponent = np.frexp(np.where(np.isfinite(values), values, 0))
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    bit = np.bitwise_count((whole & -whole) - 1).astype(np.int64) + exponent - 53
    lowest = np.where(whole == 0, NO_BIT, bit)
    lowest = np.where(np.isfinite(values), lowest, -NO_BIT).astype(np.int16)
    lowest.flags.writeable = False
    return lowest


def lowest_bit(codes: NDArray[Any], name: str) -> int | None:
    """Returns the exponent of the lowest bit that is set in any of the numbers that the codes stand
    for.

    Returns None if the format has more than 16 bits, if all codes are zero, or if one is infinite
    or NaN.
    """
    if float_format(name).bits > 16:
        return None
    lowest = int(_lowest_table(name).take(codes).min(initial=NO_BIT))
    return lowest if abs(lowest) < NO_BIT else None


def integers(codes: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Values of 8-bit integer codes (`name` is "s8" or "u8")."""
    if name not in INTEGERS:
        raise ElementTypeError("element type", name, "s8 or u8", "the integer kind takes no other")
    return codes.astype(np.uint8).view(INTEGERS[name]).astype(np.int64)


@cache
def _scale_table(name: str) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    if name == "ue4m3":
        values, exponents = decode_table("e4m3")
        value, exponent = np.tile(values[:128], 2), np.tile(exponents[:128], 2)
    else:
        exponent = np.arange(-127, 129, dtype=np.int32)
        value = np.ldexp(np.ones(256), exponent)
        value[255], exponent[255] = np.nan, NO_EXPONENT
    value.flags.writeable = exponent.flags.writeable = False
    return value, exponent


def decode_scale(codes: NDArray[np.uint8], name: str) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Values (float64) and raw exponents (int32) of block scales.

    A ue8m0 code is 2^(code - 127); 0xFF is NaN. ue4m3 is e4m3 without its sign: bit 7 is ignored,
    and 0x7F is NaN (PTX ISA 5.2.3; OCP Microscaling Formats 1.0).
    """
    if name not in SCALES:
        raise ElementTypeError("scale type", name, "ue8m0 or ue4m3", "PTX ISA 9.7.16.10.7")
    values, exponents = _scale_table(name)
    return values.take(codes), exponents.take(codes)
