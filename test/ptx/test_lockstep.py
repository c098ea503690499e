"""Lockstep over CTAs: the same results, findings and counters as without, or the machine itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcir.interp.ptx.lockstep.launch as lockstep
from tcir.interp.ptx.lockstep.abandoned import LockstepDivergence
from tcir.interp.ptx.lockstep.ledger import Ledger, LedgerStore, perform
from tcir.interp.ptx.lockstep.native import lowering
from tcir.machine.memory.memories import GlobalMemory
from tcir.machine.order.clocks import Access
from tcir.machine.order.shadow import LastShadow
from tcir.run import RunReport, Uninitialized, run_ptx

from .conftest import HEADER
from .scalar import take_for


@pytest.fixture(autouse=True, params=["compiled", "numpy"])
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How groups replay a trace."""
    monkeypatch.setattr(lockstep, "COMPILED", request.param == "compiled")
    return str(request.param)


START = """
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)
{
 .reg .pred %p<8>; .reg .b32 %r<20>; .reg .b64 %rd<12>; .reg .f32 %f<8>;
 .shared .align 16 .b8 tile[512];
 ld.param.b64 %rd1, [x]; ld.param.b64 %rd2, [y]; ld.param.b32 %r1, [n];
 mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mov.u32 %r4, %ntid.x;
 mad.lo.s32 %r5, %r2, %r4, %r3;
 mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
"""

#: Body, and how many of the 12 CTAs follow a leader.
BODIES: dict[str, tuple[str, int]] = {
    "copy": ("ld.global.b32 %r6, [%rd4]; st.global.b32 [%rd5], %r6;", 11),
    "in place": ("ld.global.f32 %f1, [%rd5]; fma.rn.f32 %f1, %f1, %f1, %f1; "
                 "st.global.f32 [%rd5], %f1;", 11),
    "same address": ("ld.global.b32 %r6, [%rd1]; add.u32 %r6, %r6, %r5; "
                     "st.global.b32 [%rd5], %r6;", 11),
    "tail predicate": ("setp.lt.u32 %p1, %r5, %r1; @%p1 ld.global.b32 %r6, [%rd4]; "
                       "@%p1 add.u32 %r6, %r6, 1; @%p1 st.global.b32 [%rd5], %r6;", 9),
    "tail branch": ("setp.ge.u32 %p1, %r5, %r1; @%p1 bra END; ld.global.b32 %r6, [%rd4]; "
                    "st.global.b32 [%rd5], %r6; END:", 9),
    "select": ("setp.lt.u32 %p1, %r5, %r1; ld.global.b32 %r6, [%rd4]; not.pred %p2, %p1; "
               "selp.b32 %r7, %r6, 7, %p1; selp.b32 %r8, %r5, %r7, !%p2; "
               "and.pred %p3, %p1, !%p2; @%p3 add.u32 %r7, %r7, %r8; "
               "st.global.b32 [%rd5], %r7;", 11),
    "shared memory": ("ld.global.b32 %r6, [%rd4]; mov.u32 %r7, tile; shl.b32 %r8, %r3, 2; "
                      "add.u32 %r7, %r7, %r8; st.shared.b32 [%r7], %r6; bar.sync 0; "
                      "xor.b32 %r8, %r8, 124; mov.u32 %r9, tile; add.u32 %r9, %r9, %r8; "
                      "ld.shared.b32 %r10, [%r9]; st.global.b32 [%rd5], %r10;", 11),
    "loop": ("mov.u32 %r6, 0; mov.u32 %r7, 0; L: add.u32 %r6, %r6, %r5; add.u32 %r7, %r7, 1; "
             "setp.lt.u32 %p1, %r7, 5; @%p1 bra L; st.global.b32 [%rd5], %r6;", 11),
    "data-dependent branch": ("ld.global.b32 %r6, [%rd4]; setp.gt.s32 %p1, %r6, 40; "
                              "@%p1 add.u32 %r6, %r6, 5; setp.lt.s32 %p2, %r6, 3; "
                              "@%p2 bra END; st.global.b32 [%rd5], %r6; END:", -1),
    "votes": ("ld.global.b32 %r6, [%rd4]; setp.gt.s32 %p1, %r6, 40; "
              "vote.sync.all.pred %p2, !%p1, -1; "
              "vote.sync.ballot.b32 %r7, %p1, -1; selp.b32 %r8, 7, 9, %p2; add.u32 %r7, %r7, %r8; "
              "st.global.b32 [%rd5], %r7;", 11),
    "votes of lanes that come apart": (
        "ld.global.b32 %r6, [%rd4]; setp.ne.u32 %p3, %r3, 0; mov.u32 %r7, 0; mov.u32 %r9, 0; "
        "mov.u32 %r10, tile; bra.uni V; W: add.u32 %r7, %r7, 1; V: setp.gt.u32 %p1, %r7, 3; "
        "@%p1 bra DONE; shl.b32 %r11, %r7, 4; setp.gt.s32 %p2, %r6, %r11; "
        "vote.sync.ballot.b32 %r8, %p2, -1; xor.b32 %r9, %r9, %r8; @%p3 bra W; "
        "st.shared.b32 [%r10], %r8; bra.uni W; DONE: bar.sync 0; ld.shared.b32 %r11, [%r10]; "
        "add.u32 %r9, %r9, %r11; st.global.b32 [%rd5], %r9;", 11),
    "lanes that know different things": (
        "mov.u32 %r7, tile; setp.ne.u32 %p3, %r3, 0; "
        "@!%p3 mbarrier.init.shared.b64 [%r7+256], 1; ld.global.b32 %r6, [%rd4]; "
        "shl.b32 %r8, %r3, 2; add.u32 %r9, %r7, %r8; st.shared.b32 [%r9], %r6; bar.sync 0; "
        "@%p3 bra L; mbarrier.arrive.shared.b64 %rd6, [%r7+256]; "
        "T: mbarrier.test_wait.shared.b64 %p1, [%r7+256], %rd6; @!%p1 bra T; "
        "L: xor.b32 %r8, %r8, 124; add.u32 %r9, %r7, %r8; ld.shared.b32 %r10, [%r9]; "
        "st.global.b32 [%rd5], %r10;", 11),
    "unpack": ("ld.global.b32 %r6, [%rd4]; mov.b64 %rd6, {%r6, %r5}; mov.b64 {%r7, %r8}, %rd6; "
               "xor.b32 %r7, %r7, %r8; st.global.b32 [%rd5], %r7;", 11),
    "nothing that varies": ("mov.u32 %r7, tile; st.shared.b32 [%r7], 5; bar.sync 0; "
                            "ld.shared.b32 %r6, [%r7];", 11),
    "no rule": ("ld.global.b32 %r6, [%rd4]; atom.global.add.u32 %r7, [%rd2], %r6;", 0),
    "cross-CTA race": ("ld.global.b32 %r6, [%rd4]; st.global.b32 [%rd5], %r6; "
                       "st.global.b32 [%rd5+128], %r6;", 0),
    "reads what others write": ("ld.global.b32 %r6, [%rd5+128]; st.global.b32 [%rd5], %r6;", 0),
    "reads its own writes": ("st.global.b32 [%rd5], %r5; ld.global.b32 %r6, [%rd5]; "
                             "add.u32 %r6, %r6, 1; st.global.b32 [%rd5], %r6;", 0),
    "out of bounds": ("mul.wide.u32 %rd6, %r5, 8; add.s64 %rd6, %rd6, %rd2; "
                      "st.global.b32 [%rd6], %r5;", 0),
    "stores beyond shared memory": (
        "shl.b32 %r8, %r3, 2; add.u32 %r8, %r8, 300000; st.shared.b32 [%r8], %r5; "
        "st.global.b32 [%rd5], %r5;", 0),
    "copies beyond shared memory": (
        "shl.b32 %r8, %r3, 2; add.u32 %r8, %r8, 300000; "
        "cp.async.ca.shared.global [%r8], [%rd4], 4; cp.async.wait_all; "
        "st.global.b32 [%rd5], %r5;", 0),
    "undefined": ("setp.lt.u32 %p1, %r2, 6; @%p1 mov.u32 %r6, 1; st.global.b32 [%rd5], %r6;", -1),
    "half of a word undefined": (
        "{ .reg .b16 %s<3>; ld.global.b16 %s1, [%rd4]; mov.b32 %r7, {%s1, %s2}; mov.b32 %r6, %r7; "
        "prmt.b32 %r8, %r6, 0, 0x4401; shl.b32 %r9, %r6, 16; shr.u32 %r9, %r9, 20; "
        "cvt.u32.u16 %r10, %r6; add.u32 %r8, %r8, %r9; add.u32 %r8, %r8, %r10; "
        "st.global.b32 [%rd5], %r8; }", 11),
    "the defined half stored": (
        "{ .reg .b16 %s<3>; ld.global.b16 %s1, [%rd4]; mov.b32 %r7, {%s1, %s2}; "
        "st.global.b16 [%rd5], %r7; }", 11),
    "the undefined half stored": (
        "{ .reg .b16 %s<3>; ld.global.b16 %s1, [%rd4]; mov.b32 %r7, {%s1, %s2}; "
        "st.global.b32 [%rd5], %r7; }", 0),
    "the undefined half selected by data": (
        "{ .reg .b16 %s<3>; ld.global.b16 %s1, [%rd4]; mov.b32 %r7, {%s1, %s2}; "
        "ld.global.b32 %r6, [%rd4]; and.b32 %r6, %r6, 0x1111; prmt.b32 %r8, %r7, 0, %r6; "
        "st.global.b32 [%rd5], %r8; }", 0),
    "the undefined half under a guard": (
        "{ .reg .b16 %s<3>; ld.global.b16 %s1, [%rd4]; setp.lt.u32 %p1, %r5, %r1; "
        "@%p1 mov.b32 %r7, {%s1, %s2}; @%p1 st.global.b16 [%rd5], %r7; }", 0),
}  # fmt: skip


def run(body: str, *, together: bool, hazards: str = "report", **options: Any) -> tuple[Any, ...]:
    x = np.arange(1000, dtype=np.int32) % 97
    y = (np.arange(32 * 13, dtype=np.int32) % 5).astype(np.int32)
    text = HEADER + START + body.replace("%h1, %h2", "%r6, %r7") + "\n ret;\n}\n"
    report = run_ptx(
        text, grid=12, block=32, args=(x, y, np.uint32(330)), lockstep=together, hazards=hazards,
        **options,
    )  # fmt: skip
    return report, x, y


def check_alike(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    """Of two runs: the arrays, and all that the report says."""
    a, b = first[0], second[0]
    for left, right in zip(first[1:], second[1:], strict=True):
        np.testing.assert_array_equal(left, right)
    assert a.findings == b.findings
    assert [str(e) for e in a.errors] == [str(e) for e in b.errors]
    assert a.counters == b.counters
    assert a.instructions == b.instructions
    assert a.output == b.output
    assert [str(i) for i in a.incomplete] == [str(i) for i in b.incomplete]


def followed(report: RunReport) -> int:
    """CTAs in lockstep with the first one; of several processes, each has a first one (`jobs`)."""
    return report.lockstep and report.lockstep + report.processes - 1


@pytest.mark.parametrize("hazards", ["report", "off"])
@pytest.mark.parametrize("name", BODIES)
def test_the_same_as_without(name: str, hazards: str) -> None:
    body, followers = BODIES[name]
    without, together = (run(body, together=t, hazards=hazards) for t in (False, True))
    check_alike(without, together)
    assert without[0].lockstep == 0
    if followers >= 0:
        assert followed(together[0]) == followers


def test_a_tail_stays_where_the_register_has_a_value() -> None:
    body = "mov.u32 %r6, 0; " + BODIES["tail predicate"][0]
    without, together = (run(body, together=t) for t in (False, True))
    check_alike(without, together)
    assert followed(together[0]) == 11


def test_what_a_follower_counts_beyond_the_leader() -> None:
    """Fewer bytes stored by the last CTAs, fewer products of lanes."""
    body = (
        "mov.u32 %r6, 0; setp.lt.u32 %p1, %r5, %r1; @%p1 ld.global.b32 %r6, [%rd4]; "
        "cvt.rn.f32.u32 %f1, %r6; @%p1 fma.rn.f32 %f1, %f1, %f1, %f1; @%p1 st.global.f32 [%rd5], "
        "%f1;"
    )
    without, together = (run(body, together=t) for t in (False, True))
    check_alike(without, together)
    assert followed(together[0]) == 11
    assert together[0].counters["global_store"] == 4 * 330
    assert together[0].counters["simt_products"] == 330


def test_more_than_one_group() -> None:
    text = HEADER + START + BODIES["copy"][0] + "\n ret;\n}\n"
    for hazards in ("report", "off"):
        found = []
        for together in (False, True):
            x, y = np.arange(32 * 100, dtype=np.int32), np.zeros(32 * 100, np.int32)
            report = run_ptx(
                text,
                grid=(10, 10),
                block=32,
                args=(x, Uninitialized(y), np.uint32(0)),
                lockstep=together,
                hazards=hazards,
            )
            found.append((report, x, y))
        check_alike(*found)


def test_each_column_of_the_grid_is_a_class_of_its_own() -> None:
    """As with tiles of a picture of which some lie at its edge: one leader for each class."""
    body = (
        "mov.u32 %r7, %ctaid.y; mad.lo.u32 %r5, %r7, 224, %r5; mul.wide.u32 %rd3, %r5, 4; "
        "add.s64 %rd5, %rd2, %rd3; mov.u32 %r6, 0; "
        "L: add.u32 %r6, %r6, 1; setp.le.u32 %p1, %r6, %r2; @%p1 bra L; st.global.b32 [%rd5], %r6;"
    )
    found = []
    for together in (False, True):
        y = np.zeros(32 * 7 * 16, np.int32)
        args = (np.zeros(4), y, np.uint32(0))
        text = HEADER + START + body + "\n ret;\n}\n"
        report = run_ptx(text, grid=(7, 16), block=32, args=args, lockstep=together)
        found.append((report, y))
    check_alike(*found)
    assert found[1][0].lockstep == 7 * 15


@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("name", BODIES)
def test_the_same_under_a_seed(name: str, seed: int) -> None:
    body, followers = BODIES[name]
    without, together = (run(body, together=t, order_seed=seed) for t in (False, True))
    check_alike(without, together)
    if followers >= 0:
        assert followed(together[0]) == followers


@pytest.mark.parametrize("name", BODIES)
def test_the_same_under_seeds_after_a_run_in_order(name: str) -> None:
    """One CTA of a class runs, the others store what they did before."""
    body, followers = BODIES[name]
    known: dict[bytes, Any] = {}
    for seed in (None, 1, 2, 3):
        without = run(body, together=False, order_seed=seed)
        together = run(body, together=True, order_seed=seed, repeats=known)
        check_alike(without, together)
        if followers >= 0:
            assert followed(together[0]) == followers
    assert len(known) == (name != "data-dependent branch"), "its first leaders are alone"


def test_one_cta_in_sixteen_runs_under_a_seed() -> None:
    text = HEADER + START + BODIES["copy"][0] + "\n ret;\n}\n"
    known: dict[bytes, Any] = {}
    for seed, count in ((None, 99), (1, 93), (2, 93)):
        x, y = np.arange(32 * 100, dtype=np.int32), np.zeros(32 * 100, np.int32)
        args = (x, Uninitialized(y), np.uint32(0))
        report = run_ptx(text, grid=100, block=32, args=args, order_seed=seed, repeats=known)
        assert report.ok and report.lockstep == count
        np.testing.assert_array_equal(y, x)


def test_other_data_is_another_launch() -> None:
    known: dict[bytes, Any] = {}
    text = HEADER + START + BODIES["copy"][0] + "\n ret;\n}\n"
    for seed, start in ((None, 0), (1, 0), (1, 5), (2, 5)):
        x, y = np.arange(start, start + 32 * 12, dtype=np.int32), np.zeros(32 * 12, np.int32)
        report = run_ptx(
            text, grid=12, block=32, args=(x, y, np.uint32(0)), order_seed=seed, repeats=known
        )
        assert report.ok and report.lockstep == 11
        np.testing.assert_array_equal(y, x)
    assert len(known) == 2


def test_without_hazards_a_seed_runs_every_cta_on_its_own() -> None:
    """An operation that completes late may change a result, and nobody would say so."""
    report = run(BODIES["copy"][0], together=True, hazards="off", order_seed=1)[0]
    assert report.ok and report.lockstep == 0


def test_what_followers_write_is_defined_and_has_their_names() -> None:
    memory = GlobalMemory()
    memory.bind(np.zeros(16, np.uint32), initialized=False)
    (buffer,) = memory.buffers
    buffer.shadow = LastShadow(17, "global memory")
    buffer.shadow.readers[...] = 3
    ctas = [(0, 0, 0), (4, 0, 0), (6, 0, 0)]
    at, row, data = np.array([0, 40, 16]), np.arange(3), np.arange(1, 25, dtype=np.uint8)
    access = Access(((0, 0, 0), "warp 0"), 1, "generic", "line 7")
    store = LedgerStore(0, at, data.reshape(3, 8), row, row, access)
    perform(buffer, store, np.array([False, True, True]), ctas)
    want = np.zeros(64, np.uint8)
    want[40:48], want[16:24] = np.arange(9, 17), np.arange(17, 25)
    np.testing.assert_array_equal(buffer.data, want)
    np.testing.assert_array_equal(buffer.defined, want != 0)
    np.testing.assert_array_equal(buffer.shadow.readers[:16] == 0, want[::4] != 0)
    for granule, cta in ((10, 4), (11, 4), (4, 6), (5, 6)):
        (found,) = buffer.shadow.writers_at(slice(granule, granule + 1))
        assert found.cta == (cta, 0, 0) and found.site == "line 7"
    assert np.count_nonzero(buffer.shadow.writer) == 4


def test_budget_is_spent_by_followers_too() -> None:
    text = HEADER + START + BODIES["copy"][0] + "\n ret;\n}\n"
    texts = []
    for together in (False, True):
        x, y = np.arange(32 * 12, dtype=np.int32), np.zeros(32 * 12, np.int32)
        report = run_ptx(
            text,
            grid=12,
            block=32,
            args=(x, y, np.uint32(0)),
            max_instructions=100,
            lockstep=together,
        )
        texts.append((str(report.errors[0]), report.instructions, y.tolist()))
    assert texts[0] == texts[1]


def test_a_race_after_a_group_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CTA that leaves writes where a follower did: all is run again, as without."""
    body = (
        "mov.u64 %rd6, %rd5; setp.eq.u32 %p1, %r2, 7; @!%p1 bra ST; "
        "sub.u64 %rd6, %rd6, 128; ST: st.global.b32 [%rd6], %r5;"
    )
    abandoned: list[bool] = []
    stop = lockstep.Lockstep._stop

    def noted(self: Any, why: str) -> None:
        abandoned.append(self.committed)
        stop(self, why)

    monkeypatch.setattr(lockstep.Lockstep, "_stop", noted)
    for hazards in ("report", "off"):
        without, together = (run(body, together=t, hazards=hazards) for t in (False, True))
        check_alike(without, together)
        assert (hazards == "off") == (not without[0].findings)
    assert abandoned == [True, True]


FAULTS: dict[str, tuple[str, str]] = {
    "out of bounds": ("@%p1 add.s64 %rd5, %rd5, 4096; st.global.b32 [%rd5], %r5;", "out-of-bounds"),
    "misaligned": ("@%p1 add.s64 %rd4, %rd4, 2; ld.global.b32 %r6, [%rd4]; "
                   "st.global.b32 [%rd5], %r6;", "misaligned-address"),
    "undefined register": ("@!%p1 mov.u32 %r6, 3; st.global.b32 [%rd5], %r6;",
                           "undefined-register"),
    "two CTAs write one place": ("@%p1 xor.b64 %rd5, %rd5, 256; st.global.b32 [%rd5], %r5;",
                                 "race"),
    "reads what another CTA writes": ("mov.u64 %rd6, %rd4; @%p1 xor.b64 %rd6, %rd5, 256; "
                                      "ld.global.b32 %r6, [%rd6]; st.global.b32 [%rd5], %r6;",
                                      "race"),
    "missing barrier": ("mov.u32 %r7, tile; shl.b32 %r8, %r3, 2; add.u32 %r8, %r7, %r8; "
                        "st.shared.b32 [%r8], %r5; @%p1 bra SKIP; bar.sync 0; SKIP: "
                        "xor.b32 %r9, %r3, 32; shl.b32 %r9, %r9, 2; add.u32 %r9, %r7, %r9; "
                        "ld.shared.b32 %r6, [%r9]; st.global.b32 [%rd5], %r6;", "race"),
    "division by zero": ("selp.u32 %r7, 0, 5, %p1; div.u32 %r6, %r5, %r7; "
                         "st.global.b32 [%rd5], %r6;", "division-by-zero"),
    "deadlock": ("@%p1 bar.sync 1, 128; st.global.b32 [%rd5], %r5;", "deadlock"),
    "other address in shared memory": (
        "mov.u32 %r7, tile; shl.b32 %r8, %r3, 2; add.u32 %r8, %r7, %r8; @%p1 mov.u32 %r8, %r7; "
        "st.shared.b32 [%r8], %r5; bar.sync 0; ld.shared.b32 %r6, [%r7+8]; "
        "st.global.b32 [%rd5], %r6;", "race"),
}  # fmt: skip
"""What CTA n does wrong and no other one (%p1), and what the machine calls it."""


@pytest.mark.parametrize("name", ["tail predicate", "shared memory", "data-dependent branch"])
@pytest.mark.parametrize("memory", [0, 1 << 26])
def test_the_groups_that_follow_the_first_one(
    name: str, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are as wide as there is memory; what their CTAs count and store is the same."""
    monkeypatch.setattr(lockstep, "TOGETHER", 2)
    monkeypatch.setattr(lockstep, "MEMORY", memory)
    replay, widths = lockstep.Lockstep._replay, []

    def noted(self: Any, recorder: Any, ctas: Any) -> Any:
        widths.append(len(ctas) - 1)
        return replay(self, recorder, ctas)

    monkeypatch.setattr(lockstep.Lockstep, "_replay", noted)
    body = "mov.u32 %r6, 0; " + BODIES[name][0]
    without, together = (run(body, together=t) for t in (False, True))
    check_alike(without, together)
    if name != "data-dependent branch":
        assert widths == ([2, 9] if memory else [2, 2, 2, 2, 2, 1])


def test_a_leader_is_not_followed_by_those_that_left_another_one_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Loops of 6, 6, 4 and 2 rounds in turn: where a CTA leaves the first leader tells it."""
    monkeypatch.setattr(lockstep, "COMPILED", False, raising=False)
    replay, tried = lockstep.Lockstep._replay, []

    def noted(self: Any, recorder: Any, ctas: Any) -> Any:
        tried.append([x for x, _, _ in ctas])
        return replay(self, recorder, ctas)

    monkeypatch.setattr(lockstep.Lockstep, "_replay", noted)
    body = (
        "and.b32 %r6, %r2, 3; max.u32 %r6, %r6, 1; shl.b32 %r6, %r6, 1; sub.u32 %r6, 8, %r6; "
        "mov.u32 %r7, 0; L: add.u32 %r7, %r7, %r5; sub.u32 %r6, %r6, 1; "
        "setp.ne.u32 %p1, %r6, 0; @%p1 bra L; st.global.b32 [%rd5], %r7;"
    )
    without, together = (run(body, together=t) for t in (False, True))
    check_alike(without, together)
    assert tried == [list(range(12)), [2, 6, 10], [3, 7, 11]]
    assert together[0].lockstep == 9


def run_faulty(body: str, culprit: str, **options: Any) -> tuple[Any, ...]:
    x = np.arange(1000, dtype=np.int32)
    x[64 * 9 : 64 * 10] = -1
    y = np.zeros(64 * 12, np.int32)
    text = HEADER + START + culprit + body + "\n ret;\n}\n"
    report = run_ptx(text, grid=12, block=64, args=(x, y, np.uint32(0)), **options)
    return report, x, y


@pytest.mark.parametrize("culprit", ["0", "7", "data", "1", "11"])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_one_cta_does_wrong_is_found(fault: str, culprit: str) -> None:
    body, code = FAULTS[fault]
    if culprit == "data":  # that of the CTA whose elements are negative
        picked = "ld.global.b32 %r10, [%rd4]; setp.lt.s32 %p1, %r10, 0; "
    else:
        picked = f"setp.eq.u32 %p1, %r2, {culprit}; "
    known: dict[bytes, Any] = {}
    for seed in (None, 1, 2):
        without = run_faulty(body, picked, order_seed=seed, lockstep=False)
        together = run_faulty(body, picked, order_seed=seed, repeats=known)
        check_alike(without, together)
        report = together[0]
        assert code in {one.code for one in (*report.findings, *report.errors)}, str(report)


@pytest.mark.parametrize("culprit", ["7", "11"])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_in_a_later_group_is_found(
    fault: str, culprit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After others have stored."""
    monkeypatch.setattr(lockstep, "TOGETHER", 2)
    body, code = FAULTS[fault]
    picked = f"setp.eq.u32 %p1, %r2, {culprit}; "
    without = run_faulty(body, picked, lockstep=False)
    together = run_faulty(body, picked)
    check_alike(without, together)
    report = together[0]
    assert code in {one.code for one in (*report.findings, *report.errors)}, str(report)


Break = Callable[[pytest.MonkeyPatch], None]


def _wrong_sum(patch: pytest.MonkeyPatch) -> None:
    from tcir.interp.ptx.lockstep.steps import Computing

    run_right = Computing.run

    def run(self: Any, group: Any) -> None:
        run_right(self, group)
        for slot, _ in self.compute.results:
            row = group.registers[self.active.warp][slot]
            group.registers[self.active.warp][slot] = row ^ row.dtype.type(1)

    patch.setattr(Computing, "run", run)
    take_for(patch, np.add, np.subtract)


def _lost_store(patch: pytest.MonkeyPatch) -> None:
    from tcir.interp.ptx.lockstep.memory_steps import SharedStore

    patch.setattr(SharedStore, "run", lambda self, group: None)
    patch.setattr(lowering.NativeLowering, "_shared_store", lambda self, step: None)


@pytest.mark.parametrize("plant", [_wrong_sum, _lost_store])
def test_a_mistake_in_a_rule_is_seen_and_changes_nothing(
    plant: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader's row of the group is compared with what the leader did."""
    body = BODIES["shared memory"][0]
    without = run(body, together=False)
    plant(monkeypatch)
    with pytest.raises(LockstepDivergence):  # the tests make an error of the warning
        run(body, together=True)
    with pytest.warns(LockstepDivergence, match="lockstep is given up"):
        check_alike(without, run(body, together=True))


def _no_such_register(patch: pytest.MonkeyPatch) -> None:
    from tcir.interp.ptx.lockstep.memory_steps import GlobalStore

    def wrong(*of: Any) -> None:
        raise KeyError("no such register")

    patch.setattr(GlobalStore, "run", wrong)
    patch.setattr(lowering.NativeLowering, "_global_store", wrong)


def _no_such_place(patch: pytest.MonkeyPatch) -> None:
    def wrong(*of: Any) -> None:
        raise IndexError("no such place")

    patch.setattr(Ledger, "note", wrong)


@pytest.mark.parametrize("plant", [_no_such_register, _no_such_place])
def test_an_exception_that_nobody_expects_is_seen_and_changes_nothing(
    plant: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = BODIES["copy"][0]
    without = run(body, together=False)
    plant(monkeypatch)
    with pytest.raises(LockstepDivergence, match=r"Error: .*no such"):
        run(body, together=True)
    with pytest.warns(LockstepDivergence, match="lockstep is given up"):
        check_alike(without, run(body, together=True))


def test_without_memory_for_a_group_each_cta_runs_on_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(*of: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(lockstep, "LockstepGroup", wrong)
    without, together = (run(BODIES["copy"][0], together=t) for t in (False, True))
    check_alike(without, together)
    assert together[0].lockstep == 0


def test_many_lanes_compute_as_few_do(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an op computes of all CTAs at once is what it computes of each."""
    if how == "compiled":
        check_alike(run(MANY, together=False), run(MANY, together=True))
        return
    from tcir.interp.ptx.lockstep.steps import Computing

    run_right, seen = Computing.run, []

    def both(self: Any, group: Any) -> None:
        pairs = list(zip(self.operands, self.compute.sources, strict=True))
        values = [group.value(self.active.warp, o, view) for o, (_, view) in pairs]
        values = [~v if n in self.compute.flips else v for n, v in enumerate(values)]
        whole = self.compute.fn(*values)
        whole = whole if isinstance(whole, tuple) else (whole,)
        for cta in range(group.count):
            own = self.compute.fn(*(v[32 * cta : 32 * cta + 32] for v in values))
            own = own if isinstance(own, tuple) else (own,)
            for a, b in zip(whole, own, strict=True):
                np.testing.assert_array_equal(np.asarray(a)[32 * cta : 32 * cta + 32], b)
        seen.append(self)
        run_right(self, group)

    monkeypatch.setattr(Computing, "run", both)
    for body in (*(text for text, count in BODIES.values() if count > 0), MANY):
        check_alike(run(body, together=False), run(body, together=True))
    assert len(seen) > 100


MANY = """
 ld.global.b32 %r6, [%rd4]; mul.lo.u32 %r6, %r6, 2654435761; xor.b32 %r7, %r6, %r5;
 brev.b32 %r8, %r7; popc.b32 %r9, %r7; clz.b32 %r10, %r7; bfind.u32 %r11, %r7;
 prmt.b32 %r12, %r6, %r7, 0x3564; dp4a.u32.u32 %r13, %r6, %r7, %r8; bfe.u32 %r14, %r6, 3, 9;
 bfi.b32 %r15, %r6, %r7, 4, 11; shf.l.wrap.b32 %r16, %r6, %r7, %r3;
 lop3.b32 %r17, %r6, %r7, %r8, 0x96;
 shfl.sync.bfly.b32 %r18|%p1, %r6, 5, 31, -1; @%p1 add.u32 %r18, %r18, 1;
 redux.sync.add.u32 %r19, %r6, -1; mul.hi.u32 %r6, %r6, %r7; mad.lo.u32 %r6, %r6, %r8, %r9;
 div.u32 %r7, %r7, 77; rem.u32 %r8, %r8, 31; min.s32 %r9, %r9, %r10; abs.s32 %r10, %r6;
 cvt.rn.f32.s32 %f1, %r6; cvt.rn.f32.u32 %f2, %r7; div.rn.f32 %f3, %f1, %f2; sqrt.rn.f32 %f4, %f2;
 ex2.approx.f32 %f5, %f4; setp.lt.f32 %p2, %f3, %f4; setp.gt.and.u32 %p3, %r6, %r7, %p2;
 selp.f32 %f6, %f3, %f4, %p3; mov.b32 %r4, %f6; cvt.rzi.s32.f32 %r2, %f4;
 xor.b32 %r6, %r6, %r11; xor.b32 %r6, %r6, %r12; xor.b32 %r6, %r6, %r13; xor.b32 %r6, %r6, %r14;
 xor.b32 %r6, %r6, %r15; xor.b32 %r6, %r6, %r16; xor.b32 %r6, %r6, %r17; xor.b32 %r6, %r6, %r18;
 xor.b32 %r6, %r6, %r19; xor.b32 %r6, %r6, %r4; xor.b32 %r6, %r6, %r2; st.global.b32 [%rd5], %r6;
"""
