"""Which waits may sleep: loops that do nothing else, the same every time round."""

from __future__ import annotations

import pytest

from tcir.interp.ptx.layout import lay_out
from tcir.interp.ptx.parser import parse
from tcir.interp.ptx.program import decode

from .conftest import HEADER

WAIT = "mbarrier.try_wait.parity.shared.b64"
LOOPS = {
    "LLVM": f"L: {WAIT} %p0, [bar], 0; not.pred %p1, %p0; @%p1 bra L;",
    "Triton": f"L: {WAIT} %p0, [bar], %r0; @!%p0 bra.uni L;",
    "CUTLASS": f"L: {WAIT} %p0, [bar], 0, %r0; @%p0 bra D; bra L; D:",
    "constant": "L: mov.b32 %r0, 0; mbarrier.test_wait.parity.shared.b64 %p0, [bar], %r0; "
    "@!%p0 bra L;",
}
OTHERS = {
    "counts": f"L: {WAIT} %p0, [bar], 0; @%p0 bra D; add.u32 %r0, %r0, 1; "
    "setp.lt.u32 %p1, %r0, 9; @%p1 bra L; D:",
    "rotates": f"L: mov.b32 %r1, %r0; {WAIT} %p0, [bar], %r1; mov.b32 %r0, 1; @!%p0 bra L;",
    "reads the clock": f"L: {WAIT} %p0, [bar], 0; mov.u32 %r0, %clock; @!%p0 bra L;",
    "no loop": f"{WAIT} %p0, [bar], 0;",
    "two": f"L: {WAIT} %p0, [bar], 0; @%p0 bra D; {WAIT} %p1, [bar], 1; @!%p1 bra L; D:",
    "guarded": f"L: @%p1 {WAIT} %p0, [bar], 0; @!%p0 bra L;",
    "sleeps": f"L: {WAIT} %p0, [bar], 0; nanosleep.u32 20; @!%p0 bra L;",
}


LOAD = "ld.volatile.shared.b32 %r0, [%r1];"
POLLS = {
    "nvcc": f"L: {LOAD} setp.eq.s32 %p0, %r0, 0; @%p0 bra L;",
    "nvcc, sleeping": f"L: mov.b32 %r2, 20; nanosleep.u32 %r2; {LOAD} setp.lt.u32 %p0, %r0, 3; "
    "@%p0 bra L;",
    "leaves in the middle": f"L: {LOAD} setp.ne.s32 %p0, %r0, 0; @%p0 bra D; bra L; D:",
    "a bit": f"L: {LOAD} and.b32 %r0, %r0, 1; setp.eq.s32 %p0, %r0, 0; @%p0 bra L;",
}
LOOKS = {
    "once": f"{LOAD} setp.eq.s32 %p0, %r0, 0;",
    "gives up": f"L: {LOAD} setp.eq.s32 %p0, %r0, 0; add.u32 %r2, %r2, 1; "
    "setp.lt.and.u32 %p1, %r2, 9, %p0; @%p1 bra L;",
    "sums": f"L: {LOAD} add.u32 %r2, %r2, %r0; setp.eq.s32 %p0, %r2, 7; @%p0 bra L;",
    "goes on": f"L: {LOAD} setp.eq.s32 %p0, %r0, 0; add.u32 %r1, %r1, 4; @%p0 bra L;",
    "follows": f"L: {LOAD} mov.b32 %r1, %r0; setp.ne.s32 %p0, %r0, 0; @%p0 bra L;",
    "goes by another": f"L: {LOAD} setp.eq.s32 %p0, %r2, 0; @%p0 bra L;",
    "stores": f"L: {LOAD} st.shared.b32 [%r2], %r0; setp.eq.s32 %p0, %r0, 0; @%p0 bra L;",
    "remembers": f"L: {LOAD} and.b32 %r3, %r3, %r0; setp.eq.s32 %p0, %r3, 0; @%p0 bra L;",
    "two": f"L: {LOAD} ld.volatile.shared.b32 %r3, [%r2]; setp.eq.s32 %p0, %r0, %r3; @%p0 bra L;",
    "without end": f"L: {LOAD} bra L;",
}
"""With these, what lanes read of each other's words depends on timing."""


def idle(loop: str) -> list[int]:
    """Places of the instructions that may sleep."""
    registers = ".reg .pred %p<2>; .reg .b32 %r<4>; .shared .b64 bar;"
    module = parse(f"{HEADER}.visible .entry k() {{ {registers}\n mov.b32 %r0, 0;\n {loop} ret; }}")
    (function,) = module.functions.values()
    program = decode(module, function, lay_out(module, function), {})
    return [at for at, op in enumerate(program.code) if op.idle]


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_that_only_waits(name: str) -> None:
    assert len(idle(LOOPS[name])) == 1


@pytest.mark.parametrize("name", OTHERS)
def test_a_loop_that_does_more(name: str) -> None:
    assert not idle(OTHERS[name])


@pytest.mark.parametrize("name", POLLS)
def test_a_load_that_is_polled(name: str) -> None:
    assert len(idle(POLLS[name])) == 1


@pytest.mark.parametrize("name", LOOKS)
def test_a_load_that_is_not_polled(name: str) -> None:
    assert not idle(LOOKS[name])
