"""Programs generated from spellings that mean the same: ptxas takes each, and the machine computes
the same from all of them (PTX ISA 4)."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from tcir.run import run_ptx

SPELLINGS: dict[str, tuple[str, ...]] = {
    "FIVE": (
        *("5", "0x5", "0X05", "05", "0b101", "0B101", "5U", "0x5U", "(5)", "+5", "2+3", "1 + 4"),
        *("10/2", "11 % 6", "5<<0", "20>>2", "13&7", "4|1", "4^1", "4+(1<2)", "1?5:6"),
        *("(1>2)?4:5", "(.s64)5", "(.u64)5", "-(-5)", "~~5", "WARP_SZ-27", "4+(2==2)", "1+2*2"),
        *("((1+(2*3))-2)", "!0+4", "0?2:1?5:3", "7-(3&&1)-(0||1)", "1|2<<1", "(.u64)-1>0?5:6"),
    ),
    "HALF": (
        *("0.5", ".5", "5e-1", "5.E-1", "0f3F000000", "0F3f000000", "(0.5)", "0.25+.25"),
        *("1.0/2.0", "+.5", "1.5-1.0", "0d3FE0000000000000"),
    ),
    "TABLE": (
        ".global .align 4 .u32 x[2] = { 1 , FIVE };",
        ".global .u32 x[] = {1, FIVE};",
        ".visible .global .u32 y, x[2] = {1, FIVE};",
        ".weak .global .align 8 .b32 x[0x2][1] = {{1}, {FIVE}};",
        ".global .v2 .u32 x = {1, FIVE};",
        ".global .u32 y = 1, x[2] = {1, FIVE}, z;",
        ".const .u32 y[2] = {FIVE, 2}; .global .s32 x[3] = {1, FIVE};",
    ),
    "ELEMENT": ("[x+4]", "[x + 4]", "[x+2*2]", "[x+(2+2)]", "[ x+0x4 ]", "[%rd1]", "[%rd1+0]",
                "[%rd1 + 4+-4]", "[%rd2+-4]"),
    "PARAMETER": ("[q+8]", "[q + 8]", "[q+2*4]", "q[2]", "q[1+1]"),
    "IF": ("@%p0", "@ %p0", "@!%p1", "@ ! %p1"),
    "COMPARE": (
        "setp.eq.u32 %p0|%p1, %r0, FIVE;",
        "setp.eq.u32 %p0 | %p1, %r0, FIVE;",
        "setp.ne .u32 %p1, %r0, FIVE; not.pred %p0, %p1;",
        "setp.eq.and.u32 %p0|%p1, %r0, FIVE, !%p2;",
        "setp.eq.u32 %p0, %r0, FIVE; setp.ne.and.u32 %p1|_, %r0, FIVE, ! %p2;",
    ),
    "ADDRESS": ("mov.u64 %rd1, x+4;", "mov.u64 %rd1, x; add.u64 %rd1, %rd1, 4;",
                "mov.u64 %rd2, x+8; sub.u64 %rd1, %rd2, 4;"),
    "BLOCK": (
        "add.u32 %r1, %r1, 1;",
        "{ .reg .b32 t, u<2>; mov.b32 u1, 1; mov.b32 t, u1; add.u32 %r1, %r1, t; }",
        "{ .reg .v2 .b32 v; mov.v2.b32 v, {1, 2}; add.u32 %r1, %r1, v .x; }",
        "bra.uni $L1; $L1: add.u32 %r1, %r1, 1;",
        "setp.eq.u32 %p2, 0, 0; vote.ballot.sync.b32 %r2, %p2, 1; add.u32 %r1, %r1, %r2;",
        "mov.b32 %r2, 1; redux.add.sync.u32 %r2, %r2, 1; add.u32 %r1, %r1, %r2;",
        "mov.b32 %r2, 1; shfl.b32.sync.bfly %r2, %r2, 0, 31, 1; add.u32 %r1, %r1, %r2;",
        "{ bra L; L: } { bra L; L : add.u32 %r1, %r1, 1; }",
        "{ .reg .b64 w; mov.b64 w, {1, 7}; mov.b64 {%r2, _}, w; add.u32 %r1, %r1, %r2; }",
        "{ .param .b32 a; st.param.b32 [a], 1; call.uni (%r2), same, (1); add.u32 %r1, %r1, %r2; }",
    ),
    "LIMIT": ("", ".maxntid 32", ".maxntid 0x20, 1", ".reqntid 1,1,1", '.pragma "nounroll";',
              ".maxntid 32 .minnctapersm 2"),
    "NOTE": ("", "/* st.global */", "// @%p0 {\n", '\n# 7 "a.cu"\n', '.pragma "nounroll";'),
}  # fmt: skip
PROGRAM = """
.version 8.8
.target sm_100a
.address_size 64
TABLE
.func (.reg .b32 r) same (.reg .b32 a) { mov.b32 r, a; ret; }
.visible .entry k ( .param .u64 out , .param .align 8 .b32 q[4] ) LIMIT
{
.reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .f32 %f<1>;
ld.param.u64 %rd0, [out];
ADDRESS
add.u64 %rd2, %rd1, 4; NOTE
setp.ne.u32 %p2, 0, 0;
ld.global.u32 %r0, ELEMENT; COMPARE
mov.u32 %r1, 9; IF mov.u32 %r1, 0;
BLOCK
mov.f32 %f0, HALF; NOTE
ld.param.u32 %r3, PARAMETER;
st.global.v2.u32 [%rd0], {%r0, %r1};
st.global.f32 [%rd0+8], %f0;
st.global.u32 [%rd0+12], %r3;
ret;
}
"""
SPACES = (" ", "  ", "\t", "\n", "\r\n", "\f", " /* , */ ")


def generated(seed: int) -> str:
    """A program with one spelling of each kind at each place, and other spaces."""
    choose = random.Random(seed)
    text = PROGRAM
    while named := re.search("|".join(SPELLINGS), text):
        spelling = choose.choice(SPELLINGS[named[0]])
        text = text[: named.start()] + spelling + text[named.end() :]
    return re.sub(r"(?<=[,;{}]) (?![/#])", lambda _: choose.choice(SPACES), text)


@pytest.mark.parametrize("seed", range(8))
def test_every_spelling_means_the_same(assemble, seed: int) -> None:
    text = generated(seed)
    assert assemble(text), text
    out = np.zeros(4, np.uint32)
    report = run_ptx(text, grid=1, block=1, args=[out, np.arange(4, dtype=np.uint32).tobytes()])
    assert report.ok, f"{report}\n{text}"
    assert out.tolist() == [5, 1, 0x3F000000, 2], text
