"""setp, set, selp, slct (PTX ISA 9.7.5, 9.7.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import (
    Bits,
    PredicateFlow,
    Unknown,
    any_bit,
    as_bits,
    bitwise,
    equal,
    mixed,
    octets,
    ordered,
    varying,
)
from tcir.interp.ptx.isa.values.elementwise import elementwise, predicate
from tcir.interp.ptx.isa.values.rounding import decode_float, element, flush
from tcir.interp.ptx.lanes import FULL, LANE_MASK, bits
from tcir.interp.ptx.op import Compute, Op
from tcir.interp.ptx.registers import PREDICATE, unsigned_view, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Pair, Type
from tcir.interp.ptx.warp import Warp

_ORDERED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_NAMES = (*_ORDERED, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
_TYPES = (
    *(f"{k}{n}" for k in "bus" for n in (16, 32, 64)),
    *("f32", "f64", "f16", "bf16", "f16x2", "bf16x2"),
)


def _comparison(name: str, kind: Type, ftz: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """bool[32] (or [64] for packed types) of two register arrays; unordered forms for floats."""
    if kind.kind != "f":
        return _ORDERED[name]

    def run(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        if kind.name in ("f32", "f64") and not ftz:
            a, b = x, y
        else:
            part = element(kind)
            width = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32}[part]
            a, b = decode_float(x.view(width), part), decode_float(y.view(width), part)
            if ftz:
                a, b = flush(a, part), flush(b, part)
        if name in ("num", "nan"):
            unordered = np.isnan(a) | np.isnan(b)
            return unordered if name == "nan" else ~unordered
        if name.endswith("u") and name[:-1] in _ORDERED:
            return _ORDERED[name[:-1]](a, b) | np.isnan(a) | np.isnan(b)
        if name == "ne":
            return (a != b) & ~np.isnan(a) & ~np.isnan(b)
        return _ORDERED[name](a, b)

    return run


def _flow(name: str, kind: Type) -> PredicateFlow:
    if kind.kind == "f":
        return any_bit
    return equal if name in ("eq", "ne") else ordered


def _operands(
    d: Decode,
) -> tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], Type, int, PredicateFlow]:
    name = d.require(*_NAMES)
    ftz = d.take("ftz") is not None
    kind = d.type(*_TYPES)
    if (name in ("lo", "ls", "hi", "hs")) and kind.kind == "f":
        raise d.malformed(f".{name} compares unsigned integers")
    n = view(kind) if kind.name not in ("f16", "f16x2") else unsigned_view(kind.size)
    if kind.kind == "b" and name not in ("eq", "ne"):
        raise d.malformed(f".{name} does not compare .{kind.name}")
    if kind.name in ("f32", "f64") and ftz:
        n = unsigned_view(kind.size)
    return _comparison(name, kind, ftz), kind, n, _flow(name, kind)


@instruction("setp")
def setp(d: Decode) -> Op:
    combine = d.take("and", "or", "xor")
    fn, kind, n, flow = _operands(d)
    packed = kind.name.endswith("x2")
    d.done(4 if combine else 3)
    target = d.operands[0]
    first = d.pred_dst(target.first if isinstance(target, Pair) else target)
    second = d.pred_dst(target.second) if isinstance(target, Pair) else None
    sources = (d.src(d.operands[1], kind), d.src(d.operands[2], kind))
    if second is None and not packed and combine is None:
        return predicate(d, fn, sources, n, first, flow)
    if packed and second is None:
        raise d.malformed("expected two destination predicates p|q for a packed type")
    c, flip = d.pred(d.operands[3]) if combine else (-1, 0)
    site = d.site
    both: Callable[..., Any] = {
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        None: lambda a, b: a,
    }[combine]

    def run(w: Warp, m: int) -> None:
        undef = w.undef
        other, unsure = (w.p[c] ^ flip, undef[c] & m) if c >= 0 else (0, 0)
        v = w.v[n]
        values = [v[s] for s in sources]
        found = fn(*values)
        yes = bits(found[0::2]) if packed else bits(found)
        no = bits(found[1::2]) if packed else ~yes
        lost: list[Unknown | None] = [None, None]
        if (undef[sources[0]] | undef[sources[1]] | unsure) & m:
            compared = w.result(sources, m, site, lambda b: as_bits(flow(fn, values, b)))
            unknown = bits(compared.bits[:, 0] != 0) if compared else 0
            origin = compared or w.undefined(c, m, site)
            lanes = [varying(both, (x, unknown), (other, unsure)) for x in (yes, no)]
            lost = [origin and Unknown(as_bits(LANE_MASK[x]), origin.origin) for x in lanes]
        w.p[first] = w.p[first] & ~m | both(yes, other) & m
        w.define(first, m, lost[0])
        if second is not None:
            w.p[second] = w.p[second] & ~m | both(no, other) & m
            w.define(second, m, lost[1])

    def compared(x: np.ndarray, y: np.ndarray, *other: np.ndarray) -> tuple[np.ndarray, ...]:
        found = fn(x, y)
        yes, no = (found[0::2], found[1::2]) if packed else (found, ~found)
        third = other[0] if other else yes
        return (both(yes, third), both(no, third))[: 1 if second is None else 2]

    values = tuple((s, n) for s in sources) + (((c, PREDICATE),) if c >= 0 else ())
    targets = tuple((s, PREDICATE) for s in (first, second) if s is not None)
    return d.computing(run, Compute(compared, values, targets, (2,) if flip else ()))


_YES = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "u16": 0xFFFF, "s16": 0xFFFF, "f32": 0x3F800000,
        "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}  # fmt: skip


@instruction("set")
def set_value(d: Decode) -> Op:
    """`set.cmp{.bool}.dtype.stype d, a, b{, c}`: d is all ones (or 1.0 for float results) where the
    comparison is true, else 0. Packed types are compared half by half.
    """
    combine = d.take("and", "or", "xor")
    result = next((TYPES[m] for m in d.modifiers if m in TYPES), None)
    if result is None or sum(m in TYPES for m in d.modifiers) != 2:
        raise d.malformed("expected two types")
    d.modifiers.remove(result.name)
    if result.name not in _YES:
        raise d.malformed(f"expected one of .{', .'.join(_YES)} as the result, got .{result.name}")
    fn, kind, n, _ = _operands(d)
    packed = kind.name.endswith("x2")
    d.done(4 if combine else 3)
    if packed and (result.size != 4 or result.name == "f32"):
        raise d.malformed(f"expected .u32, .s32, .f16x2 or .bf16x2 as the result of .{kind.name}")
    part = np.uint16 if packed else np.dtype(f"u{result.size}").type
    yes = part(_YES[result.name] & (0xFFFF if packed else 0xFFFFFFFF))
    sources = (d.src(d.operands[1], kind), d.src(d.operands[2], kind))
    out, dst = unsigned_view(result.size), d.dst(d.operands[0], result)
    c, flip = d.pred(d.operands[3]) if combine else (-1, 0)
    needed = (*sources, c) if c >= 0 else sources
    both = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, None: None}[combine]
    site = d.site

    def run(w: Warp, m: int) -> None:
        lost = w.result(needed, m, site, mixed(result.size))
        v = w.v[n]
        found = fn(v[sources[0]], v[sources[1]])
        if both is not None:
            other = LANE_MASK[(w.p[c] ^ flip) & 0xFFFFFFFF]
            found = both(found, np.repeat(other, 2) if packed else other)
        values = np.where(found, yes, part(0)).view(np.dtype(f"u{result.size}"))
        np.copyto(w.v[out][dst], values, where=LANE_MASK[m])
        w.define(dst, m, lost)

    return d.computing(run)


@instruction("selp")
def selp(d: Decode) -> Op:
    kind = d.type("b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
    d.done(4)
    n = unsigned_view(kind.size)
    dst = d.dst(d.operands[0], kind)
    a, b = d.src(d.operands[1], kind), d.src(d.operands[2], kind)
    c, flip = d.pred(d.operands[3])
    site = d.site

    def run(w: Warp, m: int) -> None:
        undef, lost = w.undef, None
        v = w.v[n]
        yes = w.p[c] ^ flip
        if (undef[c] | undef[a] & yes | undef[b] & ~yes) & m:
            lost = w.result(
                (a, b, c), m, site, lambda u: _selected(LANE_MASK[yes & FULL], v[a], v[b], *u)
            )
        result = np.where(LANE_MASK[yes & FULL], v[a], v[b])
        np.copyto(v[dst], result, where=LANE_MASK[m])
        undef[dst] &= ~m
        if lost:
            w.define(dst, m, lost)

    def choose(x: np.ndarray, y: np.ndarray, yes: np.ndarray) -> np.ndarray:
        return np.where(yes, x, y)

    sources = (a, n), (b, n), (c, PREDICATE)
    return d.computing(run, Compute(choose, sources, ((dst, n),), (2,) if flip else ()))


def _selected(
    yes: np.ndarray, a: np.ndarray, b: np.ndarray, of_a: Bits, of_b: Bits, of_c: Bits
) -> Bits:
    """Undefined bits of yes ? a : b. Where the choice is undefined, those in which a and b differ
    are also undefined."""
    either = octets(a ^ b) | of_a | of_b
    return np.where(of_c != 0, either, np.where(yes[:, None], of_a, of_b))


@instruction("slct")
def slct(d: Decode) -> Op:
    """d is a where c ≥ 0, and b elsewhere."""
    d.skip("ftz")
    kinds = d.types()
    d.done(4)
    if len(kinds) != 2 or kinds[1].name not in ("s32", "f32"):
        raise d.malformed("expected a type and .s32 or .f32")
    kind, by = kinds
    n = unsigned_view(kind.size)
    sources = (*(d.src(o, kind) for o in d.operands[1:3]), d.src(d.operands[3], by))
    dst = d.dst(d.operands[0], kind)

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.where(c >= 0, a, b)

    return elementwise(d, run, dst, n, sources, (n, n, view(by)), bitwise(2))
