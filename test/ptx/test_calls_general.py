"""Guarded, recursive and indirect calls, parameters in registers, aliases, stack memory.

Every legal program also goes through ptxas.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tcir.run import PtxSyntaxError, run_ptx

from .conftest import HEADER

HEAD = HEADER.replace("8.8", "9.0")
ONE = """.func (.param .b32 r) {name}(.param .b32 a)
{{ .reg .b32 %r<4>; ld.param.b32 %r1, [a]; {body} st.param.b32 [r], %r2; ret; }}
"""
INC = ONE.format(name="inc", body="add.u32 %r2, %r1, 1;")
DEC = ONE.format(name="dec", body="sub.u32 %r2, %r1, 1;")
TWICE = ONE.format(name="twice", body="shl.b32 %r2, %r1, 1;")
CALL = "{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r1; CALL ld.param.b32 %r3, [q0]; }\n"


def kernel(body: str, functions: str = "") -> str:
    """k(y): %r1 = thread, %r3 (at first 1000) goes to y[thread]; %p1: odd threads."""
    return f"""{HEAD}{functions}
.visible .entry k(.param .u64 y)
{{
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .f32 %f<4>;
ld.param.b64 %d0, [y]; mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 4; add.s64 %d0, %d0, %d1;
and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 1; mov.b32 %r3, 1000;
{body}
st.global.b32 [%d0], %r3; ret;
}}
"""


def run(text: str, block: int = 40) -> tuple[Any, list[int]]:
    y = np.zeros(block, np.uint32)
    report = run_ptx(text, grid=1, block=block, args=[y])
    return report, y.tolist()


def check(text: str, want: Any, assemble: Any) -> None:
    report, got = run(text)
    assert report.ok and not report.findings, report
    assert got == [want(n) for n in range(40)]
    assemble(text)


# Guards -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("guard,odd", [("@%p1", 1), ("@!%p1", 0)])
def test_guarded(guard: str, odd: int, assemble: Any) -> None:
    """What the call did not give is loaded, and does not matter until it is stored."""
    call = CALL.replace("CALL", f"{guard} call (q0), inc, (p0);")
    kept = call.replace("; }", "; selp.b32 %r3, %r3, 1000, %p1; }")
    if not odd:
        kept = kept.replace("%r3, 1000, %p1", "1000, %r3, %p1")
    check(kernel(kept, INC), lambda n: n + 1 if n % 2 == odd else 1000, assemble)
    report, _ = run(kernel(call + "add.u32 %r3, %r3, 1;", INC))
    assert [(f.code, f.second) for f in report.findings] == [("undefined-read", "local memory")]


def test_in_divergent_code(assemble: Any) -> None:
    up, down = (CALL.replace("CALL", f"call (q0), {f}, (p0);") for f in ("inc", "dec"))
    text = kernel(f"@%p1 bra A;\n{up}bra B;\nA: {down}B:", INC + DEC)
    check(text, lambda n: n - 1 if n % 2 else n + 1, assemble)


# Recursion ----------------------------------------------------------------------------------------

FACTORIAL = """.func (.param .b32 r) fac(.param .b32 a)
{ .reg .b32 %r<6>; .reg .pred %p; ld.param.b32 %r1, [a]; setp.gt.u32 %p, %r1, 1; @%p bra GO;
st.param.b32 [r], 1; ret;
GO: sub.u32 %r2, %r1, 1;
{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r2; call (q0), fac, (p0);
  ld.param.b32 %r3, [q0]; }
ld.param.b32 %r5, [a]; mul.lo.u32 %r4, %r3, %r5; st.param.b32 [r], %r4; ret; }
"""
FIBONACCI = """.func (.param .b32 r) fib(.param .b32 a)
{ .reg .b32 %r<8>; .reg .pred %p; .local .align 4 .b8 kept[4];
ld.param.b32 %r1, [a]; setp.gt.u32 %p, %r1, 1; @%p bra GO; st.param.b32 [r], %r1; ret;
GO: sub.u32 %r2, %r1, 1;
{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r2; call (q0), fib, (p0);
  ld.param.b32 %r3, [q0]; }
st.local.b32 [kept], %r3; sub.u32 %r2, %r1, 2;
{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r2; call (q0), fib, (p0);
  ld.param.b32 %r4, [q0]; }
ld.local.b32 %r5, [kept]; add.u32 %r6, %r4, %r5; st.param.b32 [r], %r6; ret; }
"""
EVEN = """.func (.param .b32 r) odd(.param .b32 a);
.func (.param .b32 r) even(.param .b32 a)
{ .reg .b32 %r<6>; .reg .pred %p; ld.param.b32 %r1, [a]; setp.ne.u32 %p, %r1, 0; @%p bra GO;
st.param.b32 [r], 1; ret;
GO: sub.u32 %r2, %r1, 1;
{ .param .b32 p0; .param .b32 q0; st.param.b32 [p0], %r2; call (q0), odd, (p0);
  ld.param.b32 %r3, [q0]; }
st.param.b32 [r], %r3; ret; }
"""
ODD = EVEN.split("\n", 1)[1].replace("even(", "odd(").replace(", odd,", ", even,")
ODD = ODD.replace("st.param.b32 [r], 1", "st.param.b32 [r], 0")


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def test_factorial_of_each_thread(assemble: Any) -> None:
    text = kernel(CALL.replace("CALL", "call (q0), fac, (p0);"), FACTORIAL)
    check(text, lambda n: math.factorial(n) & 0xFFFFFFFF, assemble)


def test_two_calls_of_itself_and_local_memory(assemble: Any) -> None:
    few = "and.b32 %r1, %r1, 7; " + CALL.replace("CALL", "call (q0), fib, (p0);")
    check(kernel(few, FIBONACCI), lambda n: fibonacci(n & 7), assemble)


def test_functions_that_call_each_other(assemble: Any) -> None:
    text = kernel(CALL.replace("CALL", "call (q0), even, (p0);"), EVEN + ODD)
    check(text, lambda n: 1 - n % 2, assemble)


def test_recursion_without_an_end() -> None:
    endless = FACTORIAL.replace("setp.gt.u32 %p, %r1, 1", "setp.ge.u32 %p, %r1, 0")
    report, _ = run(kernel(CALL.replace("CALL", "call (q0), fac, (p0);"), endless))
    assert [e.code for e in report.errors] == ["call-depth"] and "fac" in str(report.errors[0])


# Through addresses --------------------------------------------------------------------------------

TABLE = ".global .align 8 .u64 table[3] = {inc, dec, twice};\n"
PROTOTYPE = "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
TARGETS = "P: .calltargets inc, dec, twice;\n"
PICK = (
    "rem.u32 %r4, %r1, 3; mov.u64 %d2, table; mul.wide.u32 %d3, %r4, 8; add.s64 %d2, %d2, %d3;\n"
    "ld.global.u64 %d4, [%d2];\n"
)
INDIRECT = CALL.replace("CALL", "GUARD call (q0), %d4, (p0), P;")
ALL = INC + DEC + TWICE


def indirect(n: int) -> int:
    return ((n + 1), (n - 1) & 0xFFFFFFFF, 2 * n)[n % 3]


@pytest.mark.parametrize("how", [PROTOTYPE, TARGETS])
def test_a_table_of_functions(how: str, assemble: Any) -> None:
    check(kernel(how + PICK + INDIRECT.replace("GUARD", ""), ALL + TABLE), indirect, assemble)


def test_an_address_in_a_register_and_a_guard(assemble: Any) -> None:
    guarded = INDIRECT.replace("GUARD", "@%p1")
    keep = "selp.b32 %r3, %r3, 1000, %p1; }"
    body = PROTOTYPE + "mov.u64 %d4, twice;" + guarded.replace("}", keep)
    check(kernel(body, ALL), lambda n: 2 * n if n % 2 else 1000, assemble)


def test_addresses_of_no_function() -> None:
    body = PROTOTYPE + "mov.u64 %d4, 64;\n" + INDIRECT.replace("GUARD", "")
    report, _ = run(kernel(body, ALL + TABLE))
    assert [e.code for e in report.errors] == ["call-target"]
    assert "dec, inc, twice, got 0x40" in str(report.errors[0])
    # In the module, but not among the targets that the call names.
    body = PICK + "P: .calltargets inc, dec;\n" + INDIRECT.replace("GUARD", "")
    report, _ = run(kernel(body, ALL + TABLE))
    assert [e.code for e in report.errors] == ["call-target"]


def test_reading_a_function_as_memory() -> None:
    report, _ = run(kernel("mov.u64 %d4, inc; ld.global.b32 %r3, [%d4];", INC))
    assert [e.code for e in report.errors] == ["out-of-bounds"]


# What is not executed is named --------------------------------------------------------------------

GO = CALL.replace("CALL", "call (q0), inc, (p0);")


@pytest.mark.parametrize(
    "body,functions,why",
    [
        (GO, ".extern .func (.param .b32 r) inc(.param .b32 a);\n", "no body of inc"),
        (GO, ".func (.param .b64 r) inc(.param .b32 a) { ret; }\n", "as inc declares them"),
        (GO.replace(", (p0)", ""), INC, "as inc declares them"),
        ("mov.u64 %d4, inc;" + INDIRECT.replace("GUARD", "").replace(", P;", ";"), INC, "label"),
        ("ld.global.b32 %r3, [cm];", ".extern .global .b32 cm;\n", "cm is .extern"),
    ],
)
def test_refused_by_name(body: str, functions: str, why: str) -> None:
    report, _ = run(kernel(body, functions))
    assert why in str(report.incomplete[0]) and report.incomplete[0].line > 5, report


# Parameters in registers, aliases, linkage --------------------------------------------------------


def test_parameters_in_registers(assemble: Any) -> None:
    g = ".func (.reg .b32 r) g(.reg .b32 a, .reg .b32 b) { mad.lo.u32 r, a, 10, b; ret; }\n"
    check(
        kernel("call (%r3), g, (%r1, %r2); call (%r3), g, (%r3, 5);", g),
        lambda n: 10 * (10 * n + n % 2) + 5,
        assemble,
    )


def test_alias_and_weak(assemble: Any) -> None:
    functions = INC.replace(".func", ".visible .func") + (
        ".visible .func (.param .b32 r) other(.param .b32 a);\n.alias other, inc;\n"
        + TWICE.replace(".func", ".weak .func")
    )
    both = CALL.replace("CALL", "call (q0), other, (p0);") + CALL.replace(
        "CALL", "call (q0), twice, (p0);"
    ).replace("%r1", "%r3")
    check(kernel(both, functions), lambda n: 2 * (n + 1), assemble)


@pytest.mark.parametrize(
    "text", [".alias other, inc;\n", ".func other();\n.alias other, none;\n", ".alias inc, inc;\n"]
)
def test_aliases_of_nothing(text: str) -> None:
    with pytest.raises(PtxSyntaxError, match=r"declared|defined"):
        run(kernel("", INC + text))


# Module variables ---------------------------------------------------------------------------------

WORDS = [
    (".b32 w[4] = {1.0, 0f3F800000, -1, 0x80000000}", "0000803f0000803fffffffff00000080"),
    (".b32 w[2][2] = {{1}, {3, 4}}", "01000000030000000400000000000000"),
    (".b64 w[2] = {0f3F800000, 1.0}", "0000803f00000000000000000000f03f"),
    (".b16 w[8] = {1, -2, 1+2-1}", "0100feff020000000000000000000000"),
    (".f32 w[4] = {0f3F800000, -1.5}", "0000803f0000c0bf0000000000000000"),
]


@pytest.mark.parametrize("text,want", WORDS)
def test_initial_values_as_ptxas_writes_them(text: str, want: str, assemble: Any) -> None:
    """The bytes are those in the section .nv.global.init of ptxas's cubin."""
    declared = f".visible .global .align 16 {text};\n"
    body = (
        "rem.u32 %r4, %r1, 4; mov.u64 %d2, w; mul.wide.u32 %d3, %r4, 4;"
        "add.s64 %d2, %d2, %d3; ld.global.b32 %r3, [%d2];"
    )
    report, got = run(kernel(body, declared), 4)
    assert report.ok and np.array(got, "<u4").tobytes().hex() == want
    assert bytes.fromhex(want) in assemble(kernel(body, declared))


def test_addresses_as_initial_values(assemble: Any) -> None:
    """Of variables before and after, generic or not, with offsets, byte by byte."""
    mask = ", ".join(f"0x{0xFF << 8 * n:x}(base)" for n in range(8))
    declared = (
        ".visible .const .align 4 .b32 base2[2] = {50, 60};\n"
        ".visible .global .align 4 .b32 base[4] = {10, 20, 30, 40};\n"
        ".visible .global .align 8 .u64 pointers[3] = {base+4, generic(base)+8, generic(base2)+4};"
        f"\n.visible .global .align 8 .u8 bytes[8] = {{{mask}}};\n"
    )
    body = (
        "ld.global.u64 %d2, [pointers]; ld.u32 %r4, [%d2];\n"
        "ld.global.u64 %d2, [pointers+8]; ld.u32 %r5, [%d2];\n"
        "ld.global.u64 %d2, [pointers+16]; ld.u32 %r6, [%d2];\n"
        "ld.global.u64 %d2, [bytes]; ld.u32 %r7, [%d2+12];\n"
        "add.u32 %r3, %r4, %r5; add.u32 %r3, %r3, %r6; add.u32 %r3, %r3, %r7;\n"
    )
    check(kernel(body, declared), lambda n: 20 + 30 + 60 + 40, assemble)


def test_common_variables_are_zero_and_bounds_hold(assemble: Any) -> None:
    text = kernel("ld.global.b32 %r3, [cm];", ".common .global .b32 cm;\n")
    check(text, lambda n: 0, assemble)
    report, _ = run(text.replace("[cm]", "[cm+4]"))
    assert [e.code for e in report.errors] == ["out-of-bounds"]


def test_extern_shared_memory_is_indexed_past_its_declared_size(assemble: Any) -> None:
    text = kernel(
        "mov.u32 %r4, dyn; shl.b32 %r5, %r1, 2; add.u32 %r4, %r4, %r5;\n"
        "st.shared.b32 [%r4+800], %r1; ld.shared.b32 %r3, [%r4+800];",
        ".extern .shared .align 16 .b8 dyn[];\n",
    )
    y = np.zeros(40, np.uint32)
    assert run_ptx(text, grid=1, block=40, dynamic_smem=960, args=[y]).ok
    assert y.tolist() == list(range(40))
    report = run_ptx(text, grid=1, block=40, dynamic_smem=956, args=[y])
    assert [e.code for e in report.errors] == ["out-of-bounds"]
    assemble(text)


# Stack memory -------------------------------------------------------------------------------------

TAKE = """.func (.param .b32 r) sum(.param .b32 a)
{ .reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p; ld.param.b32 %r1, [a];
add.u32 %r2, %r1, 1; mul.wide.u32 %d1, %r2, 4; alloca.u64 %d2, %d1, 16;
mov.b32 %r3, 0; mov.u64 %d3, %d2;
A: st.local.b32 [%d3], %r3; add.s64 %d3, %d3, 4; add.u32 %r3, %r3, 1; setp.le.u32 %p, %r3, %r1;
@%p bra A; mov.b32 %r3, 0; mov.b32 %r5, 0;
B: ld.local.b32 %r4, [%d2]; add.u32 %r5, %r5, %r4; add.s64 %d2, %d2, 4; add.u32 %r3, %r3, 1;
setp.le.u32 %p, %r3, %r1; @%p bra B; st.param.b32 [r], %r5; ret; }
"""


def test_alloca_of_each_thread(assemble: Any) -> None:
    check(
        kernel(CALL.replace("CALL", "call (q0), sum, (p0);"), TAKE),
        lambda n: n * (n + 1) // 2,
        assemble,
    )


def test_a_function_gives_back_what_it_took(assemble: Any) -> None:
    """2000 calls of 16 KB in all would not fit; in a loop of the kernel itself they do not."""
    loop = "mov.b32 %r8, 0;\nL: {} add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 300; @%p2 bra L;"
    call = "mov.b32 %r1, 30; " + CALL.replace("CALL", "call (q0), sum, (p0);")
    check(kernel(loop.format(call), TAKE), lambda n: 465, assemble)
    report, _ = run(kernel(loop.format("alloca.u64 %d2, 120;")))
    assert [e.code for e in report.errors] == ["stack-overflow"]
    saved = "stacksave.u64 %d3; alloca.u64 %d2, 120; stackrestore.u64 %d3;"
    check(kernel(loop.format(saved)), lambda n: 1000, assemble)


def test_stack_memory_is_undefined_at_first() -> None:
    report, _ = run(kernel("alloca.u64 %d2, 16; ld.local.b32 %r3, [%d2];"))
    assert [f.code for f in report.findings] == ["undefined-read"]
    report, _ = run(kernel("mov.u64 %d2, 0x9999; stackrestore.u64 %d2;"))
    assert [e.code for e in report.errors] == ["stack-restore"]
    with pytest.raises(PtxSyntaxError, match="alignment"):
        run(kernel("alloca.u64 %d2, 16, 12;"))
