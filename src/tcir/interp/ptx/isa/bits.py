"""Bit counts, bit fields and byte permutation (PTX ISA 9.7.1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import bitwise
from tcir.interp.ptx.isa.values.elementwise import elementwise, same_type
from tcir.interp.ptx.kernels.traced import are_lanes, intrinsic
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES


@instruction("popc")
def popc(d: Decode) -> Op:
    return _to_u32(d, lambda a: np.bitwise_count(a))


def _to_u32(d: Decode, fn: Callable[..., np.ndarray]) -> Op:
    kind = d.type("b32", "b64", "u32", "s32", "u64", "s64")
    d.done(2)
    u32 = TYPES["u32"]
    source = d.src(d.operands[1], kind)
    return elementwise(d, fn, d.dst(d.operands[0], u32), view(u32), (source,), (view(kind),))


def bit_length(a: np.ndarray) -> np.ndarray:
    """Position of the highest set bit of unsigned words, counted from 1; 0 for the word 0."""
    value, out = a, np.zeros_like(a, np.uint32)
    step = 4 * a.dtype.itemsize
    while step:
        high = value >> a.dtype.type(step)
        more = high != 0
        out = out + np.where(more, step, 0).astype(np.uint32)
        value = np.where(more, high, value)
        step //= 2
    return out + (value != 0)


@instruction("clz")
def clz(d: Decode) -> Op:
    return _to_u32(d, lambda a: 8 * a.dtype.itemsize - bit_length(a))


@instruction("bfind")
def bfind(d: Decode) -> Op:
    amount = d.take("shiftamt") is not None

    def run(a: np.ndarray) -> np.ndarray:
        width = 8 * a.dtype.itemsize
        bits = np.where(a < 0, ~a, a).astype(a.dtype) if a.dtype.kind == "i" else a
        length = bit_length(bits.view(np.dtype(f"u{a.dtype.itemsize}"))).astype(np.int64)
        found = width - length if amount else length - 1
        return np.where(length == 0, 0xFFFFFFFF, found)

    return _to_u32(d, run)


@instruction("brev")
def brev(d: Decode) -> Op:
    kind = d.type("b32", "b64")

    def run(a: np.ndarray) -> np.ndarray:
        if are_lanes(a):
            return intrinsic("bitreverse", a)
        octets = np.ascontiguousarray(a).view(np.uint8).reshape(len(a), -1)
        flipped = np.packbits(np.unpackbits(octets, axis=1, bitorder="little"), axis=1)
        return flipped[:, ::-1].copy().view(a.dtype)[:, 0]

    return same_type(d, run, kind, 1, bitwise(1))


def _field(width: int, pos: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Mask of a bit field, cut at the word's end; pos and length are taken modulo 256."""
    one = np.uint64(1)
    pos64 = (pos & 0xFF).astype(np.uint64)
    length64 = np.minimum((length & 0xFF).astype(np.uint64), np.uint64(width))
    ones = np.where(length64 >= 64, ~np.uint64(0), (one << (length64 & np.uint64(63))) - one)
    return np.where(pos64 >= width, np.uint64(0), ones << np.minimum(pos64, np.uint64(63)))


@instruction("bfe")
def bfe(d: Decode) -> Op:
    kind = d.type("u32", "s32", "u64", "s64")
    d.done(4)
    width = 8 * kind.size

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
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
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, (n, U32, U32), bitwise(1), 1)


@instruction("bfi")
def bfi(d: Decode) -> Op:
    kind = d.type("b32", "b64")
    d.done(5)
    width = 8 * kind.size

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray, length: np.ndarray) -> np.ndarray:
        mask = _field(width, c, length) & np.uint64((1 << width) - 1)
        shift = np.minimum((c & 0xFF).astype(np.uint64), np.uint64(63))
        return b.astype(np.uint64) & ~mask | (a.astype(np.uint64) << shift) & mask

    n, u32 = view(kind), TYPES["u32"]
    sources = tuple(d.src(o, kind) for o in d.operands[1:3])
    sources += tuple(d.src(o, u32) for o in d.operands[3:5])
    views = (n, n, U32, U32)
    return elementwise(d, run, d.dst(d.operands[0], kind), n, sources, views, bitwise(2), 2)


@instruction("prmt")
def prmt(d: Decode) -> Op:
    """Selects four bytes of the eight bytes of b:a. In the named modes the two low bits of c select
    them.
    """
    mode = d.take("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")
    kind = d.type("b32")
    chosen: dict[str, Callable[[int, int], int]] = {
        "f4e": lambda byte, s: s + byte,
        "b4e": lambda byte, s: (s - byte) % 8,
        "rc8": lambda byte, s: s,
        "ecl": max,
        "ecr": min,
        "rc16": lambda byte, s: (byte & 1) + 2 * (s & 1),
    }
    nibbles = np.arange(0, 16, 4, dtype=np.uint32)[:, None]

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        if mode is not None:
            table = [sum(chosen[mode](n, s) << 4 * n for n in range(4)) for s in range(4)]
            c = np.array(table, np.uint32)[c & 3]
        selector = c >> nibbles
        pair = b.astype(np.uint64) << np.uint64(32) | a
        octets = (pair >> ((selector & np.uint32(7)) << np.uint32(3))).astype(np.uint8)
        signs = (selector & np.uint32(8)).astype(bool)
        if signs.any():
            octets = np.where(signs, (octets.view(np.int8) >> 7).view(np.uint8), octets)
        return np.ascontiguousarray(octets.T).view(np.uint32).ravel()

    return same_type(d, run, kind, 3, bitwise(2), moved=2)
