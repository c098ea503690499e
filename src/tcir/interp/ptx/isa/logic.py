"""Logical operations and shifts on words and predicates (PTX ISA 9.7.8)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import as_bits, bitwise, mixed, varying
from tcir.interp.ptx.isa.integer import INTS
from tcir.interp.ptx.isa.values.elementwise import elementwise, same_type
from tcir.interp.ptx.lanes import LANE_MASK, bits
from tcir.interp.ptx.op import Compute, Op
from tcir.interp.ptx.registers import PREDICATE, U32, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Pair
from tcir.interp.ptx.warp import Warp


def _logic(d: Decode, fn: Callable[..., np.ndarray], on_masks: Callable[[int, int], int]) -> Op:
    kind = d.type("b16", "b32", "b64", "pred")
    if kind.size:
        return same_type(d, fn, kind, 2, bitwise(2))
    d.done(3)
    dst = d.pred_dst(d.operands[0])
    (a, xa), (b, xb) = d.pred(d.operands[1]), d.pred(d.operands[2])
    site = d.site

    def run(w: Warp, m: int) -> None:
        lost, undef = None, w.undef
        x, y = w.p[a] ^ xa, w.p[b] ^ xb
        if (undef[a] | undef[b]) & m:
            unknown = varying(on_masks, (x, undef[a] & m), (y, undef[b] & m))
            lost = w.result((a, b), m, site, lambda _: as_bits(LANE_MASK[unknown]))
        w.p[dst] = w.p[dst] & ~m | on_masks(x, y) & m
        undef[dst] &= ~m
        if lost:
            w.define(dst, m, lost)

    flips = tuple(n for n, flip in enumerate((xa, xb)) if flip)
    sources = (a, PREDICATE), (b, PREDICATE)
    return d.computing(run, Compute(fn, sources, ((dst, PREDICATE),), flips))


@instruction("and")
def bit_and(d: Decode) -> Op:
    return _logic(d, np.bitwise_and, lambda a, b: a & b)


@instruction("or")
def bit_or(d: Decode) -> Op:
    return _logic(d, np.bitwise_or, lambda a, b: a | b)


@instruction("xor")
def bit_xor(d: Decode) -> Op:
    return _logic(d, np.bitwise_xor, lambda a, b: a ^ b)


@instruction("not")
def bit_not(d: Decode) -> Op:
    kind = d.type("b16", "b32", "b64", "pred")
    if kind.size:
        return same_type(d, np.invert, kind, 1, bitwise(1))
    d.done(2)
    dst = d.pred_dst(d.operands[0])
    a, xa = d.pred(d.operands[1])
    site = d.site

    def run(w: Warp, m: int) -> None:
        lost = w.undefined(a, m, site) if w.undef[a] & m else None
        w.p[dst] = w.p[dst] & ~m | ~(w.p[a] ^ xa) & m
        w.undef[dst] &= ~m
        if lost:
            w.define(dst, m, lost)

    flips = () if xa else (0,)
    return d.computing(run, Compute(np.copy, ((a, PREDICATE),), ((dst, PREDICATE),), flips))


@instruction("cnot")
def cnot(d: Decode) -> Op:
    return same_type(d, lambda a: a == 0, d.type("b16", "b32", "b64"), 1)


@instruction("lop3")
def lop3(d: Decode) -> Op:
    """`lop3{.bool}.b32 d{|p}, a, b, c, table{, q}`: p is `(d != 0) .bool q`, where .bool is .or or
    .and.
    """
    combine = d.take("or", "and")
    kind = d.type("b32")
    d.done(6 if combine else 5)
    table = d.immediate(d.operands[4])
    target = d.operands[0]
    if combine and not isinstance(target, Pair):
        raise d.malformed("expected destinations d|p")

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        out = np.zeros_like(a)
        for n in range(8):
            if table >> n & 1:
                out = out | (a if n & 4 else ~a) & (b if n & 2 else ~b) & (c if n & 1 else ~c)
        return out

    n = view(kind)
    sources = tuple(d.src(o, kind) for o in d.operands[1:4])
    if not isinstance(target, Pair):
        return elementwise(d, run, d.dst(target, kind), n, sources, (n, n, n), bitwise(3))
    dst, flag = d.dst(target.first, kind), d.pred_dst(target.second)
    q, flip = d.pred(d.operands[5])
    site = d.site

    flow = bitwise(3)

    def both(w: Warp, m: int) -> None:
        values = [w.v[n][s] for s in sources]
        lost = w.result(sources, m, site, lambda b: flow(run, values, b, values[0].dtype))
        unsure = w.result((*sources, q), m, site, mixed(1))
        out = run(*values)
        other = w.p[q] ^ flip
        found = bits(out != 0) & other if combine == "and" else bits(out != 0) | other
        np.copyto(w.v[n][dst], out, where=LANE_MASK[m])
        w.p[flag] = w.p[flag] & ~m | found & m
        w.define(dst, m, lost)
        w.define(flag, m, unsure)

    return d.computing(both)


def shift_left(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
    width = 8 * a.dtype.itemsize
    return np.where(amount >= width, 0, a << np.minimum(amount, width - 1).astype(a.dtype))


def shift_right(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Shifts right. A shift amount of the operand's width or more gives 0, or copies of the sign
    bit.
    """
    width = 8 * a.dtype.itemsize
    shifted = a >> np.minimum(amount, width - 1).astype(a.dtype)
    return shifted if a.dtype.kind == "i" else np.where(amount >= width, 0, shifted)


def _shift(d: Decode, fn: Callable[..., np.ndarray], *types: str) -> Op:
    kind = d.type(*types)
    d.done(3)
    n = view(kind)
    sources = (d.src(d.operands[1], kind), d.src(d.operands[2], TYPES["u32"]))
    return elementwise(d, fn, d.dst(d.operands[0], kind), n, sources, (n, U32), bitwise(1), moved=1)


@instruction("shl")
def shl(d: Decode) -> Op:
    return _shift(d, shift_left, "b16", "b32", "b64")


@instruction("shr")
def shr(d: Decode) -> Op:
    return _shift(d, shift_right, "b16", "b32", "b64", *INTS)


@instruction("shf")
def shf(d: Decode) -> Op:
    left = d.require("l", "r") == "l"
    clamp = d.require("clamp", "wrap") == "clamp"
    kind = d.type("b32")

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        amount = (np.minimum(c, 32) if clamp else c & 31).astype(np.uint64)
        both = b.astype(np.uint64) << np.uint64(32) | a
        if left:
            return (both << amount) >> np.uint64(32) & np.uint64(0xFFFFFFFF)
        return both >> amount & np.uint64(0xFFFFFFFF)

    return same_type(d, run, kind, 3, bitwise(2), moved=2)
