"""Which waits may sleep: loops that do nothing else, the same every time round."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.interp.ptx.layout import lay_out
from tcir.interp.ptx.parser import parse
from tcir.interp.ptx.program import DecodedEntry, decode
from tcir.interp.ptx.registers import U32, WarpStorage
from tcir.run import run_ptx

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


GIVING_UP = {"counts", "two"}


@pytest.mark.parametrize("name", [*LOOPS, *OTHERS])
def test_a_loop_with_another_end(name: str) -> None:
    assert bool(waiting("gives_up", (LOOPS | OTHERS)[name])) == (name in GIVING_UP)


COUNTS = f"""L: {WAIT} %p0, [bar], 0; @%p0 bra D; add.u32 %r0, %r0, 1;
 setp.lt.u32 %p1, %r0, POLLS; @%p1 bra L; D:"""
WHOLE = f"""L: {WAIT} %p0, [bar], 0; not.pred %p0, %p0; add.u32 %r0, %r0, 1;
 setp.lt.and.u32 %p1, %r0, POLLS, %p0; @%p1 bra L;"""
EXPIRES = """{header}.visible .entry k(.param .u64 out)
{{
 .reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %rd<4>; .shared .align 8 .b64 bar;
 mov.u32 %r1, %tid.x; setp.eq.u32 %p2, %r1, 0; mov.b32 %r0, 0;
 @%p2 mbarrier.init.shared.b64 [bar], 2;
 bar.sync 0;
 {loop}
 ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r0;
 bar.sync 0;
 {again}
 ret;
}}
"""


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("loop", [COUNTS, WHOLE])
def test_a_loop_that_counts_its_polls_ends(loop: str, seed: int | None) -> None:
    """Nobody arrives: it gives up after as many polls as it says, in each of 3 warps."""
    for polls in (1, 2, 3000):
        text = EXPIRES.format(header=HEADER, loop=loop.replace("POLLS", str(polls)), again="")
        out = np.zeros(96, np.uint32)
        report = run_ptx(text, grid=1, block=96, args=[out], order_seed=seed)
        assert report.exit_code == 0, report
        assert (out == polls).all()


def test_what_comes_behind_a_loop_that_gave_up_is_a_deadlock() -> None:
    loop = COUNTS.replace("POLLS", "5")
    text = EXPIRES.format(header=HEADER, loop=loop, again=f"M: {WAIT} %p0, [bar], 0; @!%p0 bra M;")
    (error,) = run_ptx(text, grid=1, block=96, args=[np.zeros(96, np.uint32)]).errors
    assert error.code == "deadlock" and "it lacks 2 of 2 arrivals" in str(error)


def test_a_loop_that_counts_without_a_bound_is_a_deadlock() -> None:
    loop = f"L: {WAIT} %p0, [bar], 0; add.u32 %r0, %r0, 1; @!%p0 bra L;"
    text = EXPIRES.format(header=HEADER, loop=loop, again="")
    (error,) = run_ptx(text, grid=1, block=96, args=[np.zeros(96, np.uint32)]).errors
    assert error.code == "deadlock"


LOAD = "ld.volatile.shared.b32 %r0, [%r1];"
POLLS = {
    "nvcc": f"L: {LOAD} setp.eq.s32 %p0, %r0, 0; @%p0 bra L;",
    "nvcc, sleeping": f"L: mov.b32 %r2, 20; nanosleep.u32 %r2; {LOAD} setp.lt.u32 %p0, %r0, 3; "
    "@%p0 bra L;",
    "leaves in the middle": f"L: {LOAD} setp.ne.s32 %p0, %r0, 0; @%p0 bra D; bra L; D:",
    "wraps": f"L: {LOAD} sub.s32 %r0, %r0, %r2; setp.lt.s32 %p0, %r0, 0; @%p0 bra L;",
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


AWAITED = {
    "nvcc": ({1, 5, 1 << 31}, {0}),
    "nvcc, sleeping": ({3, 4, 1 << 31}, {0, 2}),
    "leaves in the middle": ({1, 2}, {0}),
    "wraps": ({7, 8, 1 << 31}, {6, 0, (1 << 31) + 7}),
    "a bit": ({1, 3}, {0, 2}),
}
"""Values with which each of `POLLS` ends, and with which it goes on; %r2 is 7."""


def idle(loop: str) -> list[int]:
    """Places of the instructions that may sleep."""
    return waiting("idle", loop)


def waiting(what: str, loop: str) -> list[int]:
    """Places of the instructions that are `idle` or `gives_up`, or whose loads are `awaited`."""
    return [at for at, op in enumerate(decoded(loop).code) if getattr(op, what)]


def decoded(loop: str) -> DecodedEntry:
    registers = ".reg .pred %p<2>; .reg .b32 %r<4>; .shared .b64 bar;"
    module = parse(f"{HEADER}.visible .entry k() {{ {registers}\n mov.b32 %r0, 0;\n {loop} ret; }}")
    (function,) = module.functions.values()
    return decode(module, function, lay_out(module, function), {})


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


class Registers:
    """A warp's, as far as such a loop looks at them: %r2 is 7."""

    def __init__(self, storage: WarpStorage) -> None:
        names = storage.slots.names
        self.p, self.v = [0] * len(names), storage.registers()
        if "%r2" in names:
            self.v[U32][names.index("%r2")][:] = 7


@pytest.mark.parametrize("name", POLLS)
def test_what_a_load_waits_for(name: str) -> None:
    program = decoded(POLLS[name])
    (op,) = (op for op in program.code if op.awaited is not None)
    leaves = op.awaited(Registers(program.storage))
    ends, goes_on = AWAITED[name]
    for value in ends | goes_on:
        assert leaves(3, value.to_bytes(4, "little")) == (value in ends), value


@pytest.mark.parametrize("name", POLLS)
def test_a_load_whose_value_is_used_waits_for_more(name: str) -> None:
    """The value it ends with counts, so what would end it, too, is not enough."""
    assert waiting("idle", POLLS[name]) == waiting("awaited", POLLS[name])
    behind = POLLS[name].replace("D:", "D: ") + " add.u32 %r1, %r0, 1;"
    assert waiting("idle", behind) and not waiting("awaited", behind)
    again = POLLS[name] + " mov.b32 %r0, 1; add.u32 %r1, %r0, 1;"
    assert waiting("awaited", again)
