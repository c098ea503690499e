"""Integer instructions against Python integers on edge values; all of them assemble."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from .conftest import HEADER, kernel

BITS = {"16": 16, "32": 32, "64": 64}


def edges(kind: str) -> list[int]:
    n = int(kind[1:])
    values = [0, 1, 2, 3, 7, (1 << n) - 1, (1 << n) - 2, 1 << (n - 1), (1 << (n - 1)) - 1, 0x5A5A]
    values.append(0x1234567 & ((1 << n) - 1))
    return [signed(v, n) if kind[0] == "s" else v for v in values]


def signed(v: int, n: int) -> int:
    v &= (1 << n) - 1
    return v - (1 << n) if v >> (n - 1) else v


def trunc_div(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def shifted_right(a: int, s: int, n: int) -> int:
    return a >> min(s, n - 1) if a < 0 else (a >> s if s < n else 0)


def byte_permute(a: int, b: int, c: int) -> int:
    octets = (a | b << 32).to_bytes(8, "little")
    out = 0
    for n in range(4):
        selector = c >> 4 * n & 15
        byte = octets[selector & 7]
        out |= ((0xFF if byte & 0x80 else 0) if selector & 8 else byte) << 8 * n
    return out


def field_extract(a: int, b: int, c: int, n: int, is_signed: bool) -> int:
    """The pseudocode of PTX's bfe."""
    pos, length = b & 0xFF, c & 0xFF
    word = a & ((1 << n) - 1)
    msb = n - 1
    sign = 0
    if is_signed and length != 0:
        sign = word >> min(pos + length - 1, msb) & 1
    out = 0
    for i in range(n):
        out |= (word >> pos + i & 1 if i < length and pos + i <= msb else sign) << i
    return out


def field_insert(a: int, b: int, c: int, e: int, n: int) -> int:
    """The pseudocode of PTX's bfi."""
    pos, length = c & 0xFF, e & 0xFF
    out = b
    for i in range(length):
        if pos + i <= n - 1:
            out = out & ~(1 << pos + i) | (a >> i & 1) << pos + i
    return out


def lut3(a: int, b: int, c: int, table: int) -> int:
    return sum(
        (table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32)
    )


Case = tuple[str, tuple[str, ...], str, Callable[..., int]]
CASES: list[Case] = []


def case(body: str, types: tuple[str, ...], output: str, oracle: Callable[..., int]) -> None:
    CASES.append((body, types, output, oracle))


for k in ("u16", "s16", "u32", "s32", "u64", "s64"):
    n = int(k[1:])
    case(f"add.{k} %d, %a, %b;", (k, k), k, lambda a, b: a + b)
    case(f"sub.{k} %d, %a, %b;", (k, k), k, lambda a, b: a - b)
    case(f"mul.lo.{k} %d, %a, %b;", (k, k), k, lambda a, b: a * b)
    case(f"mul.hi.{k} %d, %a, %b;", (k, k), k, lambda a, b, n=n: (a * b) >> n)
    case(f"mad.lo.{k} %d, %a, %b, %b;", (k, k), k, lambda a, b: a * b + b)
    case(f"min.{k} %d, %a, %b;", (k, k), k, min)
    case(f"max.{k} %d, %a, %b;", (k, k), k, max)
    unless_zero = f"setp.eq.{k} %p0, %b, 0; @%p0 mov.b{n} %d, 0;"  # its quotient is unspecified
    case(f"div.{k} %d, %a, %b; {unless_zero}", (k, k), k, lambda a, b: trunc_div(a, b) if b else 0)
    case(
        f"rem.{k} %d, %a, %b; {unless_zero}",
        (k, k),
        k,
        lambda a, b: a - b * trunc_div(a, b) if b else 0,
    )
    case(f"shr.{k} %d, %a, %b;", (k, "u32"), k, lambda a, b, n=n: shifted_right(a, b, n))
    case(f"shl.b{n} %d, %a, %b;", (k, "u32"), k, lambda a, b: a << b if b < 64 else 0)
    for op in ("and", "or", "xor"):
        fn: Any = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__}[op]
        case(f"{op}.b{n} %d, %a, %b;", (k, k), k, fn)
    case(f"not.b{n} %d, %a;", (k,), k, lambda a: ~a)
    for cmp, compare in (("eq", int.__eq__), ("ne", int.__ne__), ("lt", int.__lt__),
                      ("le", int.__le__), ("gt", int.__gt__), ("ge", int.__ge__)):  # fmt: skip
        case(
            f"setp.{cmp}.{k} %p0, %a, %b; selp.u32 %d, 1, 2, %p0;",
            (k, k),
            "u32",
            lambda a, b, compare=compare: 1 if compare(a, b) else 2,
        )
    if k[0] == "s":
        case(f"neg.{k} %d, %a;", (k,), k, lambda a: -a)
        case(f"abs.{k} %d, %a;", (k,), k, abs)
    if n < 64:
        w = f"{k[0]}{2 * n}"
        case(f"mul.wide.{k} %d, %a, %b;", (k, k), w, lambda a, b: a * b)
        case(f"mad.wide.{k} %d, %a, %b, %c;", (k, k, w), w, lambda a, b, c: a * b + c)
    for other in ("u16", "s16", "u32", "s32", "u64", "s64"):
        if other != k:
            case(f"cvt.{other}.{k} %d, %a;", (k,), other, lambda a: a)
            low = -(1 << int(other[1:]) - 1) if other[0] == "s" else 0
            high = (1 << int(other[1:]) - (other[0] == "s")) - 1
            if (
                k[0] == "s"
                and other[0] == "u"
                or n - (k[0] == "s") > int(other[1:]) - (other[0] == "s")
            ):
                case(
                    f"cvt.sat.{other}.{k} %d, %a;",
                    (k,),
                    other,
                    lambda a, low=low, high=high: min(max(a, low), high),
                )

case(
    "setp.lo.u32 %p0, %a, %b; selp.u32 %d, 1, 2, %p0;",
    ("u32", "u32"),
    "u32",
    lambda a, b: 1 if a < b else 2,
)
case(
    "setp.eq.u32 %p1, %a, 3; setp.lt.and.u32 %p0, %a, %b, !%p1; selp.u32 %d, 1, 2, %p0;",
    ("u32", "u32"),
    "u32",
    lambda a, b: 1 if a < b and a != 3 else 2,
)
case(
    "setp.eq.u32 %p1, %a, 3; setp.lt.or.u32 %p0|%p2, %a, %b, %p1; selp.u32 %d, 1, 2, %p0;\n"
    "selp.u32 %t1, 4, 8, %p2; or.b32 %d, %d, %t1;",
    ("u32", "u32"),
    "u32",
    lambda a, b: (1 if a < b or a == 3 else 2) | (4 if not a < b or a == 3 else 8),
)
case("popc.b32 %d, %a;", ("u32",), "u32", lambda a: a.bit_count())
case("popc.b64 %d, %a;", ("u64",), "u32", lambda a: a.bit_count())
case("clz.b32 %d, %a;", ("u32",), "u32", lambda a: 32 - a.bit_length())
case("clz.b64 %d, %a;", ("u64",), "u32", lambda a: 64 - a.bit_length())
case("bfind.u32 %d, %a;", ("u32",), "u32", lambda a: a.bit_length() - 1)
case("bfind.s32 %d, %a;", ("s32",), "u32", lambda a: (~a if a < 0 else a).bit_length() - 1)
case("brev.b32 %d, %a;", ("u32",), "u32", lambda a: int(f"{a:032b}"[::-1], 2))
case("brev.b64 %d, %a;", ("u64",), "u64", lambda a: int(f"{a:064b}"[::-1], 2))
case("prmt.b32 %d, %a, %b, 0x5410;", ("u32", "u32"), "u32", lambda a, b: byte_permute(a, b, 0x5410))
case("prmt.b32 %d, %a, %b, %c;", ("u32", "u32", "u32"), "u32", byte_permute)
case("lop3.b32 %d, %a, %b, %c, 0x96;", ("u32",) * 3, "u32", lambda a, b, c: a ^ b ^ c)
case("lop3.b32 %d, %a, %b, %c, 0xCA;", ("u32",) * 3, "u32", lambda a, b, c: lut3(a, b, c, 0xCA))
case(
    "shf.l.wrap.b32 %d, %a, %b, %c;",
    ("u32",) * 3,
    "u32",
    lambda a, b, c: (b << 32 | a) << (c & 31) >> 32,
)
case(
    "shf.r.wrap.b32 %d, %a, %b, %c;", ("u32",) * 3, "u32", lambda a, b, c: (b << 32 | a) >> (c & 31)
)
case(
    "shf.l.clamp.b32 %d, %a, %b, %c;",
    ("u32",) * 3,
    "u32",
    lambda a, b, c: (b << 32 | a) << min(c, 32) >> 32,
)
case(
    "shf.r.clamp.b32 %d, %a, %b, %c;",
    ("u32",) * 3,
    "u32",
    lambda a, b, c: (b << 32 | a) >> min(c, 32),
)
for k in ("u32", "s32", "u64", "s64"):
    n = int(k[1:])
    case(
        f"bfe.{k} %d, %a, %b, %c;",
        (k, "u32", "u32"),
        k,
        lambda a, b, c, n=n, k=k: field_extract(a, b, c, n, k[0] == "s"),
    )
case(
    "bfi.b32 %d, %a, %b, %c, %e;",
    ("u32",) * 4,
    "u32",
    lambda a, b, c, e: field_insert(a, b, c, e, 32),
)
case(
    "bfi.b64 %d, %a, %b, %c, %e;",
    ("u64", "u64", "u32", "u32"),
    "u64",
    lambda a, b, c, e: field_insert(a, b, c, e, 64),
)
case("mov.b64 %d, {%a, %b};", ("u32", "u32"), "u64", lambda a, b: a | b << 32)
case("mov.b64 {%t1, %d}, %a;", ("u64",), "u32", lambda a: a >> 32)
case(
    "mov.b32 {%h1, %h2}, %a; mov.b32 %d, {%h2, %h1};",
    ("u32",),
    "u32",
    lambda a: a >> 16 | (a & 0xFFFF) << 16,
)
case("slct.s32.s32 %d, %a, %b, %c;", ("s32",) * 3, "s32", lambda a, b, c: a if c >= 0 else b)
case(
    "mad24.lo.s32 %d, %a, %b, %c;",
    ("s32",) * 3,
    "s32",
    lambda a, b, c: signed(signed(a, 24) * signed(b, 24), 32) + c,
)
case(
    "add.sat.s32 %d, %a, %b;",
    ("s32", "s32"),
    "s32",
    lambda a, b: min(max(a + b, -(1 << 31)), (1 << 31) - 1),
)
case("sad.u32 %d, %a, %b, %c;", ("u32",) * 3, "u32", lambda a, b, c: c + abs(a - b))
case("cnot.b32 %d, %a;", ("u32",), "u32", lambda a: int(a == 0))


def _names() -> list[str]:
    return [body.split(" ")[0] + f"_{n}" for n, (body, *_) in enumerate(CASES)]


@pytest.mark.parametrize("body,types,output,oracle", CASES, ids=_names())
def test_instruction(lanes: Any, body: str, types: Any, output: str, oracle: Any) -> None:
    values = [edges(t) for t in types]
    if len(types) > 2:  # shift amounts, positions and lengths around the interesting borders
        small = [0, 1, 5, 31, 32, 33, 63, 64, 200, 255, 256, 0xFFFFFFFF]
        values = [v[3:9] if n < 2 else v for n, v in enumerate(values)]
        for n in range(1, len(types)):
            if types[n] == "u32" and body[0] in "bs" and not body.startswith(("bfi", "sad")):
                values[n] = small
            if body.startswith("bfi") and n >= 2:
                values[n] = small
    elif types[1:] == ("u32",) and body.startswith("sh"):
        values[1] = [0, 1, 7, 15, 16, 17, 31, 32, 33, 63, 64, 255]
    points = list(itertools.product(*values))
    if len(points) > 1500:
        points = points[:: len(points) // 1500 + 1]
    arrays = [
        np.array([p[n] & ((1 << int(t[1:])) - 1) for p in points], f"u{int(t[1:]) // 8}")
        for n, t in enumerate(types)
    ]
    got = lanes(body, arrays, types, output)
    bits = int(output[1:])
    for point, value in zip(points, got, strict=True):
        want = oracle(*point)
        assert int(value) == want & ((1 << bits) - 1), (point, hex(int(value)), hex(want))


def test_every_snippet_is_legal_ptx(assemble: Any) -> None:
    entries = [
        kernel(f"k{n}", body, types, output) for n, (body, types, output, _) in enumerate(CASES)
    ]
    assemble(HEADER + "".join(entries))


MODES = {  # PTX ISA 9.7.9.7, bytes of the result from the highest down, for c & 3 = 0..3
    "f4e": ("3210", "4321", "5432", "6543"),
    "b4e": ("5670", "6701", "7012", "0123"),
    "rc8": ("0000", "1111", "2222", "3333"),
    "ecl": ("3210", "3211", "3222", "3333"),
    "ecr": ("0000", "1110", "2210", "3210"),
    "rc16": ("1010", "3232", "1010", "3232"),
}


@pytest.mark.parametrize("mode", MODES)
def test_prmt_modes(lanes: Any, assemble: Any, mode: str) -> None:
    a, b, c = (np.full(8, v, "u4") for v in (0x13121110, 0x17161514, 0))
    c[:] = np.arange(8)
    body = f"prmt.b32.{mode} %d, %a, %b, %c;"
    got = lanes(body, [a, b, c], ["u32"] * 3, "u32")
    want = [int("".join(f"1{n}" for n in MODES[mode][s & 3]), 16) for s in range(8)]
    assert got.tolist() == want
    assemble(HEADER + kernel("k", body, ["b32"] * 3, "b32"))
