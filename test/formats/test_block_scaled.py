"""Quantising and dequantising against exact fractions, and the properties that must hold."""

from __future__ import annotations

import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tcir import formats
from tcir.formats import BlockFormat, BlockScaled, FormatError, dequantise, quantise

sys.path.insert(0, str(Path(__file__).parent))
import slow

FORMATS = [*formats.FORMATS.values(), BlockFormat("e2m1", 16, "ue8m0")]
MX = [f for f in FORMATS if f.scale == "ue8m0"]
F32 = np.finfo(np.float32)


def random(*shape: int, spread: int = 6, seed: int = 1) -> np.ndarray:
    """Normal numbers, each block of 16 with an exponent of its own."""
    r = np.random.default_rng(seed)
    power = np.repeat(r.integers(-spread, spread, (*shape[:-1], -(-shape[-1] // 16))), 16, -1)
    return np.ldexp(r.normal(size=shape), power[..., : shape[-1]]).astype(np.float32)


arrays = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 3), st.integers(1, 70)),
    elements=st.one_of(
        st.floats(-8, 8, width=32),
        st.floats(width=32, allow_nan=False, allow_infinity=False),
        st.sampled_from([0.0, -0.0, 1.0, 6.0, 7.0, 2688.0, float(F32.max), float(F32.tiny)]),
    ),
)


def check_slowly(x: np.ndarray, f: BlockFormat, rounding: str, g: float | None = None) -> None:
    q = quantise(x, f, rounding=rounding, global_scale=g)
    for row in np.ndindex(x.shape[:-1]):
        for b in range(f.scales_of(x.shape[-1])):
            span = slice(b * f.block, (b + 1) * f.block)
            block = [float(v) for v in x[row][span]]
            codes, scale = slow.quantise_block(
                block, f.element, f.scale, float(q.global_scale), rounding
            )
            sign = 1 << (f.elements.bits - 1)
            got = [int(c) for c in q.codes[row][span]]
            assert q.scales[row][b] == scale, block
            assert [c & (sign - 1) for c in got] == [c & (sign - 1) for c in codes], block
            assert [c >= sign for c in got] == [bool(np.signbit(v)) for v in block]


@pytest.mark.parametrize("f", FORMATS, ids=str)
def test_against_fractions(f: BlockFormat) -> None:
    for rounding in formats.ROUNDINGS if f in MX else ("floor",):
        check_slowly(random(3, 96), f, rounding)
    check_slowly(np.array([[1.5, -3, 7, 6.5, 5, 2.5] + [0.0] * 30] * 2, "f4"), f, "floor")


@settings(max_examples=60)
@given(x=arrays, f=st.sampled_from(FORMATS), rounding=st.sampled_from(formats.ROUNDINGS))
def test_against_fractions_anywhere(x: np.ndarray, f: BlockFormat, rounding: str) -> None:
    check_slowly(x, f, rounding if f in MX else "floor")


@settings(max_examples=60)
@given(x=arrays, g=st.floats(float(F32.smallest_subnormal), float(F32.max), width=32))
def test_given_global_scale(x: np.ndarray, g: float) -> None:
    """Too small: scales and elements saturate; too large: blocks fall to the smallest scale."""
    check_slowly(x, formats.FORMATS["nvfp4"], "floor", g)


def test_ties_of_the_quotient() -> None:
    """Elements exactly between two codes, scale · g of 28 bits; and one ulp off."""
    g = np.float32(1 + 2.0**-23)
    ties = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    x = (ties * 1.875 * float(g)).astype(np.float32)
    x = np.concatenate([x, np.nextafter(x, np.float32(9)), [np.float32(6 * 1.875)], [0]])
    check_slowly(x[None].astype("f4"), formats.FORMATS["nvfp4"], "floor", float(g))


def bound(f: BlockFormat, step: np.ndarray, amax: np.ndarray) -> np.ndarray:
    """Largest error of a block: half the widest gap of elements, or what saturation cuts off."""
    e = f.elements
    gap = step * 2.0 ** (e.largest_exponent - e.mantissa_bits)
    return np.maximum(gap / 2, amax - e.largest * step)


@settings(max_examples=150)
@given(x=arrays, f=st.sampled_from(FORMATS), rounding=st.sampled_from(formats.ROUNDINGS))
def test_error_bound(x: np.ndarray, f: BlockFormat, rounding: str) -> None:
    q = quantise(x, f, rounding=rounding if f in MX else "floor")
    step = formats.decode_scale(q.scales, f.scale).astype(np.float64) * float(q.global_scale)
    error = np.abs(dequantise(q, np.float64) - x)
    pad = [(0, 0), (0, -x.shape[-1] % f.block)]
    error, padded = (np.pad(a, pad).reshape(*step.shape, f.block) for a in (error, np.abs(x)))
    amax = padded.max(-1).astype(np.float64)
    assert (error.max(-1) <= bound(f, step, amax)).all()
    saturated = amax - f.elements.largest * step
    if f in MX and rounding == "rceil":
        assert (saturated <= 0).all()
    elif f in MX:  # OCP: the largest quotient is below 2^(emax + 1)
        limit = 2.0 ** (f.elements.largest_exponent + 1) - f.elements.largest
        assert (saturated <= limit * step).all()
    else:  # scales are right to 1/16 where normal, to half of 2^-9 below
        normal = q.scales >= 0x08
        assert (saturated[normal] <= 6 * step[normal] / 16).all()
        assert (saturated <= 3 * step).all()


@settings(max_examples=150)
@given(x=arrays, f=st.sampled_from(MX), rounding=st.sampled_from(formats.ROUNDINGS))
def test_idempotent_mx(x: np.ndarray, f: BlockFormat, rounding: str) -> None:
    """Values stay under a second pass of MX; with floor codes and scales do too."""
    x = np.clip(x, -(2.0**126), 2.0**126).astype(np.float32)
    first = quantise(x, f, rounding=rounding)
    once = dequantise(first)
    second = quantise(once, f, rounding=rounding)
    np.testing.assert_array_equal(dequantise(second), once)
    if rounding == "floor" and (once != 0).all():
        np.testing.assert_array_equal(second.codes, first.codes)
        np.testing.assert_array_equal(second.scales, first.scales)


@settings(max_examples=100)
@given(x=arrays)
def test_idempotent_nvfp4(x: np.ndarray) -> None:
    """With the same global scale, where the block scale is at least 2^-7 (0x04), or 0."""
    first = quantise(x, "nvfp4")
    once = dequantise(first)
    second = quantise(once, "nvfp4", global_scale=first.global_scale)
    held = np.repeat((first.scales >= 4) | (first.scales == 0), 16, -1)[:, : x.shape[1]]
    np.testing.assert_array_equal(dequantise(second)[held], once[held])
    np.testing.assert_array_equal(second.codes[held], first.codes[held])


def test_not_idempotent_below() -> None:
    """The documented counterexample: the scale 2 · 2^-9 falls to 2^-9, and 4 · 2 is beyond 6."""
    x = np.zeros((1, 16), np.float32)
    x[0, 0] = 4.75 * 2.0**-8
    q = quantise(x, "nvfp4", global_scale=1)
    assert (q.scales[0, 0], q.codes[0, 0]) == (2, 6)
    again = quantise(dequantise(q), "nvfp4", global_scale=1)
    assert (again.scales[0, 0], again.codes[0, 0]) == (1, 7)


@pytest.mark.parametrize("f", FORMATS, ids=str)
def test_zero_and_tiny_blocks(f: BlockFormat) -> None:
    x = np.zeros((2, 2 * f.block), np.float32)
    x[0, 1] = -0.0
    x[1, :] = F32.smallest_subnormal
    x[1, -1] = 3.0
    q = quantise(x, f)
    assert q.scales[0].tolist() == [0, 0]
    negative_zero = 1 << (f.elements.bits - 1)
    assert q.codes[0, :2].tolist() == [0, negative_zero] and not q.codes[0, 2:].any()
    assert np.signbit(dequantise(q))[0, 1]
    assert dequantise(q)[1, -1] == pytest.approx(3, rel=2.0**-23)  # g is rounded
    if not f.has_global_scale:  # 2^-149 is far below 2^-127: a subnormal input that rounds to zero
        assert q.scales[1, 0] == 0 and not dequantise(q)[1, 0]
    all_zero = quantise(x[:1], f)
    assert all_zero.global_scale == 1 and not dequantise(all_zero).any()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("f", FORMATS, ids=str)
def test_nonfinite(f: BlockFormat, bad: float) -> None:
    """The block of a NaN or infinity reads as NaN; its neighbours are as without it."""
    x = random(3, 4 * f.block)
    clean = quantise(x, f)
    x[1, f.block + 3] = bad
    x[1, f.block : f.block + 3] = 0  # amax of the other blocks, and so g, stays
    g = clean.global_scale if f.has_global_scale else None
    q = quantise(x, f, global_scale=g)
    values, expected = dequantise(q), dequantise(clean)
    block = slice(f.block, 2 * f.block)
    assert np.isnan(values[1, block]).all() and not q.codes[1, block].any()
    expected[1, block] = np.nan
    np.testing.assert_array_equal(values, expected)
    with pytest.raises(FormatError, match=rf"x\[1, {f.block + 3}\]: expected finite numbers"):
        quantise(x, f, nonfinite="error")


def test_nan_scales_and_elements_of_others() -> None:
    zeros = np.zeros((1, 32), np.uint8)
    nan = BlockScaled(formats.FORMATS["mxfp4"], zeros, np.full((1, 1), 0xFF, np.uint8))
    assert np.isnan(dequantise(nan)).all()
    codes = zeros.copy()
    codes[0, :3] = 0x7C, 0xFC, 0x7E
    q = BlockScaled(formats.FORMATS["mxfp8_e5m2"], codes, np.full((1, 1), 130, np.uint8))
    np.testing.assert_array_equal(dequantise(q)[0, :4], [np.inf, -np.inf, np.nan, 0])
    scale = np.full((1, 2), 0x38 | 0x80, np.uint8)  # bit 7 of ue4m3 is ignored
    q = BlockScaled(formats.FORMATS["nvfp4"], np.full((1, 32), 2, np.uint8), scale, np.float32(3))
    assert (dequantise(q) == 3).all()


@pytest.mark.parametrize("f", FORMATS, ids=str)
@pytest.mark.parametrize("shape", [(5, 1), (3, 33), (2, 3, 47), (0, 16), (4, 0), (2, 0, 5), (17,)])
def test_tails_and_empty(f: BlockFormat, shape: tuple[int, ...]) -> None:
    """A short block is the whole block with zeros behind it, left out again."""
    x = random(*shape) if 0 not in shape else np.zeros(shape, np.float32)
    q = quantise(x, f)
    assert q.codes.shape == shape and q.scales.shape == (*shape[:-1], f.scales_of(shape[-1]))
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, -shape[-1] % f.block)])
    whole = quantise(padded, f)
    np.testing.assert_array_equal(whole.scales, q.scales)
    np.testing.assert_array_equal(dequantise(whole)[..., : shape[-1]], dequantise(q))


def test_chunks_do_not_show() -> None:
    """Rows longer and shorter than a step of the computation give what single rows give."""
    for shape in [(3, 70_001), (4200, 33)]:
        x = random(*shape)
        q = quantise(x, "nvfp4")
        for row in (0, shape[0] // 2, shape[0] - 1):
            alone = quantise(x[row].copy(), "nvfp4", global_scale=q.global_scale)
            np.testing.assert_array_equal(alone.codes, q.codes[row])
            np.testing.assert_array_equal(dequantise(alone), dequantise(q)[row])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_inputs(dtype: type) -> None:
    x = random(3, 48).astype(dtype)
    q, same = quantise(x, "nvfp4"), quantise(x.astype(np.float32), "nvfp4")
    np.testing.assert_array_equal(q.codes, same.codes)
    assert q.global_scale == same.global_scale
    strided = quantise(np.asfortranarray(x)[::-1], "mxfp4")
    np.testing.assert_array_equal(strided.codes, quantise(x, "mxfp4").codes[::-1])


def test_global_scale() -> None:
    x = random(4, 64)
    q = quantise(x, "nvfp4")
    assert q.global_scale == np.float32(np.abs(x).max() / np.float64(2688))
    assert q.scales.max() == 0x7E
    for amax in (F32.max, F32.smallest_normal, F32.smallest_subnormal):
        edge = quantise(np.array([[amax, -amax / 2]], np.float32), "nvfp4")
        assert F32.smallest_normal <= edge.global_scale < 2.0**117
        assert np.isfinite(dequantise(edge)).all()
    a, b = quantise(x, "nvfp4"), quantise(random(1, 64, seed=2), "nvfp4")
    assert formats.alpha(a, b) == np.float32(np.float64(a.global_scale) * b.global_scale)
    tiny = quantise(x, "nvfp4", global_scale=1e-30)
    with pytest.raises(FormatError, match=r"alpha = gA · gB: expected a normal float32, got 1\.0"):
        formats.alpha(tiny, tiny)


def test_float32_range() -> None:
    """ceil may give values beyond float32: infinity there, exact in float64."""
    q = quantise(np.array([[F32.max]], np.float32), "mxfp4", rounding="ceil")
    assert dequantise(q)[0, 0] == np.inf and dequantise(q, np.float64)[0, 0] == 2.0**128


def test_refusals() -> None:
    x = random(2, 32)
    q = quantise(x, "nvfp4")
    cases = [
        (
            lambda: quantise(x.astype(np.float64), "nvfp4"),
            "float16, bfloat16 or float32, got float64",
        ),
        (lambda: quantise(np.float32(3), "nvfp4"), "got float32"),
        (lambda: quantise(np.array(3, "f4"), "nvfp4"), r"expected \[..., K\], got \(\)"),
        (lambda: quantise(x, "nvfp5"), "expected one of nvfp4, .*got 'nvfp5'"),
        (lambda: quantise(x, "nvfp4", rounding="ceil"), "expected 'floor', got 'ceil'"),
        (lambda: quantise(x, "mxfp4", rounding="up"), "expected one of floor"),
        (lambda: quantise(x, "mxfp4", nonfinite="clip"), "expected 'nan' or 'error', got 'clip'"),  # type: ignore[arg-type]
        (lambda: quantise(x, "mxfp4", global_scale=2), "expected 1 with ue8m0 scales, got 2"),
        (lambda: quantise(x, "nvfp4", global_scale=0), "a finite float32 above 0, got 0"),
        (lambda: quantise(x, "nvfp4", global_scale=np.nan), "a finite float32 above 0, got nan"),
        (lambda: quantise(x, "nvfp4", global_scale=1e39), "a finite float32 above 0, got 1e"),
        (lambda: BlockFormat("e2m1", 32, "ue4m3"), "blocks of 32: expected ue8m0, got ue4m3"),
        (lambda: BlockFormat("e4m3", 16, "ue8m0"), "blocks of 16: expected e2m1, got e4m3"),
        (lambda: BlockFormat("e2m1", 64, "ue8m0"), "block: expected 16 or 32, got 64"),
        (lambda: BlockFormat("e2m1", 16, "e4m3"), "expected ue8m0 or ue4m3, got 'e4m3'"),
        (
            lambda: BlockScaled(q.format, q.codes, q.scales[:, :1]),
            r"expected \(2, 2\), got \(2, 1\)",
        ),
        (lambda: BlockScaled(q.format, q.codes + np.uint8(16), q.scales), "expected below 0x10"),
        (lambda: dequantise(q, np.float16), "float32 or float64, got float16"),
    ]
    for call, message in cases:
        with pytest.raises(FormatError, match=message):
            call()
