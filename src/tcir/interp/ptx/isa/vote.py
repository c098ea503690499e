"""Instructions across the lanes of a warp (PTX ISA 9.7.9 shfl, 9.7.13 vote, match, elect)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import Bits, Unknown, as_bits, octets
from tcir.interp.ptx.isa.values.rounding import minmax_bits
from tcir.interp.ptx.lanes import FULL, LANE_INDICES, LANE_MASK, bits
from tcir.interp.ptx.op import Compute, Op
from tcir.interp.ptx.registers import PREDICATE, U32, unsigned_view, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Operand, Pair, Site
from tcir.interp.ptx.warp import Warp
from tcir.machine.memory.undefined import Origin

_U32_TYPE = TYPES["u32"]
_LANES = np.arange(32)


def _member_mask(d: Decode, operand: Operand) -> int:
    return d.src(operand, _U32_TYPE)


def _pair(d: Decode) -> tuple[Operand, Operand | None]:
    target = d.operands[0]
    return (target.first, target.second) if isinstance(target, Pair) else (target, None)


@instruction("shfl.sync")
def shfl(d: Decode) -> Op:
    """Exchanges values between lanes. Operand c has the clamp value in bits 4..0 and the segment
    mask in bits 12..8.
    """
    mode = d.require("up", "down", "bfly", "idx")
    kind = d.type("b32")
    d.done(5)
    value, valid = _pair(d)
    dst = d.dst(value, kind)
    flag = d.pred_dst(valid) if valid is not None else None
    a, b, c, mask = (d.src(o, kind) for o in d.operands[1:5])
    n, site = view(kind), d.site

    def run(w: Warp, m: int) -> None:
        undef = w.undef
        if (undef[b] | undef[c] | undef[mask]) & m:
            w.read_undefined(site, (b, c, mask), m)
        v = w.v[n]
        source, inside = _source_lanes(mode, v[b], v[c])
        lost = _shuffled(w, a, source, m, site)
        result = v[a][source]
        np.copyto(v[dst], result, where=LANE_MASK[m])
        if a in w.pending:
            w.copied(a, dst, m, site)
        else:
            w.define(dst, m, lost)
        if flag is not None:
            w.p[flag] = w.p[flag] & ~m | bits(inside) & m
            undef[flag] &= ~m

    def shuffled(value: np.ndarray, at: np.ndarray, control: np.ndarray) -> tuple[np.ndarray, ...]:
        rows = [x.reshape(-1, 32) for x in (value, at, control)]
        source, inside = _source_lanes(mode, *rows[1:])
        result = np.take_along_axis(rows[0], source, axis=1).reshape(-1)
        return (result, inside.reshape(-1))[: 1 if flag is None else 2]

    targets = ((dst, n),) if flag is None else ((dst, n), (flag, PREDICATE))
    op = d.among(mask, run)
    op.compute = Compute(shuffled, ((a, n), (b, n), (c, n)), targets, across=True)
    return op


def _source_lanes(
    mode: str, amount: np.ndarray, control: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The lane that each gets its value from, and whether it is inside its segment; [..., 32]."""
    amount = amount.astype(np.int64) & 31
    clamp = control.astype(np.int64) & 31
    segment = control.astype(np.int64) >> 8 & 31
    highest = _LANES & segment | clamp & ~segment
    lowest = _LANES & segment
    if mode == "up":
        source = _LANES - amount
        inside = source >= highest
    elif mode == "down":
        source = _LANES + amount
        inside = source <= highest
    elif mode == "bfly":
        source = _LANES ^ amount
        inside = source <= highest
    else:
        source = lowest | amount & ~segment
        inside = source <= highest
    return np.where(inside, source, _LANES), inside


def _shuffled(w: Warp, a: int, source: np.ndarray, m: int, site: Site) -> Unknown | None:
    """Undefined bits of the value that each lane receives; a value from a lane that takes no part
    is wholly undefined."""
    absent = LANE_MASK[bits(~LANE_MASK[w.live & m][source]) & m]
    if a in w.pending or not (w.undef[a] & FULL or absent.any()):
        return None
    held = w.undefined(a, FULL, site)
    place = f"{w.names[a]} of a lane that takes no part (warp {w.index})"
    missing = "its value is undefined (PTX ISA 9.7.9.6)"
    origin = Origin("undefined-register", site, place, missing, w.agent.cta.index)
    moved = np.zeros((32, 4), np.uint8) if held is None else held.bits[source]
    moved[absent] = 0xFF
    return Unknown(moved, origin if held is None else held.origin)


@instruction("vote.sync")
def vote(d: Decode) -> Op:
    mode = d.require("all", "any", "uni", "ballot")
    kind = d.type("pred", "b32")
    d.done(3)
    if (mode == "ballot") != (kind.name == "b32"):
        raise d.malformed("expected .b32 with .ballot and .pred otherwise")
    a, flip = d.pred(d.operands[1])
    mask = _member_mask(d, d.operands[2])
    site = d.site
    dst = d.dst(d.operands[0], kind) if mode == "ballot" else d.pred_dst(d.operands[0])
    holds = _HOLDS.get(mode, _HOLDS["any"])

    def run(w: Warp, m: int) -> None:
        unknown = w.undef[a] & m
        yes = (w.p[a] ^ flip) & m
        if mode == "ballot":
            np.copyto(w.v[U32][dst], yes, where=LANE_MASK[m], casting="unsafe")
            lost = octets(np.full(32, unknown, np.uint32))
        else:
            w.p[dst] = w.p[dst] & ~m | (m if holds(yes, m) else 0)
            lost = as_bits(LANE_MASK[m if _open(holds, yes, unknown, m) else 0])
        w.define(dst, m, w.result((a,), m, site, lambda _: lost))

    def voted(value: np.ndarray) -> np.ndarray:
        rows = value.reshape(-1, 32)
        yes = (rows.astype(np.uint32) << _LANES.astype(np.uint32)).sum(axis=1, dtype=np.uint32)
        if mode != "ballot":
            full = np.uint32(FULL)
            yes = {"all": yes == full, "any": yes != 0, "uni": (yes == 0) | (yes == full)}[mode]
        return np.repeat(yes, 32)

    op = d.among(mask, run)
    target = (dst, U32 if mode == "ballot" else PREDICATE)
    op.compute = Compute(voted, ((a, PREDICATE),), (target,), (0,) if flip else (), across=True)
    return op


_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "all": lambda yes, m: yes == m,
    "any": lambda yes, m: yes != 0,
    "uni": lambda yes, m: yes in (0, m),
}


def _open(holds: Callable[[int, int], bool], yes: int, unknown: int, m: int) -> bool:
    """Whether a vote depends on lanes with an undefined predicate, all of them or one."""
    one = unknown & -unknown
    found = {holds(yes & ~unknown | some, m) for some in (0, unknown, one)}
    return bool(unknown) and len(found) > 1


@instruction("activemask")
def activemask(d: Decode) -> Op:
    d.skip("b32")
    d.done(1)
    dst = d.dst(d.operands[0], _U32_TYPE)

    def run(w: Warp, m: int) -> None:
        np.copyto(w.v[U32][dst], m, where=LANE_MASK[m], casting="unsafe")
        w.undef[dst] &= ~m

    return d.plain(run)


@instruction("elect.sync")
def elect(d: Decode) -> Op:
    """Elects one lane of the member mask; for equal masks it is always the same lane."""
    d.done(2)
    target = d.operands[0]
    if not isinstance(target, Pair):
        raise d.malformed("expected destinations d|p")
    dst, flag = d.dst(target.first, _U32_TYPE), d.pred_dst(target.second)
    mask = _member_mask(d, d.operands[1])

    def run(w: Warp, m: int) -> None:
        leader = w.launch.machine.placement.leader(m)
        np.copyto(w.v[U32][dst], leader, where=LANE_MASK[m], casting="unsafe")
        w.undef[dst] &= ~m
        w.p[flag] = w.p[flag] & ~m | 1 << leader
        w.undef[flag] &= ~m
        if w.launch.machine.assumptions.handed_over != "own":
            w.agent.lanes.converge(m)

    return d.among(mask, run)


def _everywhere(bits: list[Bits]) -> Bits:
    """One undefined operand makes the word of every lane undefined."""
    return np.full((32, 4), 0xFF, np.uint8)


@instruction("redux.sync")
def redux(d: Decode) -> Op:
    name = d.require("add", "min", "max", "and", "or", "xor")
    if "f32" in d.modifiers:
        return _redux_float(d, name == "max")
    kind = d.type("u32", "s32", "b32")
    d.done(3)
    fold: Callable[..., np.ndarray] = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[name].reduce
    dst, a = d.dst(d.operands[0], kind), d.src(d.operands[1], kind)
    mask = _member_mask(d, d.operands[2])
    n, site = view(kind), d.site
    dtype = np.dtype("i4" if kind.kind == "s" else "u4")

    def run(w: Warp, m: int) -> None:
        lost = w.result((a,), m, site, _everywhere)
        w.v[n][dst][LANE_INDICES[m]] = fold(w.v[n][a][LANE_INDICES[m]], dtype=dtype)
        w.define(dst, m, lost)

    def folded(values: np.ndarray) -> np.ndarray:
        return np.repeat(fold(values.reshape(-1, 32), axis=1, dtype=dtype), 32)

    op = d.among(mask, run)
    op.compute = Compute(folded, ((a, n),), ((dst, n),), across=True)
    return op


def _redux_float(d: Decode, largest: bool) -> Op:
    """min or max of f32 (sm_100a): .abs takes magnitudes, .NaN lets a NaN decide."""
    magnitudes = d.take("abs") is not None
    propagate = d.take("NaN") is not None
    kind = d.type("f32")
    d.done(3)
    dst, a = d.dst(d.operands[0], kind), d.src(d.operands[1], kind)
    mask = _member_mask(d, d.operands[2])
    site = d.site

    def run(w: Warp, m: int) -> None:
        lost = w.result((a,), m, site, _everywhere)
        values = w.v[U32][a][LANE_INDICES[m]]
        if magnitudes:
            values = values & np.uint32(0x7FFFFFFF)
        result = values[:1]
        for n in range(1, len(values)):
            result = minmax_bits(result, values[n : n + 1], "f32", largest, propagate)
        w.v[U32][dst][LANE_INDICES[m]] = result[0]
        w.define(dst, m, lost)

    return d.among(mask, run)


@instruction("match.any.sync", "match.all.sync")
def match(d: Decode) -> Op:
    every = d.name == "match.all.sync"
    kind = d.type("b32", "b64")
    d.done(3)
    first, second = _pair(d)
    dst = d.dst(first, _U32_TYPE)
    flag = d.pred_dst(second) if second is not None else None
    a, mask = d.src(d.operands[1], kind), _member_mask(d, d.operands[2])
    n, site = unsigned_view(kind.size), d.site

    def run(w: Warp, m: int) -> None:
        lost = w.result((a,), m, site, _everywhere)
        values = w.v[n][a].copy()
        lanes = LANE_INDICES[m]
        same = all(values[lane] == values[lanes[0]] for lane in lanes)
        for lane in lanes:
            found = bits(values == values[lane]) & m
            w.v[U32][dst][lane] = (m if same else 0) if every else found
        w.define(dst, m, lost)
        if flag is not None:
            w.p[flag] = w.p[flag] & ~m | (m if same else 0)
            w.define(flag, m, lost and Unknown(lost.bits[:, :1], lost.origin))

    return d.among(mask, run)
