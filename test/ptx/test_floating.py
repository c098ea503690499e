"""Float instructions against exact rational arithmetic rounded once; all of them assemble."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from .conftest import HEADER, kernel

#: precision, smallest exponent of a unit (subnormals), largest finite
FORMATS = {
    "f32": (24, -149, (2 - Fraction(1, 1 << 23)) * (1 << 127)),
    "f16": (11, -24, Fraction(65504)),
    "bf16": (8, -133, (2 - Fraction(1, 1 << 7)) * (1 << 127)),
}
DTYPES: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
NAN = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF}
WIDTH = {"f32": 4, "f16": 2, "bf16": 2}


def to_bits(value: Fraction, name: str, mode: str = "rn", negative_zero: bool = False) -> int:
    """The bits of a rational rounded once to the format."""
    precision, lowest, largest = FORMATS[name]
    size = 8 * WIDTH[name]
    sign = value < 0 or value == 0 and negative_zero
    magnitude = abs(value)
    if magnitude == 0:
        return int(sign) << size - 1
    exponent = math.floor(math.log2(magnitude.numerator) - math.log2(magnitude.denominator))
    while Fraction(2) ** exponent > magnitude:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= magnitude:
        exponent += 1
    unit = Fraction(2) ** max(exponent - precision + 1, lowest)
    whole, rest = divmod(magnitude, unit)
    half = rest - unit / 2
    up = {
        "rn": half > 0 or half == 0 and whole % 2 == 1,
        "rz": False,
        "rm": bool(sign) and rest > 0,
        "rp": not sign and rest > 0,
    }[mode]
    rounded = (whole + up) * unit
    if rounded > largest:
        infinite = mode == "rn" or mode == ("rm" if sign else "rp")
        number = math.inf if infinite else float(largest)
    else:
        number = float(rounded)
    packed = np.array(-number if sign else number, np.float64).astype(DTYPES[name])
    return int(packed.view(f"u{WIDTH[name]}"))


def values(name: str) -> np.ndarray:
    rng = np.random.default_rng(5)
    size = WIDTH[name]
    top = {"f32": 0x7F800000, "f16": 0x7C00, "bf16": 0x7F80}[name]
    one = int(np.array(1, DTYPES[name]).view(f"u{size}"))
    special = [0, 1, 2, one, one + 1, one - 1, top - 1, top, top + 1, top >> 1, 3, top // 2 + 5]
    special += [s | 1 << 8 * size - 1 for s in special]
    random = rng.integers(0, 1 << 8 * size, 24, dtype=np.uint64).tolist()
    near = [
        one + int(x)
        for x in rng.integers(-4000 if size == 4 else -90, 4000 if size == 4 else 90, 8)
    ]
    return np.array([*special, *random, *near], f"u{size}")


def number(bits: int, name: str) -> float:
    return float(np.array(bits, f"u{WIDTH[name]}").view(DTYPES[name]))


def exact(fn: Callable[..., Fraction], plain: Callable[..., float], name: str, mode: str) -> Any:
    """Oracle on bits: rationals where all is finite, Python floats for what IEEE says otherwise."""

    def oracle(*bits: int) -> int | None:
        args = [number(b, name) for b in bits]
        if all(math.isfinite(a) for a in args):
            result = fn(*[Fraction(a) for a in args])
            if result == 0:
                return (
                    None if mode == "rm" else to_bits(result, name, mode, _zero_sign(plain, args))
                )
            return to_bits(result, name, mode)
        with np.errstate(all="ignore"):
            value = plain(*[np.float64(a) for a in args])
        if math.isnan(value):
            return NAN[name]
        return int(np.array(value).astype(DTYPES[name]).view(f"u{WIDTH[name]}"))

    return oracle


def _zero_sign(plain: Callable[..., float], args: list[float]) -> bool:
    return math.copysign(1.0, plain(*[np.float64(a) for a in args])) < 0


OPS = {
    "add": (lambda a, b: a + b, 2),
    "sub": (lambda a, b: a - b, 2),
    "mul": (lambda a, b: a * b, 2),
    "fma": (lambda a, b, c: a * b + c, 3),
}
CASES = [
    (op, mode, name)
    for op, name in itertools.product(OPS, FORMATS)
    for mode in (("rn", "rz", "rm", "rp") if name == "f32" else ("rn",))
]


@pytest.mark.parametrize("op,mode,name", CASES)
def test_arithmetic(lanes: Any, op: str, mode: str, name: str) -> None:
    fn, count = OPS[op]
    pool = values(name)
    rng = np.random.default_rng(11)
    arrays = [rng.choice(pool, 2048) for _ in range(count)]
    if op == "fma":  # cancellation: c close to -a·b
        with np.errstate(all="ignore"):
            product = arrays[0].view(DTYPES[name]) * arrays[1].view(DTYPES[name])
        arrays[2][:700] = (-product[:700]).view(arrays[2].dtype)
    size = 8 * WIDTH[name]
    kind = name if name == "f32" else f"b{size}"
    names = ", ".join(f"%{r}" for r in "abc"[:count])
    got = lanes(f"{op}.{mode}.{name} %d, {names};", arrays, [kind] * count, f"b{size}")
    oracle = exact(fn, fn, name, mode)
    for point, value in zip(zip(*arrays), got):
        want = oracle(*[int(p) for p in point])
        if want is not None:
            assert int(value) == want, (
                [number(int(p), name) for p in point],
                hex(int(value)),
                hex(want),
            )


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_packed_arithmetic_is_the_scalar_twice(lanes: Any, name: str) -> None:
    pool = values(name)
    rng = np.random.default_rng(12)
    low = [rng.choice(pool, 512) for _ in range(3)]
    high = [rng.choice(pool, 512) for _ in range(3)]
    packed = [(x.astype(np.uint32) | y.astype(np.uint32) << 16) for x, y in zip(low, high)]
    got = lanes(f"fma.rn.{name}x2 %d, %a, %b, %c;", packed, ["b32"] * 3, "b32")
    oracle = exact(lambda a, b, c: a * b + c, lambda a, b, c: a * b + c, name, "rn")
    for n in range(512):
        want = [oracle(*[int(x[n]) for x in half]) for half in (low, high)]
        assert int(got[n]) == want[0] | want[1] << 16


def _order(bits: int, name: str) -> tuple[float, int]:
    return number(bits, name), -(bits >> 8 * WIDTH[name] - 1)


@pytest.mark.parametrize("name", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("op,nan", list(itertools.product(("min", "max"), ("", ".NaN"))))
def test_min_max(lanes: Any, name: str, op: str, nan: str) -> None:
    pool = values(name)
    points = list(itertools.product(pool, pool))
    arrays = [np.array([p[n] for p in points], pool.dtype) for n in range(2)]
    size = 8 * WIDTH[name]
    got = lanes(f"{op}{nan}.{name} %d, %a, %b;", arrays, [f"b{size}"] * 2, f"b{size}")
    choose = min if op == "min" else max
    for (a, b), value in zip(points, got):
        numbers = [int(x) for x in (a, b) if not math.isnan(number(int(x), name))]
        if len(numbers) == 2:
            want = choose(numbers, key=lambda bits: _order(bits, name))
        else:
            want = NAN[name] if nan or not numbers else numbers[0]
        assert int(value) == want, (hex(a), hex(b), hex(value), hex(want))


@pytest.mark.parametrize(
    "source,target", [("f32", "f16"), ("f32", "bf16"), ("f16", "f32"), ("bf16", "f32")]
)
@pytest.mark.parametrize("mode", ["rn", "rz"])
def test_conversion(lanes: Any, source: str, target: str, mode: str) -> None:
    pool = np.unique(
        np.concatenate([values(source), _ties() if source == "f32" else values(source)])
    )
    widening = WIDTH[target] > WIDTH[source]
    if widening and mode == "rz":
        pytest.skip("exact: no rounding mode")
    word = "" if widening else f".{mode}"
    got = lanes(
        f"cvt{word}.{target}.{source} %d, %a;",
        [pool],
        [f"b{8 * WIDTH[source]}"],
        f"b{8 * WIDTH[target]}",
    )
    for bits, value in zip(pool, got):
        x = number(int(bits), source)
        if math.isnan(x):
            # bf16 widens by a shift, so its NaN keeps its bits (docs/explanation/hopper.md).
            want = int(bits) << 16 if source == "bf16" else NAN[target]
        elif math.isinf(x):
            want = int(np.array(x).astype(DTYPES[target]).view(f"u{WIDTH[target]}"))
        else:
            want = to_bits(Fraction(x), target, mode, math.copysign(1, x) < 0)
        assert int(value) == want, (x, hex(value), hex(want))


def _ties() -> np.ndarray:
    """f32 words half-way between two bf16 or f16 neighbours, and one unit to either side."""
    out = []
    for base in (
        0x3F800000,
        0x3F810000,
        0x477FE000,
        0x33000000,
        0x38802000,
        0x7F7F0000,
        0x00008000,
    ):
        for half in (0x8000, 0x1000, 0x0800):
            out += [base + half - 1, base + half, base + half + 1]
    return np.array(out + [o | 1 << 31 for o in out], np.uint32)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_packed_conversion_puts_the_first_source_on_top(lanes: Any, name: str) -> None:
    a, b = np.array([1.5, -2.25, 3e-9], np.float32), np.array([100.0, 0.1, 1e30], np.float32)
    got = lanes(
        f"cvt.rn.{name}x2.f32 %d, %a, %b;", [a.view("u4"), b.view("u4")], ["f32"] * 2, "b32"
    )
    with np.errstate(over="ignore"):
        top, low = (x.astype(DTYPES[name]).view("u2").astype(np.uint32) for x in (a, b))
    assert (got == (top << 16 | low)).all()


@pytest.mark.parametrize(
    "mode,fn", [("rni", round), ("rzi", math.trunc), ("rmi", math.floor), ("rpi", math.ceil)]
)
@pytest.mark.parametrize("target", ["s32", "u32", "s64", "u64", "s16", "u16"])
def test_to_integer_clamps(lanes: Any, mode: str, fn: Any, target: str) -> None:
    numbers = [0.5, 1.5, 2.5, -0.5, -1.5, 0.0, 3.7, -3.7, 2.0**31, -(2.0**31), 2.0**32, 2.0**63,
               2.0**64, 1e30, -1e30, 32767.5, -32768.5, 65535.6, math.inf,
               -math.inf, math.nan, 2147483520.0]  # fmt: skip
    pool = np.array(numbers, np.float32)
    bits = int(target[1:])
    got = lanes(f"cvt.{mode}.{target}.f32 %d, %a;", [pool.view("u4")], ["f32"], f"b{bits}")
    low = -(1 << bits - 1) if target[0] == "s" else 0
    high = (1 << bits - (target[0] == "s")) - 1
    for x, value in zip(pool.tolist(), got):
        if math.isnan(x):
            want = 1 << bits - 1 if bits == 64 else 0
        elif math.isinf(x):
            want = high if x > 0 else low
        else:
            want = min(max(fn(x), low), high)
        assert int(value) == want & (1 << bits) - 1, (x, int(value), want)


@pytest.mark.parametrize("source", ["s32", "u32", "s64", "u64"])
@pytest.mark.parametrize(
    "target,mode", [("f32", "rn"), ("f32", "rz"), ("f16", "rn"), ("bf16", "rn")]
)
def test_from_integer(lanes: Any, source: str, target: str, mode: str) -> None:
    bits = int(source[1:])
    numbers = [0, 1, 3, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1, (1 << 24) + 1,
               (1 << 25) + 2, 2049, 2051, 65519, 65520, 257,
               0x7FFFFFBF, (1 << 31) - 64]  # fmt: skip
    if bits == 64:
        numbers += [
            (1 << 40) + (1 << 16) + 1,
            (1 << 62) + (1 << 38) + 1,
            (1 << 62) + (1 << 38),
            (1 << 53) + 1,
        ]
    pool = np.array(numbers, f"u{bits // 8}")
    got = lanes(f"cvt.{mode}.{target}.{source} %d, %a;", [pool], [source], f"b{8 * WIDTH[target]}")
    for x, value in zip(pool.view(f"{'i' if source[0] == 's' else 'u'}{bits // 8}").tolist(), got):
        assert int(value) == to_bits(Fraction(x), target, mode), (x, hex(value))


def test_comparisons_of_unordered_values(lanes: Any) -> None:
    nan = math.nan
    a = np.array([1, 2, nan, nan, -0.0, 1], np.float32)
    b = np.array([2, 1, 1, nan, 0.0, 1], np.float32)
    table = {"lt": [1, 0, 0, 0, 0, 0], "ltu": [1, 0, 1, 1, 0, 0], "eq": [0, 0, 0, 0, 1, 1],
             "equ": [0, 0, 1, 1, 1, 1], "ne": [1, 1, 0, 0, 0, 0], "neu": [1, 1, 1, 1, 0, 0],
             "num": [1, 1, 0, 0, 1, 1], "nan": [0, 0, 1, 1, 0, 0], "ge": [0, 1, 0, 0, 1, 1],
             "geu": [0, 1, 1, 1, 1, 1]}  # fmt: skip
    for name, want in table.items():
        body = f"setp.{name}.f32 %p0, %a, %b; selp.u32 %d, 1, 0, %p0;"
        assert lanes(body, [a.view("u4"), b.view("u4")], ["f32"] * 2, "u32").tolist() == want, name


def test_flush_to_zero(lanes: Any) -> None:
    a = np.array([1, 0x80000001, 0x00800000, 0x3F800000], np.uint32)
    b = np.array([0x3F800000, 0x3F800000, 0x3F000000, 0x3F800000], np.uint32)
    got = lanes("mul.ftz.f32 %d, %a, %b;", [a, b], ["f32"] * 2, "b32")
    assert got.tolist() == [0, 0x80000000, 0, 0x3F800000]


def test_division_square_root_and_approximations(lanes: Any) -> None:
    a = np.abs(np.random.default_rng(3).standard_normal(256)).astype(np.float32) + np.float32(0.01)
    b = np.random.default_rng(4).standard_normal(256).astype(np.float32)
    got = lanes("div.rn.f32 %d, %a, %b;", [a.view("u4"), b.view("u4")], ["f32"] * 2, "b32")
    assert (got.view("f4") == a / b).all()
    assert (
        lanes("sqrt.rn.f32 %d, %a;", [a.view("u4")], ["f32"], "b32").view("f4") == np.sqrt(a)
    ).all()
    for name, fn in (("ex2", np.exp2), ("lg2", np.log2), ("rsqrt", lambda x: 1 / np.sqrt(x)),
                     ("rcp", lambda x: 1 / x), ("tanh", np.tanh), ("sin", np.sin)):  # fmt: skip
        out = lanes(f"{name}.approx.f32 %d, %a;", [a.view("u4")], ["f32"], "b32").view("f4")
        assert np.allclose(out, fn(a.astype(np.float64)), rtol=2e-7), name


def test_every_snippet_is_legal_ptx(assemble: Any) -> None:
    entries = []
    for n, (op, mode, name) in enumerate(CASES):
        count = OPS[op][1]
        if name == "bf16" and op != "fma" or name == "f16":
            mode = "rn"
        kind = name if name == "f32" else f"b{8 * WIDTH[name]}"
        names = ", ".join(f"%{r}" for r in "abc"[:count])
        body = f"{op}.{mode}.{name} %d, {names};"
        entries.append(kernel(f"k{n}", body, [kind] * count, kind if name == "f32" else "b16"))
    more = [
        ("cvt.rn.f16x2.f32 %d, %a, %b;", ["f32", "f32"], "b32"),
        ("cvt.rn.bf16x2.f32 %d, %a, %b;", ["f32", "f32"], "b32"),
        ("fma.rn.bf16x2 %d, %a, %b, %c;", ["b32"] * 3, "b32"),
        ("cvt.rz.bf16.f32 %d, %a;", ["f32"], "b16"),
        ("cvt.rn.bf16.s64 %d, %a;", ["s64"], "b16"),
        ("max.NaN.bf16 %d, %a, %b;", ["b16"] * 2, "b16"),
        ("tanh.approx.f32 %d, %a;", ["f32"], "f32"),
        ("mul.ftz.f32 %d, %a, %b;", ["f32"] * 2, "f32"),
    ]
    entries += [kernel(f"m{n}", b, i, o) for n, (b, i, o) in enumerate(more)]
    assemble(HEADER + "".join(entries))


EXTREMES = [
    ("max.f32 %d, %a, %b, %c;", lambda a, b, c: np.fmax(np.fmax(a, b), c)),
    ("min.f32 %d, %a, %b, %c;", lambda a, b, c: np.fmin(np.fmin(a, b), c)),
    ("max.NaN.f32 %d, %a, %b, %c;", lambda a, b, c: np.maximum(np.maximum(a, b), c)),
    ("max.abs.f32 %d, %a, %b, %c;", lambda a, b, c: np.fmax(np.fmax(abs(a), abs(b)), abs(c))),
    ("max.xorsign.abs.f32 %d, %a, %b;",
     lambda a, b, c: np.copysign(np.fmax(abs(a), abs(b)), np.sign(a) * np.sign(b))),
    ("min.xorsign.abs.f32 %d, %a, %b;",
     lambda a, b, c: np.copysign(np.fmin(abs(a), abs(b)), np.sign(a) * np.sign(b))),
]  # fmt: skip


@pytest.mark.parametrize("body,oracle", EXTREMES, ids=[b.split(" ")[0] for b, _ in EXTREMES])
def test_extremes_of_three(lanes: Any, body: str, oracle: Any) -> None:
    rng = np.random.default_rng(2)
    a, b, c = (rng.choice([1.5, -2.0, 3.0, -7.5, np.inf, -np.inf, np.nan], 64) for _ in range(3))
    if "xorsign" in body:
        a, b = np.where(np.isnan(a), 4.0, a), np.where(np.isnan(b), -6.0, b)
    a, b, c = (x.astype(np.float32) for x in (a, b, c))
    got = lanes(body, [a, b, c], ["f32"] * 3, "u32").view(np.float32)
    want = oracle(a, b, c).astype(np.float32)
    assert np.array_equal(got, want, equal_nan=True)


def test_extremes_are_legal_ptx(assemble: Any) -> None:
    for n, (body, _) in enumerate(EXTREMES):
        assemble(HEADER + kernel(f"x{n}", body, ["f32"] * 3, "b32"))
