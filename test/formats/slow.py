"""Definitions in exact fractions, one number at a time: what the vectorised code must equal."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

# name -> exponent bits, mantissa bits, bias, codes of finite magnitudes (all below this number)
ELEMENTS = {
    "e2m1": (2, 1, 1, 8),
    "e2m3": (2, 3, 1, 32),
    "e3m2": (3, 2, 3, 32),
    "e4m3": (4, 3, 7, 127),
    "e5m2": (5, 2, 15, 124),
}


@cache
def magnitudes(name: str) -> tuple[Fraction, ...]:
    """Finite magnitudes in the order of their codes (OCP MX 1.0, 5.3)."""
    _, m, bias, count = ELEMENTS[name]
    values = []
    for code in range(count):
        exponent, mantissa = code >> m, Fraction(code % (1 << m), 1 << m)
        if exponent == 0:
            values.append(Fraction(2) ** (1 - bias) * mantissa)
        else:
            values.append(Fraction(2) ** (exponent - bias) * (1 + mantissa))
    return tuple(values)


def nearest(x: Fraction, name: str) -> int:
    """Code of the magnitude nearest to |x|, of two equally near ones the even code."""
    values = magnitudes(name)
    return min(range(len(values)), key=lambda c: (abs(values[c] - abs(x)), c % 2))


def floor_log2(x: Fraction) -> int:
    """The largest e with 2^e <= x."""
    e = 0
    while Fraction(2) ** e > x:
        e -= 1
    while Fraction(2) ** (e + 1) <= x:
        e += 1
    return e


def ue8m0(amax: Fraction, name: str, rounding: str) -> int:
    """Code of the scale by the words of each rule."""
    top = magnitudes(name)[-1]
    emax = floor_log2(top)
    if amax == 0:
        return 0
    if rounding == "floor":
        e = floor_log2(amax) - emax
    elif rounding == "ceil":
        e = -floor_log2(1 / amax) - emax
    elif rounding == "rceil":
        e = -floor_log2(top / amax)
    else:  # the leading bits of the element's mantissa, half up, then floor
        ulp = Fraction(2) ** (floor_log2(amax) - ELEMENTS[name][1])
        e = floor_log2((amax / ulp + Fraction(1, 2)).__floor__() * ulp) - emax
    return min(max(e + 127, 0), 254)


def quantise_block(
    block: list[float], name: str, scale: str, g: float, rounding: str
) -> tuple[list[int], int]:
    """Codes and scale code of one block of finite numbers, the sign of zero not looked at."""
    exact = [Fraction(x) for x in block]
    amax = max(abs(x) for x in exact)
    if scale == "ue8m0":
        code = ue8m0(amax, name, rounding)
        step = Fraction(2) ** (code - 127)
    else:
        code = nearest(amax / (magnitudes(name)[-1] * Fraction(g)), "e4m3")
        code = max(code, 1) if amax else 0
        step = magnitudes("e4m3")[code] * Fraction(g)
    sign = 1 << sum(ELEMENTS[name][:2])
    if not amax:
        return [0] * len(exact), code
    return [nearest(x / step, name) | (sign if x < 0 else 0) for x in exact], code
