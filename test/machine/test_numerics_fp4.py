"""Block-scaled sums against exact integer arithmetic, one dot product at a time."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.machine.numerics.block_scaled import Fp4Params
from tcir.machine.numerics.formats import decode_scale
from tcir.machine.numerics.fused import FusedParams
from tcir.machine.refusal import ElementTypeError

from .products import block_scaled_mma

E2M1 = (0, 1, 2, 3, 4, 6, 8, 12)  # halves
RAW = (None, 0, 0, 0, 1, 1, 2, 2)
UNIT = 700  # everything is counted in units of 2^-700
NAN = 0x7FFFFFFF


def scale_of(code, name):
    """(mantissa, exponent of its unit, raw exponent); None for NaN."""
    if name == "ue8m0":
        return None if code == 255 else (1, code - 127, code - 127)
    code &= 127
    if code == 127:
        return None
    field = code >> 3
    raw = max(field, 1) - 7
    return (code & 7) + (8 if field else 0), raw - 3, raw


def cut(value, q):
    """`value` (units of 2^-UNIT) to a multiple of 2^q, toward zero."""
    step = 1 << (q + UNIT)
    return abs(value) // step * step * (1 if value >= 0 else -1)


def f32(value):
    """f32 code, toward zero, of `value` units of 2^-UNIT."""
    size = abs(value)
    exponent = max(size.bit_length() - 1 - UNIT, -126)
    steps = size >> (exponent - 23 + UNIT)
    if steps == 0:
        return 0
    code = min(steps + ((exponent + 126) << 23), 0x7F800000)
    return code | (0x80000000 if value < 0 else 0)


def d_of(code):
    """(value, raw exponent or None), "nan", "inf" or "-inf"."""
    field, mantissa = code >> 23 & 255, code & 0x7FFFFF
    sign = -1 if code >> 31 else 1
    if field == 255:
        return "nan" if mantissa else ("inf" if sign > 0 else "-inf")
    raw = max(field, 1) - 127
    value = sign * (mantissa + (1 << 23 if field else 0)) << (raw - 23 + UNIT)
    return value, raw if value else None


def fp4_dot(a, b, d, sa, sb, name, ks, merge=16, four=4):
    """The rules of sf-tensor/tcgen05 in the words of numerics_fp4's docstring. ks: logical k."""
    scales = [(scale_of(int(u), name), scale_of(int(v), name)) for u, v in zip(sa, sb)]
    if any(None in pair for pair in scales) or d == "nan":
        return NAN
    if d in ("inf", "-inf"):
        return 0x7F800000 if d == "inf" else 0xFF800000
    block = max(merge, (max(ks) + merge) // merge * merge // len(scales))
    products = []
    for k, u, v in zip(ks, a, b):
        (ma, ea, ra), (mb, eb, rb) = scales[k // block]
        value = E2M1[u & 7] * E2M1[v & 7] * ma * mb * (-1 if (u ^ v) & 8 else 1)
        raw = None if value == 0 else RAW[u & 7] + RAW[v & 7] + ra + rb
        products.append((k, value << (ea + eb - 2 + UNIT), raw, ra + rb))
    c, xc = d
    live = [p for p in products if p[2] is not None]
    if not live:
        return f32(c)
    r, s = max(p[2] for p in live), max(p[3] for p in live)

    def groups(size):
        return [[p for p in products if p[0] // size == g] for g in range(max(ks) // size + 1)]

    def value_of(group):
        return sum(p[1] for p in group)

    if xc is not None and xc >= r:
        return f32(c + sum(cut(value_of(g), xc - 35) for g in groups(merge)))
    q = max(r - 39, s - 35, -UNIT if xc is None else xc - 39)
    if name == "ue4m3":
        return f32(cut(c, q) + sum(cut(value_of(g), q) for g in groups(four)))
    parts = []
    for group in groups(merge):
        raws = [p[2] for p in group if p[2] is not None]
        own = max(q, xc - 35) if xc is not None and raws and xc >= max(raws) else q
        pair = max((p[3] for p in group if p[2] is not None), default=None)
        parts.append((cut(value_of(group), own), pair))
    total = cut(c, q) + sum(value for value, _ in parts)
    if 0 < f32(total) & 0x7FFFFFFF < 1 << 23:
        least = 1 << (max(-174, q) + UNIT)
        total = cut(c, q) + sum(
            value
            for value, pair in parts
            if not (pair is not None and pair < s and abs(value) < least)
        )
    return f32(total)


def draw(rng, kind, count, name, flavour, rows=24, columns=26, k=64):
    """Operands of one flavour: A, B, D, SFA, SFB."""
    a, b = (rng.integers(0, 16, (n, k)).astype(np.uint8) for n in (rows, columns))
    top = {"ue8m0": 255, "ue4m3": 127}[name]
    middle = {"ue8m0": 127, "ue4m3": 0x38}[name]
    low, high = {
        "spanning": (0, top),
        "near": (middle - 6, middle + 6),
        "bottom": (0, 8) if name == "ue4m3" else (40, 62),
        "subnormal": (0, 8) if name == "ue4m3" else (48, 56),
        "top": (top - 20, top) if name == "ue4m3" else (180, 200),
        "cancelling": (middle - 3, middle + 3),
        "special": (middle - 9, middle + 9),
        "extremes": (middle - 9, middle + 9),
    }[flavour]
    sa, sb = (rng.integers(low, high, (n, count)).astype(np.uint8) for n in (rows, columns))
    if flavour == "extremes":  # some groups so small that the others' window cuts them
        for g in range(0, k, 16):  # … and those others often cancel
            b[:, g + 8 : g + 16] = b[:, g : g + 8]
            flip = rng.random((rows, 1)) < (0.7 if g % 32 == 0 else 0.1)
            a[:, g + 8 : g + 16] = np.where(flip, a[:, g : g + 8] ^ 8, a[:, g + 8 : g + 16])
        small = np.arange(count) % 2 == 1
        for scales in (sa, sb):
            tiny = small[None, :] & (rng.random(scales.shape) < 0.9)
            scales[~tiny] = rng.integers(top - 6, top, scales.shape)[~tiny] - (
                69 if name == "ue8m0" else 0
            )
            scales[tiny] = rng.integers(1, 12, scales.shape)[tiny] + (162 if name == "ue8m0" else 0)
    if flavour == "cancelling":
        a[:, k // 2 :] = a[:, : k // 2] ^ 8
        b[:, k // 2 :] = b[:, : k // 2]
        sa[:, count // 2 :] = sa[:, : count // 2]
        sb[:, count // 2 :] = sb[:, : count // 2]
        a[np.arange(rows), rng.integers(0, k, rows)] ^= 1
    if flavour in ("bottom", "subnormal"):
        a[rng.random(a.shape) < 0.7] = 0
        a[:, :16][rng.random(rows) < 0.3] = 0
    if flavour == "subnormal" and name == "ue8m0":  # sums of 2^-140, and parts below 2^-174
        sa, sb = (rng.integers(54, 58, (n, count)).astype(np.uint8) for n in (rows, columns))
        for scales in (sa, sb):
            scales[:, 1::2] -= rng.integers(15, 26, scales[:, 1::2].shape).astype(np.uint8)
    if flavour == "special":
        a[0], b[0] = 0, 0
        sa[1, 0], sb[2, -1], sa[3, 1 % count] = top, top, 0
    # D near the products, so that each case of the rule occurs.
    if flavour == "extremes":
        low, high = (top - 75, top - 69) if name == "ue8m0" else (top - 40, top)
    pair = low + high - 2 * 127 if name == "ue8m0" else ((low + high) >> 3) - 14
    centre = int(np.clip(127 + pair, 4, 250))
    spread = 45 if flavour == "spanning" else 9
    field = rng.integers(max(0, centre - spread), min(255, centre + spread), (rows, columns))
    d = rng.integers(0, 1 << 23, (rows, columns)) | field << 23
    d |= rng.integers(0, 2, (rows, columns)) << 31
    d[:, : columns // 2 if flavour == "subnormal" else 2] = 0
    d[:, 2] = 1 << 31
    if flavour == "extremes":  # D cancels what has large scales
        large = np.arange(k) // (k // count) % 2 == 0
        x, y = (
            np.where(u & 8, -1.0, 1.0)
            * np.array(E2M1)[u & 7]
            / 2
            * np.repeat(decode_scale(s, name)[0], k // count, axis=1)
            for u, s in ((a, sa), (b, sb))
        )
        cancel = -(x[:, large] @ y[:, large].T).astype(np.float32)
        d[:, 6:] = cancel.view(np.uint32)[:, 6:]
    if flavour == "special":
        d[:, 3:7] = [0x7F800000, 0xFF800000, 0x7FC00001, 0xFFC00000]
    return a, b, d.astype(np.uint32), sa, sb


FORMS = [("mxf4", 2, "ue8m0"), ("mxf4nvf4", 4, "ue8m0"), ("mxf4nvf4", 4, "ue4m3")]
FLAVOURS = ("spanning", "near", "bottom", "subnormal", "top", "cancelling", "special", "extremes")


def compare(got, a, b, d, sa, sb, name, select=None, **more):
    for m in range(len(a)):
        ks = range(a.shape[1]) if select is None else select[m]
        for n in range(len(b)):
            column = b[n] if select is None else b[n][select[m]]
            want = fp4_dot(
                a[m].tolist(), column.tolist(), d_of(int(d[m, n])), sa[m], sb[n], name,
                [int(k) for k in ks], **more,
            )  # fmt: skip
            assert got[m, n] == want, (m, n, hex(got[m, n]), hex(want))


@pytest.mark.parametrize(("kind", "count", "name"), FORMS)
def test_columns_of_zeros(kind, count, name):
    """As those of a GEMV: D stays, but where it or a scale is not finite."""
    for flavour in ("near", "special"):
        a, b, d, sa, sb = draw(np.random.default_rng(count), kind, count, name, flavour)
        b[np.arange(len(b)) % 4 != 1] &= 8
        got = block_scaled_mma(a, b, d, sa, sb, kind=kind, scale_type=name)
        compare(got, a, b, d, sa, sb, name)
        got = block_scaled_mma(a, b & 8, d, sa, sb, kind=kind, scale_type=name)
        compare(got, a, b & 8, d, sa, sb, name)


MX8 = "mxf8f6f4", 1, "ue8m0", "e4m3"


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize(("kind", "count", "name"), FORMS)
def test_fp4_equals_exact_integer_arithmetic(kind, count, name, flavour):
    rng = np.random.default_rng([count, len(kind), len(flavour), ord(name[2])])
    a, b, d, sa, sb = draw(rng, kind, count, name, flavour)
    got = block_scaled_mma(a, b, d, sa, sb, kind=kind, scale_type=name)
    compare(got, a, b, d, sa, sb, name)
    got = block_scaled_mma(a[:3], b[:3], None, sa[:3], sb[:3], kind=kind, scale_type=name)
    compare(got, a[:3], b[:3], 0 * d, sa[:3], sb[:3], name)


@pytest.mark.parametrize(
    ("kind", "count", "name", "element"), [(*form, "e2m1") for form in FORMS] + [MX8]
)
def test_several_products_are_those_of_each(kind, count, name, element):
    rng = np.random.default_rng([count, 4])
    types = {"kind": kind, "scale_type": name, "a_type": element, "b_type": element}
    flavours = ("spanning", "near", "subnormal")
    each = [draw(rng, kind, count, name, flavour, 12, 13, 64) for flavour in flavours]
    if kind == "mxf8f6f4":
        each = [(a, b, d, sa[:, :1], sb[:, :1]) for a, b, d, sa, sb in each]
    together = [np.stack(of) for of in zip(*each)]
    for adds in (True, False):
        want = [block_scaled_mma(a, b, d if adds else None, *s, **types) for a, b, d, *s in each]
        a, b, d, *scales = together
        got = block_scaled_mma(a, b, d if adds else None, *scales, **types)
        np.testing.assert_array_equal(got, np.stack(want))
        assert len({one.tobytes() for one in want}) == 3


@pytest.mark.parametrize(("kind", "count", "name"), FORMS)
def test_sparse_fp4(kind, count, name):
    rng = np.random.default_rng([count, 3])
    for flavour in ("spanning", "near", "subnormal"):
        a, b, d, sa, sb = draw(rng, kind, count, name, flavour, 12, 13, 128)
        pairs = np.sort(rng.permuted(np.tile(np.arange(4), (12, 16, 1)), axis=2)[:, :, :2], axis=2)
        select = 8 * np.arange(16)[:, None, None] + 2 * pairs[..., None] + np.arange(2)
        select = select.reshape(12, 64).astype(np.int32)
        a = a[:, :64]
        got = block_scaled_mma(a, b, d, sa, sb, kind=kind, scale_type=name, select=select)
        compare(got, a, b, d, sa, sb, name, select, merge=32)


def test_the_redo_of_subnormal_sums_and_the_other_constants_are_seen():
    rng = np.random.default_rng(9)
    operands = [draw(rng, "mxf4nvf4", 4, "ue8m0", f, 128, 128) for f in FLAVOURS]
    operands += [draw(rng, "mxf4nvf4", 4, "ue4m3", f, 128, 128) for f in FLAVOURS]
    kinds = [{"kind": "mxf4nvf4", "scale_type": s} for s in ("ue8m0", "ue4m3") for _ in FLAVOURS]

    def words(params):
        return [block_scaled_mma(*x, **kind, fp4=params) for x, kind in zip(operands, kinds)]

    base = words(Fp4Params())
    for other in (
        Fp4Params(product_window=35),
        Fp4Params(scale_window=31),
        Fp4Params(d_window=30),
        Fp4Params(ue4m3_group=1),
        Fp4Params(subnormal_floor=None),
        Fp4Params(rule="scales"),
    ):
        assert any((u != v).any() for u, v in zip(base, words(other))), other


TYPES = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
BITS = {"e4m3": 8, "e5m2": 8, "e2m3": 6, "e3m2": 6, "e2m1": 4}


def element(code, name):
    """(mantissa, exponent of its unit, raw exponent), "nan" or ±inf of a narrow code."""
    e, m, bias = {
        "e4m3": (4, 3, 7),
        "e5m2": (5, 2, 15),
        "e2m3": (2, 3, 1),
        "e3m2": (3, 2, 3),
        "e2m1": (2, 1, 1),
    }[name]
    sign = -1 if code >> (e + m) & 1 else 1
    field, mantissa = code >> m & ((1 << e) - 1), code & ((1 << m) - 1)
    if name == "e5m2" and field == 31:
        return "nan" if mantissa else sign
    if name == "e4m3" and code & 127 == 127:
        return "nan"
    raw = max(field, 1) - bias
    return sign * (mantissa + (1 << m if field else 0)), raw - m, raw


def mx_dot(a, b, d, sa, sb, a_type, b_type):
    """One fused sum of window 25 with the exponents of both scales."""
    su, sv = scale_of(sa, "ue8m0"), scale_of(sb, "ue8m0")
    if su is None or sv is None or d == "nan":
        return NAN
    shift = su[1] + sv[1]
    infinities, terms = set(), []
    if d in ("inf", "-inf"):
        infinities.add(1 if d == "inf" else -1)
    elif d[1] is not None:
        terms.append(d)
    for u, v in zip(a, b):
        x, y = element(u, a_type), element(v, b_type)
        if "nan" in (x, y):
            return NAN
        if isinstance(x, int) or isinstance(y, int):
            signs = [w if isinstance(w, int) else (w[0] > 0) - (w[0] < 0) for w in (x, y)]
            if 0 in signs:
                return NAN
            infinities.add(signs[0] * signs[1])
        elif x[0] and y[0]:
            terms.append((x[0] * y[0] << (x[1] + y[1] + shift + UNIT), x[2] + y[2] + shift))
    if len(infinities) > 1:
        return NAN
    if infinities:
        return 0x7F800000 if 1 in infinities else 0xFF800000
    if not terms:
        return 0
    q = max(x for _, x in terms) - 25
    return f32(sum(cut(value, q) for value, _ in terms))


@pytest.mark.parametrize("a_type", TYPES)
@pytest.mark.parametrize("b_type", TYPES)
def test_mxf8f6f4_equals_exact_integer_arithmetic(a_type, b_type):
    rng = np.random.default_rng([ord(a_type[1]), ord(a_type[3]), ord(b_type[1]), ord(b_type[3])])
    for low, high in ((0, 256), (120, 134), (50, 66), (178, 196)):
        a = rng.integers(0, 1 << BITS[a_type], (8, 32)).astype(np.uint8)
        b = rng.integers(0, 1 << BITS[b_type], (9, 32)).astype(np.uint8)
        for codes, name, mask in ((a, a_type, 3), (b, b_type, 7)):  # specials in a few rows only
            for special in {"e5m2": range(0x7C, 0x80), "e4m3": [0x7F]}.get(name, []):
                codes[mask:][codes[mask:] & 0x7F == special] = 1
        sa, sb = (rng.integers(low, high, (n, 1)).astype(np.uint8) for n in (8, 9))
        d = rng.integers(0, 1 << 32, (8, 9)).astype(np.uint32)
        near = int(np.clip(low + high - 127, 1, 240))
        d[:, 2:] = d[:, 2:] & 0x807FFFFF | rng.integers(near, near + 12, (8, 7)) << 23
        got = block_scaled_mma(
            a, b, d, sa, sb, kind="mxf8f6f4", scale_type="ue8m0", a_type=a_type, b_type=b_type
        )
        for m in range(8):
            for n in range(9):
                want = mx_dot(
                    a[m].tolist(), b[n].tolist(), d_of(int(d[m, n])), int(sa[m, 0]), int(sb[n, 0]),
                    a_type, b_type,
                )  # fmt: skip
                assert got[m, n] == want, (m, n, hex(got[m, n]), hex(want))


@pytest.mark.parametrize(("kind", "count", "name"), [*FORMS, ("mxf8f6f4", 1, "ue8m0")])
def test_fast_mode_is_equal_where_sums_are_exact(kind, count, name):
    rng = np.random.default_rng(4)
    a, b, _, sa, sb = draw(rng, kind, count, name, "near", k=64 if count > 1 else 32)
    one = {"ue8m0": 0x7F, "ue4m3": 0x38}[name]
    sa[:] = one + np.arange(count)
    sb[:] = one
    d = rng.integers(-99, 99, (len(a), len(b))).astype(np.float32).view(np.uint32)
    more = {"kind": kind, "scale_type": name}
    exact = block_scaled_mma(a, b, d, sa, sb, **more)
    np.testing.assert_array_equal(block_scaled_mma(a, b, d, sa, sb, exact=False, **more), exact)
    flipped = block_scaled_mma(a, b, None, sa, sb, negate_a=True, **more).view(np.float32)
    plain = block_scaled_mma(a, b, None, sa, sb, negate_a=True, negate_b=True, **more)
    np.testing.assert_array_equal(flipped, -plain.view(np.float32))


def test_scales_by_definition():
    values, raw = decode_scale(np.arange(256, dtype=np.uint8), "ue8m0")
    assert values[0] == 2.0**-127 and values[127] == 1 and values[254] == 2.0**127
    assert np.isnan(values[255]) and list(raw[[0, 127, 254]]) == [-127, 0, 127]
    values, raw = decode_scale(np.arange(256, dtype=np.uint8), "ue4m3")
    np.testing.assert_array_equal(values[:128], values[128:])  # bit 7 is ignored
    assert values[0] == 0 and values[1] == 2.0**-9 and values[0x38] == 1 and values[0x7E] == 448
    assert np.isnan(values[0x7F]) and raw[1] == -6 and raw[0x7E] == 8
    with pytest.raises(ElementTypeError, match="scale type: expected ue8m0 or ue4m3, got e4m3"):
        decode_scale(values[:1], "e4m3")


def test_wrong_scales_are_refused():
    a, b = np.zeros((4, 64), np.uint8), np.zeros((8, 64), np.uint8)

    def run(kind, count_a, count_b, name, **more):
        scales = np.zeros((4, count_a), np.uint8), np.zeros((8, count_b), np.uint8)
        return block_scaled_mma(a, b, None, *scales, kind=kind, scale_type=name, **more)

    run("mxf4nvf4", 4, 4, "ue4m3")
    with pytest.raises(ElementTypeError, match="expected ue8m0, got ue4m3; ue4m3 is for mxf4nvf4"):
        run("mxf4nvf4", 2, 2, "ue4m3")
    with pytest.raises(ElementTypeError, match="kind mxf4: SFA"):
        run("mxf4", 4, 4, "ue8m0")
    with pytest.raises(ElementTypeError, match="4 a row, got"):
        run("mxf4nvf4", 4, 2, "ue8m0")
    with pytest.raises(ElementTypeError, match="kind: expected mxf8f6f4, mxf4 or mxf4nvf4"):
        run("mxf3", 2, 2, "ue8m0")
    with pytest.raises(ElementTypeError, match="element types"):
        run("mxf4", 2, 2, "ue8m0", b_type="e4m3")
    with pytest.raises(ElementTypeError, match="rule: expected products or scales"):
        Fp4Params(rule="sum")
    with pytest.raises(ElementTypeError, match="window"):
        FusedParams(window=0)
