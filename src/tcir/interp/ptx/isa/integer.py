"""Integer arithmetic (PTX ISA 9.7.1).

Mnemonics that also exist for floats (`add`, `mul`, …) call `floating` for the float types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import Unknown, elements, upward, whole
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
from tcir.interp.ptx.isa.values.elementwise import elementwise, parts, same_type
from tcir.interp.ptx.lanes import bits as lane_mask
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Type
from tcir.interp.ptx.warp import Warp
from tcir.machine.memory.undefined import Origin
from tcir.machine.order.involved import lane_words

INTS = ("u16", "s16", "u32", "s32", "u64", "s64")
#: Two integers in a 32-bit register, each with an arithmetic of its own: add, min and max.
PACKED = ("u16x2", "s16x2")
_FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64"}


def is_float(d: Decode) -> bool:
    return any(m in _FLOATS for m in d.modifiers)


def _bits(kind: Type) -> int:
    return 8 * kind.size


def _packed(d: Decode, fn: Callable[..., np.ndarray]) -> Op | None:
    """The instruction if it has one of the PACKED types: `fn` of all their elements."""
    if not set(PACKED) & set(d.modifiers):
        return None
    kind = d.type(*PACKED)
    part = np.dtype("i2" if kind.kind == "s" else "u2")

    def run(*operands: np.ndarray) -> np.ndarray:
        found = fn(*[parts(x, part) for x in operands])
        return found.astype(part, copy=False).view(np.uint32)

    return same_type(d, run, kind, 2, elements(2))


def _saturate(fn: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A sum or difference in int64, clipped to the operands' type."""

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        range_ = np.iinfo(a.dtype)
        wide = fn(a.astype(np.int64), b.astype(np.int64))
        return np.clip(wide, range_.min, range_.max).astype(a.dtype)

    return run


def _sum(d: Decode, fn: Callable[..., np.ndarray]) -> Op:
    saturate = d.take("sat") is not None
    run = _saturate(fn) if saturate else fn
    kind = d.type("s32") if saturate else d.type(*INTS)
    return same_type(d, run, kind, 2, whole if saturate else upward)


@instruction("add")
def add(d: Decode) -> Op:
    if is_float(d):
        return float_add(d)
    return _packed(d, np.add) or _sum(d, np.add)


@instruction("sub")
def sub(d: Decode) -> Op:
    if is_float(d):
        return float_sub(d)
    return _sum(d, np.subtract)


def high_product(a: np.ndarray, b: np.ndarray, kind: Type) -> np.ndarray:
    """Upper half of the product of two 16-, 32- or 64-bit integers."""
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
    kind = d.type(*INTS)
    count = 4 if mad else 3
    d.done(count)
    if saturate and (not mad or mode != "hi" or kind.name != "s32"):
        raise d.malformed("expected .sat with mad.hi.s32 only")
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
        multiply: Callable[..., np.ndarray] = lambda a, b: a.astype(dtype) * b  # noqa: E731
    elif mode == "hi":
        multiply = lambda a, b: high_product(a, b, kind).astype(dtype)  # noqa: E731
    else:
        multiply = np.multiply
    run: Callable[..., np.ndarray] = multiply
    if mad:
        add = _saturate(np.add) if saturate else np.add
        run = lambda a, b, c: add(multiply(a, b), c)  # noqa: E731
    flow = whole if mode == "hi" else upward
    return elementwise(d, run, dst, out, sources, views, flow)


@instruction("mul")
def mul(d: Decode) -> Op:
    return float_mul(d) if is_float(d) else _product(d, mad=False)


@instruction("mad")
def mad(d: Decode) -> Op:
    return float_fma(d) if is_float(d) else _product(d, mad=True)


def _twenty_four(d: Decode, mad: bool) -> Op:
    high = d.require("lo", "hi") == "hi"
    saturate = d.take("sat") is not None
    kind = d.type("u32", "s32")
    if saturate and not (mad and high and kind.name == "s32"):
        raise d.malformed("expected .sat with mad24.hi.s32 only")
    add = _saturate(np.add) if saturate else np.add
    shift = 8
    wide = np.int64 if kind.kind == "s" else np.uint64

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        if kind.kind == "s":
            a, b = (a << shift) >> shift, (b << shift) >> shift
        else:
            a, b = a & 0xFFFFFF, b & 0xFFFFFF
        product = a.astype(wide) * b.astype(wide)
        product = (product >> wide(16) if high else product).astype(a.dtype)
        return product if c is None else add(product, c)

    return same_type(d, run, kind, 3 if mad else 2)


@instruction("mul24")
def mul24(d: Decode) -> Op:
    return _twenty_four(d, mad=False)


@instruction("mad24")
def mad24(d: Decode) -> Op:
    return _twenty_four(d, mad=True)


def quotient(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Quotient truncated toward zero. It is all ones where b is 0, and `_division` marks these
    lanes as undefined.
    """
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


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a − b·quotient. It is a where b is 0, and `_division` marks these lanes as undefined."""
    return np.where(b == 0, a, a - b * quotient(a, b).astype(a.dtype))


def _division(d: Decode, fn: Callable[..., np.ndarray]) -> Op:
    """By zero the result is unspecified (PTX ISA 9.7.1.8): undefined bits, and no error by itself.

    Code divides first and selects afterwards, as nvcc does.
    """
    kind = d.type(*INTS)
    op = same_type(d, fn, kind, 2)
    assert op.results
    divide, n, site, (target,) = op.run, view(kind), d.site, op.results
    divisor, name = d.src(d.operands[2], kind), getattr(d.operands[0], "name", "_")

    def run(w: Warp, m: int) -> None:
        zero = lane_mask(w.v[n][divisor] == 0) & m  # the result may be the divisor's register
        divide(w, m)
        zero &= ~w.undef[target]
        if zero:
            place = f"{name} (warp {w.index}, {lane_words(zero)})"
            missing = "a divisor other than 0: the result of another is unspecified"
            origin = Origin("division-by-zero", site, place, missing, w.agent.cta.index, name)
            w.define(target, zero, Unknown(np.full((32, kind.size), 0xFF, np.uint8), origin))

    op.run = run
    assert op.compute is not None
    op.compute = replace(op.compute, divisor=1)
    return op


@instruction("div")
def div(d: Decode) -> Op:
    return float_div(d) if is_float(d) else _division(d, quotient)


@instruction("rem")
def rem(d: Decode) -> Op:
    return _division(d, remainder)


def _minmax(d: Decode, fn: Callable[..., np.ndarray]) -> Op:
    if is_float(d):
        return float_minmax(d, fn is np.maximum)
    relu = d.take("relu") is not None
    run = (lambda a, b: np.maximum(fn(a, b), 0)) if relu else fn
    return _packed(d, run) or same_type(d, run, d.type(*INTS), 2)


@instruction("min")
def minimum(d: Decode) -> Op:
    return _minmax(d, np.minimum)


@instruction("max")
def maximum(d: Decode) -> Op:
    return _minmax(d, np.maximum)


@instruction("abs")
def absolute(d: Decode) -> Op:
    return float_abs(d) if is_float(d) else same_type(d, np.abs, d.type("s16", "s32", "s64"), 1)


@instruction("neg")
def negate(d: Decode) -> Op:
    if is_float(d):
        return float_neg(d)
    return same_type(d, np.negative, d.type("s16", "s32", "s64"), 1, upward)


@instruction("sad")
def sad(d: Decode) -> Op:
    kind = d.type(*INTS)
    return same_type(d, lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b)), kind, 3)
