"""Random programs do in lockstep what they do CTA after CTA: bits, findings, counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcir.interp.ptx.lockstep.launch as lockstep
from tcir.interp.ptx.lockstep.native.execution import Native
from tcir.run import RunReport, run_ptx

from .conftest import HEADER
from .scalar import SCALAR, written

SPECIAL = np.array(
    [0, 1, 31, 32, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x3F800000, 0x7F800000, 0xFF800000,
     0x7FC00001, 0xFF800001, 0x00400000, 0x80000001, 0x7F7FFFFF], np.uint32,
)  # fmt: skip
START = """
.visible .entry k(.param .u64 x, .param .u64 y)
{
 .reg .pred %p<4>, %g, %l; .reg .b32 %a<8>, %i<8>, %n<8>, %u; .reg .b64 %q<4>, %d<4>;
 .reg .b16 %h<4>; .shared .align 16 .b8 tile[2048];
 ld.param.b64 %d1, [x]; ld.param.b64 %d2, [y]; mov.u32 %i1, %ctaid.x; mov.u32 %i2, %tid.x;
 mov.u32 %i4, %ntid.x; mad.lo.u32 %i3, %i1, %i4, %i2; mul.wide.u32 %d3, %i3, 1024;
 add.u64 %d2, %d2, %d3; mul.wide.u32 %d3, %i3, 16; add.u64 %d1, %d1, %d3;
 mov.u32 %a0, %i1; mov.u32 %a1, %i2; mov.u32 %a2, 12345; mov.u32 %a3, 0x3fc00000;
 ld.global.v4.b32 {%a4, %a5, %a6, %a7}, [%d1]; cvt.u64.u32 %q0, %i3; mov.b64 %q1, 77;
 ld.global.v2.b64 {%q2, %q3}, [%d1]; setp.lt.u32 %p0, %i2, 20; setp.gt.u32 %p1, %i1, 3;
 setp.lt.s32 %p2, %a5, 0; setp.ne.u32 %p3, 0, 1; mov.b16 %h0, 5; mov.b16 %h1, 1;
 mov.b16 %h2, 0x7c01; mov.b16 %h3, 9;
"""
"""%a, %q, %h and %p are what the statements compute with: alike in all CTAs, or not."""
END = "".join(f"st.global.b32 [%d2+{512 + 4 * n}], %a{n};\n" for n in range(8)) + "".join(
    f"st.global.b64 [%d2+{544 + 8 * n}], %q{n};\n"
    f"selp.b32 %i5, 5, 9, %p{n}; st.global.b32 [%d2+{576 + 4 * n}], %i5;\n"
    f"st.global.b16 [%d2+{592 + 4 * n}], %h{n};\n"
    for n in range(4)
)
"""Every register comes out."""

A, Q, P, H = (
    st.integers(0, count - 1).map(lambda n, kind=kind: f"%{kind}{n}")
    for kind, count in (("a", 8), ("q", 4), ("p", 4), ("h", 4))
)
GUARD = st.one_of(st.just(""), st.just(""), P.map(lambda p: f"@{p} "), P.map(lambda p: f"@!{p} "))
OF_SIZE = {1: P, 2: H, 4: A, 8: Q}
OTHERS = (
    "popc.b32 {A}, {A};", "brev.b32 {A}, {A};", "div.u32 {A}, {A}, {A};", "rem.s32 {A}, {A}, 7;",
    "bfe.u32 {A}, {A}, 3, 9;", "prmt.b32 {A}, {A}, {A}, 0x3564;",
    "lop3.b32 {A}, {A}, {A}, {A}, 105;",
    "shf.l.wrap.b32 {A}, {A}, {A}, {A};", "ex2.approx.f32 {A}, {A};", "rcp.rn.f32 {A}, {A};",
    "cvt.rzi.s32.f32 {A}, {A};", "add.ftz.f32 {A}, {A}, {A};", "fma.rz.f32 {A}, {A}, {A}, {A};",
    "min.NaN.f32 {A}, {A}, {A};", "mov.b64 {Q}, {{{A}, {A}}};", "mov.b64 {{%n0, {A}}}, {Q};",
    "cvt.u16.u32 {H}, {A};", "cvt.s32.s16 {A}, {H};", "add.u16 {H}, {H}, {H};",
    "setp.lt.and.u32 {P}, {A}, {A}, {P};", "selp.b32 {A}, {A}, 3, {P};",
    "mul.hi.s64 {Q}, {Q}, {Q};",
    "mov.u32 {A}, %laneid;", "mov.u32 {A}, 0x7fc00000;", "mov.b64 {Q}, 1;", "mov.u32 {A}, %i1;",
    "prmt.b32.f4e {A}, {A}, {A}, {A};", "lg2.approx.f32 {A}, {A};", "add.rn.f16 {H}, {H}, {H};",
    "fma.rn.f16x2 {A}, {A}, {A}, {A};", "cvt.rn.f16x2.f32 {A}, {A}, {A};",
    "setp.lt.f16 {P}, {H}, {H};",
    "not.pred {P}, {P};", "abs.f32 {A}, {A};", "cvt.rn.f16.f32 {H}, {A};", "cvt.f32.f16 {A}, {H};",
    "tanh.approx.f32 {A}, {A};", "sin.approx.f32 {A}, {A};", "cos.approx.f32 {A}, {A};",
    "cvt.rz.f16.f32 {H}, {A};", "cvt.rn.satfinite.e4m3x2.f32 {H}, {A}, {A};",
    "add.rz.f32 {A}, {A}, {A}; fns.b32 {A}, {A}, 3, 1;", "prmt.b32 {A}, {A}, {A}, {A};",
)  # fmt: skip
TYPES = {"u8": "{A}", "s8": "{A}", "u16": "{A}", "s16": "{H}", "b16": "{H}", "b32": "{A}",
         "b64": "{Q}", "v2.b32": "{{{A}, {B}}}", "v4.b32": "{{{A}, {B}, %n1, %n2}}",
         "v2.b64": "{{{Q}, %d0}}", "v2.b16": "{{{H}, %h3}}", "s32": "{Q}"}  # fmt: skip


@st.composite
def filled(draw: st.DrawFn, text: str) -> str:
    """With registers for {A}, {Q}, {H} and {P}; {B}: one that is no {A}."""
    for name, strategy in (("A", A), ("Q", Q), ("H", H), ("P", P)):
        while f"{{{name}}}" in text:
            text = text.replace(f"{{{name}}}", draw(strategy), 1)
    return text.replace("{B}", "%n7").replace("{{", "{").replace("}}", "}")


KNOWN = sorted(s for s in SCALAR if not s.startswith(("div.", "rem.")))


@st.composite
def kernels(draw: st.DrawFn) -> str:
    """An instruction that has a kernel."""
    spelling = draw(st.sampled_from(KNOWN))
    known = SCALAR[spelling]
    operands = [draw(OF_SIZE[size]) for size in (known.out, *known.sources)]
    return f"{draw(GUARD)}{written(spelling, *operands)}"


@st.composite
def others(draw: st.DrawFn) -> str:
    return f"{draw(GUARD)}{draw(filled(draw(st.sampled_from(OTHERS))))}"


@st.composite
def loads(draw: st.DrawFn) -> str:
    """From this thread's place, or one that is computed."""
    kind = draw(st.sampled_from(sorted(TYPES)))
    where = "mov.u64 %d0, %d1;"
    if draw(st.booleans()):
        where = (
            f"ld.param.b64 %d0, [x]; and.b32 %i5, {draw(A)}, 63; mul.wide.u32 %d3, %i5, 16; "
            f"add.u64 %d0, %d0, %d3;"
        )
    how = draw(st.sampled_from(["ld.global", "ld.global", "ld.global.nc", "ld"]))
    return f"{where} {draw(GUARD)}{how}.{kind} {draw(filled(TYPES[kind]))}, [%d0];"


@st.composite
def exchanges(draw: st.DrawFn) -> str:
    """Through shared memory, or between the lanes of a warp."""
    if draw(st.booleans()):
        lane = draw(st.sampled_from(["5", "1", "{A}"]))
        mode = draw(st.sampled_from(["bfly", "idx", "up", "down"]))
        to = draw(st.sampled_from(["{A}", "{A}|{P}"]))
        bound = 0 if mode == "up" else 31
        return draw(filled(f"shfl.sync.{mode}.b32 {to}, {{A}}, {lane}, {bound}, -1;"))
    kind = draw(st.sampled_from(sorted(TYPES)))
    store = f"st.shared.{kind.replace('s', 'b')} [%i5], {draw(filled(TYPES[kind]))};"
    load = f"ld.shared.{kind} {draw(filled(TYPES[kind]))}, [%i6];"
    away = draw(st.sampled_from([0, 1, 5, 31]))
    step = draw(st.sampled_from([4, 16])) if kind == "b32" else 16
    return (
        f"mov.u32 %i5, tile; mad.lo.u32 %i5, %i2, {step}, %i5; {store} bar.sync 0; "
        f"xor.b32 %i6, %i2, {away}; mov.u32 %i7, tile; mad.lo.u32 %i6, %i6, {step}, %i7; "
        f"{draw(GUARD) if draw(st.booleans()) else ''}{load} bar.sync 0;"
    )


FAULTS = (
    "setp.eq.u32 %l, %i1, {n}; @%l add.u64 %d0, %d1, 1048576; @!%l mov.u64 %d0, %d1; "
    "ld.global.b32 %a6, [%d0];",
    "setp.eq.u32 %l, %i1, {n}; mov.u64 %d0, %d1; @%l add.u64 %d0, %d1, 2; "
    "ld.global.b32 %a6, [%d0];",
    "setp.ne.u32 %l, %i1, {n}; @%l mov.u32 %u, 3; add.u32 %a5, %a5, %u;",
    "setp.eq.u32 %l, %i1, {n}; mov.u64 %d0, %d2; @%l add.u64 %d0, %d0, 65536; "
    "st.global.b32 [%d0+960], 1;",
    "setp.eq.u32 %l, %i1, {n}; selp.u32 %i5, 0, 3, %l; rem.u32 %a4, %a5, %i5;",
    "setp.eq.u32 %l, %i1, {n}; selp.u32 %i5, 4, 8, %l; mov.u32 %i6, tile; add.u32 %i5, %i5, %i6; "
    "bar.sync 0; st.shared.b32 [%i5], %a2; bar.sync 0; ld.shared.b32 %a5, [%i6+8];",
    "setp.eq.u32 %l, %i1, {n}; @%l bra F{n}; add.u32 %a1, %a1, 1; F{n}:",
)
"""What one CTA does otherwise, or wrongly."""


@dataclass(frozen=True)
class Written:
    """A program: statements, and how it is launched."""

    body: str
    grid: int
    block: int
    hazards: str
    seed: int | None


@st.composite
def statements(draw: st.DrawFn, depth: int, labels: list[int]) -> str:
    inside = depth > 0
    kinds = [kernels(), kernels(), others(), others(), loads()]
    if not inside:
        kinds.append(exchanges())
    found = []
    for _ in range(draw(st.integers(1, 4 if inside else 10))):
        choice = draw(st.integers(0, 9))
        if choice < 8 or depth == 2:
            found.append(draw(st.one_of(kinds)))
            continue
        labels.append(len(labels))
        own = len(labels)
        body = draw(statements(depth + 1, labels))
        if choice == 8:
            turn = f"%n{3 + depth}"
            found.append(
                f"mov.u32 {turn}, 0; L{own}: {body} add.u32 {turn}, {turn}, 1; "
                f"setp.lt.u32 %g, {turn}, 3; @%g bra L{own};"
            )
        else:
            guard = draw(P)
            found.append(f"@{guard} bra L{own}; {body} L{own}:")
    return "\n".join(found)


@st.composite
def programs(draw: st.DrawFn) -> Written:
    body = draw(statements(0, []))
    stores = [
        f"{draw(GUARD)}st.global.{kind.replace('s', 'b')} [%d2+{16 * n}], "
        f"{draw(filled(TYPES[kind]))};"
        for n, kind in enumerate(draw(st.lists(st.sampled_from(sorted(TYPES)), max_size=4)))
    ]
    if draw(st.integers(0, 3)) == 0:
        fault = draw(st.sampled_from(FAULTS)).format(n=draw(st.integers(0, 11)))
        body = f"{fault}\n{body}" if draw(st.booleans()) else f"{body}\n{fault}"
    return Written(
        "\n".join([body, *stores]),
        draw(st.integers(4, 14)),
        draw(st.sampled_from([32, 48, 64])),
        draw(st.sampled_from(["report", "off"])),
        draw(st.sampled_from([None, None, 1])),
    )


def run(program: Written, together: bool) -> tuple[RunReport, bytes]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 32, (14 * 64, 4), dtype=np.uint32)
    x[::3] = rng.choice(SPECIAL, x[::3].shape)
    y = np.full(program.grid * program.block * 1024, 7, np.uint8).view(np.uint64)
    text = f"{HEADER}{START}{program.body}\n{END} ret;\n}}\n"
    seed = program.seed if program.hazards == "report" else None
    report = run_ptx(
        text, grid=program.grid, block=program.block, args=(x, y), lockstep=together,
        hazards=program.hazards, order_seed=seed,
    )  # fmt: skip
    return report, y.tobytes()


def said(program: Written, report: RunReport) -> tuple[Any, ...]:
    errors = [(e.code, str(e), e.who) for e in report.errors]
    return (list(report.findings), errors, report.counters, report.instructions, report.output,
            list(map(str, report.incomplete)))  # fmt: skip


def check(count: int, *, same: bool = False) -> Counter[str]:
    """Tries `count` programs, the same ones every time or not; how many were executed how."""
    found: Counter[str] = Counter()
    native = Native.run

    def noted(self: Native, *of: Any) -> bool:
        found["compiled"] += 1
        found["with numpy between"] += bool(self.lowered.out.asides)
        return native(self, *of)

    @settings(max_examples=count, derandomize=same)
    @given(programs())
    def compare(program: Written) -> None:
        want, bits = run(program, together=False)
        for compiled in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(lockstep, "COMPILED", compiled)
                patch.setattr(lockstep, "TOGETHER", 3)
                patch.setattr(Native, "run", noted)
                got, stored = run(program, together=True)
            assert said(program, got) == said(program, want), compiled
            assert stored == bits, compiled
            found["together"] += got.lockstep > 0
            found["wrong"] += not got.ok
            found["incomplete"] += bool(got.incomplete)

    compare()
    return found


def test_random_programs() -> None:
    found = check(60, same=True)
    assert found["compiled"] > found["with numpy between"] > 5 and found["wrong"] > 5, found
    assert found["together"] > 10, found  # of several processes, each has fewer alike


@pytest.mark.timeout(1800)
def test_many_random_programs() -> None:
    found = check(2000)
    assert found["compiled"] > 1000 and found["together"] > 1000, found
