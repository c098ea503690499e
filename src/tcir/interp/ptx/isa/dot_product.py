"""Dot products of bytes and halves in a register, carry-less products (PTX ISA 9.7.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcir.interp.ptx.decode import Decode, Op, rule, view
from tcir.interp.ptx.isa.elementwise import elementwise, same_type
from tcir.interp.ptx.syntax import TYPES


def _parts(a: Any, size: int, signed: bool) -> Any:
    """[32, 4 / size] numbers of `size` bytes."""
    dtype = np.dtype(f"{'i' if signed else 'u'}{size}")
    return np.ascontiguousarray(a).view(dtype).reshape(32, -1).astype(np.int64)


def _signs(d: Decode) -> tuple[bool, bool]:
    kinds = [k.kind == "s" for k in d.types("u32", "s32")]
    if len(kinds) != 2:
        raise d.malformed("expected the types of a and of b")
    return kinds[0], kinds[1]


def _sum(d: Decode, fn: Any) -> Op:
    """d = c + fn(a, b), modulo 2^32: the same bits for signed and unsigned results."""
    d.done(4)
    kind, u32 = TYPES["b32"], view("u32")

    def run(a: Any, b: Any, c: Any) -> Any:
        return (fn(a, b) + c.astype(np.int64)) & 0xFFFFFFFF

    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    return elementwise(d, run, d.dst(d.operands[0], kind), u32, sources, (u32,) * 3)


@rule("dp4a")
def dp4a(d: Decode) -> Op:
    """c plus the sum of the products of four bytes."""
    first, second = _signs(d)
    return _sum(d, lambda a, b: (_parts(a, 1, first) * _parts(b, 1, second)).sum(axis=1))


@rule("dp2a")
def dp2a(d: Decode) -> Op:
    """c plus the sum of the products of two halves of a with two bytes of b: .lo or .hi ones."""
    start = 0 if d.require("lo", "hi") == "lo" else 2
    first, second = _signs(d)

    def run(a: Any, b: Any) -> Any:
        return (_parts(a, 2, first) * _parts(b, 1, second)[:, start : start + 2]).sum(axis=1)

    return _sum(d, run)


@rule("clmad")
def clmad(d: Decode) -> Op:
    """Half of the carry-less product of a and b, xor c (PTX ISA 9.3)."""
    high = d.require("lo", "hi") == "hi"

    def multiply(a: int, b: int) -> int:
        out = 0
        while b:
            out ^= a if b & 1 else 0
            a, b = a << 1, b >> 1
        return out >> 64 if high else out & (1 << 64) - 1

    def run(a: Any, b: Any, c: Any) -> Any:
        rows = zip(a.tolist(), b.tolist(), strict=True)
        return np.array([multiply(*row) for row in rows], np.uint64) ^ c

    return same_type(d, run, d.type("u64"), 3)
