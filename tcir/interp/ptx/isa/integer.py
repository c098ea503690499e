"""Integer arithmetic, logic, shifts and bit fields (PTX ISA 9.7.1, 9.7.2, 9.7.8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcir.interp.ptx.decode import Decode, Op, rule, view
from tcir.interp.ptx.isa.elementwise import elementwise, same_type
from tcir.interp.ptx.isa.floating import (
    float_abs,
    float_add,
    float_div,
    float_fma,
    float_minmax,
    float_mul,
    float_neg,
    float_sub,
)
from tcir.interp.ptx.syntax import TYPES, Type

_INTS = ("u16", "s16", "u32", "s32", "u64", "s64")
_FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"}


def is_float(d: Decode) -> bool:
    return any(m in _FLOATS for m in d.modifiers)


def _bits(kind: Type) -> int:
    return 8 * kind.size


def _simple(fn: Any) -> Callable[[Decode], Op]:
    def decode(d: Decode) -> Op:
        return same_type(d, fn, d.type(*_INTS), 2)

    return decode


def _saturating(d: Decode, subtract: bool) -> Op:
    kind = d.type("s32")

    def run(a: Any, b: Any) -> Any:
        wide = a.astype(np.int64)
        return np.clip(wide - b if subtract else wide + b, -(1 << 31), (1 << 31) - 1)

    return same_type(d, run, kind, 2)


@rule("add")
def add(d: Decode) -> Op:
    if is_float(d):
        return float_add(d)
    return _saturating(d, False) if d.take("sat") else _simple(np.add)(d)


@rule("sub")
def sub(d: Decode) -> Op:
    if is_float(d):
        return float_sub(d)
    return _saturating(d, True) if d.take("sat") else _simple(np.subtract)(d)


def _high(a: Any, b: Any, kind: Type) -> Any:
    """Upper half of the product, for 16, 32 and 64 bits."""
    if kind.size < 8:
        wide = np.int64 if kind.kind == "s" else np.uint64
        return (a.astype(wide) * b.astype(wide)) >> wide(_bits(kind))
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    x, y = a.view(np.uint64), b.view(np.uint64)
    xl, xh, yl, yh = x & low, x >> half, y & low, y >> half
    mid = xh * yl + ((xl * yl) >> half)
    mid2 = xl * yh + (mid & low)
    high = xh * yh + (mid >> half) + (mid2 >> half)
    if kind.kind == "s":
        zero = np.uint64(0)
        high = high - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
    return high.view(a.dtype)


def _product(d: Decode, mad: bool) -> Op:
    mode = d.take("lo", "hi", "wide")
    if mode is None:
        raise d.malformed("expected .lo, .hi or .wide")
    saturate = d.take("sat") is not None
    kind = d.type(*_INTS)
    count = 4 if mad else 3
    d.done(count)
    if saturate:
        raise d.incomplete("no rule for modifier .sat")
    n = view(kind)
    result = kind
    if mode == "wide":
        if kind.size > 4:
            raise d.malformed("expected a 16- or 32-bit type for .wide")
        result = TYPES[f"{kind.kind}{16 * kind.size}"]
    out = view(result)
    dst = d.dst(d.operands[0], result)
    sources = tuple(d.src(o, kind) for o in d.operands[1:3])
    views: tuple[int, ...] = (n, n)
    if mad:
        sources += (d.src(d.operands[3], result),)
        views += (out,)
    dtype = np.dtype(f"{'i' if kind.kind == 's' else 'u'}{result.size}")
    if mode == "wide":
        multiply: Any = lambda a, b: a.astype(dtype) * b  # noqa: E731
    elif mode == "hi":
        multiply = lambda a, b: _high(a, b, kind).astype(dtype)  # noqa: E731
    else:
        multiply = np.multiply
    run: Any = multiply
    if mad:
        run = lambda a, b, c: multiply(a, b) + c  # noqa: E731
    return elementwise(d, run, dst, out, sources, views)


@rule("mul")
def mul(d: Decode) -> Op:
    return float_mul(d) if is_float(d) else _product(d, mad=False)


@rule("mad")
def mad(d: Decode) -> Op:
    return float_fma(d) if is_float(d) else _product(d, mad=True)


def _twenty_four(d: Decode, mad: bool) -> Op:
    high = d.require("lo", "hi") == "hi"
    kind = d.type("u32", "s32")
    shift = 8
    wide = np.int64 if kind.kind == "s" else np.uint64

    def run(a: Any, b: Any, c: Any = 0) -> Any:
        if kind.kind == "s":
            a, b = (a << shift) >> shift, (b << shift) >> shift
        else:
            a, b = a & 0xFFFFFF, b & 0xFFFFFF
        product = a.astype(wide) * b.astype(wide)
        return (product >> wide(16) if high else product).astype(a.dtype) + c

    return same_type(d, run, kind, 3 if mad else 2)


@rule("mul24")
def mul24(d: Decode) -> Op:
    return _twenty_four(d, mad=False)


@rule("mad24")
def mad24(d: Decode) -> Op:
    return _twenty_four(d, mad=True)


def quotient(a: Any, b: Any) -> Any:
    """Truncating division; by zero gives all ones (PTX leaves it unspecified)."""
    zero = b == 0
    divisor = np.where(zero, 1, b).astype(a.dtype)
    if a.dtype.kind == "u":
        return np.where(zero, np.iinfo(a.dtype).max, a // divisor)
    # Magnitudes as unsigned numbers: the most negative value has no positive partner.
    wide = np.dtype(f"u{a.dtype.itemsize}")
    x = np.where(a < 0, 0 - a.view(wide), a.view(wide)).astype(wide)
    y = np.where(divisor < 0, 0 - divisor.view(wide), divisor.view(wide)).astype(wide)
    q = (x // y).astype(wide)
    q = np.where((a < 0) != (divisor < 0), 0 - q, q).astype(wide).view(a.dtype)
    return np.where(zero, -1, q)


def remainder(a: Any, b: Any) -> Any:
    """a − b·quotient; by zero gives a (PTX leaves it unspecified)."""
    return np.where(b == 0, a, a - b * quotient(a, b).astype(a.dtype))


@rule("div")
def div(d: Decode) -> Op:
    return float_div(d) if is_float(d) else _simple(quotient)(d)


@rule("rem")
def rem(d: Decode) -> Op:
    return _simple(remainder)(d)


def _minmax(d: Decode, fn: Any) -> Op:
    if is_float(d):
        return float_minmax(d, fn is np.maximum)
    relu = d.take("relu") is not None
    kind = d.type(*_INTS)
    run = (lambda a, b: np.maximum(fn(a, b), 0)) if relu else fn
    return same_type(d, run, kind, 2)


@rule("min")
def minimum(d: Decode) -> Op:
    return _minmax(d, np.minimum)


@rule("max")
def maximum(d: Decode) -> Op:
    return _minmax(d, np.maximum)


@rule("abs")
def absolute(d: Decode) -> Op:
    return float_abs(d) if is_float(d) else same_type(d, np.abs, d.type("s16", "s32", "s64"), 1)


@rule("neg")
def negate(d: Decode) -> Op:
    if is_float(d):
        return float_neg(d)
    return same_type(d, np.negative, d.type("s16", "s32", "s64"), 1)


@rule("sad")
def sad(d: Decode) -> Op:
    kind = d.type(*_INTS)
    return same_type(d, lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b)), kind, 3)


# --- logic -------------------------------------------------------------------------------------


def _logic(d: Decode, fn: Any, on_masks: Callable[[int, int], int]) -> Op:
    kind = d.type("b16", "b32", "b64", "pred")
    if kind.size:
        return same_type(d, fn, kind, 2)
    d.done(3)
    dst = d.pred_dst(d.operands[0])
    (a, xa), (b, xb) = d.pred(d.operands[1]), d.pred(d.operands[2])
    site = d.site

    def run(w: Any, m: int) -> None:
        if (w.undef[a] | w.undef[b]) & m:
            w.read_undefined(site, (a, b), m)
        value = on_masks(w.p[a] ^ xa, w.p[b] ^ xb)
        w.p[dst] = w.p[dst] & ~m | value & m
        w.undef[dst] &= ~m

    return d.plain(run)


@rule("and")
def bit_and(d: Decode) -> Op:
    return _logic(d, np.bitwise_and, lambda a, b: a & b)


@rule("or")
def bit_or(d: Decode) -> Op:
    return _logic(d, np.bitwise_or, lambda a, b: a | b)


@rule("xor")
def bit_xor(d: Decode) -> Op:
    return _logic(d, np.bitwise_xor, lambda a, b: a ^ b)


@rule("not")
def bit_not(d: Decode) -> Op:
    kind = d.type("b16", "b32", "b64", "pred")
    if kind.size:
        return same_type(d, np.invert, kind, 1)
    d.done(2)
    dst = d.pred_dst(d.operands[0])
    a, xa = d.pred(d.operands[1])
    site = d.site

    def run(w: Any, m: int) -> None:
        if w.undef[a] & m:
            w.read_undefined(site, (a,), m)
        w.p[dst] = w.p[dst] & ~m | ~(w.p[a] ^ xa) & m
        w.undef[dst] &= ~m

    return d.plain(run)


@rule("cnot")
def cnot(d: Decode) -> Op:
    return same_type(d, lambda a: a == 0, d.type("b16", "b32", "b64"), 1)


@rule("lop3")
def lop3(d: Decode) -> Op:
    kind = d.type("b32")
    d.done(5)
    table = d.immediate(d.operands[4])

    def run(a: Any, b: Any, c: Any) -> Any:
        out = np.zeros(32, np.uint32)
        for n in range(8):
            if table >> n & 1:
                out |= (a if n & 4 else ~a) & (b if n & 2 else ~b) & (c if n & 1 else ~c)
        return out

    n = view(kind)
    sources = tuple(d.src(o, kind) for o in d.operands[1:4])
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n, n, n))


# --- shifts ------------------------------------------------------------------------------------


def shift_left(a: Any, amount: Any) -> Any:
    width = 8 * a.dtype.itemsize
    return np.where(amount >= width, 0, a << np.minimum(amount, width - 1).astype(a.dtype))


def shift_right(a: Any, amount: Any) -> Any:
    """Amounts from the width on give 0, or the sign."""
    width = 8 * a.dtype.itemsize
    shifted = a >> np.minimum(amount, width - 1).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(amount >= width, 0, shifted)


def _shift(d: Decode, fn: Any, *types: str) -> Op:
    kind = d.type(*types)
    d.done(3)
    n = view(kind)
    sources = (d.src(d.operands[1], kind), d.src(d.operands[2], TYPES["u32"]))
    return elementwise(d, fn, d.dst(d.operands[0], kind), n, sources, (n, view("u32")))


@rule("shl")
def shl(d: Decode) -> Op:
    return _shift(d, shift_left, "b16", "b32", "b64")


@rule("shr")
def shr(d: Decode) -> Op:
    return _shift(d, shift_right, "b16", "b32", "b64", *_INTS)


@rule("shf")
def shf(d: Decode) -> Op:
    left = d.require("l", "r") == "l"
    clamp = d.require("clamp", "wrap") == "clamp"
    kind = d.type("b32")

    def run(a: Any, b: Any, c: Any) -> Any:
        amount = (np.minimum(c, 32) if clamp else c & 31).astype(np.uint64)
        both = b.astype(np.uint64) << np.uint64(32) | a
        if left:
            return (both << amount) >> np.uint64(32) & np.uint64(0xFFFFFFFF)
        return both >> amount & np.uint64(0xFFFFFFFF)

    return same_type(d, run, kind, 3)


# --- bit fields --------------------------------------------------------------------------------


@rule("popc")
def popc(d: Decode) -> Op:
    return _to_u32(d, lambda a: np.bitwise_count(a))


def _to_u32(d: Decode, fn: Any) -> Op:
    kind = d.type("b32", "b64", "u32", "s32", "u64", "s64")
    d.done(2)
    u32 = TYPES["u32"]
    source = d.src(d.operands[1], kind)
    return elementwise(d, fn, d.dst(d.operands[0], u32), view(u32), (source,), (view(kind),))


def bit_length(a: Any) -> Any:
    """Number of bits up to the highest set one, of unsigned words."""
    value, out = a.copy(), np.zeros(a.shape, np.uint32)
    step = 4 * a.dtype.itemsize
    while step:
        high = value >> a.dtype.type(step)
        more = high != 0
        out += np.where(more, step, 0).astype(np.uint32)
        value = np.where(more, high, value)
        step //= 2
    return out + (value != 0)


@rule("clz")
def clz(d: Decode) -> Op:
    return _to_u32(d, lambda a: 8 * a.dtype.itemsize - bit_length(a))


@rule("bfind")
def bfind(d: Decode) -> Op:
    amount = d.take("shiftamt") is not None

    def run(a: Any) -> Any:
        width = 8 * a.dtype.itemsize
        bits = np.where(a < 0, ~a, a).astype(a.dtype) if a.dtype.kind == "i" else a
        length = bit_length(bits.view(np.dtype(f"u{a.dtype.itemsize}"))).astype(np.int64)
        found = width - length if amount else length - 1
        return np.where(length == 0, 0xFFFFFFFF, found)

    return _to_u32(d, run)


@rule("brev")
def brev(d: Decode) -> Op:
    kind = d.type("b32", "b64")

    def run(a: Any) -> Any:
        octets = np.ascontiguousarray(a).view(np.uint8).reshape(32, -1)
        flipped = np.packbits(np.unpackbits(octets, axis=1, bitorder="little"), axis=1)
        return flipped[:, ::-1].copy().view(a.dtype)[:, 0]

    return same_type(d, run, kind, 1)


def _field(width: int, pos: Any, length: Any) -> Any:
    """Mask of a bit field, cut at the word's end; pos and length are taken modulo 256."""
    one = np.uint64(1)
    pos64 = (pos & 0xFF).astype(np.uint64)
    length64 = np.minimum((length & 0xFF).astype(np.uint64), np.uint64(width))
    ones = np.where(length64 >= 64, ~np.uint64(0), (one << (length64 & np.uint64(63))) - one)
    return np.where(pos64 >= width, np.uint64(0), ones << np.minimum(pos64, np.uint64(63)))


@rule("bfe")
def bfe(d: Decode) -> Op:
    kind = d.type("u32", "s32", "u64", "s64")
    d.done(4)
    width = _bits(kind)

    def run(a: Any, b: Any, c: Any) -> Any:
        pos, length = (b & 0xFF).astype(np.uint64), (c & 0xFF).astype(np.uint64)
        word = a.astype(np.uint64) & np.uint64((1 << width) - 1)
        mask = _field(width, np.zeros_like(b), c)
        taken = np.where(pos >= width, np.uint64(0), word >> np.minimum(pos, np.uint64(63))) & mask
        if kind.kind == "s":
            top = np.minimum(pos + length - np.uint64(1), np.uint64(width - 1))
            top = np.where(length == 0, np.uint64(0), top)
            sign = (word >> top & np.uint64(1)).astype(bool) & (length != 0)
            # Bits of the field past the word's end are copies of the sign too.
            have = np.where(pos >= width, np.uint64(0), np.minimum(length, width - pos))
            kept = np.where(have >= 64, ~np.uint64(0), (np.uint64(1) << have) - np.uint64(1))
            taken = np.where(sign, taken & kept | ~kept, taken)
        return taken & np.uint64((1 << width) - 1)

    n, u32 = view(f"u{width}"), TYPES["u32"]
    sources = (d.src(d.operands[1], kind), d.src(d.operands[2], u32), d.src(d.operands[3], u32))
    return elementwise(
        d, run, d.dst(d.operands[0], kind), n, sources, (n, view("u32"), view("u32"))
    )


@rule("bfi")
def bfi(d: Decode) -> Op:
    kind = d.type("b32", "b64")
    d.done(5)
    width = _bits(kind)

    def run(a: Any, b: Any, c: Any, length: Any) -> Any:
        mask = _field(width, c, length) & np.uint64((1 << width) - 1)
        shift = np.minimum((c & 0xFF).astype(np.uint64), np.uint64(63))
        return b.astype(np.uint64) & ~mask | (a.astype(np.uint64) << shift) & mask

    n, u32 = view(kind), TYPES["u32"]
    sources = tuple(d.src(o, kind) for o in d.operands[1:3])
    sources += tuple(d.src(o, u32) for o in d.operands[3:5])
    views = (n, n, view("u32"), view("u32"))
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, views)


@rule("prmt")
def prmt(d: Decode) -> Op:
    mode = d.take("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    kind = d.type("b32")
    if mode is not None:
        raise d.incomplete(f"no rule for modifier .{mode}")

    def run(a: Any, b: Any, c: Any) -> Any:
        octets = np.concatenate(
            [np.ascontiguousarray(x).view(np.uint8).reshape(32, 4) for x in (a, b)], axis=1
        )
        out = np.zeros(32, np.uint32)
        lanes = np.arange(32)
        for n in range(4):
            selector = c >> np.uint32(4 * n) & np.uint32(15)
            byte = octets[lanes, selector & 7]
            byte = np.where(selector & 8, np.where(byte & 0x80, 0xFF, 0), byte)
            out |= byte.astype(np.uint32) << np.uint32(8 * n)
        return out

    return same_type(d, run, kind, 3)
