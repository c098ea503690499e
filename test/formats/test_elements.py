"""Element and scale codes against ml_dtypes (every code) and against exact fractions."""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcir import formats
from tcir.formats import FormatError

sys.path.insert(0, str(Path(__file__).parent))
import slow

ML = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}
NAMES = list(ML)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("name", NAMES)
def test_decode_every_code(name: str) -> None:
    codes = np.arange(1 << formats.ELEMENTS[name].bits, dtype=np.uint8)
    expected = codes.view(ML[name]).astype(np.float32)
    actual = formats.decode(codes, name)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual), np.signbit(expected))


@pytest.mark.parametrize("name", NAMES)
def test_encode_every_code(name: str) -> None:
    codes = np.arange(1 << formats.ELEMENTS[name].bits, dtype=np.uint8)
    values = codes.view(ML[name]).astype(np.float32)
    finite = np.isfinite(values)
    np.testing.assert_array_equal(formats.encode(values, name)[finite], codes[finite])


@pytest.mark.parametrize("name", NAMES)
def test_encode_between_codes(name: str) -> None:
    """Every value, every midpoint of two, and the float64 numbers on both sides of each."""
    values = [float(v) for v in slow.magnitudes(name)]
    points = values + [(a + b) / 2 for a, b in itertools.pairwise(values)]
    top = values[-1]
    points += [top * 1.0625, top * 1.3, top * 2, 5e-324, 1e-310, 1e308]
    x = np.array(points)
    x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, 0)])
    x = np.concatenate([x, -x])
    sign = 1 << (formats.ELEMENTS[name].bits - 1)
    slowly = [slow.nearest(Fraction(v), name) | (sign if np.signbit(v) else 0) for v in x]
    np.testing.assert_array_equal(formats.encode(x, name), slowly)


@pytest.mark.parametrize("name", NAMES)
def test_encode_as_ml_dtypes(name: str) -> None:
    """float32 numbers spread over all exponents; ml_dtypes does not saturate fp8, so in range."""
    bits = np.random.default_rng(5).integers(0, 1 << 32, 200_000, dtype=np.uint32)
    near = np.random.default_rng(6).normal(0, 4, 100_000).astype(np.float32)
    x = np.concatenate([bits.view(np.float32), near])
    x = x[np.abs(x) <= formats.ELEMENTS[name].largest]
    np.testing.assert_array_equal(formats.encode(x, name), x.astype(ML[name]).view(np.uint8))


@pytest.mark.parametrize("name", NAMES)
def test_special_values(name: str) -> None:
    e = formats.ELEMENTS[name]
    sign = 1 << (e.bits - 1)
    x = np.array([np.inf, -np.inf, np.nan, -np.nan, 0.0, -0.0])
    top = e.largest_code
    nan = 0x7F if name in ("e4m3", "e5m2") else top
    np.testing.assert_array_equal(formats.encode(x, name), [top, top | sign, nan, nan, 0, sign])
    assert e.largest == float(ml_dtypes.finfo(ML[name]).max)
    assert formats.encode(np.float32(e.largest), name).shape == ()


@given(x=floats, name=st.sampled_from(NAMES))
def test_encode_is_nearest(x: float, name: str) -> None:
    code = int(formats.encode(np.array([x]), name)[0])
    assert code % (1 << (formats.ELEMENTS[name].bits - 1)) == slow.nearest(Fraction(x), name)


def test_scales_every_code() -> None:
    codes = np.arange(256, dtype=np.uint8)
    e8m0 = codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    np.testing.assert_array_equal(formats.decode_scale(codes, "ue8m0"), e8m0)
    e4m3 = (codes & np.uint8(0x7F)).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    np.testing.assert_array_equal(formats.decode_scale(codes, "ue4m3"), e4m3)


def test_encode_ue4m3() -> None:
    x = np.array([0.0, -0.0, 2.0**-10, 1.5 * 2**-10, 448, 465, 1e30, np.inf, np.nan])
    np.testing.assert_array_equal(
        formats.encode_ue4m3(x), [0, 0, 0, 1, 0x7E, 0x7E, 0x7E, 0x7E, 0x7F]
    )
    for bad in (-1.0, -1e-30):
        with pytest.raises(FormatError, match=r"expected a number ≥ 0, got -1"):
            formats.encode_ue4m3(np.array([np.nan, bad]))


@pytest.mark.parametrize("rounding", formats.ROUNDINGS)
@pytest.mark.parametrize("name", NAMES)
def test_ue8m0(name: str, rounding: str) -> None:
    """Around every threshold of every rule, over the whole range of float32."""
    top = float(slow.magnitudes(name)[-1])
    edges = np.array([1, 1.0625, 1.25, 1.5, 1.75, 1.875, 1.9375, 1.96875, top, top * 1.03], "f4")
    x = np.concatenate([np.ldexp(edges, e) for e in (-149, -130, -127, -120, -3, 0, 5, 110)])
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(0))])
    x = np.concatenate([x, [0, np.finfo("f4").max, np.finfo("f4").smallest_subnormal]])
    element = formats.ELEMENTS[name]
    expected = [slow.ue8m0(Fraction(float(v)), name, rounding) for v in x]
    np.testing.assert_array_equal(formats.ue8m0_of_amax(x, element, rounding), expected)
    special = formats.ue8m0_of_amax([np.inf, np.nan], element, rounding)
    np.testing.assert_array_equal(special, [0xFF, 0xFF])


def test_refusals() -> None:
    byte = np.array([0x10], np.uint8)
    with pytest.raises(FormatError, match=r"e2m1 code: expected below 0x10, got 0x10"):
        formats.decode(byte, "e2m1")
    with pytest.raises(FormatError, match=r"e2m1 codes: expected uint8, got int64"):
        formats.decode(byte.astype(np.int64), "e2m1")
    with pytest.raises(FormatError, match=r"expected one of e2m1, .*, got 'e9m9'"):
        formats.decode(byte, "e9m9")
    with pytest.raises(FormatError, match=r"expected ue8m0 or ue4m3, got 'e4m3'"):
        formats.decode_scale(byte, "e4m3")
    with pytest.raises(FormatError, match=r"expected one of floor, .*, got 'nearest'"):
        formats.ue8m0_of_amax([1.0], formats.ELEMENTS["e2m1"], "nearest")
