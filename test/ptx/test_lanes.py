"""Lanes of one warp are threads of their own: pairs with and without what orders them.

Classes of faults are in test/corpus (lanes_*, cuda_lanes_*); here are the rules one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .test_async_store import entry

SEEDS = [None, 1, 2, 3, 4, 5, 6]
PLACES = """shl.b32 %r4, %r0, 2; add.u32 %r5, %r2, %r4; xor.b32 %r6, %r4, 4; add.u32 %r6, %r2, %r6;
mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d0, %d1;
"""
"""%r5, %r6: the lane's word of sm and its neighbour's; %d1: the lane's word of p0."""
SYNC = "bar.warp.sync -1;"
LEADER = "setp.eq.u32 %p1, %r0, 0;"


def run(body: str, seed: int | None = None, **sizes: Any) -> tuple[RunReport, np.ndarray]:
    out = np.zeros(64, np.uint32)
    sizes = {"grid": 1, "block": 32, "max_instructions": 20_000, **sizes}
    return run_ptx(entry(PLACES + body), args=[out], order_seed=seed, **sizes), out


def codes(report: RunReport) -> set[str]:
    return {f.code for f in report.findings} | {e.code for e in report.errors}


PAIRS = {
    "read-of-a-neighbour": "st.shared.b32 [%r5], %r0; {} ld.shared.b32 %r7, [%r6];",
    "write-over-what-a-neighbour-reads":
        "st.shared.b32 [%r5], %r0; bar.sync 0; ld.shared.b32 %r7, [%r6]; {}"
        "st.shared.b32 [%r5], %r7;",
    "write-over-a-neighbour": "st.shared.b32 [%r5], %r0; {} st.shared.b32 [%r6], %r0;",
    "one-of-several-readers":
        "st.shared.b32 [%r5], %r0; bar.sync 0; ld.shared.b32 %r7, [sm]; ld.shared.b32 %r7, [sm]; {}"
        f"{LEADER} add.u32 %r7, %r7, 9; @%p1 st.shared.b32 [sm], %r7;",
    "global-memory":
        "st.global.b32 [%d1], %r0; {} xor.b32 %r7, %r4, 4; cvt.u64.u32 %d2, %r7;"
        "add.s64 %d2, %d0, %d2; ld.global.b32 %r8, [%d2];",
    "bytes-of-one-word":
        "add.u32 %r5, %r2, %r0; xor.b32 %r6, %r0, 1; add.u32 %r6, %r2, %r6;"
        "st.shared.b8 [%r5], %r0; {} ld.shared.b8 %r7, [%r6];",
    "halves-of-one-element":
        "shl.b32 %r4, %r0, 1; cvt.u64.u32 %d2, %r4; add.s64 %d2, %d0, %d2; xor.b32 %r4, %r4, 2;"
        "cvt.u64.u32 %d3, %r4; add.s64 %d3, %d0, %d3; cvt.u16.u32 %h0, %r0;"
        "st.global.b16 [%d2], %h0; {} ld.global.b16 %h1, [%d3];",
    "ldmatrix-of-stored-rows":
        "shl.b32 %r4, %r0, 2; add.u32 %r5, %r2, %r4; st.shared.b32 [%r5], %r0; {}"
        "and.b32 %r4, %r0, 7; shl.b32 %r4, %r4, 4; add.u32 %r5, %r2, %r4;"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r7}}, [%r5];",
    "leader-waits":
        f"{LEADER} @%p1 mbarrier.init.shared::cta.b64 [%r3], 1; bar.sync 0; @!%p1 bra L;"
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%d0], 128, [%r3];"
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W;\n"
        "L: {} ld.shared.b32 %r7, [%r5];",
    "leader-stores-in-bulk":
        "st.shared.b32 [%r5], %r0; fence.proxy.async; {}"
        f"{LEADER} @!%p1 bra D; cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 128;"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; D:",
    "leader-has-waited-for-the-store":
        f"st.shared.b32 [%r5], %r0; fence.proxy.async; bar.sync 0; {LEADER} @!%p1 bra D;"
        "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 128;"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; D: {}"
        "st.shared.b32 [%r5], %r0;",
    "leader-initialises":
        f"{LEADER} @%p1 mbarrier.init.shared::cta.b64 [%r3], 32; {{}}"
        "mbarrier.arrive.shared::cta.b64 _, [%r3];",
    "leader-fences":
        f"{LEADER} st.shared.b32 [%r5], %r0; {{}} @!%p1 bra D; fence.proxy.async;"
        "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r2], 128;"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; D:",
    "own-cp-async-group":
        "cp.async.ca.shared.global [%r5], [%d1], 4; cp.async.commit_group; cp.async.wait_group 0;"
        "{} ld.shared.b32 %r7, [%r6];",
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_lanes_need_a_warp_barrier(name: str) -> None:
    report, _ = run(PAIRS[name].format(""))
    assert codes(report) & {"race", "mbarrier-init-race"}, f"{name} {report}"
    assert "bar.warp.sync between" in str(report)
    for seed in SEEDS:
        report, _ = run(PAIRS[name].format(SYNC), seed)
        assert report.ok and not report.findings, f"{name} {seed} {report}"


@pytest.mark.parametrize("instead", ["shfl.sync.idx.b32 %r9, %r0, 0, 31, -1;",
    "vote.sync.ballot.b32 %r9, %p1, -1;", "elect.sync %r9|%p3, -1;",
    "redux.sync.add.u32 %r9, %r0, -1;", "membar.cta;", "fence.acq_rel.cta;"])  # fmt: skip
def test_what_is_no_warp_barrier(instead: str) -> None:
    report, _ = run(LEADER + PAIRS["read-of-a-neighbour"].format(instead))
    assert codes(report) == {"race"}, f"{instead} {report}"


ORDERED = {
    "own-word": "st.shared.b32 [%r5], %r0; ld.shared.b32 %r7, [%r5]; st.shared.b32 [%r5], %r7;",
    "own-bytes-of-a-word":
        "add.u32 %r5, %r2, %r0; st.shared.b8 [%r5], %r0; ld.shared.b8 %r7, [%r5];",
    "own-halves-of-an-element":
        "shl.b32 %r4, %r0, 1; cvt.u64.u32 %d2, %r4; add.s64 %d2, %d0, %d2; cvt.u16.u32 %h0, %r0;"
        "st.global.b16 [%d2], %h0; ld.global.b16 %h1, [%d2];",
    "all-read-one": "st.shared.b32 [%r5], %r0; bar.sync 0; ld.shared.b32 %r7, [sm];",
    "one-value": "mov.u32 %r7, 5; st.shared.b32 [sm], %r7; ld.shared.b32 %r8, [sm];",
    "an-mbarrier-of-all-lanes":
        f"{LEADER} @%p1 mbarrier.init.shared::cta.b64 [%r3], 32; bar.warp.sync -1;"
        "st.shared.b32 [%r5], %r0; mbarrier.arrive.shared::cta.b64 _, [%r3];"
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W;"
        "ld.shared.b32 %r7, [%r6];",
    "a-released-flag":
        "mov.u32 %r7, 0; @%p0 bra R; setp.ne.u32 %p3, %r0, 1; @%p3 bra D; st.shared.b32 [%r5], %r0;"
        "mov.u32 %r8, 1; st.release.cta.shared.b32 [sm+512], %r8; bra D;"
        "R: ld.acquire.cta.shared.b32 %r8, [sm+512]; setp.eq.u32 %p2, %r8, 0; @%p2 bra R;"
        "ld.shared.b32 %r7, [%r6]; D:",
    "own-rows-in-bulk":
        "shl.b32 %r4, %r0, 4; add.u32 %r5, %r2, %r4; st.shared.v4.b32 [%r5], {%r0, %r0, %r0, %r0};"
        "fence.proxy.async; setp.gt.u32 %p1, %r0, 15; @%p1 bra D; cvt.u64.u32 %d2, %r4;"
        "add.s64 %d2, %d0, %d2; cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r5], 16;"
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; D:",
    "tiles-by-their-masks":
        "and.b32 %r8, %r0, 24; mov.u32 %r9, 255; shl.b32 %r9, %r9, %r8; st.shared.b32 [%r5], %r0;"
        "bar.warp.sync %r9; ld.shared.b32 %r7, [%r6]; bar.warp.sync %r9; st.shared.b32 [%r5], %r7;"
        "bar.warp.sync %r9; ld.shared.b32 %r7, [%r6]; bar.warp.sync -1; ld.shared.b32 %r7, [sm];",
    "a-leader-for-the-warp":
        f"{LEADER} @%p1 mbarrier.init.shared::cta.b64 [%r3], 1; bar.warp.sync -1;"
        "st.shared.b32 [%r5], %r0; bar.warp.sync -1; @%p1 mbarrier.arrive.shared::cta.b64 _, [%r3];"
        "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0; @!%p2 bra W;"
        "ld.shared.b32 %r7, [%r6];",
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_what_orders_lanes(name: str) -> None:
    body = ORDERED[name]
    if name == "a-released-flag":
        body = f"{LEADER} mov.u32 %r8, 0; @%p1 st.shared.b32 [sm+512], %r8; bar.sync 0;" + (
            "setp.eq.u32 %p0, %r0, 0;" + body
        )
    for seed in SEEDS:
        report, _ = run(body, seed)
        assert report.ok and not report.findings, f"{name} {seed} {report}"


def test_lanes_that_store_to_one_word() -> None:
    report, _ = run("st.shared.b32 [sm], %r0;")
    assert codes(report) == {"race"} and "another lane's value" in str(report), str(report)
    report, _ = run("mov.u32 %r7, 5; st.shared.b32 [sm], %r7;")
    assert not report.findings, str(report)
    report, _ = run("st.relaxed.cta.shared.b32 [sm], %r0;")
    assert not report.findings, str(report)


def test_a_leader_releases_what_it_has_seen() -> None:
    """Warp 0 stores, its lane 5 raises a flag; warp 1 acquires it and reads."""
    body = (
        "shr.u32 %r7, %r0, 5; setp.ne.u32 %p0, %r7, 0; mov.u32 %r8, 1; @%p0 bra R;"
        "st.global.b32 [%d1], %r0; {} setp.eq.u32 %p1, %r0, 5;"
        "@%p1 st.release.gpu.global.b32 [%d0+248], %r8; bra D;"
        "R: ld.acquire.gpu.global.b32 %r9, [%d0+248]; setp.eq.u32 %p2, %r9, 0; @%p2 bra R;"
        "ld.global.b32 %r9, [%d1{}]; D:"
    )
    for seed in SEEDS:
        assert "race" in codes(run(body.format("", "-128"), seed, block=64)[0])
        report, _ = run(body.format(SYNC, "-128"), seed, block=64)
        assert report.ok and not report.findings, str(report)
    own = body.format("", "-128").replace("R: ld", "R: setp.ne.u32 %p3, %r0, 37; @%p3 bra D; S: ld")
    report, _ = run(own.replace("@%p2 bra R", "@%p2 bra S"), block=64)
    assert report.ok and not report.findings, f"lane 5's own store {report}"


EXCHANGES = {
    "volatile": "st.volatile.shared.b32 [%r5], %r0; {} ld.volatile.shared.b32 %r7, [%r6];",
    "relaxed": "st.relaxed.cta.shared.b32 [%r5], %r0; {} ld.relaxed.cta.shared.b32 %r7, [%r6];",
    "release":
        "st.release.cta.shared.b32 [%r5], %r0; {} ld.relaxed.cta.shared.b32 %r7, [%r6];",
    "write-over-what-a-neighbour-reads":
        "st.volatile.shared.b32 [%r5], %r0; bar.sync 0; ld.volatile.shared.b32 %r7, [%r6]; {}"
        "st.volatile.shared.b32 [%r5], %r7;",
    "global-memory":
        "st.volatile.global.b32 [%d1], %r0; {} xor.b32 %r7, %r4, 4; cvt.u64.u32 %d2, %r7;"
        "add.s64 %d2, %d0, %d2; ld.volatile.global.b32 %r8, [%d2];",
    "half-a-warp":
        "setp.lt.u32 %p1, %r0, 16; @!%p1 bra L; st.volatile.shared.b32 [%r5], %r0; {}"
        "ld.volatile.shared.b32 %r7, [%r6]; L:",
    "a-poll-that-gives-up":
        "mov.b32 %r9, 1; st.volatile.shared.b32 [%r5], %r9; {} mov.b32 %r8, 0;"
        "L: ld.volatile.shared.b32 %r7, [%r6]; add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, 9;"
        "setp.eq.and.u32 %p1, %r7, 0, %p1; @%p1 bra L;",
    "a-flag-lowered-while-it-is-polled":
        "mov.b32 %r9, 1; st.volatile.shared.b32 [%r5], %r9;"
        "L: ld.volatile.shared.b32 %r7, [%r6]; setp.eq.u32 %p1, %r7, 0; @%p1 bra L; {}"
        "mov.b32 %r9, 0; st.volatile.shared.b32 [%r5], %r9;",
    "a-count-that-is-polled-and-used":
        "mov.b32 %r9, 100; st.volatile.shared.b32 [%r5], %r9;"
        "L: ld.volatile.shared.b32 %r7, [%r6]; setp.lt.u32 %p1, %r7, 100; @%p1 bra L; {}"
        "mov.b32 %r9, 101; st.volatile.shared.b32 [%r5], %r9; st.global.b32 [%d1], %r7;",
    "a-number-that-is-polled-by-its-value":
        "mov.b32 %r9, 100; st.volatile.shared.b32 [%r5], %r9;"
        "L: ld.volatile.shared.b32 %r7, [%r6]; setp.ne.u32 %p1, %r7, 100; @%p1 bra L; {}"
        "mov.b32 %r9, 101; st.volatile.shared.b32 [%r5], %r9;",
    "a-count-that-is-polled-then-read":
        "mov.b32 %r9, 100; st.volatile.shared.b32 [%r5], %r9;"
        "L: ld.volatile.shared.b32 %r7, [%r6]; setp.lt.u32 %p1, %r7, 100; @%p1 bra L;"
        "bar.warp.sync -1; ld.volatile.shared.b32 %r7, [%r6]; {}"
        "mov.b32 %r9, 101; st.volatile.shared.b32 [%r5], %r9;",
}  # fmt: skip
"""No data race, but the values depend on timing unless lanes meet at {}."""


@pytest.mark.parametrize("name", EXCHANGES)
def test_lanes_exchange_volatile_words(name: str) -> None:
    sync = SYNC.replace("-1", "65535") if name == "half-a-warp" else SYNC
    for seed in SEEDS:
        report, _ = run(EXCHANGES[name].format(sync), seed)
        assert report.ok and not report.findings, (seed, report)
        report, _ = run(EXCHANGES[name].format(""), seed)
        assert codes(report) == {"race"}, (seed, report)


POLLED = {
    "of-one-lane":
        f"st.volatile.shared.b32 [%r5], %r0; bar.sync 0; {LEADER} mov.b32 %r9, 7;"
        "@%p1 st.volatile.shared.b32 [sm], %r9; ld.volatile.shared.b32 %r7, [sm];",
    "of-all-lanes":
        "mov.b32 %r9, 7; st.volatile.shared.b32 [sm], %r9; ld.volatile.shared.b32 %r7, [sm];",
    "of-the-lane-itself":
        "st.volatile.shared.b32 [%r5], %r0; ld.volatile.shared.b32 %r7, [%r5];",
    "of-another-warp":
        "st.volatile.shared.b32 [%r5], %r0; xor.b32 %r6, %r4, 128; add.u32 %r6, %r2, %r6;"
        "L: ld.volatile.shared.b32 %r7, [%r6]; setp.gt.u32 %p1, %r7, 64; @%p1 bra L;",
    "of-each-lane-raised-and-polled-together":
        "mov.b32 %r9, 64; st.volatile.shared.b32 [%r5], %r9;"
        "L: ld.volatile.shared.b32 %r7, [%r6]; setp.ne.u32 %p1, %r7, 64; @%p1 bra L;",
    "of-each-lane-for-its-data":
        "st.shared.b32 [%r5+256], %r0; membar.cta; mov.b32 %r9, 64;"
        "st.volatile.shared.b32 [%r5], %r9; L: nanosleep.u32 20; ld.volatile.shared.b32 %r7, [%r6];"
        "setp.ne.u32 %p1, %r7, 64; @%p1 bra L; membar.cta; ld.shared.b32 %r8, [%r6+256];",
    "counts-of-each-lane":
        "mov.b32 %r9, 64; R: st.volatile.shared.b32 [%r5], %r9;"
        "L: ld.volatile.shared.b32 %r7, [%r6]; setp.lt.u32 %p1, %r7, %r9; @%p1 bra L;"
        "add.u32 %r9, %r9, 1; setp.lt.u32 %p1, %r9, 70; @%p1 bra R;",
    "counts-of-each-lane-by-atomics":
        "mov.b32 %r9, 64; st.volatile.shared.b32 [%r5], %r9; bar.warp.sync -1;"
        "R: add.u32 %r9, %r9, 1; atom.shared.add.u32 %r8, [%r5], 1;"
        "L: ld.volatile.shared.b32 %r7, [%r6]; setp.lt.u32 %p1, %r7, %r9; @%p1 bra L;"
        "setp.lt.u32 %p1, %r9, 70; @%p1 bra R;",
    "counts-on-the-way-to-the-one-awaited":
        "mov.b32 %r9, 64; st.volatile.shared.b32 [%r5], %r9; bar.warp.sync -1;"
        "and.b32 %r8, %r0, 1; setp.eq.u32 %p1, %r8, 0; @!%p1 bra C;"
        "L: ld.volatile.shared.b32 %r7, [%r6]; setp.lt.u32 %p1, %r7, 67; @%p1 bra L; bra E;"
        "C: add.u32 %r9, %r9, 1; st.volatile.shared.b32 [%r5], %r9; nanosleep.u32 20;"
        "setp.lt.u32 %p1, %r9, 70; @%p1 bra C; E:",
    "a-flag-lowered-when-all-have-answered":
        "mov.b32 %r9, 0; st.shared.b32 [%r5+128], %r9; bar.sync 0;"
        "mov.b32 %r9, 64; setp.eq.u32 %p1, %r0, 0; @%p1 st.volatile.shared.b32 [%r2], %r9;"
        "@%p1 bra A; L: ld.volatile.shared.b32 %r7, [%r2]; setp.eq.u32 %p1, %r7, 0; @%p1 bra L;"
        "red.shared.add.u32 [%r2+252], 1; bra E;"
        "A: ld.volatile.shared.b32 %r7, [%r2+252]; setp.lt.u32 %p1, %r7, 31; @%p1 bra A;"
        "mov.b32 %r9, 0; st.volatile.shared.b32 [%r2], %r9; E:",
    "counter-of-all-lanes":
        "mov.b32 %r9, 0; st.shared.b32 [sm], %r9; bar.sync 0; atom.shared.add.u32 %r7, [sm], 1;"
        "L: ld.volatile.shared.b32 %r7, [sm]; setp.lt.u32 %p1, %r7, 32; @%p1 bra L;",
    "atomics":
        "mov.b32 %r9, 0; st.shared.b32 [%r5], %r9; bar.sync 0;"
        "atom.shared.add.u32 %r7, [%r5], 1; atom.shared.add.u32 %r7, [%r6], 1;",
}  # fmt: skip


@pytest.mark.parametrize("name", POLLED)
def test_volatile_words_that_lanes_may_poll(name: str) -> None:
    for seed in SEEDS:
        report, _ = run("st.volatile.shared.b32 [%r5], %r0; bar.sync 0;" + POLLED[name], seed,
                        block=64 if name == "of-another-warp" else 32)  # fmt: skip
        assert report.ok and not report.findings, (seed, report)
