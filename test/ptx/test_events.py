"""The event stream of a run: what each warp did, and what every wait waited for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tcir.machine import Assumptions
from tcir.machine.events import OPS, Event, EventStream, Recording
from tcir.run import RunReport, run_ptx

from .conftest import HEADER

RING = (
    HEADER
    + """
.visible .entry ring(.param .u64 x, .param .u64 y)
{
 .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<6>; .reg .f32 %f<4>;
 .shared .align 128 .b8 tile[512]; .shared .align 8 .b64 full[2]; .shared .align 8 .b64 free;
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y];
 mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; mov.u32 %r2, tile; mov.u32 %r3, full;
 mov.u32 %r4, free; setp.ne.u32 %p0, %r0, 0;
 @%p0 bra READY;
 mbarrier.init.shared::cta.b64 [%r3], 1;
 mbarrier.init.shared::cta.b64 [%r4], 32;
 fence.mbarrier_init.release.cluster;
READY:
 bar.sync 0;
 setp.ne.u32 %p1, %r1, 0;
 @%p1 bra CONSUME;
 @%p0 bra END;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 256;
 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 128, [%r3];
 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2+128], [%rd1+128], 128, [%r3];
LOOP:
 mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
 @!%p2 bra LOOP;
 bra END;
CONSUME:
 mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
 @!%p2 bra CONSUME;
 and.b32 %r5, %r0, 31; shl.b32 %r5, %r5, 3; add.u32 %r6, %r2, %r5;
 ld.shared.v2.f32 {%f1, %f2}, [%r6];
 ex2.approx.f32 %f1, %f1; ex2.approx.f32 %f2, %f2; add.f32 %f1, %f1, %f2;
 mbarrier.arrive.shared::cta.b64 _, [%r4];
 cvt.u64.u32 %rd3, %r5; add.s64 %rd4, %rd2, %rd3;
 st.global.f32 [%rd4], %f1;
END:
 ret;
}
"""
)


def ring(**options: Any) -> RunReport:
    x = (np.arange(64, dtype=np.float32) % 7).copy()
    y = np.zeros(64, np.float32)
    report = run_ptx(RING, grid=5, block=64, args=(x, y), **options)
    if options.get("hazards") == "off":
        expected = np.exp2(x).reshape(32, 2).sum(1)
        np.testing.assert_allclose(y[::2], expected, rtol=1e-6)
    return report


def of(stream: EventStream, cta: int, warp: int) -> list[Event]:
    return [event for event in stream if (event.cta, event.warp) == (cta, warp)]


def by_warp(stream: EventStream) -> dict[tuple[int, int], list[Any]]:
    """What each warp did, whatever the order of the warps: what it waited for by op and line."""
    found: dict[tuple[int, int], list[Any]] = {}
    for e in stream:
        causes = Counter((stream[i].op, stream[i].warp, stream[i].line) for i in e.after)
        what = (e.op, dict(e.detail), causes, e.line)
        found.setdefault((e.cta, e.warp), []).append(what)
    return found


def test_nothing_is_recorded_unless_asked_for() -> None:
    assert ring(hazards="off").events is None


def test_a_wait_names_the_arrivals_and_bytes_that_end_it() -> None:
    stream = ring(hazards="off", events=Recording()).events
    assert stream is not None
    assert {event.op for event in stream} <= OPS
    assert (stream.kernel, stream.grid, stream.block, stream.ctas) == (
        "ring",
        (5, 1, 1),
        (64, 1, 1),
        (0,),
    )
    consumer, producer = of(stream, 0, 1), of(stream, 0, 0)
    (wait,) = (e for e in consumer if e.op == "mbarrier.wait")
    causes = [stream[i] for i in wait.after]
    assert [(c.op, c.warp, c.detail.get("bytes")) for c in causes] == [
        ("mbarrier.arrive", 0, None),
        ("bulk.load", 0, 128),
        ("bulk.load", 0, 128),
    ]
    assert {c.detail["barrier"] for c in causes} == {wait.detail["barrier"]}
    (back,) = (e for e in producer if e.op == "mbarrier.wait")
    assert {(stream[i].op, stream[i].warp) for i in back.after} == {("mbarrier.arrive", 1)}
    first, second = (next(e for e in w if e.op == "bar.sync") for w in (producer, consumer))
    assert [stream[i] for i in first.after] == [second]
    assert [stream[i] for i in second.after] == [first]
    (special,) = (e for e in consumer if e.op == "sfu")
    assert special.detail == {"count": 2}
    (store,) = (e for e in consumer if e.op == "st.global")
    assert store.detail == {"bytes": 128, "lanes": 32, "sectors": 8}
    assert [events[-1].op for events in (consumer, producer)] == ["exit", "exit"]


def test_polls_are_no_events_and_no_instructions() -> None:
    """The consumer polls in other orders more often: its events are the same."""
    same = Assumptions(shared_start="reserved", elected_lane="lowest")
    streams = [
        ring(order_seed=seed, events=Recording(), assumptions=same).events
        for seed in (None, 1, 2, 3, 4)
    ]
    first = streams[0]
    assert first is not None
    counts = [e.detail["count"] for e in of(first, 0, 1) if e.op == "alu"]
    assert counts[:2] == [9, 2]  # up to its wait at the named barrier, and from there to the next
    for stream in streams[1:]:
        assert stream is not None
        assert by_warp(stream) == by_warp(first)


@pytest.mark.parametrize("hazards", ["report", "off"])
def test_ctas_in_lockstep_have_the_events_that_they_have_alone(hazards: str) -> None:
    x = np.arange(32 * 12, dtype=np.int32)
    text = HEADER + (
        ".visible .entry k(.param .u64 x) { .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p1;"
        " ld.param.b64 %rd1, [x]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x;"
        " mad.lo.u32 %r3, %r1, 32, %r2; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2;"
        " setp.gt.u32 %p1, %r1, 8; @%p1 bra L; ld.global.b32 %r4, [%rd3]; add.u32 %r4, %r4, 1;"
        " st.global.b32 [%rd3], %r4; L: ret; }"
    )
    found = []
    for lockstep in (False, True):
        report = run_ptx(
            text, grid=12, block=32, args=(x.copy(),), hazards=hazards, lockstep=lockstep,
            events=Recording((3, 7, 11)),
        )  # fmt: skip
        assert bool(report.lockstep) == lockstep
        assert report.events is not None
        found.append(report.events)
    assert found[0].ctas == found[1].ctas == (3, 7, 11)
    assert by_warp(found[0]) == by_warp(found[1])
    ops = {cta: [e.op for e in of(found[1], cta, 0)] for cta in (3, 7, 11)}
    assert ops[3] == ops[7] == ["alu", "ld.global", "alu", "st.global", "exit"]
    assert ops[11] == ["alu", "exit"]


def test_one_process_records() -> None:
    report = ring(events=Recording((2,)), jobs=2)
    assert report.events is not None
    assert report.events.ctas == (2,)
    assert report.together == "events are recorded"


def test_a_cta_that_is_not_executed_has_no_events() -> None:
    report = ring(events=Recording((7,)))
    assert report.events is not None
    assert (len(report.events), report.events.ctas) == (0, ())


def test_copies_of_threads_and_their_groups() -> None:
    text = HEADER + (
        ".visible .entry k(.param .u64 x) { .reg .b32 %r<4>; .reg .b64 %rd<4>;"
        " .shared .align 16 .b8 tile[2048]; ld.param.b64 %rd1, [x]; mov.u32 %r1, %tid.x;"
        " shl.b32 %r1, %r1, 4; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1; cvt.u64.u32 %rd2, %r1;"
        " add.s64 %rd3, %rd1, %rd2;"
        " cp.async.cg.shared.global [%r2], [%rd3], 16; cp.async.commit_group;"
        " cp.async.cg.shared.global [%r2+512], [%rd3+512], 16; cp.async.commit_group;"
        " cp.async.cg.shared.global [%r2+1024], [%rd3+1024], 16;"
        " cp.async.wait_group 1; cp.async.wait_all; ret; }"
    )
    report = run_ptx(
        text, grid=1, block=32, args=(np.arange(512, dtype=np.int32),), events=Recording()
    )
    stream = report.events
    assert report.ok and stream is not None
    copies = [i for i, e in enumerate(stream) if e.op == "cp.async"]
    waits = [e.after for e in stream if e.op == "cp.async.wait"]
    assert waits == [(copies[0],), (copies[1], copies[2])]
    assert [stream[i].detail["bytes"] for i in copies] == [512, 512, 512]


@pytest.mark.parametrize(
    ("address", "words", "guard", "sectors"),
    [
        ("shl.b32 %r2, %r1, 2;", "b32", "", 4),  # neighbours: 128 bytes
        ("shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, 16;", "b32", "", 5),  # and not aligned
        ("shl.b32 %r2, %r1, 3;", "b32", "", 8),  # every second word
        ("shl.b32 %r2, %r1, 5;", "b32", "", 32),  # a sector each
        ("shl.b32 %r2, %r1, 7;", "v4.b32", "", 32),  # half a sector of a row each
        ("shl.b32 %r2, %r1, 4;", "v4.b32", "", 16),  # 512 bytes
        ("mov.u32 %r2, 0;", "b32", "", 1),  # all the same word
        ("shl.b32 %r2, %r1, 5;", "b32", "@%p1", 3),  # three lanes
    ],
)
@pytest.mark.parametrize("which", ["ld", "st"])
def test_an_access_of_global_memory_says_its_sectors(
    which: str, address: str, words: str, guard: str, sectors: int
) -> None:
    values = "{%r4, %r5, %r6, %r7}" if "v4" in words else "%r4"
    operands = f"{values}, [%rd3]" if which == "ld" else f"[%rd3], {values}"
    assert _sectors(
        f"{address} cvt.u64.u32 %rd2, %r2; add.s64 %rd3, %rd1, %rd2; "
        f"{guard} {which}.global.{words} {operands};"
    ) == [sectors]


def test_sectors_are_those_of_the_address_that_a_load_overwrites() -> None:
    assert _sectors(
        "mul.wide.u32 %rd2, %r1, 16; add.s64 %rd3, %rd1, %rd2; ld.global.b64 %rd3, [%rd3];"
    ) == [16]


def _sectors(body: str) -> list[int]:
    """Of each access that a warp makes."""
    ptx = (
        HEADER
        + f"""
.visible .entry k(.param .u64 x)
{{
 .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<6>;
 ld.param.b64 %rd1, [x]; mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 3;
 mov.b32 %r4, 7; mov.b32 %r5, 7; mov.b32 %r6, 7; mov.b32 %r7, 7;
 {body}
 ret;
}}
"""
    )
    recording = Recording()
    report = run_ptx(
        ptx,
        grid=1,
        block=32,
        args=(np.arange(1024, dtype=np.uint32),),
        hazards="off",
        events=recording,
    )
    assert not report.errors and not report.incomplete
    accesses = [e for e in recording.streams[0] if e.op in ("ld.global", "st.global")]
    return [int(event.detail["sectors"]) for event in accesses]
