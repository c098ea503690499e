"""Block scales: ue8m0 (a power of two) and ue4m3 (e4m3 without its sign).

A scale is one byte. Sources: OCP Microscaling Formats 1.0, 5.4.1 and 6.3; PTX ISA 5.2.3; cuBLAS,
"Narrow precision data types usage".
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .elements import Codes, Element, check_codes, encode, table
from .errors import FormatError

SCALE_NAN: dict[str, int] = {"ue8m0": 0xFF, "ue4m3": 0x7F}
"""Type of block scales -> its code of NaN."""

ROUNDINGS = ("floor", "ceil", "rceil", "even")
"""Rules that derive the exponent of a ue8m0 scale from the block's largest magnitude."""

UE8M0_BIAS = 127
LARGEST_UE8M0, SMALLEST_UE4M3 = 0xFE, 0x01


def check_scale(name: str) -> None:
    """Raises FormatError unless `name` is a type of block scales."""
    if name not in SCALE_NAN:
        raise FormatError(
            "scale format",
            repr(name),
            " or ".join(SCALE_NAN),
            "tcgen05.mma has no other (PTX ISA 9.7.16.10.7)",
        )


def decode_scale(codes: Codes, name: str) -> NDArray[np.float32]:
    """Decodes scale codes exactly. The codes 0xFF (ue8m0) and 0x7F (ue4m3) are NaN.

    Bit 7 of ue4m3 is ignored, as in the tensor core, so 0xFF is also NaN there.
    """
    check_scale(name)
    check_codes(codes, 8, name)
    return _scale_table(name).take(codes)


@cache
def _scale_table(name: str) -> NDArray[np.float32]:
    if name == "ue4m3":
        value = np.tile(table("e4m3")[:128], 2)
    else:
        value = np.ldexp(np.float32(1), np.minimum(np.arange(256), LARGEST_UE8M0) - UE8M0_BIAS)
        value[SCALE_NAN["ue8m0"]] = np.nan
    value.flags.writeable = False
    return value


def encode_ue4m3(values: Any) -> Codes:
    """Encodes numbers ≥ 0 as ue4m3: rounds to nearest even and saturates at 448 (0x7E); NaN becomes
    0x7F.
    """
    x = np.asarray(values, dtype=np.float64)
    if (x < 0).any():
        raise FormatError("ue4m3 scale", np.nanmin(x), "a number ≥ 0", "the format has no sign")
    return encode(x, "e4m3") & np.uint8(0x7F)


def ue8m0_of_amax(amax: Any, element: Element, rounding: str = "floor") -> Codes:
    """ue8m0 codes of the scales of blocks whose largest magnitudes are `amax`.

    With ``X = 2^(floor(log2(amax)) - emax)``, so that ``2^emax <= amax / X < 2^(emax + 1)``, the
    scale is X, or 2X where

    * ``floor`` (OCP 6.3): never; values beyond the largest element saturate;
    * ``ceil``: amax is not a power of two;
    * ``rceil`` (cuBLAS; ``cvt.rp.ue8m0`` of amax / largest): amax / X exceeds the largest element,
      so that nothing saturates;
    * ``even``: amax / X, with the mantissa bits of the element, rounds (half up) to 2^(emax + 1).

    Clamped to 2^-127 .. 2^127; 2^-127 (0x00) for amax = 0; NaN (0xFF) for NaN and infinity.
    """
    if rounding not in ROUNDINGS:
        raise FormatError(
            "rounding of a ue8m0 scale",
            repr(rounding),
            "one of " + ", ".join(ROUNDINGS),
            "floor is the OCP MX rule, rceil that of cuBLAS",
        )
    x = np.asarray(amax, dtype=np.float64)
    finite = np.isfinite(x)
    # frexp has mantissas in [0.5, 1): below, amax / X / 2^(emax + 1) of the docstring.
    mantissa, exponent = np.frexp(np.where(finite, x, 0))
    power = exponent - 1 - element.largest_exponent
    if rounding == "ceil":
        power = power + (mantissa > 0.5)
    elif rounding == "rceil":
        power = power + (mantissa > element.largest / 2.0 ** (element.largest_exponent + 1))
    elif rounding == "even":
        power = power + (mantissa >= 1 - 2.0 ** -(element.mantissa_bits + 2))
    codes = np.clip(power + UE8M0_BIAS, 0, LARGEST_UE8M0)
    codes = np.where(x == 0, 0, np.where(finite, codes, SCALE_NAN["ue8m0"]))
    return codes.astype(np.uint8)
