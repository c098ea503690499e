"""A wait is woken by the phase it waits for, also if the next one completes before its turn."""

from __future__ import annotations

import numpy as np
import pytest

from tcir.run import RunReport, Uninitialized, run_ptx

from .conftest import HEADER

KERNEL = """.visible .entry k(.param .u64 out)
{ .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>; .reg .b64 %out;
  .shared .align 8 .b64 bar; .shared .align 4 .b32 asks; .shared .align 4 .b32 data;
  ld.param.u64 %out, [out]; mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; mov.u32 %r1, 0;
  @%p0 bra READY; mbarrier.init.shared::cta.b64 [bar], COUNT; st.shared.u32 [asks], %r1;
READY: bar.sync 0; and.b32 %r2, %r0, 31; setp.ne.u32 %p1, %r2, 0; @%p1 bra DONE;
  @%p0 bra WAITER;
ASK: ld.relaxed.cta.shared.u32 %r3, [asks]; setp.eq.u32 %p2, %r3, 0; @%p2 bra ASK;
  STORES
  bra DONE;
WAITER: mov.u32 %r4, 1; st.relaxed.cta.shared.u32 [asks], %r4; MINE
  WAIT
  ld.shared.u32 %r5, [data]; st.global.u32 [%out], %r5;
DONE: ret; }
"""
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [bar];"
FIRST = "st.shared.u32 [data], %r3;"
BEHIND = ARRIVE + " " + ARRIVE + FIRST
TRY = "mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0;"
WAITS = {
    "blocks": (f"L: {TRY} @!%p3 bra L;", ""),
    "sleeps": (f"L: {TRY} @%p3 bra E; nanosleep.u32 20; bra L; E:", ""),
    "reads the clock": (f"L: {TRY} mov.u32 %r6, %clock; @!%p3 bra L;", ""),
    "token": (
        "L: mbarrier.try_wait.shared::cta.b64 %p3, [bar], %d1; @!%p3 bra L;",
        "mbarrier.arrive.shared::cta.b64 %d1, [bar];",
    ),
}


def run(name: str, stores: str, seed: int | None) -> tuple[RunReport, int]:
    wait, mine = WAITS[name]
    text = KERNEL.replace("COUNT", "2" if mine else "1").replace("WAIT\n", wait + "\n")
    if mine:
        stores = stores.replace(ARRIVE + " " + ARRIVE, " ".join([ARRIVE] * 3))
    out = np.zeros(1, np.uint32)
    text = HEADER + text.replace("STORES", stores).replace("MINE", mine)
    return run_ptx(text, grid=1, block=64, args=[Uninitialized(out)], order_seed=seed), int(out[0])


@pytest.mark.parametrize("name", WAITS)
def test_the_phase_that_was_awaited(name: str) -> None:
    """Warp 0 ends two phases in one turn, after warp 1 has asked for the first."""
    report, got = run(name, FIRST + ARRIVE + " " + ARRIVE, None)
    assert report.ok and got == 1, str(report)
    assert [f.code for f in report.findings] == ["phase-overtaken"]
    for seed in (1, 3):
        assert run(name, FIRST + ARRIVE, seed)[1] == 1


@pytest.mark.parametrize("name", WAITS)
def test_it_releases_what_came_before_it_only(name: str) -> None:
    """What is stored behind both arrivals is not ordered by the wait for the first."""
    report, _ = run(name, BEHIND, None)
    assert "race" in {f.code for f in report.findings}, str(report)


def test_the_next_phase_alone_is_not_enough() -> None:
    """A store between the two arrivals belongs to the second phase."""
    report, _ = run("blocks", ARRIVE + FIRST + ARRIVE, None)
    assert "race" in {f.code for f in report.findings}, str(report)


IN_STEP = """.visible .entry k(.param .u64 out)
{ .reg .pred %p<4>; .reg .b32 %r<9>; .shared .align 8 .b64 bar;
  mov.u32 %r0, %tid.x; setp.ne.u32 %p0, %r0, 0; mov.u32 %r1, 0; and.b32 %r2, %r0, 31;
  @%p0 bra READY; mbarrier.init.shared::cta.b64 [bar], 1;
READY: bar.sync 0; LATE
STEP: and.b32 %r3, %r1, 1; @!%p0 mbarrier.arrive.shared::cta.b64 _, [bar];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], %r3; @!%p3 bra WAIT;
  add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 4; @%p1 bra STEP;
  EARLY ret; }
"""


def in_step(late: str, early: str) -> RunReport:
    text = HEADER + IN_STEP.replace("LATE", late).replace("EARLY", early)
    return run_ptx(text, grid=1, block=96, args=[np.zeros(1, np.uint32)])


def test_warps_that_wait_for_the_same_phases_go_in_step() -> None:
    """One warp completes all phases and waits for each (CUTLASS's Blackwell tutorial 02)."""
    report = in_step("", "")
    assert report.ok and not report.findings, str(report)


def test_a_warp_that_comes_after_all_phases_waits_for_ever() -> None:
    """The others let it go on when they are through: it asks for a parity two phases old."""
    late = "setp.lt.u32 %p2, %r0, 64; @%p2 bra STEP; bar.sync 1, 96;"
    report = in_step(late, "setp.lt.u32 %p2, %r0, 64; @!%p2 bra DONE; bar.arrive 1, 96; DONE:")
    assert [e.code for e in report.errors] == ["deadlock"], str(report)
