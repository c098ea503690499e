"""cvt.rs against exact fractions between the neighbours that numpy and ml_dtypes have."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tcir.machine import Assumptions
from tcir.run import run_ptx

from .conftest import HEADER, kernel

HALVES: dict[str, Any] = {"f16": np.float16, "bf16": ml_dtypes.bfloat16}
QUARTERS: dict[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
BITS = {"f16": 16, "bf16": 16, "e4m3": 8, "e5m2": 8, "e3m2": 6, "e2m3": 6, "e2m1": 4}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "e4m3": 0x7F, "e5m2": 0x7F, "e3m2": 0x1F, "e2m3": 0x1F,
       "e2m1": 7}  # fmt: skip
RNG = np.random.default_rng(20)


@cache
def grid(name: str) -> list[Fraction]:
    """The finite non-negative values of a format, by code."""
    dtype = {**HALVES, **QUARTERS}[name]
    count = 1 << BITS[name] - 1
    codes = np.arange(count, dtype=np.uint16 if name in HALVES else np.uint8)
    with np.errstate(invalid="ignore"):
        values = codes.view(dtype).astype(np.float64)
    return [Fraction(float(v)) for v in values[np.isfinite(values)]]


@cache
def float_grid(name: str) -> np.ndarray:
    return np.array([float(v) for v in grid(name)])


def awkward(name: str) -> np.ndarray:
    """Neighbours, their neighbourhood and what lies between; the largest, and what is beyond."""
    values = grid(name)
    some = RNG.integers(0, len(values) - 1, 60)
    between = [
        float(values[n] + (values[n + 1] - values[n]) * Fraction(int(k), 64))
        for n, k in zip(some, RNG.integers(0, 65, 60))
    ]
    largest = float(values[-1])
    more = [0.0, 1e-45, 1e-30, largest, largest * 1.01, largest * 1.2, 3e38, np.inf]
    with np.errstate(over="ignore"):
        found = np.array([*between, *more], np.float64).astype(np.float32)
    found = np.concatenate([found, -found, [np.float32(np.nan)]])
    return np.concatenate([found, RNG.standard_normal(119).astype(np.float32)])


def code(x: float, random: int, bits: int, name: str, relu: bool, finite: bool) -> int:
    sign = int(np.signbit(x)) << BITS[name] - 1
    if np.isnan(x):
        return NAN[name]
    if relu and np.signbit(x):
        return 0
    values = grid(name)
    if np.isinf(x) or abs(Fraction(x)) >= values[-1]:
        if finite:
            return sign | len(values) - 1
        step = values[-1] - values[-2]
        above = np.isinf(x) or int((abs(Fraction(x)) - values[-1]) / step * 2**bits) + random
        return sign | len(values) - (0 if np.isinf(x) or above >= 2**bits else 1)
    magnitude = abs(Fraction(x))
    low = int(np.searchsorted(float_grid(name), float(magnitude), "right")) - 1
    part = (magnitude - values[low]) / (values[low + 1] - values[low])
    return sign | low + (int(part * 2**bits) + random >= 2**bits)


def reverse(x: int) -> int:
    return int(f"{x:016b}"[::-1], 2)


def drawn(name: str, rbits: int, choice: str = "") -> tuple[int, list[int]]:
    """Number of random bits, and those of a, b, e, f."""
    high, low = rbits >> 16, rbits & 0xFFFF
    if name == "f16":
        return 13, [high & 0x1FFF, low & 0x1FFF]
    if name == "bf16":
        return 16, [high, low]
    if name != "e2m1":
        first = (lambda x: x) if choice == "plain" else reverse
        return 16, [first(high), high, first(low), low]
    b3, b2, b1, b0 = rbits.to_bytes(4)
    if choice == "reversed":
        return 16, [reverse(b3 << 8 | b1), b3 << 8 | b1, reverse(b2 << 8 | b0), b2 << 8 | b0]
    return 8, [b1, b3, b0, b2] if choice == "lower-first" else [b3, b1, b2, b0]


def convert(
    name: str,
    x: list[np.ndarray],
    rbits: np.ndarray,
    words: str = "",
    assemble: Any = None,
    **choice: str,
) -> np.ndarray:
    """Result registers of `cvt.rs`, one a lane."""
    count = len(x)
    source = ", ".join(f"%f{n}" for n in range(count))
    source = source if count == 2 else f"{{{source}}}"
    target = "%h0" if name == "e2m1" else "%d"
    body = (
        ".reg .f32 %f<4>; mov.b64 {%f0, %f1}, %a; mov.b64 {%f2, %f3}, %b;"
        f" cvt.rs{words}.{name}x{count}.f32 {target}, {source}, %c;"
        + (" cvt.u32.u16 %d, %h0;" if name == "e2m1" else "")
    )
    four = [*x, *x][:4]
    pairs = [np.stack(four[n : n + 2], axis=1).astype("f4").view("u8")[:, 0] for n in (0, 2)]
    lanes = len(rbits)
    padded = -(-lanes // 32) * 32
    args = [np.resize(a, padded) for a in (*pairs, rbits.astype("u4"))]
    out = np.zeros(padded, "u4")
    ptx = HEADER + kernel("k", body, ["u64", "u64", "b32"], "b32")
    report = run_ptx(
        ptx, grid=padded // 32, block=32, args=[*args, out], assumptions=Assumptions(**choice)
    )
    assert report.ok, str(report)
    if assemble is not None:
        assemble(ptx)
    return out[:lanes]


def expected(
    name: str, x: list[np.ndarray], rbits: np.ndarray, words: str, choice: str = ""
) -> np.ndarray:
    width = 16 if name in HALVES else 4 if name == "e2m1" else 8
    out = []
    for lane, word in enumerate(rbits):
        bits, random = drawn(name, int(word), choice)
        packed = 0
        for value, r in zip(x, random, strict=True):
            c = code(float(value[lane]), r, bits, name, "relu" in words, "satfinite" in words)
            packed = packed << width | c
        out.append(packed)
    return np.array(out, "u4")


@pytest.mark.parametrize("words", ["", ".relu", ".satfinite", ".relu.satfinite"])
@pytest.mark.parametrize("name", HALVES)
def test_two_halves(name: str, words: str, assemble: Any) -> None:
    x = [awkward(name), awkward(name)[::-1]]
    rbits = RNG.integers(0, 1 << 32, len(x[0]), np.uint32)
    got = convert(name, x, rbits, words, assemble)
    np.testing.assert_array_equal(got, expected(name, x, rbits, words))


@pytest.mark.parametrize("words", [".satfinite", ".relu.satfinite"])
@pytest.mark.parametrize("name", QUARTERS)
def test_four_narrow_floats(name: str, words: str, assemble: Any) -> None:
    x = [np.roll(awkward(name), 7 * n) for n in range(4)]
    rbits = RNG.integers(0, 1 << 32, len(x[0]), np.uint32)
    got = convert(name, x, rbits, words, assemble)
    np.testing.assert_array_equal(got, expected(name, x, rbits, words))


@pytest.mark.parametrize(
    ("name", "entry", "choice"),
    [
        ("e5m2", "rs_pair_bits", "plain"),
        ("e2m1", "rs_fp4_bits", "lower-first"),
        ("e2m1", "rs_fp4_bits", "reversed"),
    ],
)
def test_other_readings_of_the_random_bits(name: str, entry: str, choice: str) -> None:
    x = [np.roll(awkward(name), 7 * n) for n in range(4)]
    rbits = RNG.integers(0, 1 << 32, len(x[0]), np.uint32)
    got = convert(name, x, rbits, ".satfinite", **{entry: choice})
    np.testing.assert_array_equal(got, expected(name, x, rbits, ".satfinite", choice))
    assert (got != convert(name, x, rbits, ".satfinite")).any()


def test_as_often_as_the_fraction_says() -> None:
    """Of all 2^8 random numbers 3 · 2^5 round 1 + 3/8 of a step of e2m1 away from zero."""
    rbits = np.arange(256, dtype=np.uint32) * 0x01010101
    got = convert("e2m1", [np.full(256, 1 + 3 / 16, np.float32)] * 4, rbits, ".satfinite")
    for n in range(4):
        codes, counts = np.unique(got >> 4 * n & 0xF, return_counts=True)
        assert (codes.tolist(), counts.tolist()) == ([2, 3], [160, 96])


@pytest.mark.parametrize(
    "line",
    [
        "cvt.rs.e4m3x4.f32 %d, {%f0, %f1, %f2, %f3}, %c;",
        "cvt.rs.f16.f32 %h0, %f0, %c;",
        "cvt.rs.f16x2.f32 %d, %f0, %f1;",
        "cvt.rs.satfinite.e2m1x4.f32 %d, {%f0, %f1, %f2, %f3}, %c;",
        "cvt.rs.satfinite.e5m2x4.f32 %d, {%f0, %f1}, %c;",
    ],
)
def test_what_is_malformed(line: str, assemble: Any) -> None:
    """Neither ptxas nor the machine takes them."""
    ptx = HEADER + kernel(
        "k", f".reg .f32 %f<4>; mov.b32 %d, 0; {line}", ["u64", "u64", "b32"], "b32"
    )
    with pytest.raises(AssertionError, match="error"):
        assemble(ptx)
    args = [np.zeros(32, "u8"), np.zeros(32, "u8"), np.zeros(32, "u4"), np.zeros(32, "u4")]
    with pytest.raises(ValueError, match=r"cvt\.rs"):
        run_ptx(ptx, grid=1, block=32, args=args)
