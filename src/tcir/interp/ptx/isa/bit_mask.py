"""Bit masks, sign extension by a count, the n-th set bit (PTX ISA 9.7.1 "bmsk", "szext", "fns")."""

from __future__ import annotations

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.definedness import bitwise
from tcir.interp.ptx.isa.values.elementwise import elementwise, same_type
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32, view
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES

_ONES = 0xFFFFFFFF


@instruction("bmsk")
def bmsk(d: Decode) -> Op:
    """A mask of `b` ones that begins at bit `a`; with .wrap `a` and `b` are taken modulo 32."""
    clamp = d.require("clamp", "wrap") == "clamp"

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        start, width = a.astype(np.int64), b.astype(np.int64)
        if not clamp:
            start, width = start & 31, width & 31
        start, width = np.minimum(start, 32), np.minimum(width, 32)
        end = np.minimum(start + width, 32)
        return ((1 << end) - (1 << start)) & _ONES

    return same_type(d, run, d.type("b32"), 2)


@instruction("szext")
def szext(d: Decode) -> Op:
    """Extends the low `b` bits of `a` by their sign, or by zeros; with .wrap `b` is taken modulo
    32.
    """
    clamp = d.require("clamp", "wrap") == "clamp"
    kind = d.type("u32", "s32")
    d.done(3)

    def run(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        count = np.minimum(b.astype(np.int64), 32) if clamp else b.astype(np.int64) & 31
        mask = (1 << count) - 1
        low = a.astype(np.int64) & mask
        # A count of 0, or beyond the word, has no sign bit.
        negative = (low >> np.maximum(count - 1, 0) & 1 != 0) & (0 < count) & (count < 32)
        return np.where((kind.kind == "s") & negative, low | ~mask, low) & _ONES

    sources = (d.src(d.operands[1], kind), d.src(d.operands[2], TYPES["u32"]))
    return elementwise(d, run, d.dst(d.operands[0], kind), U32, sources, (U32, U32), bitwise(1))


@instruction("fns")
def fns(d: Decode) -> Op:
    """Position of the `offset`-th set bit, counted upwards or downwards from bit `base`; all ones
    if there is no such bit.
    """
    kind = d.type("b32")
    d.done(4)

    def find(mask: int, base: int, offset: int) -> int:
        if offset == 0:
            return base if base < 32 and mask >> base & 1 else _ONES
        ahead = range(base, 32) if offset > 0 else range(min(base, 31), -1, -1)
        found = [n for n in ahead if mask >> n & 1]
        return found[abs(offset) - 1] if abs(offset) <= len(found) else _ONES

    def run(mask: np.ndarray, base: np.ndarray, offset: np.ndarray) -> np.ndarray:
        rows = zip(mask.tolist(), base.tolist(), offset.tolist(), strict=True)
        return np.array([find(*row) for row in rows], np.uint32)

    sources = tuple(d.src(o, kind) for o in d.operands[1:])
    return elementwise(d, run, d.dst(d.operands[0], kind), U32, sources, (U32, U32, view("s32")))
