"""Edges that silicon gives and no text promises, and those that only seem to be there.

Reads overtaken by bulk copies, ends of threads, tickets, bar.red beside bar.sync, bulk stores of
the same bytes, and what findings say of them. Evidence: docs/explanation/hazards.md.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"
PROFILES = ("silicon", "isa")


def found(report: RunReport) -> list[tuple[str, str]]:
    """Severity and kind of each finding of a run that nothing ended."""
    assert not report.errors and not report.incomplete, str(report)
    return [(f.severity, f.code) for f in report.findings]


# --- read, then a bulk copy ----------------------------------------------------------------------

READ_THEN_COPY = """
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>;
  .shared .align 16 .b8 slot[256]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;
  ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;
  shl.b32 %r1, %r0, 2; mov.u32 %r2, slot; add.u32 %r3, %r2, %r1;
  cvt.u64.u32 %d2, %r1; add.s64 %d3, %d1, %d2;
  @!%p0 bra READY;
  mbarrier.init.shared::cta.b64 [full], 1; mbarrier.init.shared::cta.b64 [empty], 64;
  fence.proxy.async;
READY: bar.sync 0;
  @!%p0 bra FIRST;
  EARLY
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [slot], [%d0], 256, [full];
FIRST: mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0; @!%p1 bra FIRST;
  ld.shared.u32 %r4, [%r3];
  BEFORE READER SIGNAL
  @!%p0 bra SECOND;
  WAIT ISSUER
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [slot], [%d0], 256, [full];
SECOND: mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 1; @!%p1 bra SECOND;
  BEHIND
  st.global.u32 [%d3], %r5;
  ret;
}
"""
USE, FENCE = "add.u32 %r5, %r4, 1;", "fence.proxy.async.shared::cta;"
ARRIVE = "mbarrier.arrive.shared::cta.b64 _, [empty];"
FREE = "FREE: mbarrier.try_wait.parity.shared::cta.b64 %p2, [empty], 0; @!%p2 bra FREE;"
SIGNALS = {
    "program order": ("bar.warp.sync -1;", "", 32),
    "bar.sync": ("bar.sync 0;", "", 64),
    "mbarrier": (ARRIVE, FREE, 64),
}
"""What lies between the load and the copy: of the reader, of who issues; threads of the CTA."""


def copied(signal: str, profile: str = "silicon", seed: int | None = None, **words: str) -> Any:
    release, wait, threads = SIGNALS[signal]
    given = {"SIGNAL": release, "WAIT": wait, "READER": "", "ISSUER": "", "EARLY": ""} | words
    given = {"BEFORE": "", "BEHIND": ""} | given
    text = READ_THEN_COPY
    for word, replacement in given.items():
        text = text.replace(f"{word} ", f"{replacement} ").replace(f"{word}\n", f"{replacement}\n")
    args = [np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32)]
    return run_ptx(
        HEADER + text, grid=1, block=threads, args=args, ordering=profile, order_seed=seed
    )


MISSED = "missing-proxy-fence"


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_load_in_flight_is_overtaken_by_a_copy(signal: str) -> None:
    """An H200 reads the new bytes behind each of the three, unless the value was used before."""
    for profile in PROFILES:
        for seed in (None, 1, 2):
            report = copied(signal, profile, seed, BEHIND=USE)
            assert set(found(report)) == {("error", MISSED)}
    assert "may still read shared memory" in str(report)


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_load_that_was_used_is_over(signal: str) -> None:
    """As in CUTLASS's main loops; the text asks for the fence all the same."""
    assert set(found(copied(signal, BEFORE=USE))) == {("warning", MISSED)}
    assert set(found(copied(signal, "isa", BEFORE=USE))) == {("error", MISSED)}


@pytest.mark.parametrize("signal", SIGNALS)
def test_a_fence_on_either_side_keeps_a_copy_behind_the_reads(signal: str) -> None:
    for side in ("READER", "ISSUER"):
        for profile in PROFILES:
            assert found(copied(signal, profile, BEHIND=USE, **{side: FENCE})) == []


ADDRESS_THEN_COPY = """
.visible .entry k(.param .u64 in)
{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<4>;
  .shared .align 16 .b8 slot[256]; .shared .align 8 .b64 full;
  ld.param.u64 %d0, [in]; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0; mov.u32 %r2, slot;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [WORD], 32;
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  @%p0 mbarrier.init.shared::cta.b64 [full], 1;
  fence.proxy.async; STORE
  bar.sync 0;
  ld.shared.u32 %r4, [WORD]; ld.shared.u32 %r5, [slot+LOADED];
  bar.sync 0;
  @!%p0 bra WAIT;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 256;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [slot], [%d0], 256, [full];
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [full], 0; @!%p1 bra WAIT;
  add.u32 %r6, %r5, 1;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
  ret;
}
"""


@pytest.mark.parametrize("profile", PROFILES)
def test_the_address_of_tensor_memory_is_used_at_once(profile: str) -> None:
    """Triton and Gluon use the word as the first bytes of the first slot; what else a load may
    still read in that slot stays an error."""

    def severities(loaded: str, store: str = "") -> set[str]:
        text = ADDRESS_THEN_COPY.replace("WORD", "slot").replace("STORE", store)
        report = run_ptx(
            HEADER + text.replace("LOADED", loaded),
            grid=1,
            block=32,
            args=[np.arange(64, dtype=np.uint32)],
            ordering=profile,
        )
        mine = [f for f in report.findings if f.code == MISSED and "ld.shared" in f.first]
        return {f.severity for f in mine if f"slot+{loaded}" in f.first}

    assert severities("0") == {"warning" if profile == "silicon" else "error"}
    assert severities("128", "@%p0 st.shared.u32 [slot+128], 7;") == {"error"}


# --- barriers ------------------------------------------------------------------------------------


def threads(body: str, profile: str = "silicon", block: int = 64, seed: int | None = None) -> Any:
    text = (
        HEADER + ".visible .entry k(.param .u64 out)\n{\n .reg .pred %p<6>; .reg .b32 %r<9>;"
        " .reg .b64 %d<4>; .shared .align 16 .b32 w[64];\n mov.u32 %r0, %tid.x; mov.u32 %r1, w;"
        " ld.param.u64 %d0, [out]; setp.lt.u32 %p0, %r0, 32; shl.b32 %r3, %r0, 2;"
        f" add.u32 %r3, %r3, %r1;\n{body}\n ret;\n}}\n"
    )
    args = [np.zeros(64, np.uint32)]
    return run_ptx(text, grid=1, block=block, args=args, ordering=profile, order_seed=seed)


def test_bar_red_beside_bar_sync_is_unpredictable() -> None:
    mixed = "@%p0 bra A; bar.red.popc.u32 %r2, 0, %p0; bra B; A: OTHER; B:"
    apart = "bar.red.popc.u32 %r2, 0, %p0; bar.sync 0;"
    for profile in PROFILES:
        assert found(threads(apart, profile)) == []
        report = threads(mixed.replace("OTHER", "bar.sync 0"), profile)
        assert found(report) == [("error", "barrier-mixed")]
    arrives = "@%p0 bra A; bar.red.popc.u32 %r2, 1, 64, %p0; bra B; A: bar.arrive 1, 64; B:"
    assert found(threads(arrives)) == [("error", "barrier-mixed")]


EXIT = (
    "@%p0 bra A; st.shared.u32 [%r3+-128], %r0; ret; A: BARRIER ld.shared.u32 %r4, [%r3];"
    " mul.wide.u32 %d1, %r0, 4; add.s64 %d1, %d1, %d0; st.global.u32 [%d1], %r4;"
)
BARRIERS = {
    "cta": "bar.sync 0;",
    "cluster": "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
}


@pytest.mark.parametrize("barrier", BARRIERS)
def test_a_barrier_waits_for_a_warp_that_ends(barrier: str) -> None:
    body = EXIT.replace("BARRIER", BARRIERS[barrier])
    assert found(threads(body)) == [("warning", "exit-before-barrier")]
    assert found(threads(body, "isa")) == [("error", "exit-before-barrier")]
    stays = body.replace(" ret; A:", " A:")
    assert stays != body and ("warning", "exit-before-barrier") not in found(threads(stays))
    assert ("error", "race") in found(threads(EXIT.replace("BARRIER", "")))


def test_a_deadlock_says_who_completed_the_use_before() -> None:
    """A warp that arrives twice ahead completes the barrier alone."""
    body = "@!%p0 bra A; bar.arrive 1, 64; bar.arrive 1, 64; bra B; A: bar.sync 1, 64; B:"
    (error,) = threads(body).errors
    assert "use 2; use 1 was complete with warp 0 at line" in str(error)


# --- tickets -------------------------------------------------------------------------------------

TICKET = """
.visible .entry k(.param .u64 parts, .param .u64 count, .param .u64 out)
{
  .reg .pred %p<4>; .reg .b32 %r<6>; .reg .b64 %d<8>; .shared .align 4 .b32 ticket;
  ld.param.u64 %d0, [parts]; ld.param.u64 %d1, [count]; ld.param.u64 %d2, [out];
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mul.wide.u32 %d3, %r1, 4; add.s64 %d4, %d0, %d3;
  setp.ne.u32 %p0, %r0, 0; @!%p0 st.global.u32 [%d4], %r1;
  WRITER
  @%p0 bra MEET;
  ATOMIC
  st.shared.u32 [ticket], %r2;
MEET: bar.sync 0; ld.shared.u32 %r3, [ticket]; setp.ne.u32 %p1, %r3, 3; @%p1 bra DONE;
  READER
  setp.gt.u32 %p2, %r0, 3; @%p2 bra DONE;
  mul.wide.u32 %d5, %r0, 4; add.s64 %d6, %d0, %d5; add.s64 %d7, %d2, %d5;
  ld.volatile.global.u32 %r4, [%d6]; st.global.u32 [%d7], %r4;
DONE: ret;
}
"""
ATOM = "atom.global.add.u32 %r2, [%d1], 1;"


def drawn(
    writer: str, atomic: str, reader: str, profile: str = "silicon", text: str = TICKET
) -> Any:
    text = HEADER + text.replace("WRITER", writer).replace("ATOMIC", atomic)
    args = [np.zeros(4, np.uint32), np.zeros(1, np.uint32), np.zeros(4, np.uint32)]
    text = text.replace("READER", reader)
    return run_ptx(text, grid=4, block=64, args=args, ordering=profile)


def test_the_last_one_reads_without_a_fence() -> None:
    """NVIDIA's sample threadFenceReduction; the text asks for the reader's fence."""
    fence = "membar.gl;"
    assert found(drawn(fence, ATOM, "")) == [("warning", "missing-reader-fence")]
    assert found(drawn(fence, ATOM, "", "isa")) == [("error", "missing-reader-fence")]
    assert found(drawn(fence, ATOM, fence, "isa")) == []
    assert found(drawn(fence, ATOM.replace("global", "acquire.gpu.global"), "", "isa")) == []
    assert found(drawn("", ATOM, "")) == [("error", "race")]
    for other in ("or.b32 %r2, [%d1], 0", "exch.b32 %r2, [%d1], 3"):
        locked = f"atom.relaxed.gpu.global.{other}; mov.u32 %r2, 3;"
        assert set(found(drawn(fence, locked, ""))) == {("error", "race")}


def test_the_last_one_reads_by_weak_loads() -> None:
    """What a cache kept is no newer for the ticket: that ships nowhere."""
    fence, weak = "membar.gl;", TICKET.replace("ld.volatile", "ld")
    assert found(drawn(fence, ATOM, "", text=weak)) == [("error", "race")]
    assert found(drawn(fence, ATOM, "fence.acq_rel.cta;", text=weak)) == [("error", "race")]
    assert found(drawn(fence, ATOM, fence, "isa", weak)) == []


# --- bulk stores ---------------------------------------------------------------------------------

STORES = """
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %d0; .shared .align 128 .b8 box[256];
  ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, box; and.b32 %r2, %r0, 31;
  shr.u32 %r3, %r0, 5; mad.lo.u32 %r4, %r3, 128, %r1; shl.b32 %r5, %r2, 2; add.u32 %r5, %r4, %r5;
  add.u32 %r2, %r2, 5; DIFFERENT
  st.shared.u32 [%r5], %r2; fence.proxy.async; bar.warp.sync -1;
  and.b32 %r6, %r0, 31; setp.eq.u32 %p0, %r6, 0; @!%p0 bra DONE;
  cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r4], 128;
  cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
DONE: ret;
}
"""


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_bulk_stores_of_the_same_bytes(seed: int | None) -> None:
    """Two warps, or two CTAs: the outcome is one in either order, also while one is in flight."""
    for grid, block in ((1, 64), (2, 32)):
        for different, kind in (
            ("", ("warning", "same-value-race")),
            ("add.u32 %r2, %r2, %r3;", ("error", "race")),
        ):
            by_cta = different.replace("%r3;", "%r7;") if grid == 2 and different else different
            text = STORES.replace("DIFFERENT", f"mov.u32 %r7, %ctaid.x; {by_cta}")
            args = [np.zeros(32, np.uint32)]
            report = run_ptx(HEADER + text, grid=grid, block=block, args=args, order_seed=seed)
            assert found(report) == [kind], str(report)


# --- st.async ------------------------------------------------------------------------------------

PUSH = """
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<2>; .reg .b32 %k;
  .shared .align 16 .b32 box[4]; .shared .align 8 .b64 full;
  ld.param.u64 %d0, [out]; mov.u32 %k, %cluster_ctarank; mov.u32 %r1, box; mov.u32 %r2, full;
  xor.b32 %r0, %k, 1; mapa.shared::cluster.u32 %r4, %r1, %r0;
  mapa.shared::cluster.u32 %r5, %r2, %r0;
  mbarrier.init.shared::cta.b64 [%r2], 1; st.shared.u32 [%r1], 3;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 4;
  barrier.cluster.arrive; barrier.cluster.wait;
  mov.u32 %r3, 5;
  PUSH
  WAIT
  ld.shared.u32 %r6, [%r1]; mul.wide.u32 %d1, %k, 4; add.s64 %d1, %d1, %d0;
  st.global.u32 [%d1], %r6;
  ret;
}
"""
PUSHES = {
    "st": "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], %r3, [%r5];",
    "red": "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 "
    "[%r4], %r3, [%r5];",
}
AWAITS = "W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0; @!%p2 bra W;"


def pushed(push: str, wait: str, **options: Any) -> Any:
    text = HEADER + PUSH.replace("PUSH", push).replace("WAIT", wait)
    return run_ptx(text, grid=2, cluster=2, block=1, args=[np.zeros(2, np.uint32)], **options)


@pytest.mark.parametrize("push", PUSHES)
def test_a_cta_that_waited_for_the_bytes_may_end(push: str) -> None:
    for profile in PROFILES:
        for seed in (None, 1, 2):
            options = {"ordering": profile, "order_seed": seed}
            assert found(pushed(PUSHES[push], AWAITS, **options)) == []
    barrier = "barrier.cluster.arrive; barrier.cluster.wait;"
    report = pushed(PUSHES[push], barrier)
    assert ("error", "race") in found(report) and ("error", "peer-exited") in found(report)
    assert f"a wait on the mbarrier that the {push}.async signals" in str(report)
    assert "mbarrier at full " in str(report)


# --- texts ---------------------------------------------------------------------------------------


def test_an_arrival_ahead_of_the_bytes_is_named() -> None:
    early = "mbarrier.arrive.shared::cta.b64 _, [full];"
    report = copied("bar.sync", EARLY=early, BEFORE=USE, READER=FENCE)
    text = str(report)
    assert "phase 0 of the mbarrier at full ended without bytes, by line" in text and early in text


def test_a_foreign_mbarrier_is_named_with_its_cta() -> None:
    push = PUSHES["st"].replace("[%r5]", "[%r2]")
    (error,) = pushed(push, AWAITS).errors
    named = r"\(box of the CTA of rank (0|1)\), got full of the CTA of rank (?!\1)"
    assert re.search(named, str(error)), str(error)


def test_who_names_which_member_mask() -> None:
    odd = "and.b32 %r2, %r0, 1; setp.eq.u32 %p1, %r2, 0; selp.b32 %r4, -1, 0x7fffffff, %p1;"
    (error,) = threads(f"{odd} bar.warp.sync %r4;", block=32).errors
    assert "0xffffffff by lanes 0, 2, 4" in str(error) and "0x7fffffff by lanes 1, 3" in str(error)
    assert "lane 31 not in the mask" in str(error)


# --- polling -------------------------------------------------------------------------------------

POLL = """
.visible .entry k(.param .u64 in, .param .u64 flag)
{
  .reg .pred %p<4>; .reg .b32 %r<3>; .reg .b64 %d<2>;
  .shared .align 128 .b8 box[128]; .shared .align 8 .b64 full;
  ld.param.u64 %d0, [in]; ld.param.u64 %d1, [flag]; mov.u32 %r0, %tid.x; setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [full], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
  setp.lt.u32 %p1, %r0, 32; @!%p1 bra POLL;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [box], [%d0], 128, [full];
W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0; @!%p2 bra W;
  @%p0 st.release.gpu.global.u32 [%d1], 1;
  bra DONE;
POLL: ld.volatile.global.u32 %r1, [%d1]; fence.acq_rel.gpu; setp.eq.u32 %p3, %r1, 0; @%p3 bra POLL;
DONE: ret;
}
"""


@pytest.mark.parametrize("seed", [None, 1, 3])
def test_a_loop_that_polls_with_a_fence_is_polling(seed: int | None) -> None:
    """In a late order it would hold the copy back until its instructions were spent."""
    args = [np.zeros(32, np.uint32), np.zeros(1, np.uint32)]
    report = run_ptx(
        HEADER + POLL, grid=1, block=64, args=args, order_seed=seed, max_instructions=2_000
    )
    assert report.ok and not report.findings, str(report)
