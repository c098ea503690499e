"""Loops as compiled code do what they do one instruction after the other: bits, findings, counters,
and what the machine remembers of every byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcir.run
from tcir.interp.ptx.loops import running
from tcir.interp.ptx.loops.running import Loops
from tcir.machine.memory.memories import Buffer
from tcir.machine.order.shadow import LastShadow
from tcir.run import RunReport, run_ptx

from .conftest import HEADER
from .scalar import NUMPY_ONLY, REGISTERS, SCALAR, take_for, written

WORDS = [0, 1, 2, 31, 32, 33, 63, 64, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFF0000, 12345]
OPERATIONS = [s for s in SCALAR if s not in NUMPY_ONLY and not s.startswith(("div.", "rem."))]
"""Divisions are for the machine, which has to see a 0."""


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Instructions of each call of compiled code."""
    found: list[int] = []
    run = Loops.run

    def counted(self: Loops, *of: Any) -> tuple[int, bool, bool]:
        result = run(self, *of)
        found.append(result[0])
        return result

    monkeypatch.setattr(Loops, "run", counted)
    yield found


def remembered(buffer: Buffer) -> list[Any]:
    """Who wrote and read each granule last, and which lanes."""
    shadow = buffer.shadow
    if shadow is None:
        return []
    assert isinstance(shadow, LastShadow)
    names = [None, *shadow.accesses]
    records = (shadow.writer, shadow.readers, shadow.constant)
    known: list[Any] = [buffer.granule]
    known += [None if one is None else [names[n] for n in one.tolist()] for one in records]
    if shadow.lanes is not None:
        warps = {number: component for component, number in shadow._warps.items()}
        known += [shadow.lanes.writer.tolist(), shadow.lanes.readers.tolist()]
        known.append([warps.get(n) for n in shadow.lanes.warp.tolist()])
    return known


def both(
    monkeypatch: pytest.MonkeyPatch, text: str, arrays: list[Any], *, of: Any = running, **how: Any
) -> RunReport:
    """Runs it both ways, and compares all there is. of: the module whose code is compiled or not"""
    found = []
    fill_in = tcir.run._fill_in
    for compiled in (False, True):
        memories: list[list[Any]] = []

        def look(report: RunReport, launch: Any, into: list[list[Any]] = memories) -> None:
            fill_in(report, launch)
            into.append([remembered(buffer) for buffer in launch.machine.memory.buffers])

        with monkeypatch.context() as patch:
            patch.setattr(of, "COMPILED", compiled)
            patch.setattr(tcir.run, "_fill_in", look)
            copies = [a.copy() if isinstance(a, np.ndarray) else a for a in arrays]
            report = run_ptx(text, args=copies, **how)
        errors = [(e.code, str(e), e.who) for e in report.errors]
        found.append(
            (
                [a.tobytes() for a in copies if isinstance(a, np.ndarray)], memories, errors,
                list(map(str, report.findings)), report.counters, report.instructions,
                report.lockstep, list(map(str, report.incomplete)),
            )
        )  # fmt: skip
    for mine, theirs in zip(found[1], found[0], strict=True):
        assert mine == theirs
    return report


def test_every_operation_computes_what_the_rule_does(
    monkeypatch: pytest.MonkeyPatch, executed: list[int]
) -> None:
    body, stores = [], []
    for number, spelling in enumerate(OPERATIONS):
        result, *sources = SCALAR[spelling].letters
        operands = [f"{REGISTERS[one]}{n}" for n, one in enumerate(sources)]
        body.append(written(spelling, f"{REGISTERS[result]}3", *operands))
        body.append({"p": "selp.b32 %a3, 5, 9, %p3;", "h": "cvt.u32.u16 %a3, %h3;", "w": "",
                     "q": "cvt.u32.u64 %a3, %q3;"}[result])  # fmt: skip
        body.append(f"mad.lo.u32 %s{number}, %s{number}, 31, %a3;")
        if result == "q":
            body.append("shr.u64 %q3, %q3, 32; cvt.u32.u64 %a3, %q3;")
            body.append(f"mad.lo.u32 %s{number}, %s{number}, 7, %a3;")
        stores.append(f"st.global.b32 [%d5+{4 * number}], %s{number};")
    clear = "".join(f"mov.u32 %s{n}, 0;" for n in range(len(OPERATIONS)))
    text = f"""{HEADER}.visible .entry k(.param .u64 x, .param .u64 y) {{
 .reg .pred %p<4>, %l; .reg .b32 %a<4>, %s<{len(OPERATIONS)}>, %i<4>;
 .reg .b16 %h<4>; .reg .b64 %q<5>, %d<6>;
 ld.param.b64 %d1, [x]; ld.param.b64 %d2, [y]; mov.u32 %i1, %tid.x; mov.u32 %i2, 0;
 mad.wide.u32 %d3, %i1, 12, %d1; mad.wide.u32 %d5, %i1, {4 * len(OPERATIONS)}, %d2;
 {clear}
AGAIN:
 mad.wide.u32 %d4, %i2, 1536, %d3;
 ld.global.b32 %a0, [%d4]; ld.global.b32 %a1, [%d4+4]; ld.global.b32 %a2, [%d4+8];
 cvt.u16.u32 %h0, %a0; cvt.u16.u32 %h1, %a1; cvt.u16.u32 %h2, %a2;
 mul.wide.s32 %q0, %a0, %a1; mad.wide.u32 %q1, %a2, %a1, %q0; add.u64 %q2, %q1, -1;
 setp.lt.s32 %p0, %a0, %a1; setp.ne.u32 %p1, %a1, %a2; setp.gt.u64 %p2, %q0, %q1;
 {chr(10).join(body)}
 add.u32 %i2, %i2, 1; setp.lt.u32 %l, %i2, 8; @%l bra AGAIN;
 {"".join(stores)} ret; }}"""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 32, (8, 128, 3), dtype=np.uint32)
    x[:6] = rng.choice(np.array(WORDS, np.uint32), (6, 128, 3))
    y = np.zeros((128, len(OPERATIONS)), np.uint32)
    report = both(monkeypatch, text, [x, y], grid=1, block=128)
    assert report.ok, str(report)
    assert len(OPERATIONS) > 100 and sum(executed) > 4 * 8 * len(OPERATIONS)


def test_a_wrong_operation_is_seen(monkeypatch: pytest.MonkeyPatch, executed: list[int]) -> None:
    """The comparison that these tests make fails once compiled code takes one for another."""
    text = f"""{HEADER}// with a wrong operation: a text of its own, as decoded programs are kept
.visible .entry k(.param .u64 x) {{
 .reg .pred %p1; .reg .b32 %r<4>; .reg .b64 %d<3>;
 ld.param.b64 %d1, [x]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1; mov.u32 %r2, 0;
AGAIN: OP.b32 %r1, %r1, %r2; add.u32 %r2, %r2, 3; setp.lt.u32 %p1, %r2, 300; @%p1 bra AGAIN;
 st.global.b32 [%d1], %r1; ret; }}"""
    x = np.zeros(32, np.int32)
    assert both(monkeypatch, text.replace("OP", "xor"), [x], grid=1, block=32).ok
    assert sum(executed) > 300
    take_for(monkeypatch, np.bitwise_or, np.bitwise_xor)
    with pytest.raises(AssertionError):
        both(monkeypatch, text.replace("OP", "or"), [x], grid=1, block=32)


LOOPS = ["@{g}%p{p} bra SKIP{n};", "@{g}%p{p} xor.b32 %a{b}, %a{a}, %a{c};",
         "setp.lt.u32 %p{p}, %a{a}, %a{b};", "and.b32 %a3, %a{a}, {m}; setp.ne.u32 %p{p}, %a3, 0;",
         "add.u32 %a{a}, %a{b}, %a{c};", "mad.lo.u32 %a{a}, %a{b}, 7, %a{c};",
         "@{g}%p{p} shr.u32 %a{a}, %a{b}, 3;", "not.pred %p{p}, %p{q};",
         "and.b32 %a4, %a{b}, 60; cvt.u64.u32 %q1, %a4; add.u64 %q1, %q1, %d1; "
         "@{g}%p{p} ld.global.b32 %a{a}, [%q1+{w}];"]  # fmt: skip
ODD = {
    "none": "",
    "undefined": "@%p1 add.u32 %a1, %a1, %u;",
    "beyond": "and.b32 %a4, %a2, 0xffc; cvt.u64.u32 %q1, %a4; add.u64 %q1, %q1, %d1; "
    "ld.global.b32 %a1, [%q1+4096];",
    "odd": "and.b32 %a4, %a2, 63; cvt.u64.u32 %q1, %a4; add.u64 %q1, %q1, %d1; "
    "ld.global.b32 %a1, [%q1];",
    "unwritten": "and.b32 %a4, %a2, 60; cvt.u64.u32 %q1, %a4; add.u64 %q1, %q1, %d2; "
    "ld.global.b32 %a1, [%q1+256];",
    "polls": "ld.global.b32 %a1, [%d1+16];",
    "another": "and.b32 %a4, %a2, 60; cvt.u64.u32 %q1, %a4; add.u64 %q1, %q1, %d6; "
    "ld.global.b32 %a1, [%q1];",
}
AFTER = {
    "none": "",
    "write": "@%one st.global.b32 [%d1+{w}], %a1;",
    "barrier": "bar.sync 0;",
    "first": "",
}


@st.composite
def loops(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A program of two loops, one in the other, around random statements."""
    small = st.integers(0, 2)

    def statement(n: int) -> str:
        text = draw(st.sampled_from(LOOPS)).format(
            g=draw(st.sampled_from(["", "!"])), p=draw(small), q=draw(small), a=draw(small),
            b=draw(small), c=draw(small), m=draw(st.sampled_from([1, 2, 4, 0x80, 0xFF])), n=n,
            w=4 * draw(st.integers(0, 40)),
        )  # fmt: skip
        return text

    def block(n: int) -> str:
        return "\n".join([*(statement(n) for _ in range(draw(st.integers(3, 9)))), f"SKIP{n}:"])

    odd = ODD[draw(st.sampled_from(["none", *ODD]))]
    after = draw(st.sampled_from(["none", "write", *AFTER]))
    first = "@%one st.global.b32 [%d1+8], %a1;" if after == "first" else ""
    write = AFTER[after].format(w=4 * draw(st.integers(0, 20)))
    trips = draw(st.sampled_from(["4", "%i1", "%a5"]))
    text = f"""{HEADER}.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 z) {{
 .reg .pred %p<4>, %l, %one; .reg .b32 %a<6>, %u, %i<6>; .reg .b64 %q<2>, %d<8>;
 ld.param.b64 %d1, [x]; ld.param.b64 %d2, [y]; ld.param.b64 %d6, [z];
 mov.u32 %i1, %tid.x; mov.u32 %i2, %ctaid.x; mov.u32 %i3, %ntid.x;
 mad.lo.u32 %i4, %i2, %i3, %i1; mul.wide.u32 %d3, %i4, 16; add.u64 %d3, %d2, %d3;
 setp.eq.u32 %one, %i4, 5; and.b32 %i1, %i4, 7; add.u32 %i1, %i1, 1;
 mov.u32 %a0, %i4; mov.u32 %a1, 0x9e3779b9; mad.lo.u32 %a2, %i4, 40503, 977; mov.u32 %a5, 3;
 mov.u32 %a3, 0; mov.u32 %a4, 0; setp.lt.u32 %p0, %i4, 20; setp.gt.u32 %p1, %a2, %a1;
 setp.ne.u32 %p2, 0, 1; {first}
 mov.u32 %i5, 0;
OUTER:
 mov.u32 %i2, 0;
 {block(0)}
INNER:
 {block(1)}
 {odd}
 {block(2)}
 add.u32 %i2, %i2, 1; setp.lt.u32 %l, %i2, {trips}; @%l bra INNER;
 {write}
 add.u32 %i5, %i5, 1; setp.lt.u32 %l, %i5, 6; @%l bra OUTER;
 st.global.v4.b32 [%d3], {{%a0, %a1, %a2, %a3}}; ret; }}"""
    return text, {
        "grid": draw(st.integers(1, 5)),
        "block": draw(st.sampled_from([48, 64, 96])),
        "hazards": draw(st.sampled_from(["report", "report", "off"])),
        "order_seed": draw(st.sampled_from([None, None, 1, 2])),
        "max_instructions": draw(st.sampled_from([1 << 20, 1 << 20, 1 << 20, 2000])),
    }


def tried(monkeypatch: pytest.MonkeyPatch, count: int, *, same: bool) -> dict[str, int]:
    """Compares `count` programs; how many there were of which kind."""
    found = {"ok": 0, "findings": 0, "errors": 0}

    @settings(max_examples=count, derandomize=same)
    @given(loops())
    def compare(program: tuple[str, dict[str, Any]]) -> None:
        text, how = program
        rng = np.random.default_rng(0)
        arrays = [rng.integers(0, 1 << 32, 64, dtype=np.uint32), np.zeros((480, 4), np.uint32),
                  rng.integers(0, 1 << 32, 64, dtype=np.uint32)]  # fmt: skip
        report = both(monkeypatch, text, arrays, **how)
        found["ok"] += report.ok
        found["findings"] += bool(report.findings)
        found["errors"] += bool(report.errors)

    compare()
    return found


def test_random_loops(monkeypatch: pytest.MonkeyPatch, executed: list[int]) -> None:
    found = tried(monkeypatch, 60, same=True)
    assert min(found.values()) > 5 and sum(executed) > 10_000, (found, sum(executed))


def test_many_random_loops(monkeypatch: pytest.MonkeyPatch, executed: list[int]) -> None:
    found = tried(monkeypatch, 1000, same=False)
    assert min(found.values()) > 50, found
