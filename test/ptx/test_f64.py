"""f64 in directed rounding against exact fractions, and its NaNs; all forms assemble."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from .conftest import HEADER, kernel

RNG = np.random.default_rng(3)
F = Fraction
OPS: dict[str, tuple[int, Callable[..., Fraction | None]]] = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "div": (2, lambda a, b: a / b if b else None),
    "rcp": (1, lambda a: 1 / a if a else None),
    "fma": (3, lambda a, b, c: a * b + c),
}


def pool(n: int) -> np.ndarray:
    edges = [0.0, 1.0, -1.0, 3.0, 5e-324, -5e-324, 2.0**-1022, 2.0**1023, -1e308, 2.0**-600]
    wide = 2.0 ** RNG.integers(-500, 500, n)
    return np.concatenate(
        [RNG.choice(edges, n), RNG.standard_normal(n), RNG.standard_normal(n) * wide]
    )


def directed(exact: Fraction, mode: str) -> float:
    """The double next to `exact` on the side that the mode asks for, by bisection over bits."""
    negative = exact < 0
    low, high = 0, 0x7FF0000000000000  # bits of doubles: 0 .. infinity
    magnitude = abs(exact)
    while high - low > 1:
        middle = (low + high) // 2
        value = np.array(middle, np.uint64).view(np.float64)
        low, high = (middle, high) if F(float(value)) <= magnitude else (low, middle)
    below, above = (float(np.array(x, np.uint64).view(np.float64)) for x in (low, high))
    inexact = F(below) != magnitude
    up = inexact and (mode == "rp" and not negative or mode == "rm" and negative)
    return math.copysign(above if up else below, -1 if negative else 1)


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
@pytest.mark.parametrize("op", OPS)
def test_directed_rounding(lanes: Any, op: str, mode: str) -> None:
    count, oracle = OPS[op]
    arrays = [RNG.permutation(pool(50)) for _ in range(count)]
    operands = ", ".join("%abc"[0] + n for n in "abc"[:count])
    got = lanes(f"{op}.{mode}.f64 %d, {operands};", arrays, ["f64"] * count, "u64")
    for *point, value in zip(*arrays, got.view(np.float64)):
        exact = oracle(*(F(float(x)) for x in point))
        if exact is None:
            assert math.isinf(value) or math.isnan(value)
        elif exact:
            assert value == directed(exact, mode), (op, mode, point)
        elif op in ("add", "sub", "fma") and all(x != 0 for x in point):
            assert value == 0 and math.copysign(1, value) == (-1 if mode == "rm" else 1)


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
def test_directed_root(lanes: Any, mode: str) -> None:
    a = np.abs(pool(60))
    got = lanes(f"sqrt.{mode}.f64 %d, %a;", [a], ["f64"], "u64").view(np.float64)
    for x, value in zip(a, got):
        below, above = math.nextafter(value, 0), math.nextafter(value, math.inf)
        if mode == "rp":
            assert F(float(value)) ** 2 >= F(float(x)) and (x == 0 or F(below) ** 2 < F(float(x)))
        else:
            assert F(float(value)) ** 2 <= F(float(x)) < F(above) ** 2


def test_nan_payloads(lanes: Any) -> None:
    """As an H200 has it: the last operand's NaN, made quiet; 0xfff8… of invalid operations."""
    one, inf = 0x3FF << 52, 0x7FF << 52
    first, second = inf | 0x123, 0xFFF << 52 | 0x777
    quiet = 1 << 51
    rows = [
        (one, first, first | quiet),
        (second, one, second | quiet),
        (first, second, second | quiet),
    ]
    a, b, want = (np.array(column, np.uint64) for column in zip(*rows))
    for op in ("add.rn", "mul.rn", "add.rz"):
        assert (lanes(f"{op}.f64 %d, %a, %b;", [a, b], ["f64"] * 2, "u64") == want).all()
    want[2] = first | quiet
    assert (lanes("div.rn.f64 %d, %a, %b;", [a, b], ["f64"] * 2, "u64") == want).all()
    pair = [np.array([inf], np.uint64), np.array([inf], np.uint64)]
    assert lanes("sub.rn.f64 %d, %a, %b;", pair, ["f64"] * 2, "u64")[0] == 0xFFF8 << 48


def test_forms_are_legal_ptx(assemble: Any) -> None:
    bodies = [
        f"{op}.{mode}.f64 %d, {', '.join('%' + n for n in 'abc'[: OPS[op][0]])};"
        for op in OPS
        for mode in ("rn", "rz", "rm", "rp")
    ] + [f"sqrt.{mode}.f64 %d, %a;" for mode in ("rz", "rm", "rp")]
    assemble(HEADER + "".join(kernel(f"k{n}", b, ["f64"] * 3, "f64") for n, b in enumerate(bodies)))
