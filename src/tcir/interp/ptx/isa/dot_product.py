"""Dot products of the bytes and halves of a register, and carry-less products (PTX ISA 9.7.1)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.values.elementwise import counted, elementwise, same_type
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES


def _parts(a: np.ndarray, size: int, signed: bool) -> np.ndarray:
    """[32, 4 / size] numbers of `size` bytes."""
    dtype = np.dtype(f"{'i' if signed else 'u'}{size}")
    return np.ascontiguousarray(a).view(dtype).reshape(len(a), -1).astype(np.int64)


def _signs(d: Decode) -> tuple[bool, bool]:
    kinds = [k.kind == "s" for k in d.types("u32", "s32")]
    if len(kinds) != 2:
        raise d.malformed("expected the types of a and of b")
    return kinds[0], kinds[1]


def _sum(d: Decode, fn: Callable[..., np.ndarray], products: int) -> Op:
    """d = c + fn(a, b), modulo 2^32: the same bits for signed and unsigned results."""
    d.done(4)
    kind = TYPES["b32"]

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        return (fn(a, b) + c.astype(np.int64)) & 0xFFFFFFFF

    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    op = elementwise(d, run, d.dst(d.operands[0], kind), U32, sources, (U32,) * 3)
    return counted(op, products)


@instruction("dp4a")
def dp4a(d: Decode) -> Op:
    """c plus the sum of four products, each of a byte of a and the corresponding byte of b."""
    first, second = _signs(d)
    return _sum(d, lambda a, b: (_parts(a, 1, first) * _parts(b, 1, second)).sum(axis=1), 4)


@instruction("dp2a")
def dp2a(d: Decode) -> Op:
    """c plus the sum of two products: the two halves of a times two bytes of b, the lower (.lo) or
    the upper (.hi) ones.
    """
    start = 0 if d.require("lo", "hi") == "lo" else 2
    first, second = _signs(d)

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return (_parts(a, 2, first) * _parts(b, 1, second)[:, start : start + 2]).sum(axis=1)

    return _sum(d, run, 2)


@instruction("clmad")
def clmad(d: Decode) -> Op:
    """The lower or upper half of the carry-less product of a and b, xor c (PTX ISA 9.3)."""
    high = d.require("lo", "hi") == "hi"

    def multiply(a: int, b: int) -> int:
        out = 0
        while b:
            out ^= a if b & 1 else 0
            a, b = a << 1, b >> 1
        return out >> 64 if high else out & (1 << 64) - 1

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        rows = zip(a.tolist(), b.tolist(), strict=True)
        return np.array([multiply(*row) for row in rows], np.uint64) ^ c

    return same_type(d, run, d.type("u64"), 3)
