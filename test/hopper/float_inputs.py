"""Operands of floating-point products that reach each rule of a tensor core's arithmetic.

Needs numpy alone, as probes run on computers that have nothing else.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]
#: type -> exponent bits, mantissa bits, bias, low bits that the instruction does not read
LAYOUT = {
    "f16": (5, 10, 15, 0),
    "bf16": (8, 7, 127, 0),
    "tf32": (8, 10, 127, 13),
    "f32": (8, 23, 127, 0),
    "e5m2": (5, 2, 15, 0),
    "e4m3": (4, 3, 7, 0),
}
FLAVOURS = (
    "spanning", "near", "cancelling", "subnormal", "bottom", "overflow", "special", "sparse",
    "ties",
)  # fmt: skip


class Form(Protocol):
    """Types of a product of depth k."""

    @property
    def k(self) -> int: ...

    @property
    def d(self) -> str: ...

    @property
    def a(self) -> str: ...

    @property
    def b(self) -> str: ...


def finite(rng: Any, name: str, shape: Any, low: Any, high: Any) -> Array:
    """Codes with the exponent field in [low, high), within the type's, mantissa and sign random."""
    e, m, _, ignored = LAYOUT[name]
    top = (1 << e) - (name != "e4m3")
    low = np.clip(low, 0, top - 1)
    field = rng.integers(low, np.clip(high, low + 1, top), shape)
    codes = field << (m + ignored) | rng.integers(0, 1 << (m + ignored), shape)
    if name == "e4m3":
        codes[codes == 0x7F] = 0x7E
    return codes | rng.integers(0, 2, shape) << (e + m + ignored)


def exponents(rng: Any, form: Form, flavour: str, chains: int) -> tuple[Any, Any, int]:
    """Exponents of A and of B, one for each chain, and how far elements lie from them."""
    wide = LAYOUT[form.a][0] == 8
    bias_a, bias_b, bias_d = (LAYOUT[name][2] for name in (form.a, form.b, form.d))
    nothing = np.zeros(chains, np.int64)
    if flavour == "spanning":  # products anywhere in D's range, and somewhat below
        product = rng.integers(-bias_d - 10, bias_d - 4, chains)
        a = product // 2 + rng.integers(-(bias_a // 3), bias_a // 3 + 1, chains)
        return a, product - a, 12 if wide else 3
    if flavour == "overflow":  # sums near the end of D's range, where products reach that far
        product = bias_d - 2 - form.k.bit_length() // 2
        return nothing + product // 2, nothing + product - product // 2, 2
    if flavour == "subnormal":
        return nothing - bias_a, nothing - bias_b, 1
    if flavour == "bottom":
        return (nothing - 72, nothing - 72, 4) if wide else (nothing - bias_a, nothing - bias_b, 2)
    return nothing, nothing, {"special": 4, "sparse": 60 if wide else 15}.get(flavour, 3)


def powers(rng: Any, name: str, shape: tuple[int, ...]) -> Array:
    """Zeros and ±2^x: their few products end around D's smallest number, and far below."""
    e, m, bias, ignored = LAYOUT[name]
    smallest = 1 - bias - m
    x = rng.integers(-84, -65, shape) if e == 8 else rng.integers(smallest, smallest + 15, shape)
    normal = (x + bias) << m
    codes = np.where(x + bias > 0, normal, 1 << np.clip(x - smallest, 0, m)) << ignored
    codes |= rng.integers(0, 2, shape) << (e + m + ignored)
    return np.where(rng.random(shape) < 0.6, 0, codes)


def operand(
    rng: Any, name: str, shape: tuple[int, ...], x: Array, spread: int, flavour: str
) -> Array:
    e, m, bias, ignored = LAYOUT[name]
    if flavour == "ties":
        return powers(rng, name, shape)
    field = bias + x.reshape(-1, 1, 1, 1)
    codes = finite(rng, name, shape, field - spread, field + spread + 1)
    zeros = {"subnormal": 0.3, "bottom": 0.5, "sparse": 0.9}.get(flavour, 0.0)
    codes[rng.random(shape) < zeros] = 0
    if flavour == "special":
        sign = 1 << (e + m + ignored)
        infinity = ((1 << e) - 1) << (m + ignored)
        values = (
            [0x7F, 0xFF, 0, sign]
            if name == "e4m3"
            else [infinity, infinity | sign, infinity | 1 << ignored, 0, sign]
        )
        rare = rng.random(shape) < 0.1 / shape[-1]
        codes[rare] = rng.choice(np.array(values), int(rare.sum()))
    return codes


def accumulator(rng: Any, form: Form, shape: tuple[int, ...], x: Array, flavour: str) -> Array:
    """C near the products' exponents; some zeros, some at the bottom of D's range; specials."""
    e, m, bias, _ = LAYOUT[form.d]
    top = 1 << e
    spread = 40 if flavour == "spanning" else 14
    field = bias + x.reshape(-1, 1, 1)
    codes = finite(rng, form.d, shape, field - spread, field + spread)
    kind = rng.integers(0, 16, shape) if flavour != "ties" else rng.integers(0, 2, shape)
    codes = np.where(kind == 0, 0, np.where(kind == 1, 1 << (e + m), codes))
    if flavour in ("bottom", "subnormal", "sparse"):
        codes = np.where(kind >= 8, finite(rng, form.d, shape, 0, 4), codes)
    if flavour == "sparse":
        anywhere = finite(rng, form.d, shape, 0, top)
        codes = np.where((kind >= 4) & (kind < 8), anywhere, codes)
    if flavour == "special":
        infinity, sign = (top - 1) << m, 1 << (e + m)
        values = np.array([infinity, infinity | sign, infinity | 3, infinity | sign | sign >> e])
        codes = np.where(kind == 2, rng.choice(values, shape), codes)
    return codes
