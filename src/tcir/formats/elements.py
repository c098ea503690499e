"""Element formats of block-scaled operands: real numbers to codes and back.

Every format is sign, exponent, mantissa; a code is one byte of uint8, in its low bits. Sources: OCP
Microscaling Formats 1.0, 5.3; OCP 8-bit Floating Point 1.0; PTX ISA 5.2.3 and ``cvt``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import FormatError

Codes = NDArray[np.uint8]


@dataclass(frozen=True)
class Element:
    """A floating-point format of 1 + ``exponent_bits`` + ``mantissa_bits`` bits."""

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest_code: int
    """The code of the largest finite value."""
    infinity: int | None = None
    nan: int | None = None
    """Code that NaN is converted to."""

    @property
    def bits(self) -> int:
        """Width of a code in bits."""
        return 1 + self.exponent_bits + self.mantissa_bits

    @property
    def smallest_exponent(self) -> int:
        """Exponent of the smallest normal value, and of the subnormal values."""
        return 1 - self.bias

    @property
    def largest_exponent(self) -> int:
        """Exponent of the largest finite value: ``emax`` of the MX scale rule."""
        return (self.largest_code >> self.mantissa_bits) - self.bias

    @property
    def largest(self) -> float:
        """The largest finite value."""
        fraction = self.largest_code & ((1 << self.mantissa_bits) - 1)
        return 2.0**self.largest_exponent * (1 + fraction / (1 << self.mantissa_bits))


ELEMENTS: dict[str, Element] = {
    e.name: e
    for e in (
        Element("e2m1", 2, 1, bias=1, largest_code=0x07),
        Element("e2m3", 2, 3, bias=1, largest_code=0x1F),
        Element("e3m2", 3, 2, bias=3, largest_code=0x1F),
        Element("e4m3", 4, 3, bias=7, largest_code=0x7E, nan=0x7F),
        Element("e5m2", 5, 2, bias=15, largest_code=0x7B, infinity=0x7C, nan=0x7F),
    )
}


def element(name: str) -> Element:
    """Looks up an element format by name; raises FormatError if there is none."""
    try:
        return ELEMENTS[name]
    except KeyError:
        raise FormatError(
            "element format", repr(name), "one of " + ", ".join(ELEMENTS), "PTX ISA 5.2.3"
        ) from None


def encode(values: Any, name: str) -> Codes:
    """Encodes real numbers: rounds to nearest, ties to the even code, and saturates (as ``cvt``
    does).

    values: any float array, float64 included; each value is rounded once. Numbers beyond the
        largest value, including infinities, become the largest value with their sign. NaN becomes
        0x7F in e4m3 and e5m2, and the positive largest value in formats without NaN (PTX ISA,
        ``cvt.rn.satfinite``). The sign of zero is kept.
    """
    e = element(name)
    shape = np.shape(values)
    x = np.array(values, dtype=np.float64).reshape(-1)
    # fmin drops NaNs: they become the largest value. What saturates never overflows the exponent.
    magnitude = np.fmin(np.abs(x), e.largest)
    exponent = np.maximum((magnitude.view(np.int64) >> 52) - 1023, e.smallest_exponent)
    # 2^(mantissa bits - exponent): brings the last place of the target to 1.
    per_place = ((1023 + e.mantissa_bits - exponent) << 52).view(np.float64)
    places = np.rint(magnitude * per_place).astype(np.int64)
    # Subnormal: places is the code. Normal: its hidden bit adds one to the exponent field; rounding
    # up to a power of two carries into that field.
    codes = places + ((exponent - e.smallest_exponent) << e.mantissa_bits)
    is_nan = np.isnan(x)
    codes |= (np.signbit(x) & ~is_nan).astype(np.int64) << (e.bits - 1)
    if e.nan is not None:
        codes[is_nan] = e.nan
    return codes.astype(np.uint8).reshape(shape)


def decode(codes: Codes, name: str) -> NDArray[np.float32]:
    """Decodes codes exactly. Raises FormatError if bits above the format's width are set."""
    check_codes(codes, element(name).bits, name)
    return table(name).take(codes)


@cache
def table(name: str) -> NDArray[np.float32]:
    """Value of every code, read-only."""
    e = element(name)
    code = np.arange(1 << e.bits)
    magnitude = code & ((1 << (e.bits - 1)) - 1)
    field, mantissa = magnitude >> e.mantissa_bits, magnitude & ((1 << e.mantissa_bits) - 1)
    significand = np.where(field > 0, mantissa + (1 << e.mantissa_bits), mantissa)
    exponent = np.maximum(field, 1) - e.bias - e.mantissa_bits
    value = np.ldexp(significand.astype(np.float32), exponent)
    value[magnitude > e.largest_code] = np.nan
    if e.infinity is not None:
        value[magnitude == e.infinity] = np.inf
    value = np.where(code >> (e.bits - 1) == 1, -value, value)
    value.flags.writeable = False
    return value


def check_codes(codes: Codes, bits: int, name: str) -> None:
    """Raises FormatError unless `codes` is uint8 and only the low `bits` bits are set."""
    if not isinstance(codes, np.ndarray) or codes.dtype != np.uint8:
        got = getattr(codes, "dtype", type(codes).__name__)
        raise FormatError(f"{name} codes", got, "uint8", "a code is the low bits of one byte")
    if codes.size and bits < 8 and int(codes.max()) >> bits:
        raise FormatError(
            f"{name} code",
            hex(int(codes.max())),
            f"below {1 << bits:#x}",
            f"{name} has {bits} bits; packed bytes must be unpacked first",
        )
