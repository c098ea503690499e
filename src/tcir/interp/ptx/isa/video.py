"""Scalar and SIMD video instructions (PTX ISA 9.7.18), by the pseudocode of the ISA.

Values are 64-bit integers here. Where nothing saturates, the ISA keeps 34 bits of a scalar result
for the second operation: .min and .max then compare bits that the destination register cuts off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tcir.interp.ptx.decode import Decode
from tcir.interp.ptx.isa.values.elementwise import elementwise
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import U32
from tcir.interp.ptx.registry import instruction
from tcir.interp.ptx.syntax import TYPES, Negated, Operand, Selected

_Numbers = np.ndarray
_Work = Callable[..., _Numbers]
_WORD = (0, 32)
_PARTS = {f"b{n}": (8 * n, 8) for n in range(4)} | {f"h{n}": (16 * n, 16) for n in range(2)}
"""First bit and number of bits of a selected part."""
_ARITHMETIC: dict[str, _Work] = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vabsdiff": lambda a, b: np.abs(a - b),
    "vmin": np.minimum,
    "vmax": np.maximum,
    "vavrg": lambda a, b: (a + b + (a + b >= 0)) >> 1,
}
_COMPARE: dict[str, _Work] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_SECOND: dict[str, _Work] = {"add": np.add, "min": np.minimum, "max": np.maximum}


def _extended(value: _Numbers, part: tuple[int, int], signed: bool) -> _Numbers:
    """A part of 32-bit registers, extended by zeros or by its sign."""
    first, bits = part
    value = value.astype(np.int64) >> first & (1 << bits) - 1
    return value - (value >> bits - 1 << bits) if signed else value


def _clamped(value: _Numbers, bits: int, signed: bool) -> _Numbers:
    low = -(1 << bits - 1) if signed else 0
    return np.clip(value, low, low + (1 << bits) - 1)


def _split(operand: Operand) -> tuple[Operand, str]:
    """A register or constant, and its selector."""
    if isinstance(operand, Selected):
        return operand.reg, operand.selector
    return operand, ""


def _part(d: Decode, selector: str) -> tuple[int, int]:
    if selector and selector not in _PARTS:
        raise d.malformed(f"expected one of .{', .'.join(_PARTS)}, got .{selector}")
    return _PARTS.get(selector, _WORD)


def _signs(d: Decode, count: int) -> list[bool]:
    signs = [kind.kind == "s" for kind in d.types("u32", "s32")]
    if len(signs) != count:
        raise d.malformed(f"expected {count} types, got {len(signs)}")
    return signs


def _op(d: Decode, work: _Work, operands: Sequence[Operand]) -> Op:
    """The result is `work` of the operands but the first, as 32-bit numbers, modulo 2^32."""
    kind = TYPES["b32"]

    def run(*values: _Numbers) -> _Numbers:
        return (work(*values) & 0xFFFFFFFF).astype(np.uint32)

    sources = tuple(d.src(operand, kind) for operand in operands[1:])
    return elementwise(d, run, d.dst(operands[0], kind), U32, sources, (U32,) * len(sources))


# --- scalar instructions -----------------------------------------------------------------------
def _scalar(d: Decode, work: _Work, signs: Sequence[bool], saturates: bool = True) -> Op:
    """work: function of a and b, extended. signs: whether d, a and b are signed."""
    saturate = saturates and d.take("sat") is not None
    second = d.take(*_SECOND)
    operands, selectors = zip(*map(_split, d.operands), strict=True)
    d.done(4 if second or selectors[0] else 3)
    if second and selectors[0] or len(operands) == 4 and selectors[3]:
        raise d.malformed("expected a second operation, or a part of d that is merged into c")
    first, bits = _part(d, selectors[0])
    of_a, of_b = _part(d, selectors[1]), _part(d, selectors[2])

    def run(a: _Numbers, b: _Numbers, *c: _Numbers) -> _Numbers:
        found = work(_extended(a, of_a, signs[1]), _extended(b, of_b, signs[2]))
        if saturate:
            found = _clamped(found, bits, signs[0])
        if second:
            return _SECOND[second](found, _extended(c[0], _WORD, signs[0]))
        if not c:
            return found
        mask = (1 << bits) - 1
        return (found & mask) << first | c[0].astype(np.int64) & ~(mask << first)

    return _op(d, run, operands)


@instruction("vadd", "vsub", "vabsdiff", "vmin", "vmax")
def arithmetic(d: Decode) -> Op:
    """Computes one operation on words, halves or bytes, and then a second operation or a merge into
    c.
    """
    return _scalar(d, _ARITHMETIC[d.name], _signs(d, 3))


@instruction("vshl", "vshr")
def shift(d: Decode) -> Op:
    """Shifts by at most 32 (.clamp), or by the lowest 5 bits of the amount (.wrap)."""
    wrap, left = d.require("clamp", "wrap") == "wrap", d.name == "vshl"

    def run(a: _Numbers, b: _Numbers) -> _Numbers:
        by = b & 31 if wrap else np.minimum(b, 32)
        return a << by if left else a >> by

    signs = _signs(d, 3)
    if signs[2]:
        raise d.malformed("expected .u32 as the type of b")
    return _scalar(d, run, signs)


@instruction("vset")
def compare(d: Decode) -> Op:
    """d is 1 where the comparison is true, else 0."""
    name = d.require(*_COMPARE)
    work = _COMPARE[name]
    signs = [False, *_signs(d, 2)]
    return _scalar(d, lambda a, b: work(a, b).astype(np.int64), signs, saturates=False)


@instruction("vmad")
def multiply(d: Decode) -> Op:
    """Computes a * b + c, optionally plus one (.po), or with the product or c negated; the result
    is then shifted and saturated.
    """
    saturate, plus = d.take("sat") is not None, d.take("po") is not None
    scale = int((d.take("shr7", "shr15") or "shr0")[3:])
    _, *signs = _signs(d, 3)
    d.done(4)
    minus = [isinstance(operand, Negated) for operand in d.operands]
    given = [each.operand if isinstance(each, Negated) else each for each in d.operands]
    operands, selectors = zip(*map(_split, given), strict=True)
    parts = [_part(d, selector) for selector in selectors[1:3]]
    product, added = minus[1] ^ minus[2], minus[3]
    if selectors[0] or selectors[3] or minus[0] or product and added or plus and any(minus):
        raise d.malformed("expected selectors of a, b only; at most one of -(a * b), -c, .po")
    signed = any(signs) or product or added
    low = -(1 << 31) if signed else 0

    def one(a: int, b: int, c: int) -> int:
        c = ~c & 0xFFFFFFFF if added else c
        found = ~(a * b) if product else a * b
        found += (c - (c >> 31 << 32) if signed else c) + (plus or product or added)
        found >>= scale
        return max(low, min(found, low + (1 << 32) - 1)) if saturate else found

    def run(a: _Numbers, b: _Numbers, c: _Numbers) -> _Numbers:
        x, y = _extended(a, parts[0], signs[0]), _extended(b, parts[1], signs[1])
        rows = zip(x.tolist(), y.tolist(), c.tolist(), strict=True)
        return np.array([one(*row) & 0xFFFFFFFF for row in rows], np.int64)

    return _op(d, run, operands)


# --- SIMD instructions -------------------------------------------------------------------------
def _digits(d: Decode, selector: str, letter: str, default: str, below: int) -> list[int]:
    """Numbers of elements in a selector, the lowest element's first."""
    digits = selector or letter + default
    if digits[0] != letter or any(int(each) >= below for each in digits[1:]):
        raise d.malformed(f"expected .{letter} with numbers below {below}, got .{selector}")
    return [int(each) for each in reversed(digits[1:])]


def _simd(d: Decode, work: _Work, signs: Sequence[bool], saturates: bool) -> Op:
    """work: function of an element of a and one of b. signs: whether d, a and b are signed."""
    count = int(d.name[-1])
    bits, letter = 32 // count, "h" if count == 2 else "b"
    add = d.take("add") is not None
    saturate = saturates and not add and d.take("sat") is not None
    operands, selectors = zip(*map(_split, d.operands), strict=True)
    d.done(4)
    order = "3210"[-count:]
    mask = _digits(d, selectors[0], letter, order, count)
    of_a = _digits(d, selectors[1], letter, order, 2 * count)
    of_b = _digits(d, selectors[2], letter, "76543210"[8 - 2 * count : 8 - count], 2 * count)
    if len(of_a) != count or len(of_b) != count or selectors[3] or mask != sorted({*mask}):
        raise d.malformed(f"expected {count} elements of a and b, descending ones of d, all of c")

    def run(a: _Numbers, b: _Numbers, c: _Numbers) -> _Numbers:
        found = c.astype(np.int64)
        for n in mask:
            x, y = (
                _extended((a, b)[at // count], (bits * (at % count), bits), signed)
                for at, signed in ((of_a[n], signs[1]), (of_b[n], signs[2]))
            )
            each = work(x, y)
            if add:
                found = found + each
                continue
            each = _clamped(each, bits, signs[0]) if saturate else each
            low = (1 << bits) - 1
            found = found & ~(low << bits * n) | (each & low) << bits * n
        return found

    return _op(d, run, operands)


@instruction(*(f"{name}{count}" for name in _ARITHMETIC for count in (2, 4)))
def arithmetic_of_elements(d: Decode) -> Op:
    """Computes one operation on halves or bytes selected from a and b; the results are merged into
    c, or added to c.
    """
    return _simd(d, _ARITHMETIC[d.name[:-1]], _signs(d, 3), saturates=True)


@instruction("vset2", "vset4")
def compare_elements(d: Decode) -> Op:
    """Writes 1 for each element whose comparison is true, else 0."""
    work = _COMPARE[d.require(*_COMPARE)]
    signs = [False, *_signs(d, 2)]
    return _simd(d, lambda a, b: work(a, b).astype(np.int64), signs, saturates=False)
