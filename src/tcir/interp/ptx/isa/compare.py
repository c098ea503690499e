"""setp, set, selp, slct (PTX ISA 9.7.5, 9.7.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tcir.interp.ptx.decode import Decode, Op, rule, view
from tcir.interp.ptx.isa.elementwise import elementwise
from tcir.interp.ptx.isa.floating import element
from tcir.interp.ptx.isa.rounding import decode_float, flush
from tcir.interp.ptx.syntax import TYPES, Pair, Type
from tcir.interp.ptx.warp import BOOLS, Warp, bits

_ORDERED: dict[str, Callable[[Any, Any], Any]] = {
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


def _comparison(name: str, kind: Type, ftz: bool) -> Callable[[Any, Any], Any]:
    """bool[32] (or [64] for packed types) of two register arrays; unordered forms for floats."""
    if kind.kind != "f":
        return _ORDERED[name]

    def run(x: Any, y: Any) -> Any:
        if kind.name in ("f32", "f64") and not ftz:
            a, b = x, y
        else:
            part = element(kind)
            width: Any = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32}[part]
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


def predicate(
    d: Decode, fn: Callable[..., Any], sources: tuple[int, ...], source_view: int, dst: int
) -> Op:
    """dst predicate = fn(sources…) lane by lane."""
    site = d.site

    def run(w: Warp, m: int) -> None:
        undef = w.undef
        for s in sources:
            if undef[s] & m:
                w.read_undefined(site, sources, m)
        v = w.v[source_view]
        found = bits(fn(*[v[s] for s in sources]))
        w.p[dst] = w.p[dst] & ~m | found & m
        undef[dst] &= ~m

    return d.plain(run)


def _operands(d: Decode) -> tuple[Callable[[Any, Any], Any], Type, int, bool]:
    name = d.require(*_NAMES)
    ftz = d.take("ftz") is not None
    kind = d.type(*_TYPES)
    if (name in ("lo", "ls", "hi", "hs")) and kind.kind == "f":
        raise d.malformed(f".{name} compares unsigned integers")
    packed = kind.name.endswith("x2")
    n = view(kind) if kind.name not in ("f16", "f16x2") else view(f"u{8 * kind.size}")
    if kind.kind == "b" and name not in ("eq", "ne"):
        raise d.malformed(f".{name} does not compare .{kind.name}")
    if kind.name in ("f32", "f64") and ftz:
        n = view(f"u{8 * kind.size}")
    return _comparison(name, kind, ftz), kind, n, packed


@rule("setp")
def setp(d: Decode) -> Op:
    combine = d.take("and", "or", "xor")
    fn, kind, n, packed = _operands(d)
    d.done(4 if combine else 3)
    target = d.operands[0]
    first = d.pred_dst(target.first if isinstance(target, Pair) else target)
    second = d.pred_dst(target.second) if isinstance(target, Pair) else None
    sources = (d.src(d.operands[1], kind), d.src(d.operands[2], kind))
    if second is None and not packed and combine is None:
        return predicate(d, fn, sources, n, first)
    if packed and second is None:
        raise d.malformed("expected two destination predicates p|q for a packed type")
    c, flip = d.pred(d.operands[3]) if combine else (-1, 0)
    site = d.site
    both: Callable[[int, int], int] = {
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        None: lambda a, b: a,
    }[combine]

    def run(w: Warp, m: int) -> None:
        undef = w.undef
        if (undef[sources[0]] | undef[sources[1]] | (undef[c] if c >= 0 else 0)) & m:
            w.read_undefined(site, (*sources, *((c,) if c >= 0 else ())), m)
        other = w.p[c] ^ flip if c >= 0 else 0
        v = w.v[n]
        found = fn(v[sources[0]], v[sources[1]])
        yes = bits(found[0::2]) if packed else bits(found)
        no = bits(found[1::2]) if packed else ~yes
        w.p[first] = w.p[first] & ~m | both(yes, other) & m
        undef[first] &= ~m
        if second is not None:
            w.p[second] = w.p[second] & ~m | both(no, other) & m
            undef[second] &= ~m

    return d.plain(run)


_YES = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "u16": 0xFFFF, "s16": 0xFFFF, "f32": 0x3F800000,
        "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}  # fmt: skip


@rule("set")
def set_value(d: Decode) -> Op:
    """`set.cmp{.bool}.dtype.stype d, a, b{, c}`: all ones, or 1.0, where true; packed by halves."""
    combine = d.take("and", "or", "xor")
    result = next((TYPES[m] for m in d.modifiers if m in TYPES), None)
    if result is None or sum(m in TYPES for m in d.modifiers) != 2:
        raise d.malformed("expected two types")
    d.modifiers.remove(result.name)
    if result.name not in _YES:
        raise d.malformed(f"expected one of .{', .'.join(_YES)} as the result, got .{result.name}")
    fn, kind, n, packed = _operands(d)
    d.done(4 if combine else 3)
    if packed and (result.size != 4 or result.name == "f32"):
        raise d.malformed(f"expected .u32, .s32, .f16x2 or .bf16x2 as the result of .{kind.name}")
    part: Any = np.uint16 if packed else np.dtype(f"u{result.size}").type
    yes = part(_YES[result.name] & (0xFFFF if packed else 0xFFFFFFFF))
    sources = (d.src(d.operands[1], kind), d.src(d.operands[2], kind))
    out, dst = view(f"u{8 * result.size}"), d.dst(d.operands[0], result)
    c, flip = d.pred(d.operands[3]) if combine else (-1, 0)
    needed = (*sources, c) if c >= 0 else sources
    both: Any = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, None: None}[
        combine
    ]
    site = d.site

    def run(w: Warp, m: int) -> None:
        for s in needed:
            if w.undef[s] & m:
                w.read_undefined(site, needed, m)
        v = w.v[n]
        found = fn(v[sources[0]], v[sources[1]])
        if both is not None:
            other = BOOLS[(w.p[c] ^ flip) & 0xFFFFFFFF]
            found = both(found, np.repeat(other, 2) if packed else other)
        values = np.where(found, yes, part(0)).view(np.dtype(f"u{result.size}"))
        np.copyto(w.v[out][dst], values, where=BOOLS[m])
        w.undef[dst] &= ~m

    return d.plain(run)


@rule("selp")
def selp(d: Decode) -> Op:
    kind = d.type("b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64")
    d.done(4)
    n = view(f"u{8 * kind.size}")
    dst = d.dst(d.operands[0], kind)
    a, b = d.src(d.operands[1], kind), d.src(d.operands[2], kind)
    c, flip = d.pred(d.operands[3])
    site = d.site

    def run(w: Warp, m: int) -> None:
        undef = w.undef
        yes = w.p[c] ^ flip
        if (undef[c] | undef[a] & yes | undef[b] & ~yes) & m:
            w.read_undefined(site, (c,), m)
            w.read_undefined(site, (a,), m & yes)
            w.read_undefined(site, (b,), m & ~yes)
        v = w.v[n]
        result = np.where(BOOLS[yes & 0xFFFFFFFF], v[a], v[b])
        np.copyto(v[dst], result, where=BOOLS[m])
        undef[dst] &= ~m

    return d.plain(run)


@rule("slct")
def slct(d: Decode) -> Op:
    """a where c ≥ 0, else b."""
    d.skip("ftz")
    kinds = d.types()
    d.done(4)
    if len(kinds) != 2 or kinds[1].name not in ("s32", "f32"):
        raise d.malformed("expected a type and .s32 or .f32")
    kind, by = kinds
    n = view(f"u{8 * kind.size}")
    sources = (*(d.src(o, kind) for o in d.operands[1:3]), d.src(d.operands[3], by))
    dst = d.dst(d.operands[0], kind)
    return elementwise(d, lambda a, b, c: np.where(c >= 0, a, b), dst, n, sources, (n, n, view(by)))
