"""Formats the text of a device printf (CUDA C++ Programming Guide, "Formatted Output").

Conversions and sizes are those of the guide. Cases that the guide leaves open are printed as on an
H200: an unknown conversion such as `%k` unchanged, "(null)", "(nil)", the sign of NaN, hexadecimal
floats.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

_CONVERSION = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?"
    r"(?P<size>hh|h|ll|l|[jzt])?(?P<type>.)",
    re.DOTALL,
)
_NUMBER = re.compile(r"([-+ ]?(?:0[xX])?)[0-9a-fA-F]")
"""Numbers that are padded with zeros after the sign and `0x`; infinity and NaN are not."""
_INTEGERS, _FLOATS = "diouxXc", "eEfFgGaA"
SIZES = (None, "h", "l", "ll")
"""Sizes that the guide lists; with others an H200 reads later arguments from wrong places."""


class Arguments:
    """The arguments of one printf call, packed with C's alignment. read: function that returns the
    bytes at an offset
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read, self._offset = read, 0

    def take(self, code: str) -> int | float:
        """Reads the next argument. code: format code of Python's `struct`, for 4 or 8 bytes"""
        size = struct.calcsize(code)
        self._offset = -(-self._offset // size) * size
        (value,) = struct.unpack(code, self._read(self._offset, size))
        self._offset += size
        return value


class Formatted:
    """Formatted text. count: number of conversions, which vprintf returns. unsupported: conversions
    whose size is not supported
    """

    def __init__(self, text: str, arguments: Arguments, string: Callable[[int], str]) -> None:
        self.count = 0
        self.unsupported: list[str] = []
        self._arguments, self._string = arguments, string
        self.text = _CONVERSION.sub(self._one, text)

    def _one(self, found: re.Match[str]) -> str:
        kind, size = found["type"], found["size"]
        if kind == "%":
            return "%"
        if kind not in _INTEGERS + _FLOATS + "sp":
            return found[0]
        if size in SIZES:
            self.count += 1
        else:
            self.unsupported.append(found[0])
        flags, width = found["flags"], self._number(found["width"])
        precision = self._number(found["precision"])
        if found["precision"] == "":
            precision = 0
        if width is not None and width < 0:
            flags, width = flags + "-", -width
        digits = self._digits(kind, size, flags, precision)
        if "-" in flags:
            return digits.ljust(width or 0)
        number = _NUMBER.match(digits)
        if "0" in flags and number and (kind in _FLOATS or kind in "diouxX" and precision is None):
            return number[1] + digits[number.end(1) :].rjust((width or 0) - number.end(1), "0")
        return digits.rjust(width or 0)

    def _number(self, text: str | None) -> int | None:
        if text == "*":
            return int(self._arguments.take("<i"))
        return int(text) if text else None

    def _digits(self, kind: str, size: str | None, flags: str, precision: int | None) -> str:
        """The converted argument, without its padding."""
        take = self._arguments.take
        if kind in _FLOATS:
            return _real(float(take("<d")), kind, flags, precision)
        if kind == "p":
            return f"{address:#x}" if (address := int(take("<Q"))) else "(nil)"
        if kind == "s":
            text = self._string(int(take("<Q")))
            return text if precision is None else text[:precision]
        wide = size in ("l", "ll", "j", "z", "t")
        value = int(take("<q" if wide else "<i"))
        if kind == "c":
            return chr(value & 0xFF)
        bits = {"h": 16, "hh": 8}.get(size or "", 64 if wide else 32)
        value &= (1 << bits) - 1
        if kind in "di":
            return _integer(value - (value >> bits - 1 << bits), "d", flags, precision)
        return _integer(value, kind, flags.replace("+", "").replace(" ", ""), precision)


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _integer(value: int, kind: str, flags: str, precision: int | None) -> str:
    digits = format(abs(value), "d" if kind == "u" else kind)
    digits = "" if value == precision == 0 else digits.rjust(precision or 0, "0")
    if "#" in flags and kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    prefix = "0" + kind if "#" in flags and kind in "xX" and value else ""
    return _sign(value < 0, flags) + prefix + digits


def _real(value: float, kind: str, flags: str, precision: int | None) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        text = format(abs(value), kind if kind in "fF" else "F" if kind.isupper() else "f")
    elif kind in "aA":
        text = _hexadecimal(abs(value), precision)
        text = text.upper() if kind == "A" else text
    else:
        alternative = "#" if "#" in flags else ""
        text = format(abs(value), f"{alternative}.{6 if precision is None else precision}{kind}")
    return _sign(struct.pack("<d", value)[7] >> 7 == 1 and value == value, flags) + text


def _hexadecimal(value: float, precision: int | None) -> str:
    """Formats a number as glibc does: without trailing zeros, or rounded to even at the
    precision."""
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    exponent, fraction = bits >> 52, bits & (1 << 52) - 1
    number = fraction | (1 << 52 if exponent else 0)
    power = (exponent or 1) - 1023 if number else 0
    if precision is None:
        digits = f"{fraction:013x}".rstrip("0")
        lead = number >> 52
    else:
        drop = 52 - 4 * min(precision, 13)
        low, number = number & (1 << drop) - 1, number >> drop
        if 2 * low > 1 << drop or (2 * low == 1 << drop and drop and number & 1):
            number += 1
        lead, digits = number >> 52 - drop, ""
        if precision:
            digits = f"{number & (1 << 52 - drop) - 1:0{min(precision, 13)}x}".ljust(precision, "0")
    return f"0x{lead}{'.' + digits if digits else ''}p{power:+d}"
