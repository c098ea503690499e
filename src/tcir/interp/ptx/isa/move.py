"""mov, packing and unpacking, address conversion (PTX ISA 9.7.9)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import Unknown, joined, upward
from tcir.interp.ptx.isa.values.elementwise import elementwise, predicate
from tcir.interp.ptx.lanes import FULL, LANE_MASK
from tcir.interp.ptx.op import Compute, Op
from tcir.interp.ptx.registers import PREDICATE, U32, VIEW_DTYPES, unsigned_view, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.special_registers import MOVING, VECTORS
from tcir.interp.ptx.syntax import TYPES, Operand, Sink, SpecialRegister, Type, Vector
from tcir.interp.ptx.warp import Warp
from tcir.interp.ptx.windows import SPACES, WINDOWS

_SPACES = ("shared", "global", "local", "const", "param", "shared::cta", "shared::cluster",
           "param::entry", "param::func")  # fmt: skip


@instruction("mov.v2", "mov.v4")
def mov_vector(d: Decode) -> Op:
    """Moves a vector element by element; a special register such as %tid has four elements."""
    count = int(d.name[-1])
    kind = d.type("b32", "u32", "s32", "b16", "u16", "s16", "b64", "u64", "s64", "f32", "f64")
    d.done(2)
    source = d.operands[1]
    if isinstance(source, SpecialRegister) and source.name in VECTORS:
        if count != 4:
            raise d.malformed(f"expected .v4: {source.name} has four elements")
        parts: tuple[Operand, ...] = tuple(
            SpecialRegister(f"{source.name}.{axis}") for axis in "xyzw"
        )
    else:
        parts = d.vector(source, count)
    targets = [d.dst(o, kind) for o in d.vector(d.operands[0], count)]
    pairs = list(zip(targets, [d.src(o, kind) for o in parts], strict=True))
    n, site = unsigned_view(kind.size), d.site

    def run(w: Warp, m: int) -> None:
        where = LANE_MASK[m]
        read = [(dst, w.v[n][a].copy(), w.undefined(a, m, site)) for dst, a in pairs]
        for dst, values, lost in read:
            np.copyto(w.v[n][dst], values, where=where)
            w.define(dst, m, lost)

    def copies(*values: np.ndarray) -> tuple[np.ndarray, ...]:
        return values

    moved = tuple((a, n) for _, a in pairs), tuple((dst, n) for dst, _ in pairs)
    return d.computing(run, Compute(copies, *moved, moved=count))


@instruction("mov")
def mov(d: Decode) -> Op:
    kind = d.type()
    d.done(2)
    target, source = d.operands
    if kind.kind == "pred":
        return _move_predicate(d)
    if isinstance(target, Vector):
        return _unpack(d, kind, target)
    if isinstance(source, Vector):
        return _pack(d, kind, source)
    n = unsigned_view(kind.size)
    dst = d.dst(target, kind)
    if isinstance(source, SpecialRegister) and source.name in MOVING:
        name = source.name

        def clock(w: Warp, m: int) -> None:
            np.copyto(w.v[n][dst], w.launch.clock(name), where=LANE_MASK[m], casting="unsafe")
            w.undef[dst] &= ~m

        return d.computing(clock)
    a, site = d.src(source, kind), d.site

    def move(w: Warp, m: int) -> None:
        undef = w.undef
        v = w.v[n]
        if m == FULL:
            v[dst][:] = v[a]
        else:
            np.copyto(v[dst], v[a], where=LANE_MASK[m])
        # Moving an undefined value is no use of it: the copy is undefined too.
        if undef[a] & m:
            w.copied(a, dst, m, site)
        else:
            undef[dst] &= ~m

    return d.computing(move, Compute(np.copy, ((a, n),), ((dst, n),), moved=1))


def _move_predicate(d: Decode) -> Op:
    dst = d.pred_dst(d.operands[0])
    a, flip = d.pred(d.operands[1])
    site = d.site

    def run(w: Warp, m: int) -> None:
        w.p[dst] = w.p[dst] & ~m | (w.p[a] ^ flip) & m
        w.define(dst, m, w.undefined(a, m, site))

    flips = (0,) if flip else ()
    return d.computing(run, Compute(np.copy, ((a, PREDICATE),), ((dst, PREDICATE),), flips))


def _parts(d: Decode, kind: Type, vector: Vector) -> Type:
    count = len(vector.items)
    if count not in (2, 4, 8) or kind.size % count:
        raise d.malformed(f"expected 2 or 4 elements for .{kind.name}, got {count}")
    return TYPES[f"u{8 * kind.size // count}"]


def _pack(d: Decode, kind: Type, source: Vector) -> Op:
    """The first element goes to the least significant bits."""
    part = _parts(d, kind, source)
    sources = tuple(d.src(o, part) for o in source.items)
    n, big = view(part), unsigned_view(kind.size)
    if kind.size == 16:

        def join(*parts: np.ndarray) -> np.ndarray:
            return np.stack(parts, axis=1).view("V16")[:, 0]

        views, dst = (n,) * len(sources), d.dst(d.operands[0], kind)
        return elementwise(d, join, dst, big, sources, views, joined)
    shift = 8 * part.size
    dtype = np.dtype(f"u{kind.size}").type

    def run(*parts: np.ndarray) -> np.ndarray:
        out = parts[0].astype(dtype)
        for number, value in enumerate(parts[1:], 1):
            out |= value.astype(dtype) << dtype(number * shift)
        return out

    views, dst = (n,) * len(sources), d.dst(d.operands[0], kind)
    return elementwise(d, run, dst, big, sources, views, joined, moved=len(sources))


def _unpack(d: Decode, kind: Type, target: Vector) -> Op:
    part = _parts(d, kind, target)
    n, big = view(part), unsigned_view(kind.size)
    a = d.src(d.operands[1], kind)
    if kind.size == 16:
        return _unpack_wide(d, a, [d.dst(o, part) for o in target.items], n)
    dtype = np.dtype(f"u{kind.size}").type
    wanted = [
        (d.dst(o, part), dtype(8 * part.size * number))
        for number, o in enumerate(target.items)
        if not isinstance(o, Sink)
    ]

    size, site = part.size, d.site

    def run(w: Warp, m: int) -> None:
        undef = w.undef
        value = w.v[big][a].copy()
        lost = w.undefined(a, m, site) if undef[a] & m else None
        where = LANE_MASK[m]
        for dst, shift in wanted:
            np.copyto(w.v[n][dst], value >> shift, where=where, casting="unsafe")
            undef[dst] &= ~m
            if lost:
                first = int(shift) // 8
                w.define(dst, m, Unknown(lost.bits[:, first : first + size], lost.origin))

    def parts(value: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(value >> shift for _, shift in wanted)

    results = tuple((dst, n) for dst, _ in wanted)
    return d.computing(run, Compute(parts, ((a, big),), results, moved=1))


def _unpack_wide(d: Decode, a: int, targets: list[int], n: int) -> Op:
    """A b128 register to parts of it."""
    size, site = VIEW_DTYPES[n].itemsize, d.site

    def run(w: Warp, m: int) -> None:
        parts = w.v[view("u128")][a].view(VIEW_DTYPES[n]).reshape(32, -1)
        lost = w.undefined(a, m, site)
        for column, dst in enumerate(targets):
            np.copyto(w.v[n][dst], parts[:, column], where=LANE_MASK[m])
            some = slice(column * size, (column + 1) * size)
            w.define(dst, m, lost and Unknown(lost.bits[:, some], lost.origin))

    return d.computing(run)


@instruction("cvta")
def cvta(d: Decode) -> Op:
    inverse = d.take("to") is not None
    space = d.require(*_SPACES).split("::")[0]
    kind = d.type("u32", "u64", "b64")
    d.done(2)
    if kind.size != 8:
        raise d.malformed("expected .u64: addresses have 64 bits")
    n = view(kind)
    base = np.uint64(WINDOWS[space])
    run: Callable[..., np.ndarray] = (lambda a: a - base) if inverse else (lambda a: a + base)
    source = d.src(d.operands[1], kind)
    return elementwise(d, run, d.dst(d.operands[0], kind), n, (source,), (n,), upward)


@instruction("isspacep")
def isspacep(d: Decode) -> Op:
    space = d.require(*_SPACES).split("::")[0]
    d.done(2)
    u64 = TYPES["u64"]
    tag = np.uint64(WINDOWS[space] >> 32)

    def run(a: np.ndarray) -> np.ndarray:
        high = a >> np.uint64(32)
        return high == tag if tag else ~np.isin(high, list(SPACES))

    source = d.src(d.operands[1], u64)
    return predicate(d, run, (source,), view(u64), d.pred_dst(d.operands[0]))


@instruction("mapa")
def mapa(d: Decode) -> Op:
    """Maps a shared address to the same offset in another CTA of the cluster: the rank of that CTA
    is put into bits 24 and up.
    """
    shared = d.take("shared::cluster") is not None
    kind = d.type("u32", "u64")
    d.done(3)
    n = view(kind)
    dtype = np.dtype(f"u{kind.size}").type

    def run(a: np.ndarray, rank: np.ndarray) -> np.ndarray:
        return a & ~dtype(0xFF000000) | rank.astype(dtype) << dtype(24)

    if not shared and kind.size == 4:
        raise d.malformed("expected .u64 for generic addresses")
    sources = (d.src(d.operands[1], kind), d.src(d.operands[2], TYPES["u32"]))
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n, U32))
