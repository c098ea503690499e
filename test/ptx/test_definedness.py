"""Undefined bits travel with the value; they are an error where they matter (as MemorySanitizer).

Each case computes %r9 of %u, which nothing wrote, or of what shared memory holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, Uninitialized, run_ptx

HEADER = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<9>; .reg .b32 %r<30>; .reg .b32 %u; .reg .b64 %d<9>; .reg .b64 %u64; .reg .b64 %out;
  .reg .b16 %h<9>; .reg .f32 %f<9>; .reg .pred %q; .reg .b32 %t; .reg .b32 %s; .reg .b128 %w<3>;
  .shared .align 128 .b8 tile[2048];
  ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mov.u32 %s, tile;
  shl.b32 %r1, %t, 2; add.u32 %r1, %r1, %s; cvt.u64.u32 %d1, %t; shl.b64 %d1, %d1, 2;
  add.s64 %d1, %d1, %out; setp.lt.u32 %p1, %t, 8; mov.u32 %r9, 7;
"""
STORE = "st.global.u32 [%d1], %r9; ret; }"


def run(body: str, end: str = STORE) -> tuple[RunReport, np.ndarray]:
    out = np.zeros(32, np.uint32)
    report = run_ptx(HEADER + body + end, grid=1, block=32, args=[Uninitialized(out)])
    assert not report.incomplete and not report.errors, str(report)
    return report, out


def codes(report: RunReport) -> list[str]:
    return [f.code for f in report.findings]


# What is computed, and the number that each of 32 threads gets.
CLEAN = {
    "and": (
        "and.b32 %r9, %u, 0;",
        0,
    ),
    "or": (
        "or.b32 %r9, %u, -1;",
        0xFFFFFFFF,
    ),
    "lop3": (
        "lop3.b32 %r9, %u, 0xf0, 0x0f, 0xcc;",
        0xF0,
    ),
    "shl": (
        "or.b32 %r2, %u, 0xff; shl.b32 %r2, %r2, 24; shr.u32 %r9, %r2, 24;",
        0xFF,
    ),
    "shf": (
        "shf.l.clamp.b32 %r9, 5, %u, 32;",
        5,
    ),
    "bfe": (
        "mov.b32 %r2, 0x1234; prmt.b32 %r2, %r2, %u, 0x7610; bfe.u32 %r9, %r2, 4, 8;",
        0x23,
    ),
    "bfi": (
        "bfi.b32 %r9, 0xabcd, %u, 0, 32;",
        0xABCD,
    ),
    "prmt": (
        "mov.b32 %r2, 0x44332211; prmt.b32 %r9, %r2, %u, 0x0123;",
        0x11223344,
    ),
    "pack": (
        "mov.b64 %d2, {%t, %u}; mov.b64 {%r9, _}, %d2; sub.u32 %r9, %r9, %t;",
        0,
    ),
    "pack128": (
        "mov.b128 %w1, {%d1, %u64}; mov.b128 {%d2, %d3}, %w1; sub.s64 %d2, %d2, %d1; "
        "cvt.u32.u64 %r9, %d2;",
        0,
    ),
    "cvt": (
        "mov.b64 %d2, {%t, %u}; cvt.u32.u64 %r9, %d2; sub.u32 %r9, %r9, %t;",
        0,
    ),
    "cvt.u16": (
        "and.b32 %r2, %u, 0xffff0000; or.b32 %r2, %r2, 9; cvt.u16.u32 %h1, %r2; "
        "cvt.u32.u16 %r9, %h1;",
        9,
    ),
    "sum of the high half": (
        "shl.b32 %r2, %u, 16; add.u32 %r2, %r2, 9; and.b32 %r9, %r2, 0xffff;",
        9,
    ),
    "selp": (
        "selp.u32 %r9, %t, %u, %p1; selp.u32 %r9, %r9, %t, %p1; sub.u32 %r9, %r9, %t;",
        0,
    ),
    "equal arms": (
        "setp.eq.u32 %p2, %u, 0; selp.u32 %r9, 6, 6, %p2;",
        6,
    ),
    "eq": (
        "or.b32 %r2, %u, 1; setp.eq.u32 %p2, %r2, 0; selp.u32 %r9, 1, 2, %p2;",
        2,
    ),
    "lt": (
        "or.b32 %r2, %u, 0x100; setp.lt.u32 %p2, %r2, 0x100; selp.u32 %r9, 1, 2, %p2;",
        2,
    ),
    "lt signed": (
        "or.b32 %r2, %u, 0x80000000; setp.lt.s32 %p2, %r2, 0; selp.u32 %r9, 1, 2, %p2;",
        1,
    ),
    "pred and": (
        "setp.ne.u32 %p2, %t, %t; and.pred %p3, %q, %p2; @%p3 bra L; L: mov.u32 %r9, 3;",
        3,
    ),
    "setp.and": (
        "setp.ne.and.u32 %p2, %t, %t, %q; @%p2 bra L; L: mov.u32 %r9, 3;",
        3,
    ),
    "guarded computation": (
        "mov.u32 %r2, 3; @%q mov.u32 %r2, 4; mov.u32 %r9, 5;",
        5,
    ),
    "guarded alike": (
        "mov.u32 %r9, 3; @%q mov.u32 %r2, 4;",
        3,
    ),
    "vote.any": (
        "setp.ge.u32 %p2, %t, 0; @!%p1 mov.pred %p2, %q; vote.sync.any.pred %p3, %p2, -1; "
        "selp.u32 %r9, 1, 2, %p3;",
        1,
    ),
    "ballot": (
        "setp.lt.u32 %p2, %t, 4; @!%p1 mov.pred %p2, %q; vote.sync.ballot.b32 %r2, %p2, "
        "-1; and.b32 %r9, %r2, 0xff;",
        0xF,
    ),
    "half a float pair": (
        "mov.b32 %f1, %u; mov.f32 %f2, 0f3f800000; cvt.rn.f16x2.f32 %r2, %f1, %f2; "
        "and.b32 %r9, %r2, 0xffff;",
        0x3C00,
    ),
    "shared padding": (
        "st.shared.u16 [%r1], 9; ld.shared.b32 %r2, [%r1]; st.shared.b32 [%r1+128], %r2; "
        "ld.shared.u16 %h1, [%r1+128]; cvt.u32.u16 %r9, %h1;",
        9,
    ),
    "sign of a byte": (
        "st.shared.u8 [%r1], 0x90; ld.shared.u16 %h1, [%r1]; cvt.s16.s8 %h2, %h1; "
        "cvt.u32.u16 %r9, %h2;",
        0xFF90,
    ),
    "matrix": (
        "mov.b32 %r2, %u; @%p1 mov.b32 %r2, 6; movmatrix.sync.aligned.m8n8.trans.b16 %r3, "
        "%r2; and.b32 %r4, %t, 3; setp.eq.u32 %p2, %r4, 0; mov.u32 %r9, 0; @%p2 xor.b32 "
        "%r9, %r3, %r3;",
        0,
    ),
}


@pytest.mark.parametrize("name", CLEAN)
def test_defined_bits_of_undefined_words(name: str, assemble: Any) -> None:
    body, want = CLEAN[name]
    report, out = run(body)
    assert report.ok and not report.findings, str(report)
    assert (out == want).all(), out
    assemble(HEADER + body + STORE)


# Undefined bits where they matter, and a word of where they come from.
WRONG = {
    "stored": (
        "add.u32 %r9, %u, 1;",
        "%u",
    ),
    "stored through selp": (
        "selp.u32 %r9, %t, %u, %p1;",
        "%u",
    ),
    "a bit of it": (
        "bfe.u32 %r9, %u, 3, 1;",
        "%u",
    ),
    "xor with itself": (
        "mul.lo.u32 %r2, %u, 3; xor.b32 %r9, %r2, %t;",
        "%u",
    ),
    "carry": (
        "and.b32 %r2, %u, 1; add.u32 %r2, %r2, 0xff; and.b32 %r9, %r2, 0x100;",
        "%u",
    ),
    "sign": (
        "shl.b32 %r2, %u, 31; shr.s32 %r2, %r2, 31; and.b32 %r9, %r2, 1;",
        "%u",
    ),
    "shift amount": (
        "and.b32 %r2, %u, 1; shl.b32 %r9, 1, %r2;",
        "%u",
    ),
    "prmt": (
        "prmt.b32 %r9, %t, %u, 0x7210;",
        "%u",
    ),
    "selector": (
        "prmt.b32 %r9, 0x11223344, 0, %u;",
        "%u",
    ),
    "branch": (
        "setp.eq.u32 %p2, %u, 0; @%p2 bra L; mov.u32 %r9, 1; L:",
        "%u",
    ),
    "address": (
        "and.b32 %r2, %u, 0; and.b32 %r3, %u, 4; add.u32 %r2, %r3, %r1; mov.u32 %r4, 0; "
        "st.shared.u32 [%r2], %r4;",
        "%u",
    ),
    "guard of a store": (
        "setp.eq.u32 %p2, %u, 0; @%p2 st.shared.u32 [%r1], %t;",
        "%u",
    ),
    "guard of what is stored": (
        "setp.eq.u32 %p2, %u, 0; @%p2 mov.u32 %r9, 1;",
        "%u",
    ),
    "atomic": (
        "red.shared.add.u32 [%r1], %t;",
        "shared bytes",
    ),
    "operand of an atomic": (
        "st.shared.u32 [%r1], %t; red.shared.add.u32 [%r1], %u;",
        "%u",
    ),
    "barrier": (
        "and.b32 %r2, %u, 1; bar.sync %r2;",
        "%u",
    ),
    "member mask": (
        "or.b32 %r2, %u, 0xfffffffe; shfl.sync.idx.b32 %r9, %t, 0, 31, %r2;",
        "%u",
    ),
    "ballot": (
        "setp.lt.u32 %p2, %t, 4; @!%p1 mov.pred %p2, %q; vote.sync.ballot.b32 %r9, %p2, -1;",
        "%q",
    ),
    "vote.all": (
        "setp.ge.u32 %p2, %t, 0; @!%p1 mov.pred %p2, %q; vote.sync.all.pred %p3, %p2, -1; "
        "selp.u32 %r9, 1, 2, %p3;",
        "%q",
    ),
    "redux": (
        "mov.u32 %r2, 1; @%p1 mov.u32 %r2, %u; redux.sync.add.u32 %r9, %r2, -1;",
        "%u",
    ),
    "shared": (
        "@%p1 st.shared.u32 [%r1], %t; ld.shared.u32 %r9, [%r1];",
        "shared bytes",
    ),
    "through shared": (
        "st.shared.u32 [%r1], %u; ld.shared.u32 %r9, [%r1];",
        "%u",
    ),
    "half a word": (
        "st.shared.u16 [%r1], 9; ld.shared.b32 %r9, [%r1];",
        "shared bytes",
    ),
    "a sign": (
        "ld.shared.s8 %r2, [%r1]; shr.u32 %r9, %r2, 31;",
        "shared bytes",
    ),
    "matrix": (
        "mov.b32 %r2, %u; @%p1 mov.b32 %r2, 6; movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r2;",
        "%u",
    ),
    "eq": (
        "or.b32 %r2, %u, 1; setp.eq.u32 %p2, %r2, 1; selp.u32 %r9, 1, 2, %p2;",
        "%u",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_undefined_bits_matter_where_they_are_used(name: str, assemble: Any) -> None:
    body, word = WRONG[name]
    code = "undefined-register" if word.startswith("%") else "undefined-read"
    report, _ = run(body)
    assert codes(report) == [code] and word in report.findings[0].second, str(report)
    assert not report.ok
    assemble(HEADER + body + STORE)


def test_the_finding_names_origin_and_use() -> None:
    report, _ = run("add.u32 %r2, %u, 1;\n mul.lo.u32 %r9, %r2, 3;\n")
    (found,) = report.findings
    assert "add.u32 %r2, %u, 1" in found.first and found.second == "%u"
    assert found.place == "%u (warp 0, all lanes)"
    assert "st.global.u32 [%d1], %r9" in found.missing
    assert "byte 0x0 of argument 0 (out): [0]" in found.missing


DIVISION = "and.b32 %r2, %t, 3; "
"""A divisor that is 0 in every fourth lane."""


@pytest.mark.parametrize(
    "body",
    [
        "div.u32 %r9, %t, %r2;",
        "rem.u32 %r9, %t, %r2;",
        "div.s32 %r9, %t, %r2;",
        "mov.u32 %r9, %r2; rem.s32 %r9, %t, %r9;",
        "div.u32 %r9, %t, 0;",
        "cvt.u64.u32 %d2, %r2; div.s64 %d2, %d1, %d2; cvt.u32.u64 %r9, %d2;",
        "cvt.u16.u32 %h1, %r2; rem.u16 %h1, 7, %h1; cvt.u32.u16 %r9, %h1;",
        "div.u32 %r3, %t, %r2; setp.gt.u32 %p2, %r3, 2; @%p2 mov.u32 %r9, 1;",
        "st.shared.u32 [%r1], %t; bar.warp.sync -1; rem.u32 %r3, %t, %r2; and.b32 %r3, %r3, 4; "
        "add.u32 %r3, %r3, %s; ld.shared.u32 %r9, [%r3];",
        "rem.u32 %r3, %t, %r2; setp.eq.u32 %p2, %r3, 0; @%p2 bra L; mov.u32 %r9, 1; L:",
    ],
)
def test_a_quotient_by_zero_is_undefined(body: str, assemble: Any) -> None:
    """An error where it matters, laid to the division; the divisor of other lanes is not 0."""
    report, _ = run(DIVISION + body)
    (found,) = report.findings
    assert found.code == "division-by-zero" and not report.ok, str(report)
    assert "div." in found.first or "rem." in found.first
    lanes = "all lanes" if "%t, 0;" in body else "lanes 0, 4, 8, 12"
    assert lanes in found.place
    assert "unspecified" in found.missing
    assemble(HEADER + DIVISION + body + STORE)


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("div.u32 %r3, %t, %r2;", 7),
        ("div.u32 %r3, 9, %r2; setp.ne.u32 %p2, %r2, 0; selp.u32 %r9, 9, 5, %p2;", None),
        ("setp.ne.u32 %p2, %r2, 0; rem.u32 %r3, 1, %r2; selp.u32 %r9, %r3, 5, %p2;", None),
        ("setp.ne.u32 %p2, %r2, 0; @%p2 div.u32 %r9, 70, %r2;", None),
        ("div.u32 %r3, %t, %r2; mul.lo.u32 %r3, %r3, %r2; mov.u32 %r9, 6;", 6),
        ("rem.u32 %r3, %t, %r2; and.b32 %r9, %r3, 0;", 0),
        ("or.b32 %r2, %r2, 1; div.u32 %r9, 3, 3;", 1),
    ],
)
def test_a_quotient_by_zero_that_nobody_uses(body: str, want: int | None, assemble: Any) -> None:
    """Code may divide first and select afterwards."""
    report, out = run(DIVISION + body)
    assert report.ok and not report.findings, str(report)
    assert want is None or (out == want).all(), out
    assemble(HEADER + DIVISION + body + STORE)


def test_an_undefined_divisor_is_told_as_such() -> None:
    report, _ = run("and.b32 %r2, %u, 0; or.b32 %r2, %u, %r2; div.u32 %r9, %t, %r2;")
    assert codes(report) == ["undefined-register"], str(report)


def test_what_is_overwritten_does_not_matter() -> None:
    end = "st.global.u32 [%d1], %u; st.global.u32 [%d1], %r9; ret; }"
    report, out = run("", end)
    assert report.ok and (out == 7).all()


MMA = """mov.f32 %f1, 0f00000000; mov.b32 %r10, 0x3c003c00; mov.b32 %r11, 0x3c003c00;
 mov.b32 %r12, 0x3c003c00; mov.b32 %r13, 0x3c003c00; mov.b32 %r14, 0x3c003c00;
 mov.b32 %r15, 0x3c003c00; setp.lt.u32 %p2, %t, 4; CHANGE
 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f2, %f3, %f4, %f5}, {%r10, %r11, %r12, %r13},
   {%r14, %r15}, {%f1, %f1, %f1, %f1};
 mov.b32 %r9, RESULT;
"""


@pytest.mark.parametrize(
    ("change", "result", "clean"),
    [
        ("@!%p2 mov.b32 %r10, %u;", "%f4", True),  # rows 1..7 of A; %f4 is of rows 8..15
        ("@!%p2 mov.b32 %r10, %u;", "%f2", False),
        ("@%p2 mov.b32 %r14, %u;", "%f4", False),  # column 0 of B reaches all rows
    ],
)
def test_rows_and_columns_of_mma_sync(change: str, result: str, clean: bool) -> None:
    report, out = run(MMA.replace("CHANGE", change).replace("RESULT", result))
    assert codes(report) == ([] if clean else ["undefined-register"]), str(report)
    if clean:
        assert (out.view(np.float32) == 16).all()
