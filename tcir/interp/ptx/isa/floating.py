"""Floating-point arithmetic: f64, f32, f32x2, f16, f16x2, bf16, bf16x2 (PTX ISA 9.7.3, 9.7.4).

Sums and products are computed in float64 with the inexact part folded into the lowest bit ("round
to odd"), then rounded once to the type: one correct rounding in every mode. NaN results are PTX's
canonical ones. The approximations (.approx, .full, ex2, lg2, sin, cos, tanh, rcp, rsqrt) are
computed in float64 and rounded to nearest: closer than hardware, never bit-compared to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from tcir.interp.ptx.decode import VIEW_DTYPES, Decode, Op, rule, view
from tcir.interp.ptx.isa.elementwise import elementwise
from tcir.interp.ptx.isa.rational import fma64
from tcir.interp.ptx.syntax import TYPES, Type

_TYPES = ("f64", "f32", "f32x2", "f16", "f16x2", "bf16", "bf16x2")
_UNSIGNED: dict[str, Any] = {
    "f64": np.uint64,
    "f32": np.uint32,
    "f16": np.uint16,
    "bf16": np.uint16,
}
_CANONICAL = {"f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF, "f64": 0x7FF8000000000000}
_SIGN = {"f64": 1 << 63, "f32": 1 << 31, "f16": 1 << 15, "bf16": 1 << 15}
_MIN_NORMAL = {"f64": 2.0**-1022, "f32": 2.0**-126, "f16": 2.0**-14, "bf16": 2.0**-126}


def element(kind: Type) -> str:
    """f16x2 → f16."""
    return kind.name.removesuffix("x2")


def decode_float(bits: Any, name: str) -> Any:
    """float64 values of f32, f16 or bf16 bit patterns: exact."""
    if name == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    dtype: Any = {"f64": np.float64, "f32": np.float32, "f16": np.float16}[name]
    return bits.view(dtype).astype(np.float64)


def _directed(rounded: Any, exact: Any, mode: str) -> Any:
    """`rounded` (nearest) moved by one step where the mode asks for the other neighbour."""
    value = rounded.astype(np.float64)
    kind = rounded.dtype.type
    if mode == "rz":
        return np.where(np.abs(value) > np.abs(exact), np.nextafter(rounded, kind(0)), rounded)
    if mode == "rm":
        return np.where(value > exact, np.nextafter(rounded, kind(-np.inf)), rounded)
    if mode == "rp":
        return np.where(value < exact, np.nextafter(rounded, kind(np.inf)), rounded)
    return rounded


def encode_float(exact: Any, name: str, mode: str = "rn") -> Any:
    """Bit patterns of float64 values rounded once; rna: ties away from zero. NaN is canonical."""
    if name == "f64":
        out = exact.view(np.uint64)
    elif name == "bf16":
        single = exact.astype(np.float32)
        inexact = single.astype(np.float64) != exact
        toward = np.where(
            np.abs(single.astype(np.float64)) > np.abs(exact),
            np.nextafter(single, np.float32(0)),
            single,
        ).astype(np.float32)
        odd = np.where(
            inexact & ~np.isnan(exact), toward.view(np.uint32) | 1, single.view(np.uint32)
        )
        odd = odd.astype(np.uint32)
        half = {
            "rn": 0x7FFF + (odd >> 16 & 1),
            "rna": np.uint32(0x8000),
            "rz": np.uint32(0),
            "rm": np.where(odd >> 31, 0xFFFF, 0),
            "rp": np.where(odd >> 31, 0, 0xFFFF),
        }[mode]
        infinite = np.isinf(exact)
        out = (np.where(infinite, odd, odd + half) >> 16).astype(np.uint16)
    else:
        dtype: Any = np.float32 if name == "f32" else np.float16
        rounded = exact.astype(dtype)
        if mode == "rna":
            away = np.nextafter(rounded, np.copysign(dtype(np.inf), exact).astype(dtype))
            tie = (away.astype(np.float64) + rounded.astype(np.float64)) / 2 == exact
            rounded = np.where(
                tie & (np.abs(rounded.astype(np.float64)) < np.abs(exact)), away, rounded
            )
        elif mode != "rn":
            rounded = _directed(rounded, exact, mode).astype(dtype)
        out = rounded.view(_UNSIGNED[name])
    return np.where(np.isnan(exact), _CANONICAL[name], out).astype(_UNSIGNED[name])


def to_odd(total: Any, error: Any) -> Any:
    """float64 `total` with `error` (the exact rest) folded in as round-to-odd."""
    bits = total.view(np.int64)
    adjust = (error != 0) & (bits & 1 == 0) & np.isfinite(total) & np.isfinite(error)
    up = (error > 0) == (total > 0)
    # An even total of zero means that the rest is zero too.
    return np.where(adjust, np.where(up, bits + 1, bits - 1), bits).view(np.float64)


def add_odd(a: Any, b: Any) -> Any:
    """a + b in float64, rounded to odd (2Sum gives the exact rest)."""
    total = a + b
    part = total - a
    return to_odd(total, (a - (total - part)) + (b - part))


def flush(x: Any, name: str) -> Any:
    """Subnormals to zeros of the same sign (.ftz)."""
    return np.where(np.abs(x) < _MIN_NORMAL[name], np.copysign(0.0, x), x)


def _wrap(d: Decode, compute: Callable[..., Any], count: int, f64: bool = False) -> Op:
    """An operation on exact float64 values, rounded and finished as the modifiers say."""
    mode = d.take("rn", "rz", "rm", "rp") or "rn"
    ftz = d.take("ftz") is not None
    saturate = d.take("sat") is not None
    relu = d.take("relu") is not None
    kinds = d.types(*_TYPES)
    if [k.name for k in kinds] in (["f32", "f16"], ["f32", "bf16"]) and count > 1:
        return _mixed(d, compute, count, kinds[1], mode, saturate and not (ftz or relu))
    if len(kinds) != 1:
        raise d.malformed(f"expected one type, got {len(kinds)}")
    kind = kinds[0]
    d.done(count + 1)
    name = element(kind)
    if name == "f64" and (not f64 or mode != "rn"):
        raise d.incomplete("no rule for type .f64" if not f64 else f"no rule for .{mode}.f64")
    unsigned = _UNSIGNED[name]
    n = view(f"u{8 * kind.size}")
    register = np.dtype(f"u{kind.size}")

    def run(*sources: Any) -> Any:
        values = [decode_float(s.view(unsigned), name) for s in sources]
        if ftz:
            values = [flush(v, name) for v in values]
        exact = compute(*values)
        if ftz:
            exact = flush(exact, name)
        if saturate:
            exact = np.where(np.isnan(exact), 0.0, np.clip(exact, 0.0, 1.0))
        if relu:
            exact = np.where(exact < 0, 0.0, exact)
        return encode_float(exact, name, mode).view(register)

    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n,) * count)


def _mixed(
    d: Decode, compute: Callable[..., Any], count: int, narrow: Type, mode: str, saturate: bool
) -> Op:
    """add, sub and fma of f32 with f16 or bf16 operands (sm_100): all but the last are narrow."""
    d.done(count + 1)
    f32 = TYPES["f32"]
    kinds = [narrow] * (count - 1) + [f32]

    def run(*sources: Any) -> Any:
        values = [decode_float(s, k.name) for s, k in zip(sources, kinds, strict=True)]
        exact = compute(*values)
        if saturate:
            exact = np.where(np.isnan(exact), 0.0, np.clip(exact, 0.0, 1.0))
        return encode_float(exact, "f32", mode)

    sources = tuple(d.src(o, k) for o, k in zip(d.operands[1:], kinds, strict=True))
    views = tuple(view(f"u{8 * k.size}") for k in kinds)
    return elementwise(d, run, d.dst(d.operands[0], f32), view("u32"), sources, views)


def _direct(d: Decode, ufunc: Any) -> Op | None:
    """The common case on whole float32 or float64 arrays: round to nearest, no other modifier."""
    if set(d.modifiers) - {"rn"} not in ({"f32"}, {"f64"}):
        return None
    d.skip("rn")
    kind = d.type()
    d.done(3)
    n = view(kind)
    canonical = np.array(_CANONICAL[kind.name], _UNSIGNED[kind.name]).view(VIEW_DTYPES[n])

    def run(a: Any, b: Any) -> Any:
        out = ufunc(a, b)
        if np.isnan(np.minimum.reduce(out)):
            out[np.isnan(out)] = canonical
        return out

    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n, n))


def float_add(d: Decode) -> Op:
    return _direct(d, np.add) or _wrap(d, add_odd, 2)


def float_sub(d: Decode) -> Op:
    return _direct(d, np.subtract) or _wrap(d, lambda a, b: add_odd(a, -b), 2)


def float_mul(d: Decode) -> Op:
    return _direct(d, np.multiply) or _wrap(d, np.multiply, 2)


@rule("fma")
def float_fma(d: Decode) -> Op:
    """The product of two 24-bit significands is exact in float64, so one rounding happens."""
    if "f64" in d.modifiers:
        return _wrap(d, fma64, 3, f64=True)
    return _wrap(d, lambda a, b, c: add_odd(a * b, c), 3)


def odd_quotient(a: Any, b: Any) -> Any:
    """a / b of f32 values in float64, rounded to odd at 29 bits: enough for every mode of f32."""
    nearest = np.asarray(a / b)
    cut = (nearest.view(np.int64) & ~np.int64((1 << 24) - 1)).view(np.float64)
    back = np.abs(cut * b)  # 29 + 24 bits: exact
    return _sticky(nearest, cut, back, np.abs(a))


def odd_root(a: Any) -> Any:
    """√a of f32 values in float64, rounded to odd at 26 bits."""
    nearest = np.asarray(np.sqrt(a))
    cut = (nearest.view(np.int64) & ~np.int64((1 << 27) - 1)).view(np.float64)
    return _sticky(nearest, cut, cut * cut, a)


def _sticky(nearest: Any, cut: Any, back: Any, wanted: Any) -> Any:
    """`cut`, one unit up or down where squaring or multiplying back misses what is wanted."""
    bits = cut.view(np.int64)
    moved = np.where(back < wanted, bits + 1, np.where(back > wanted, bits - 1, bits))
    usable = np.isfinite(nearest) & (nearest != 0)
    return np.where(usable, moved, nearest.view(np.int64)).view(np.float64)


def float_div(d: Decode) -> Op:
    """Every rounding of f32; f64 to nearest. .approx and .full: to nearest, as good as any."""
    d.skip("approx", "full")
    return _wrap(d, np.divide if "f64" in d.modifiers else odd_quotient, 2, f64=True)


def float_minmax(d: Decode, largest: bool) -> Op:
    """Two or three inputs; .xorsign.abs: magnitudes, under the product of the signs."""
    ftz = d.take("ftz") is not None
    propagate = d.take("NaN") is not None
    product = d.take("xorsign") is not None
    magnitudes = d.take("abs") is not None
    kind = d.type(*_TYPES)
    d.done((3, 4) if kind.name == "f32" else 3)
    if product and not magnitudes:
        raise d.malformed("expected .xorsign.abs")
    name = element(kind)
    unsigned: Any = _UNSIGNED[name]
    sign = unsigned(_SIGN[name])
    register = np.dtype(f"u{kind.size}")
    n = view(f"u{8 * kind.size}")

    def pick(a: Any, b: Any) -> Any:
        return minmax_bits(a, b, name, largest, propagate)

    def run(*operands: Any) -> Any:
        parts = [x.view(unsigned) for x in operands]
        if ftz:
            parts = [encode_float(flush(decode_float(x, name), name), name) for x in parts]
        signs = reduce(np.bitwise_xor, parts) & sign
        if magnitudes:
            parts = [x & ~sign for x in parts]
        out = reduce(pick, parts)
        return (out | signs if product else out).astype(unsigned).view(register)

    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n,) * len(sources))


def minmax_bits(a: Any, b: Any, name: str, largest: bool, propagate: bool) -> Any:
    """IEEE 754 minimumNumber or maximumNumber on bits; `propagate`: a NaN decides."""
    unsigned = _UNSIGNED[name]
    va, vb = decode_float(a, name), decode_float(b, name)
    first = va > vb if largest else va < vb
    # Equal values differ at most in the sign of zero: -0 counts as less than +0.
    equal = a & b if largest else a | b
    out = np.where(va == vb, equal, np.where(first, a, b))
    out = np.where(np.isnan(va), b, np.where(np.isnan(vb), a, out))
    both = np.isnan(va) & np.isnan(vb)
    nan = (np.isnan(va) | np.isnan(vb)) if propagate else both
    return np.where(nan, unsigned(_CANONICAL[name]), out).astype(unsigned)


def _sign_bits(d: Decode, fn: Callable[[Any, Any], Any]) -> Op:
    ftz = d.take("ftz") is not None
    kind = d.type(*_TYPES)
    d.done(2)
    name = element(kind)
    unsigned: Any = _UNSIGNED[name]
    register = np.dtype(f"u{kind.size}")
    n = view(f"u{8 * kind.size}")

    def run(x: Any) -> Any:
        a = x.view(unsigned)
        if ftz:
            a = encode_float(flush(decode_float(a, name), name), name)
        return fn(a, unsigned(_SIGN[name])).view(register)

    sources = (d.src(d.operands[1], kind),)
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n,))


def float_abs(d: Decode) -> Op:
    return _sign_bits(d, lambda a, sign: a & ~sign)


def float_neg(d: Decode) -> Op:
    return _sign_bits(d, lambda a, sign: a ^ sign)


@rule("copysign")
def copysign(d: Decode) -> Op:
    """The sign of a and the magnitude of b (in this order)."""
    kind = d.type("f32", "f64")
    d.done(3)
    n = view(f"u{8 * kind.size}")
    sign = _UNSIGNED[kind.name](_SIGN[kind.name])
    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    return elementwise(
        d, lambda a, b: a & sign | b & ~sign, d.dst(d.operands[0], kind), n, sources, (n, n)
    )


@rule("testp")
def testp(d: Decode) -> Op:
    from tcir.interp.ptx.isa.compare import predicate

    what = d.require("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    kind = d.type("f32", "f64")
    d.done(2)
    tests: dict[str, Callable[[Any], Any]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & (np.abs(a) >= _MIN_NORMAL[kind.name]),
        "subnormal": lambda a: (a != 0) & (np.abs(a) < _MIN_NORMAL[kind.name]),
    }
    source = d.src(d.operands[1], kind)
    return predicate(d, tests[what], (source,), view(kind), d.pred_dst(d.operands[0]))


def _unary(name: str, fn: Callable[[Any], Any], odd: Callable[[Any], Any] | None = None) -> None:
    @rule(name)
    def decode(d: Decode) -> Op:
        directed = {"rz", "rm", "rp"} & set(d.modifiers)
        if directed and (odd is None or "f64" in d.modifiers):
            raise d.incomplete(f"no rule for directed rounding of {name}")
        d.skip("approx")
        return _wrap(d, odd if directed and odd else fn, 1, f64=True)

    decode.__doc__ = f"{name}: computed in float64, rounded to nearest."


_unary("rcp", lambda a: 1.0 / a, lambda a: odd_quotient(np.ones_like(a), a))
_unary("sqrt", np.sqrt, odd_root)
_unary("rsqrt", lambda a: 1.0 / np.sqrt(a))
_unary("ex2", np.exp2)
_unary("lg2", np.log2)
_unary("sin", np.sin)
_unary("cos", np.cos)
_unary("tanh", np.tanh)
