"""Extended precision: add, sub and mad with the carry bit CC.CF (PTX ISA 9.7.2)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import Unknown, mixed
from tcir.interp.ptx.isa.integer import high_product
from tcir.interp.ptx.lanes import LANE_MASK, bits
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import unsigned_view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import Type
from tcir.interp.ptx.warp import Warp

_TYPES = ("u32", "s32", "u64", "s64")


def _add(a: np.ndarray, b: np.ndarray, carry: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = a + b
    total = first + carry
    return total, (first < a) | (total < first)


def _subtract(a: np.ndarray, b: np.ndarray, borrow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    first = a - b
    return first - borrow, (a < b) | (first < borrow)


def _operation(
    d: Decode, fn: Callable[..., tuple[np.ndarray, np.ndarray]], kind: Type, count: int, reads: bool
) -> Op:
    """`fn` takes `count` unsigned operands and the carry to result and carry."""
    writes = d.name.endswith(".cc") or d.take("cc") is not None
    d.done(count + 1)
    n, flag = unsigned_view(kind.size), d.slots.carry()
    dst = d.dst(d.operands[0], kind)
    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    needed = (*sources, flag) if reads else sources
    word = np.dtype(f"u{kind.size}").type
    site = d.site

    def run(w: Warp, m: int) -> None:
        lost = w.result(needed, m, site, mixed(kind.size))
        carry = LANE_MASK[w.p[flag] & 0xFFFFFFFF].astype(word) if reads else word(0)
        result, out = fn(*(w.v[n][s] for s in sources), carry)
        np.copyto(w.v[n][dst], result, where=LANE_MASK[m])
        w.define(dst, m, lost)
        if writes:
            w.p[flag] = w.p[flag] & ~m | bits(out) & m
            w.define(flag, m, lost and Unknown(lost.bits[:, :1], lost.origin))

    return d.computing(run)


@instruction("add.cc", "addc")
def add(d: Decode) -> Op:
    return _operation(d, _add, d.type(*_TYPES), 2, d.name == "addc")


@instruction("sub.cc", "subc")
def subtract(d: Decode) -> Op:
    """Subtracts; CC.CF is the borrow."""
    return _operation(d, _subtract, d.type(*_TYPES), 2, d.name == "subc")


@instruction("mad.lo.cc", "mad.hi.cc", "madc")
def mad(d: Decode) -> Op:
    reads = d.name == "madc"
    high = (d.require("lo", "hi") == "hi") if reads else d.name == "mad.hi.cc"
    kind = d.type(*_TYPES)
    signed = np.dtype(f"i{kind.size}")

    def run(
        a: np.ndarray, b: np.ndarray, c: np.ndarray, carry: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if not high:
            return _add(a * b, c, carry)
        x, y = (a.view(signed), b.view(signed)) if kind.kind == "s" else (a, b)
        return _add(high_product(x, y, kind).astype(signed).view(a.dtype), c, carry)

    return _operation(d, run, kind, 3, reads)
