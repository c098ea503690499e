"""Carries, dot products, packed integers, bit masks: against Python integers; all of them assemble.

What an H200 computes with most of them is in test/hopper/scalars.txt.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tcir.run import run_ptx

from .conftest import HEADER, kernel
from .test_integer import signed

RNG = np.random.default_rng(5)
Oracle = Callable[..., int]
CASES: list[tuple[str, tuple[str, ...], str, Oracle]] = []


def case(body: str, types: tuple[str, ...], output: str, oracle: Oracle) -> None:
    CASES.append((body, types, output, oracle))


def split(v: int, size: int, is_signed: bool) -> list[int]:
    parts = [v >> size * n & (1 << size) - 1 for n in range(32 // size)]
    return [signed(p, size) for p in parts] if is_signed else parts


def join(parts: list[int], size: int) -> int:
    return sum((p & (1 << size) - 1) << size * n for n, p in enumerate(parts))


def clip(v: int) -> int:
    return min(max(v, -(1 << 31)), (1 << 31) - 1)


U3 = ("u32",) * 3
B3 = ("b32",) * 3
W3 = ("u64",) * 3
# A 64-bit sum of 32-bit words, both ways round; %t5 is its upper half.
case(
    "add.cc.u32 %t4, %a, %b; addc.u32 %d, %c, %c;", U3, "u32", lambda a, b, c: 2 * c + (a + b >> 32)
)
case(
    "add.cc.u32 %t4, %a, %b; addc.cc.u32 %t5, %c, %t4; addc.u32 %d, 0, 0;",
    U3,
    "u32",
    lambda a, b, c: c + (a + b & 0xFFFFFFFF) + (a + b >> 32) >> 32,
)
case("sub.cc.u32 %t4, %a, %b; subc.u32 %d, %c, %a;", U3, "u32", lambda a, b, c: c - a - (a < b))
case(
    "sub.cc.s32 %t4, %a, %b; subc.cc.u32 %t5, %c, 1; subc.u32 %d, 0, 0;",
    U3,
    "u32",
    lambda a, b, c: -(c - 1 - (a < b) < 0),
)
case(
    "add.cc.u64 %u4, %a, %b; addc.u64 %d, %c, %c;", W3, "u64", lambda a, b, c: 2 * c + (a + b >> 64)
)
case("sub.cc.s64 %u4, %a, %b; subc.s64 %d, %c, %a;", W3, "u64", lambda a, b, c: c - a - (a < b))
case(
    "mad.lo.cc.u32 %t4, %a, %b, %c; madc.hi.u32 %d, %a, %b, %c;",
    U3,
    "u32",
    lambda a, b, c: (a * b >> 32) + c + ((a * b & 0xFFFFFFFF) + c >> 32),
)
case(
    "mad.lo.cc.u64 %u4, %a, %b, %c; madc.hi.u64 %d, %a, %b, 0;",
    W3,
    "u64",
    lambda a, b, c: a * b + c >> 64,
)
case("mad.hi.cc.s32 %t4, %a, %b, %c; addc.u32 %d, %t4, 0;", U3, "u32",
     lambda a, b, c: (lambda s: s + (s >> 32))(
         ((signed(a, 32) * signed(b, 32) >> 32) & 0xFFFFFFFF) + c))  # fmt: skip
case(
    "mad.lo.cc.u32 %t4, %a, %b, %c; madc.lo.cc.u32 %t5, %c, %a, %b; addc.u32 %d, 0, 0;",
    U3,
    "u32",
    lambda a, b, c: (c * a & 0xFFFFFFFF) + b + ((a * b & 0xFFFFFFFF) + c >> 32) >> 32,
)
case(
    "mad.hi.sat.s32 %d, %a, %b, %c;",
    U3,
    "u32",
    lambda a, b, c: clip((signed(a, 32) * signed(b, 32) >> 32) + signed(c, 32)),
)
case(
    "mad24.hi.sat.s32 %d, %a, %b, %c;",
    U3,
    "u32",
    lambda a, b, c: clip(signed(signed(a, 24) * signed(b, 24) >> 16, 32) + signed(c, 32)),
)
for first in "us":
    for second in "us":
        case(f"dp4a.{first}32.{second}32 %d, %a, %b, %c;", U3, "u32",
             lambda a, b, c, s=first == "s", t=second == "s": c + sum(
                 x * y for x, y in zip(split(a, 8, s), split(b, 8, t))))  # fmt: skip
        for start, half in ((0, "lo"), (2, "hi")):
            case(f"dp2a.{half}.{first}32.{second}32 %d, %a, %b, %c;", U3, "u32",
                 lambda a, b, c, s=first == "s", t=second == "s", n=start: c + sum(
                     x * y for x, y in zip(split(a, 16, s), split(b, 8, t)[n:])))  # fmt: skip
for kind in ("u16x2", "s16x2"):
    is_signed = kind[0] == "s"
    for op, fn in (("add", int.__add__), ("min", min), ("max", max)):
        case(f"{op}.{kind} %d, %a, %b;", B3, "b32", lambda a, b, c, fn=fn, s=is_signed: join(
            [fn(x, y) for x, y in zip(split(a, 16, s), split(b, 16, s))], 16))  # fmt: skip
case("max.relu.s16x2 %d, %a, %b;", B3, "b32", lambda a, b, c: join(
    [max(x, y, 0) for x, y in zip(split(a, 16, True), split(b, 16, True))], 16))  # fmt: skip
for clamp in (True, False):
    mode, cut = ("clamp", lambda v: min(v, 32)) if clamp else ("wrap", lambda v: v & 31)
    case(
        f"bmsk.{mode}.b32 %d, %a, %b;",
        U3,
        "u32",
        lambda a, b, c, cut=cut: ((1 << cut(b)) - 1) << cut(a),
    )
    case(f"szext.{mode}.u32 %d, %a, %b;", U3, "u32", lambda a, b, c, cut=cut: a & (1 << cut(b)) - 1)
    case(
        f"szext.{mode}.s32 %d, %a, %b;",
        U3,
        "u32",
        lambda a, b, c, cut=cut: signed(a, cut(b)) if cut(b) else 0,
    )


def nth(mask: int, base: int, offset: int) -> int:
    """The pseudocode of PTX's fns."""
    if offset == 0:
        return base if mask >> base & 1 else -1
    pos, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= pos < 32:
        if mask >> pos & 1:
            if count == 0:
                return pos
            count -= 1
        pos += step
    return -1


case(
    "and.b32 %t4, %b, 31; and.b32 %t5, %c, 15; sub.u32 %t5, %t5, 8; fns.b32 %d, %a, %t4, %t5;",
    U3,
    "u32",
    lambda a, b, c: nth(a, b & 31, (c & 15) - 8),
)


def operands(body: str, kind: str) -> np.ndarray:
    """300 words: edges, small and random ones."""
    n = int(kind[1:])
    edges = [0, 1, 2, 7, 31, 32, 33, 64, (1 << n) - 1, 1 << n - 1, (1 << n - 1) - 1, 0x80008000]
    dtype: Any = f"u{n // 8}"
    small = RNG.integers(0, 70, 100).astype(dtype)
    random = RNG.integers(0, (1 << n) - 1, 100, dtype, endpoint=True)
    return np.concatenate([RNG.choice(np.array(edges, dtype), 100), small, random])


@pytest.mark.parametrize("body,types,output,oracle", CASES, ids=[c[0].split(" ")[0] for c in CASES])
def test_instruction(lanes: Any, body: str, types: Any, output: str, oracle: Oracle) -> None:
    arrays = [operands(body, t) for t in types]
    if "bmsk" in body or "szext" in body:  # positions and counts
        arrays[1] = RNG.integers(0, 80, 300).astype(np.uint32)
        if "bmsk" in body:
            arrays[0] = RNG.integers(0, 80, 300).astype(np.uint32)
    got = lanes(body, arrays, types, output)
    bits = int(output[1:])
    for point, value in zip(zip(*(a.tolist() for a in arrays)), got, strict=True):
        assert int(value) == oracle(*point) & (1 << bits) - 1, (body, point, hex(int(value)))


def test_every_snippet_is_legal_ptx(assemble: Any) -> None:
    assemble(
        HEADER
        + "".join(
            kernel(f"k{n}", body, types, output) for n, (body, types, output, _) in enumerate(CASES)
        )
    )


def test_carryless_product(lanes: Any, assemble: Any) -> None:
    """clmad (PTX ISA 9.3): polynomials over GF(2), here as lists of exponents."""
    a, b, c = (RNG.integers(0, (1 << 64) - 1, 64, np.uint64) for _ in range(3))
    for half, shift in (("lo", 0), ("hi", 64)):
        body = f"clmad.{half}.u64 %d, %a, %b, %c;"
        got = lanes(body, [a, b, c], W3, "u64")
        for x, y, z, value in zip(*(v.tolist() for v in (a, b, c, got)), strict=True):
            powers = [i + j for i in range(64) for j in range(64) if x >> i & 1 and y >> j & 1]
            want = sum((powers.count(p) & 1) << p for p in set(powers))
            assert value == (want >> shift & (1 << 64) - 1) ^ z
        assemble(HEADER.replace("8.8", "9.3") + kernel("k", body, W3, "u64"))


def test_a_carry_that_nothing_wrote() -> None:
    ptx = HEADER + kernel("k", "addc.u32 %d, %a, %a;", ["u32"], "u32")
    report = run_ptx(ptx, grid=1, block=32, args=[np.zeros(32, np.uint32)] * 2)
    assert [f.code for f in report.findings] == ["undefined-register"]
    assert "CC.CF" in report.findings[0].second


@pytest.mark.parametrize(
    "body", ["mad.lo.sat.s32 %d, %a, %a, %a;", "mad.hi.sat.u32 %d, %a, %a, %a;",
             "bmsk.b32 %d, %a, %a;", "dp4a.u32 %d, %a, %a, %a;", "sub.u16x2 %d, %a, %a;"],
)  # fmt: skip
def test_what_ptxas_refuses_is_refused(body: str, assemble: Any) -> None:
    ptx = HEADER + kernel("k", body, ["u32"], "u32")
    with pytest.raises(AssertionError):
        assemble(ptx)
    try:
        report = run_ptx(ptx, grid=1, block=32, args=[np.zeros(32, np.uint32)] * 2)
    except ValueError as error:
        assert "expected" in str(error)
    else:
        assert report.incomplete
