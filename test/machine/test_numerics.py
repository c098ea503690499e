"""The fused sum of tcgen05.mma against exact integer arithmetic, one dot product at a time."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

from tcir.machine.numerics.fused import FusedParams, integer_mma
from tcir.machine.refusal import ElementTypeError

from .products import fast_mma, fused_mma

# name: (exponent bits, mantissa bits, bias, has infinity, NaN codes of the magnitude, ignored bits)
LAYOUT = {
    "f16": (5, 10, 15, True, 0),
    "bf16": (8, 7, 127, True, 0),
    "tf32": (8, 10, 127, True, 13),
    "f32": (8, 23, 127, True, 0),
    "e5m2": (5, 2, 15, True, 0),
    "e4m3": (4, 3, 7, False, 0),
    "e3m2": (3, 2, 3, False, 0),
    "e2m3": (2, 3, 1, False, 0),
    "e2m1": (2, 1, 1, False, 0),
}
WORD = {"f16": np.uint16, "bf16": np.uint16, "tf32": np.uint32}


@dataclass(frozen=True)
class Term:
    """sign · mantissa · 2^ulp; `x` is the raw exponent. kind: "finite", "inf", "nan"."""

    kind: str
    sign: int
    mantissa: int
    ulp: int
    x: int


def term(code: int, name: str) -> Term:
    e_bits, m_bits, bias, ieee, ignored = LAYOUT[name]
    code >>= ignored
    sign = -1 if code >> (e_bits + m_bits) & 1 else 1
    e = code >> m_bits & ((1 << e_bits) - 1)
    m = code & ((1 << m_bits) - 1)
    if ieee and e == (1 << e_bits) - 1:
        return Term("nan" if m else "inf", sign, 0, 0, 0)
    if name == "e4m3" and e == 15 and m == 7:
        return Term("nan", sign, 0, 0, 0)
    x = max(e, 1) - bias
    return Term("finite", sign, m + (1 << m_bits if e else 0), x - m_bits, x)


def shift_down(value: int, by: int) -> int:
    return value >> by if by >= 0 else value << -by


def fused(a: list[Term], b: list[Term], d: Term | None, d_type: str, window: int) -> int:
    nan, inf = {"f32": (0x7FFFFFFF, 0x7F800000), "f16": (0x7FFF, 0x7C00)}[d_type]
    sign_bit = 1 << (31 if d_type == "f32" else 15)
    infinities = set()
    terms = []
    for u, v in zip(a, b):
        sign = u.sign * v.sign
        if "nan" in (u.kind, v.kind):
            return nan
        if "inf" in (u.kind, v.kind):
            other = v if u.kind == "inf" else u
            if other.kind == "finite" and other.mantissa == 0:
                return nan
            infinities.add(sign)
        elif u.mantissa and v.mantissa:
            terms.append((sign, u.mantissa * v.mantissa, u.ulp + v.ulp, u.x + v.x))
    if d is not None:
        if d.kind == "nan":
            return nan
        if d.kind == "inf":
            infinities.add(d.sign)
        elif d.mantissa:
            terms.append((d.sign, d.mantissa, d.ulp, d.x))
    if len(infinities) == 2:
        return nan
    if infinities:
        return inf | (sign_bit if -1 in infinities else 0)
    if not terms:
        return 0
    q = max(t[3] for t in terms) - window
    total = sum(sign * shift_down(mantissa, q - ulp) for sign, mantissa, ulp, _ in terms)
    if total == 0:
        return 0
    magnitude = abs(total)
    m_bits, bias = (23, 127) if d_type == "f32" else (10, 15)
    e = magnitude.bit_length() - 1 + q
    step = max(e, 1 - bias) - m_bits
    if step <= q:
        kept = magnitude << (q - step)
    else:
        kept, rest = divmod(magnitude, 1 << (step - q))
        half = 1 << (step - q - 1)
        if d_type == "f16" and (rest > half or (rest == half and kept & 1)):
            kept += 1
    # Fields add up: a subnormal has exponent field 0, a carry moves into the exponent.
    # A sum that is cut or rounded to nothing is +0, whatever its sign.
    if kept == 0:
        return 0
    code = kept + ((step + m_bits + bias - 1) << m_bits)
    return min(code, inf) | (sign_bit if total < 0 else 0)


def oracle(a, b, d, *, a_type, b_type, d_type="f32", window=25):
    rows = [[term(int(c), a_type) for c in row] for row in a]
    columns = [[term(int(c), b_type) for c in row] for row in b]
    out = np.empty((len(rows), len(columns)), np.uint32)
    for m, row in enumerate(rows):
        for n, column in enumerate(columns):
            old = None if d is None else term(int(d[m, n]), d_type)
            out[m, n] = fused(row, column, old, d_type, window)
    return out


def finite_codes(rng, name, shape, low=None, high=None):
    """Codes with the exponent field in [low, high): no infinity or NaN unless asked for."""
    e_bits, m_bits, _, ieee, ignored = LAYOUT[name]
    top = (1 << e_bits) - (1 if ieee or name == "e4m3" else 0)
    e = rng.integers(0 if low is None else low, top if high is None else min(high, top), shape)
    m = rng.integers(0, 1 << (m_bits + ignored), shape)
    sign = rng.integers(0, 2, shape)
    codes = (sign << (e_bits + m_bits + ignored)) | (e << (m_bits + ignored)) | m
    return codes.astype(WORD.get(name, np.uint8))


def d_codes(rng, d_type, shape, low=None, high=None):
    e_bits, m_bits, *_ = LAYOUT[d_type]
    top = (1 << e_bits) - 1
    e = rng.integers(0 if low is None else low, top if high is None else high, shape)
    sign = rng.integers(0, 2, shape)
    m = rng.integers(0, 1 << m_bits, shape)
    return ((sign << (e_bits + m_bits)) | (e << m_bits) | m).astype(np.uint32)


TYPES = [
    ("f16", "f16", "f32", 16),
    ("f16", "f16", "f16", 16),
    ("bf16", "bf16", "f32", 16),
    ("tf32", "tf32", "f32", 8),
    ("e4m3", "e5m2", "f32", 32),
    ("e5m2", "e5m2", "f16", 32),
    ("e3m2", "e4m3", "f32", 32),
    ("e2m3", "e2m1", "f16", 32),
]
M, N = 40, 44


def cases(rng, a_type, b_type, d_type, k):
    """Kinds of input, M·N dot products each: over ten thousand per type."""
    top = (1 << LAYOUT[a_type][0]) - 1
    middle = top // 2

    def pair(low=None, high=None):
        a = finite_codes(rng, a_type, (M, k), low, high)
        return a, finite_codes(rng, b_type, (N, k), low, high)

    # Everything finite, all exponents; D small enough to matter now and then.
    a, b = pair()
    yield "spanning", a, b, d_codes(rng, d_type, (M, N))
    # Neighbouring exponents: carries, and truncation of nearly everything.
    a, b = pair(max(0, middle - 3), middle + 3)
    centre = LAYOUT[d_type][2]
    yield "near", a, b, d_codes(rng, d_type, (M, N), centre - 9, centre + 9)
    # Pairs that cancel exactly but for a few changed low bits.
    a, b = pair(max(0, middle - 4), middle + 5)
    sign = 1 << (8 * a.itemsize - 1 if a_type in WORD else LAYOUT[a_type][0] + LAYOUT[a_type][1])
    half = k // 2
    a[:, half:] = a[:, :half] ^ sign
    b[:, half:] = b[:, :half]
    row, at = np.arange(M), rng.integers(0, k, M)
    a[row, at] ^= 1 << LAYOUT[a_type][4]
    yield "cancelling", a, b, d_codes(rng, d_type, (M, N), 0, centre)
    # Subnormals and zeros.
    a, b = pair(0, 2)
    a[rng.random(a.shape) < 0.3] = 0
    a[0] = 0
    d = d_codes(rng, d_type, (M, N), 0, 3)
    d[:, :4] = 0
    d[:, 4:6] = 1 << (31 if d_type == "f32" else 15)
    yield "subnormal", a, b, d
    # The largest numbers: overflow.
    a, b = pair(top - 2, None)
    largest = (1 << LAYOUT[d_type][0]) - 1
    yield "overflowing", a, b, d_codes(rng, d_type, (M, N), largest - 2, largest)
    # Products at the lower and at the upper edge of D's range, where these formats reach it.
    e_bits, _, bias, *_ = LAYOUT[a_type]
    b_bits, _, b_bias, *_ = LAYOUT[b_type]
    for name, x in (("lower edge", 1 - centre), ("upper edge", centre)):
        at_a, at_b = x // 2 + bias, x - x // 2 + b_bias
        if 6 < at_a < (1 << e_bits) - 4 and 6 < at_b < (1 << b_bits) - 4:
            low, high = (6, 1) if name == "lower edge" else (3, 0)
            a = finite_codes(rng, a_type, (M, k), at_a - low, at_a + high)
            b = finite_codes(rng, b_type, (N, k), at_b - low, at_b + high)
            yield name, a, b, d_codes(rng, d_type, (M, N), 0, 3)
    # Infinities, NaNs and zeros, one or two per row.
    a, b = pair(0, middle + 2)
    specials = {"e4m3": [0x7F, 0xFF, 0]}.get(a_type, [0])
    if LAYOUT[a_type][3]:
        inf = top << (LAYOUT[a_type][1] + LAYOUT[a_type][4])
        specials = [inf, inf | sign, inf | 1 << LAYOUT[a_type][4], 0]
    a[row, at] = rng.choice(np.array(specials, np.uint64), M).astype(a.dtype)
    b[rng.integers(0, N, 8), rng.integers(0, k, 8)] = 0
    d = d_codes(rng, d_type, (M, N), 0, centre + 1)
    for i, code in enumerate((largest << LAYOUT[d_type][1], (largest << LAYOUT[d_type][1]) | 5)):
        d[:, i] = code
        d[:, 2 + i] = code | (1 << (31 if d_type == "f32" else 15))
    yield "special", a, b, d


@pytest.mark.parametrize(("a_type", "b_type", "d_type", "k"), TYPES)
def test_equals_exact_integer_arithmetic(a_type, b_type, d_type, k):
    rng = np.random.default_rng([k, len(a_type), ord(a_type[1]), ord(d_type[1])])
    types = {"a_type": a_type, "b_type": b_type, "d_type": d_type}
    for name, a, b, d in cases(rng, a_type, b_type, d_type, k):
        expected = oracle(a, b, d, **types)
        np.testing.assert_array_equal(fused_mma(a, b, d, **types), expected, err_msg=name)
        if name in ("near", "special"):
            expected = oracle(a[:8], b[:8], None, **types)
            np.testing.assert_array_equal(fused_mma(a[:8], b[:8], None, **types), expected)


def codes16(values):
    return np.asarray(values, np.float16).view(np.uint16)


def dot16(terms, d=0.0, **options):
    """f16 dot product of (a, b) pairs, padded with zeros to K = 16; the f32 result."""
    a, b = np.zeros((1, 16)), np.zeros((1, 16))
    for i, (u, v) in enumerate(terms):
        a[0, i], b[0, i] = u, v
    old = np.array([[d]], np.float32).view(np.uint32)
    out = fused_mma(codes16(a), codes16(b), old, a_type="f16", b_type="f16", **options)
    return float(out.view(np.float32)[0, 0])


def test_window_and_truncation_by_hand():
    tiny = 2.0**-12
    # 1 - 2^-25 is inside the window, and needs 25 bits: truncated to 24, not rounded to 1.
    assert dot16([(1, 1), (-tiny, 2.0**-13)]) == 1 - 2.0**-24
    # 2^-26 is below the window: it vanishes before the sum.
    assert dot16([(1, 1), (-tiny, 2.0**-14)]) == 1.0
    # Each term is truncated by itself: sixteen halves of the last place are nothing.
    assert dot16([(1, 1)] + [(-tiny, 2.0**-14)] * 15) == 1.0
    # D-in is a term like the others.
    assert dot16([(-tiny, 2.0**-13)], 1.0) == 1 - 2.0**-24
    assert dot16([(-tiny, 2.0**-14)], 1.0) == 1.0
    # The raw exponent of 1.5 · 1.5 is 0 although the product is above 2: 2^-25 still counts.
    assert dot16([(1.5, 1.5), (-2.25, 1), (tiny, 2.0**-13)]) == 0.0
    assert dot16([(1.5, 1.5), (-1.5, 1.5), (tiny, 2.0**-13)]) == 2.0**-25
    # Subnormals keep the raw exponent of the smallest normal: 2^-24 · 2^15 hangs from -14 + 15.
    assert dot16([(2.0**-24, 2.0**15), (-(2.0**-12), 2.0**-12)]) == 2.0**-9 - 2.0**-24
    assert dot16([(2.0**-24, 2.0**15), (-(2.0**-12), 2.0**-13)]) == 2.0**-9


def test_subnormal_f16_d_keeps_its_raw_exponent():
    # D = 2 · 2^-24 has the raw exponent -14, so 2^-40 is lost and 2.5 steps are a tie: to even.
    a, b = np.zeros((2, 1, 16))
    a[0, :2], b[0, :2] = (2.0**-12, 2.0**-20), (2.0**-13, 2.0**-20)
    types = {"a_type": "f16", "b_type": "f16", "d_type": "f16"}
    assert fused_mma(codes16(a), codes16(b), np.array([[2]], np.uint32), **types)[0, 0] == 2
    assert fused_mma(codes16(a), codes16(b), np.array([[3]], np.uint32), **types)[0, 0] == 4
    a[0, 1] = 2.0**-19
    assert fused_mma(codes16(a), codes16(b), np.array([[2]], np.uint32), **types)[0, 0] == 3


def test_open_constants_are_parameters():
    terms = [(1, 1), (-(2.0**-12), 2.0**-13)]
    assert dot16(terms, params=FusedParams(window=24)) == 1.0
    # A zero term with an exponent of its own: here there are 15 zero products and a zero D.
    assert dot16([(2.0**-14, 2.0**-14)], params=FusedParams(zero_exponent=0)) == 0.0
    assert dot16([(2.0**-14, 2.0**-14)]) == 2.0**-28
    # … or zero products beside a D that is not zero.
    assert dot16([(2.0**-14, 2.0**-14)], 2.0**-20, params=FusedParams(zero_exponent=0)) == 2.0**-20
    assert dot16([(2.0**-14, 2.0**-14)], 2.0**-20) == 2.0**-20 + 2.0**-28
    with pytest.raises(ElementTypeError, match=r"window: expected 1\.\.40, got 41"):
        FusedParams(window=41)


def test_scaled_input_d():
    assert dot16([(1, 3)], 8.0, scale_input_d=2) == 5.0
    assert dot16([(1, 3)], 8.0, scale_input_d=0) == 11.0


def test_every_pair_of_e4m3_alone_is_the_float64_product():
    codes = np.arange(256, dtype=np.uint8)[:, None]
    with np.errstate(invalid="ignore"):
        values = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        expected = (values @ values.T).astype(np.float32)
    got = fused_mma(codes, codes, None, a_type="e4m3", b_type="e4m3").view(np.float32)
    np.testing.assert_array_equal(got, expected)
    assert not np.signbit(got[got == 0]).any()


@pytest.mark.parametrize("mma", [fused_mma, fast_mma])
@pytest.mark.parametrize("negate", [(False, False), (True, False), (False, True), (True, True)])
def test_integers_are_exact(mma, negate):
    rng = np.random.default_rng(5)
    a = rng.integers(1, 40, (128, 16)) * rng.choice([-1, 1], (128, 16))
    b = rng.integers(1, 40, (64, 16)) * rng.choice([-1, 1], (64, 16))
    d = rng.integers(-9999, 9999, (128, 64)).astype(np.float32)
    got = mma(
        codes16(a),
        codes16(b),
        d.view(np.uint32),
        a_type="f16",
        b_type="f16",
        negate_a=negate[0],
        negate_b=negate[1],
    )
    sign = -1 if negate[0] != negate[1] else 1
    np.testing.assert_array_equal(got.view(np.float32), sign * (a @ b.T) + d)


def test_order_of_the_terms_does_not_matter_and_fast_mode_is_only_near():
    rng = np.random.default_rng(6)
    a, b = (rng.normal(size=(n, 16)).astype(np.float16).view(np.uint16) for n in (64, 48))
    d = rng.normal(size=(64, 48)).astype(np.float32).view(np.uint32)
    types = {"a_type": "f16", "b_type": "f16"}
    got = fused_mma(a, b, d, **types)
    order = rng.permutation(16)
    np.testing.assert_array_equal(fused_mma(a[:, order], b[:, order], d, **types), got)
    fast = fast_mma(a, b, d, **types)
    assert (fast != got).any()
    np.testing.assert_allclose(fast.view(np.float32), got.view(np.float32), atol=1e-5)


def test_read_only_and_strided_operands():
    rng = np.random.default_rng(7)
    a = rng.integers(0, 0x3C00, (64, 32)).astype(np.uint16)[:, ::2]
    d = np.zeros((64, 64), np.uint32)
    d.flags.writeable = False
    types = {"a_type": "f16", "b_type": "f16"}
    plain = fused_mma(a.copy(), a.copy(), None, **types)
    np.testing.assert_array_equal(fused_mma(a, a, d, **types), plain)


def test_f16_d_ignores_the_high_half_of_its_word():
    a = codes16(np.ones((1, 16)))
    types = {"a_type": "f16", "b_type": "f16", "d_type": "f16"}
    d = np.array([[0xABCD3C00]], np.uint32)
    assert fused_mma(a, a, d, **types)[0, 0] == codes16(17.0)


@pytest.mark.parametrize("a_type", ["s8", "u8"])
@pytest.mark.parametrize("b_type", ["s8", "u8"])
def test_integer_kind(a_type, b_type):
    rng = np.random.default_rng(8)
    a, b = (rng.integers(0, 256, (n, 32)).astype(np.uint8) for n in (64, 40))
    d = rng.integers(0, 1 << 32, (64, 40)).astype(np.uint32)
    d[:, :8], d[:, 8:16] = 0x7FFFFF00, 0x80000100
    view = {"s8": np.int8, "u8": np.uint8}
    exact = a.view(view[a_type]).astype(object) @ b.view(view[b_type]).astype(object).T
    types = {"a_type": a_type, "b_type": b_type}
    got = integer_mma(a, b, None, **types)
    np.testing.assert_array_equal(got, (exact % (1 << 32)).astype(np.uint32))
    exact = exact + d.view(np.int32).astype(object)
    np.testing.assert_array_equal(
        integer_mma(a, b, d, **types), (exact % (1 << 32)).astype(np.uint32)
    )
    clamped = np.clip(exact, -(1 << 31), (1 << 31) - 1)
    assert a_type != b_type or (clamped != exact).any()
    np.testing.assert_array_equal(
        integer_mma(a, b, d, saturate=True, **types), (clamped % (1 << 32)).astype(np.uint32)
    )


def test_wrong_operands_are_refused():
    a, b = np.zeros((4, 16), np.uint16), np.zeros((8, 16), np.uint16)
    types = {"a_type": "f16", "b_type": "f16"}
    fused_mma(a, b, np.zeros((4, 8), np.uint32), **types)
    with pytest.raises(ElementTypeError, match=r"D \[M, N\]"):
        fused_mma(a, b, np.zeros((8, 4), np.uint32), **types)
    with pytest.raises(ElementTypeError, match=r"A \[M, K\], B \[N, K\]"):
        fused_mma(a, b[:, :8], None, **types)
    with pytest.raises(ElementTypeError, match="D type: expected f32 or f16, got bf16"):
        fused_mma(a, b, None, d_type="bf16", **types)
