"""Straight lines as compiled code do what their instructions do one after the other: bits,
findings, counters."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tcir.interp.ptx.loops import straight
from tcir.interp.ptx.loops.straight import StraightLine

from . import test_loops
from .conftest import HEADER
from .scalar import take_for
from .test_lockstep_programs import END, SPECIAL, START, kernels, others

UNDEFINED = ("add.u32 %a1, %a1, %u;", "@%p1 xor.b32 %a2, %u, 3;", "mov.b64 %q1, {%a0, %u};",
             "setp.lt.u32 %p2, %u, 9;", "mov.u32 %u, %a3;", "@%p0 mov.u32 %u, 7;")  # fmt: skip


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """Instructions that compiled code has executed, or left to the interpreter."""
    found = {"compiled": 0, "left": 0}
    execute = StraightLine.execute

    def counted(self: StraightLine, *of: Any) -> bool:
        done = execute(self, *of)
        found["compiled" if done else "left"] += len(self.code)
        return done

    monkeypatch.setattr(straight, "WORTH", 0)
    monkeypatch.setattr(StraightLine, "execute", counted)
    yield found


both = partial(test_loops.both, of=straight)

WAYS: tuple[dict[str, Any], ...] = (
    {"grid": 1, "block": 48, "order_seed": 1},
    {"grid": 2, "block": 64, "hazards": "off"},
    {"grid": 9, "block": 64},
)


@st.composite
def lines(draw: st.DrawFn) -> str:
    """Random instructions that compute, of which some read what is undefined, between a branch
    that parts the lanes and the place where they meet."""
    body = draw(st.lists(st.one_of(kernels(), kernels(), others()), min_size=8, max_size=40))
    if draw(st.booleans()):
        body.insert(draw(st.integers(0, len(body))), draw(st.sampled_from(UNDEFINED)))
    at = draw(st.integers(0, len(body)))
    part = draw(st.sampled_from(["", "@%p0 bra LATER;"]))
    known = draw(st.sampled_from(["", "mov.u32 %v, %a0;"]))
    read = draw(st.sampled_from(["", "add.u32 %a0, %v, %a0;"]))
    before, after = body[:at], body[at:]
    lines = [HEADER, START, ".reg .b32 %v;", part, *before, known, "LATER:", read, *after, END]
    return "\n".join([*lines, "ret; }"])


def tried(monkeypatch: pytest.MonkeyPatch, count: int, *, same: bool) -> dict[str, int]:
    """Compares `count` programs in all ways; how many executions there were of which kind."""
    found = {"ok": 0, "findings": 0, "lockstep": 0}

    @settings(max_examples=count, derandomize=same)
    @given(lines())
    def compare(text: str) -> None:
        rng = np.random.default_rng(0)
        x = rng.choice(SPECIAL, (9 * 64, 4))
        x[::3] = rng.integers(0, 1 << 32, x[::3].shape, dtype=np.uint32)
        for how in WAYS:
            report = both(monkeypatch, text, [x, np.zeros((9 * 64, 256), np.uint32)], **how)
            found["ok"] += report.ok
            found["findings"] += bool(report.findings)
            found["lockstep"] += bool(report.lockstep)

    compare()
    return found


def test_random_lines(monkeypatch: pytest.MonkeyPatch, executed: dict[str, int]) -> None:
    found = tried(monkeypatch, 40, same=True)
    assert min(found.values()) > 1 and executed["compiled"] > 2000, (found, executed)
    assert executed["left"] > 50, executed


def test_many_random_lines(monkeypatch: pytest.MonkeyPatch, executed: dict[str, int]) -> None:
    found = tried(monkeypatch, 1000, same=False)
    assert min(found.values()) > 50, found


def test_a_wrong_operation_is_seen(
    monkeypatch: pytest.MonkeyPatch, executed: dict[str, int]
) -> None:
    text = f"""{HEADER}// with a wrong operation in a line
.visible .entry k(.param .u64 x) {{
 .reg .b32 %r<6>; .reg .b64 %d<3>;
 ld.param.b64 %d1, [x]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1;
 add.u32 %r2, %r1, 3; OP.b32 %r3, %r2, %r1; add.u32 %r4, %r3, %r3; add.u32 %r5, %r4, 1;
 st.global.b32 [%d1], %r5; ret; }}"""
    x = np.zeros(32, np.int32)
    assert both(monkeypatch, text.replace("OP", "xor"), [x], grid=1, block=32).ok
    assert executed["compiled"] >= 5
    take_for(monkeypatch, np.bitwise_or, np.bitwise_xor)
    with pytest.raises(AssertionError):
        both(monkeypatch, text.replace("OP", "or"), [x], grid=1, block=32)


def test_lanes_that_are_elsewhere(
    monkeypatch: pytest.MonkeyPatch, executed: dict[str, int]
) -> None:
    """Registers that some lanes write stay undefined in the others."""
    text = f"""{HEADER}.visible .entry k(.param .u64 x) {{
 .reg .pred %p1; .reg .b32 %r<6>; .reg .b64 %d<3>;
 ld.param.b64 %d1, [x]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1;
 setp.lt.u32 %p1, %r1, 9; @%p1 bra LATER;
 add.u32 %r2, %r1, 3; add.u32 %r3, %r2, 4; add.u32 %r4, %r3, %r3; add.u32 %r5, %r4, 1;
LATER: st.global.b32 [%d1], %r5; ret; }}"""
    report = both(monkeypatch, text, [np.zeros(32, np.int32)], grid=1, block=32)
    assert not report.ok and "lanes 0 to 8" in str(report) and executed["compiled"], str(report)


@pytest.mark.parametrize(
    ("divisor", "compiled"), [("7", True), ("%r1", False)], ids=["constant", "register"]
)
def test_division(
    divisor: str, compiled: bool, monkeypatch: pytest.MonkeyPatch, executed: dict[str, int]
) -> None:
    """A register may be 0, which the machine has to see."""
    text = f"""{HEADER}.visible .entry k(.param .u64 x) {{
 .reg .b32 %r<6>; .reg .b64 %d<3>;
 ld.param.b64 %d1, [x]; mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 4, %d1;
 add.u32 %r2, %r1, 99; div.u32 %r3, %r2, {divisor}; rem.u32 %r4, %r2, {divisor};
 add.u32 %r5, %r4, %r3; add.u32 %r5, %r5, 1; st.global.b32 [%d1], %r5; ret; }}"""
    report = both(monkeypatch, text, [np.zeros(32, np.int32)], grid=1, block=32)
    assert report.ok == compiled and bool(executed["compiled"]) == compiled
