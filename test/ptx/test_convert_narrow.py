"""Narrow conversions against ml_dtypes, cvt.pack, mixed-precision sums, directed divisions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .conftest import HEADER, kernel
from .test_floating import to_bits

#: Element dtype, bits in the register, largest finite value, code that a NaN becomes.
FORMATS: dict[str, tuple[Any, int, float, int]] = {
    "e4m3": (ml_dtypes.float8_e4m3fn, 8, 448.0, 0x7F),
    "e5m2": (ml_dtypes.float8_e5m2, 8, 57344.0, 0x7F),
    "e2m3": (ml_dtypes.float6_e2m3fn, 8, 7.5, 0x1F),
    "e3m2": (ml_dtypes.float6_e3m2fn, 8, 28.0, 0x1F),
    "e2m1": (ml_dtypes.float4_e2m1fn, 4, 6.0, 0x07),
}
BITS = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}


def awkward(name: str) -> np.ndarray:
    """Every value of the format, the middles between neighbours, their f32 neighbours, extremes."""
    dtype, _, largest, _ = FORMATS[name]
    values = np.arange(1 << BITS[name] - 1, dtype=np.uint8).view(dtype).astype(np.float32)
    values = values[np.isfinite(values)]
    middles = (values[1:] + values[:-1]) / 2
    near = [np.nextafter(middles, np.float32(s), dtype=np.float32) for s in (0, np.inf)]
    more = np.array([largest * 1.04, largest * 1.1, 1e30, 1e-30, np.inf, 1e-45], np.float32)
    found = np.concatenate([values, middles, *near, more])
    return np.concatenate([found, -found, [np.float32(np.nan)]]).astype(np.float32)


def codes(x: np.ndarray, name: str, relu: bool) -> np.ndarray:
    dtype, _, largest, nan = FORMATS[name]
    x = np.where(x < 0, np.float32(0), x) if relu else x
    finite = np.nan_to_num(np.clip(x, -largest, largest))
    out = finite.astype(dtype).view(np.uint8)
    if relu:
        out = np.where(np.signbit(x), np.uint8(0), out)
    return np.where(np.isnan(x), np.uint8(nan), out)


def to_narrow(name: str, source: str, relu: str) -> str:
    b8 = ".reg .b8 %n; " if name == "e2m1" else ""
    target = "%n" if b8 else "%h0"
    operands = "%a, %b" if source == "f32" else "%a"
    wide = "mov.b16 %h0, {%n, %n};" if b8 else ""
    return (
        f"{{ {b8}cvt.rn.satfinite{relu}.{name}x2.{source} {target}, {operands}; {wide}"
        " cvt.u32.u16 %d, %h0; }"
    )


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("relu", ["", ".relu"])
def test_to_narrow(lanes: Any, name: str, relu: str) -> None:
    a = awkward(name)
    b = np.roll(a, 5)
    got = lanes(to_narrow(name, "f32", relu), [a, b], ["f32", "f32"], "u32")
    bits = FORMATS[name][1]
    want = codes(a, name, bool(relu)).astype("u4") << bits | codes(b, name, bool(relu))
    assert ((got & ((1 << 2 * bits) - 1)) == want).all()


@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_to_narrow_from_halves(lanes: Any, name: str) -> None:
    with np.errstate(over="ignore"):
        a, b = (np.roll(awkward(name), n).astype(np.float16) for n in (0, 3))
    pairs = b.view("u2").astype("u4") << 16 | a.view("u2")
    got = lanes(to_narrow(name, "f16x2", ""), [pairs], ["u32"], "u32")
    want = codes(b.astype("f4"), name, False).astype("u4") << 8
    assert (got == want | codes(a.astype("f4"), name, False)).all()


def from_narrow(name: str, relu: str = "") -> str:
    if name == "e2m1":
        return (
            "{ .reg .b8 %n, %z; cvt.u16.u32 %h0, %a; mov.b16 {%n, %z}, %h0;"
            f" cvt.rn{relu}.f16x2.e2m1x2 %d, %n; }}"
        )
    return f"cvt.u16.u32 %h0, %a; cvt.rn{relu}.f16x2.{name}x2 %d, %h0;"


@pytest.mark.parametrize("half", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", FORMATS)
def test_from_narrow(lanes: Any, name: str, half: Any) -> None:
    """bf16 since PTX ISA 9.2."""
    dtype, bits, _, _ = FORMATS[name]
    low = np.arange(1 << BITS[name], dtype=np.uint8)
    high = np.roll(low, 7)
    body = from_narrow(name)
    if half is ml_dtypes.bfloat16:
        body = body.replace("f16x2", "bf16x2")
    got = lanes(body, [high.astype("u4") << bits | low], ["u32"], "u32")
    with np.errstate(invalid="ignore"):
        want = [x.view(dtype).astype(np.float32).astype(half) for x in (low, high)]
    halves = got.view(half).reshape(-1, 2)
    for n in (0, 1):
        nan = np.isnan(want[n].astype(np.float32))
        assert (halves[:, n].view("u2")[~nan] == want[n].view("u2")[~nan]).all()
        assert (halves[:, n].view("u2")[nan] == 0x7FFF).all()


SCALES = [
    (1.0, 127, 127), (1.5, 127, 128), (2.0, 128, 128), (-3.0, 128, 129), (0.0, 0, 0),
    (2.0**-127, 0, 0), (2.0**-127 * 1.5, 0, 1), (2.0**-149, 0, 0), (1e38, 253, 254),
    (3.2e38, 254, 254), (math.inf, 254, 254), (math.nan, 255, 255),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["rz", "rp"])
def test_to_scale(lanes: Any, mode: str) -> None:
    a = np.array([x for x, _, _ in SCALES], np.float32)
    body = f"cvt.{mode}.satfinite.ue8m0x2.f32 %h0, %a, %b; cvt.u32.u16 %d, %h0;"
    got = lanes(body, [a, a[::-1].copy()], ["f32", "f32"], "u32")
    want = np.array([s[1 if mode == "rz" else 2] for s in SCALES], "u4")
    assert (got == want << 8 | want[::-1]).all()


def test_from_scale(lanes: Any) -> None:
    a = np.arange(256, dtype="u4")
    got = lanes("cvt.u16.u32 %h0, %a; cvt.rn.bf16x2.ue8m0x2 %d, %h0;", [a], ["u32"], "u32")
    want = a.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(ml_dtypes.bfloat16).view("u2")
    # The upper code is 0, 2^-127: a subnormal of bf16.
    assert (got[:255] == 0x40 << 16 | want[:255].astype("u4")).all()
    assert got[255] == 0x40 << 16 | 0x7FFF


PACKS = [("u8", 8), ("s8", 8), ("u4", 4), ("s4", 4), ("s2", 2)]


@pytest.mark.parametrize("name,width", PACKS)
def test_pack(lanes: Any, name: str, width: int) -> None:
    a = np.array([0, 1, -1, 7, 8, -9, 127, 128, -128, -129, 255, 256, 2**31 - 1, -(2**31)], "i4")
    b, c = np.roll(a, 3), np.roll(a, 7).view("u4")
    low = -(1 << width - 1) if name[0] == "s" else 0
    x, y = (np.clip(v, low, low + (1 << width) - 1).astype("i8") & (1 << width) - 1 for v in (a, b))
    got = lanes(f"cvt.pack.sat.{name}.s32.b32 %d, %a, %b, %c;", [a, b, c], ["u32"] * 3, "u32")
    assert (got == (c.astype("u8") << 2 * width & 0xFFFFFFFF | (x << width | y).astype("u8"))).all()


def test_pack_halves(lanes: Any) -> None:
    a, b = np.array([70000, -5, 3], "i4"), np.array([-70000, 5, 9], "i4")
    got = lanes("cvt.pack.sat.s16.s32 %d, %a, %b;", [a, b], ["u32", "u32"], "u32")
    assert got.view("i2").reshape(-1, 2).tolist() == [[-32768, 32767], [5, -5], [9, 3]]


def values32(n: int) -> np.ndarray:
    rng = np.random.default_rng(n)
    x = rng.standard_normal(64).astype("f4") * np.float32(2.0) ** rng.integers(-60, 60, 64)
    return np.abs(x).astype("f4")


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_division_in_every_mode(lanes: Any, mode: str) -> None:
    a, b = values32(1), values32(2)
    a[::2] = -a[::2]
    a[:4], b[:4] = [6, 7, -6, 1], [3, 7, 2, 3]
    got = lanes(f"div.{mode}.f32 %d, %a, %b;", [a, b], ["f32", "f32"], "u32")
    pairs = zip(a.tolist(), b.tolist())
    assert got.tolist() == [to_bits(Fraction(x) / Fraction(y), "f32", mode) for x, y in pairs]
    got = lanes(f"rcp.{mode}.f32 %d, %b;", [a, b], ["f32", "f32"], "u32")
    assert got.tolist() == [to_bits(1 / Fraction(y), "f32", mode) for y in b.tolist()]


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
def test_root_in_every_mode(lanes: Any, mode: str) -> None:
    a = np.concatenate([values32(3), [np.float32(4), np.float32(2.25)]])
    got = lanes(f"sqrt.{mode}.f32 %d, %a;", [a], ["f32"], "u32").view("f4")
    for x, r in zip(a.tolist(), got.tolist(), strict=True):
        below = Fraction(r) ** 2 <= Fraction(x)
        other = float(np.nextafter(np.float32(r), np.float32(math.inf if below else 0)))
        exact = Fraction(r) ** 2 == Fraction(x)
        assert exact or below == (mode != "rp")
        assert exact or (Fraction(other) ** 2 > Fraction(x)) == below


@pytest.mark.parametrize("narrow", ["f16", "bf16"])
def test_mixed_precision(lanes: Any, narrow: str) -> None:
    dtype: Any = np.float16 if narrow == "f16" else ml_dtypes.bfloat16
    a, b = (values32(n).clip(1e-4, 1e4).astype(dtype) for n in (4, 5))
    c = -values32(6).clip(1e-3, 1e3)
    fma = lanes(f"fma.rn.f32.{narrow} %d, %a, %b, %c;", [a, b, c], ["b16", "b16", "f32"], "u32")
    triples = list(zip(a.astype("f8").tolist(), b.astype("f8").tolist(), c.tolist(), strict=True))
    want = [to_bits(Fraction(x) * Fraction(y) + Fraction(z), "f32") for x, y, z in triples]
    assert fma.tolist() == want
    sub = lanes(f"sub.rn.f32.{narrow} %d, %a, %c;", [a, b, c], ["b16", "b16", "f32"], "u32")
    assert sub.tolist() == [to_bits(Fraction(x) - Fraction(z), "f32") for x, _, z in triples]


def test_fma_of_doubles(lanes: Any) -> None:
    a = np.array([1 + 2.0**-52, 3.0, 1e300, 2.0**-600, math.inf, 1.0])
    b = np.array([1 - 2.0**-52, 7.0, 1e300, 2.0**-600, 0.0, 2.0])
    c = np.array([-1.0, -21.0, -1e308, 2.0**-1074, 1.0, 0.5])
    got = lanes("fma.rn.f64 %d, %a, %b, %c;", [a, b, c], ["f64"] * 3, "u64").view("f8")
    assert got[:4].tolist() == [-(2.0**-104), 0.0, math.inf, 2.0**-1074] and got[5] == 2.5
    assert math.isnan(got[4])


def test_snippets_are_legal_ptx(assemble: Any) -> None:
    one = [
        (to_narrow(n, s, r), ["f32"] * 2 if s == "f32" else ["b32"])
        for n in FORMATS
        for s in ("f32", "f16x2")
        for r in ("", ".relu")
        if s == "f32" or n in ("e4m3", "e5m2")
    ]
    one += [(from_narrow(n, r), ["b32"]) for n in FORMATS for r in ("", ".relu")]
    one += [
        (f"cvt.{m}.satfinite.ue8m0x2.f32 %h0, %a, %b; cvt.u32.u16 %d, %h0;", ["f32"] * 2)
        for m in ("rz", "rp")
    ]
    one += [("cvt.u16.u32 %h0, %a; cvt.rn.bf16x2.ue8m0x2 %d, %h0;", ["b32"])]
    one += [(f"cvt.pack.sat.{n}.s32.b32 %d, %a, %b, %c;", ["b32"] * 3) for n, _ in PACKS]
    one += [("cvt.pack.sat.s16.s32 %d, %a, %b;", ["b32"] * 2)]
    one += [
        (f"{op}.{m}.f32 %d, {args};", ["f32"] * 2)
        for m in ("rn", "rz", "rm", "rp")
        for op, args in (("div", "%a, %b"), ("rcp", "%a"), ("sqrt", "%a"))
    ]
    for t in ("f16", "bf16"):
        one += [(f"fma.rn.f32.{t} %d, %a, %b, %c;", ["b16", "b16", "f32"])]
        one += [(f"sub.rn.f32.{t} %d, %a, %c;", ["b16", "b16", "f32"])]
    text = "".join(kernel(f"k{n}", body, types, "b32") for n, (body, types) in enumerate(one))
    assemble(HEADER.replace("8.8", "9.0") + text)
    newer = (from_narrow(n).replace("f16x2", "bf16x2") for n in FORMATS)
    text = "".join(kernel(f"k{n}", body, ["b32"], "b32") for n, body in enumerate(newer))
    assemble(HEADER.replace("8.8", "9.2") + text)
