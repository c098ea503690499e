"""What depends on when threads run: updates that are not atomic, who comes first, waits that ask
once, peers that have not started, barriers of two groups, and a second launch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir
from tcir.run import LaunchError, RunReport, Uninitialized, run_ptx

from .conftest import HEADER

SEEDS = (None, *range(6))


def report_of(text: str, args: list[Any], **launch: Any) -> RunReport:
    return run_ptx(HEADER + text, args=args, **({"grid": 1, "block": 32} | launch))


def codes(report: RunReport) -> set[tuple[str, str]]:
    assert not report.incomplete and not report.errors, str(report)
    return {(f.severity, f.code) for f in report.findings}


# --- updates, and who comes first ----------------------------------------------------------------

WORDS = """
.visible .entry k(.param .u64 word, .param .u64 out)
{{
 .reg .pred %p<3>; .reg .b32 %r<7>; .reg .b64 %d<3>; .reg .b64 %w, %o; .reg .b32 %c;
 .shared .align 4 .b32 s;
 ld.param.u64 %w, [word]; ld.param.u64 %o, [out]; mov.u32 %c, %ctaid.x;
 mul.wide.u32 %d1, %c, 4; add.s64 %d1, %o, %d1;
 {}
DONE: ret;
}}
"""


def words(body: str, seed: int | None = None, **launch: Any) -> tuple[RunReport, list[int]]:
    """The report, the word, and what eight CTAs stored."""
    word, out = np.zeros(1, np.uint32), np.zeros(8, np.uint32)
    sizes = {"grid": 8, "block": 1} | launch
    report = report_of(WORDS.format(body), [word, out], order_seed=seed, **sizes)
    return report, [*word.tolist(), *out.tolist()]


UPDATE = "ld.{0} %r1, [{2}]; add.u32 %r2, %r1, 1; st.{1} [{2}], %r2;"
NOT_ATOMIC = {("error", "not-atomic")}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("load", "store"),
    [
        ("relaxed.gpu.global.u32", "relaxed.gpu.global.u32"),
        ("acquire.gpu.global.u32", "release.gpu.global.u32"),
        ("volatile.global.u32", "volatile.global.u32"),
    ],
)
def test_lost_updates(load: str, store: str, seed: int | None) -> None:
    assert codes(words(UPDATE.format(load, store, "%w"), seed)[0]) == NOT_ATOMIC
    report, found = words("atom.global.add.u32 %r1, [%w], 1;", seed)
    assert not codes(report) and found[0] == 8


@pytest.mark.parametrize("seed", SEEDS)
def test_lost_updates_in_shared_memory(seed: int | None) -> None:
    update = UPDATE.format("volatile.shared.u32", "volatile.shared.u32", "s")
    one = "mov.u32 %r3, %tid.x; and.b32 %r3, %r3, 31; setp.ne.u32 %p1, %r3, 0; @%p1 bra DONE;"
    start = "mov.u32 %r4, %tid.x; setp.eq.u32 %p2, %r4, 0; @%p2 st.shared.u32 [s], 0; bar.sync 0;"
    report, _ = words(f"{start} {one} {update}", seed, grid=1, block=128)
    assert codes(report) == NOT_ATOMIC
    taken = "atom.shared.add.u32 %r1, [s], 1;"
    assert not codes(words(f"{start} {one} {taken}", seed, grid=1, block=128)[0])


LOCK = """
TAKEN: {take} setp.ne.u32 %p1, %r1, 0; @%p1 bra TAKEN; {set}
 ld.global.u32 %r2, [%o]; add.u32 %r3, %r2, 1; st.global.u32 [%o], %r3;
 st.release.gpu.global.u32 [%w], 0;
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lock_that_is_tested_then_set(seed: int | None) -> None:
    tested = LOCK.format(
        take="ld.acquire.gpu.global.u32 %r1, [%w];", set="st.relaxed.gpu.global.u32 [%w], 1;"
    )
    assert ("error", "not-atomic") in codes(words(tested, seed)[0])
    swapped = LOCK.format(take="atom.acquire.gpu.global.cas.b32 %r1, [%w], 0, 1;", set="")
    report, found = words(swapped, seed)
    assert not codes(report) and found[:2] == [0, 8]


TURN = """
WAIT: ld.{order}.gpu.global.u32 %r1, [%w]; setp.ne.u32 %p1, %r1, {mine}; @%p1 bra WAIT; {fence}
 ld.global.u32 %r2, [%o]; add.u32 %r3, %r2, 1; st.global.u32 [%o], %r3; {fence}
 add.u32 %r4, %r1, 1; {wrap} st.{back}.gpu.global.u32 [%w], %r4;
"""
TURNS = {
    "acquire": {"order": "acquire", "back": "release", "fence": "", "mine": "%c", "wrap": ""},
    "fences": {
        "order": "relaxed", "back": "relaxed", "fence": "fence.acq_rel.gpu;", "mine": "%c",
        "wrap": "",
    },
    "back to zero": {
        "order": "acquire", "back": "release", "fence": "", "mine": "%c",
        "wrap": "and.b32 %r4, %r4, 7;",
    },
}  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", TURNS)
def test_turns_are_no_lost_updates(name: str, seed: int | None) -> None:
    report, found = words(TURN.format(**TURNS[name]), seed)
    assert not codes(report) and found[1] == 8


EARLIER = {
    "a maximum": (
        "ld.relaxed.gpu.global.u32 %r1, [%w]; setp.ge.u32 %p1, %r1, %c; @%p1 bra DONE; "
        "st.relaxed.gpu.global.u32 [%w], %c;",
        "red.relaxed.gpu.global.max.u32 [%w], %c;",
    ),
    "a bounded count": (
        "TAKE: ld.acquire.gpu.global.u32 %r1, [%w]; setp.ge.u32 %p1, %r1, 5; @%p1 bra DONE; "
        "add.u32 %r1, %r1, 1; st.release.gpu.global.u32 [%w], %r1; bra TAKE;",
        "TAKE: ld.acquire.gpu.global.u32 %r1, [%w]; setp.ge.u32 %p1, %r1, 5; @%p1 bra DONE; "
        "add.u32 %r2, %r1, 1; atom.acq_rel.gpu.global.cas.b32 %r1, [%w], %r1, %r2; bra TAKE;",
    ),
    "a maximum, or a flag that is raised": (
        "ld.relaxed.gpu.global.u32 %r1, [%w]; setp.ge.u32 %p1, %r1, %c; @%p1 bra DONE; "
        "st.relaxed.gpu.global.u32 [%w], %c;",
        "ld.relaxed.gpu.global.u32 %r1, [%w]; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; "
        "st.relaxed.gpu.global.u32 [%w], 7;",
    ),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EARLIER)
def test_what_a_load_might_have_found(name: str, seed: int | None) -> None:
    """Also where the last one to come finds nothing to do; one value for all is no fault."""
    wrong, right = EARLIER[name]
    assert codes(words(wrong, seed)[0]) == NOT_ATOMIC
    assert not codes(words(right, seed)[0])


ONCE = """
 {} setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; {}
 red.global.add.u32 [%o], 1;
"""
BY_ORDER = {
    "a flag that is tested, then set": (
        ONCE.format("ld.relaxed.gpu.global.u32 %r1, [%w];", "st.relaxed.gpu.global.u32 [%w], 1;"),
        ONCE.format("atom.global.exch.b32 %r1, [%w], 1;", ""),
    ),
    "a ticket taken for the index": (
        "atom.global.add.u32 %r1, [%w], 1; st.global.u32 [%d1], %r1;",
        "atom.global.add.u32 %r1, [%w], 1; mul.wide.u32 %d2, %r1, 4; add.s64 %d2, %o, %d2; "
        "st.global.u32 [%d2], %r1;",
    ),
    "the first one stores its index": (
        "atom.global.exch.b32 %r1, [%w], 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; "
        "st.global.u32 [%o], %c;",
        "atom.global.exch.b32 %r1, [%w], 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra DONE; "
        "st.global.u32 [%o], 5;",
    ),
}


@pytest.mark.parametrize("name", BY_ORDER)
def test_results_that_depend_on_who_comes_first(name: str) -> None:
    """The same in the order of issue; other values under some seed."""
    wrong, right = BY_ORDER[name]
    found = [words(wrong, seed)[1] for seed in SEEDS]
    assert any(other != found[0] for other in found)
    runs = [words(right, seed) for seed in SEEDS]
    assert all(values == runs[0][1] and not codes(report) for report, values in runs)


# --- waits that ask once -------------------------------------------------------------------------

COPY = """
.visible .entry k(.param .u64 x, .param .u64 out)
{{
 .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %d<4>;
 .shared .align 16 .b8 data[128]; .shared .align 8 .b64 bar;
 ld.param.u64 %d1, [x]; ld.param.u64 %d2, [out]; mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0;
 @%p1 bra READY;
 mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [data], [%d1], 128, [bar];
READY: bar.sync 0;
 {}
THERE: mov.u32 %r2, data; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3; ld.shared.u32 %r4, [%r2];
 cvt.u64.u32 %d3, %r3; add.s64 %d2, %d2, %d3; st.global.u32 [%d2], %r4; ret;
}}
"""
TRY = "mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;"
RETRY = f"AGAIN: {TRY} @!%p2 bra AGAIN;"


def copied(wait: str, seed: int | None) -> set[tuple[str, str]]:
    x, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    return codes(report_of(COPY.format(wait), [x, out], order_seed=seed))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("wait", [TRY, f"{TRY} @%p2 bra THERE;"])
def test_a_wait_whose_answer_changes_nothing(wait: str, seed: int | None) -> None:
    assert ("error", "race") in copied(wait, seed)


def test_a_wait_that_asks_once() -> None:
    """Where the answer counts, an order has to give the other one."""
    once = f"{TRY} @!%p2 bra EARLY; bra THERE; EARLY: mov.u32 %r2, 0;"
    assert not copied(once, None)
    assert all(("error", "race") in copied(once, seed) for seed in (1, 3, 5))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "wait",
    [
        RETRY,
        f"mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; @%p2 bra THERE; {RETRY}",
        f"{RETRY} mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 trap;",
        f"setp.ne.u32 %p1, %r1, 0; @%p1 bra MEET; {RETRY} MEET: bar.sync 0; {TRY} @!%p2 trap;",
    ],
)
def test_waits_that_ask_until_it_is_there(wait: str, seed: int | None) -> None:
    """A thread that knows a phase to be complete may ask once."""
    assert not copied(wait, seed)


ARRIVALS = """
.visible .entry k(.param .u64 out)
{{
 .reg .pred %p<3>; .reg .b32 %r<5>; .reg .b64 %d<3>;
 .shared .align 4 .b32 data[32]; .shared .align 8 .b64 bar;
 ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
 @%p1 mbarrier.init.shared.b64 [bar], {};
 bar.sync 0;
 and.b32 %r2, %r1, 31; shl.b32 %r2, %r2, 2; mov.u32 %r3, data; add.u32 %r3, %r3, %r2;
 setp.ge.u32 %p1, %r1, 32; @%p1 bra AGAIN;
 st.shared.u32 [%r3], %r1; mbarrier.arrive.shared.b64 _, [bar]; ret;
AGAIN: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra AGAIN;
 ld.shared.u32 %r4, [%r3]; cvt.u64.u32 %d2, %r2; add.s64 %d1, %d1, %d2; st.global.u32 [%d1], %r4;
 ret;
}}
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_more_lanes_arrive_than_the_count(seed: int | None) -> None:
    def run(count: int) -> RunReport:
        out = np.zeros(32, np.uint32)
        return report_of(ARRIVALS.format(count), [out], block=64, order_seed=seed)

    found = {f.code for f in run(1).findings}
    assert "arrivals-of-two-phases" in found
    assert not codes(run(32))


# --- barriers and peers --------------------------------------------------------------------------

GROUPS = """
.visible .entry k(.param .u64 out)
{{
 .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %d<3>; .shared .align 4 .b32 data[128];
 ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x;
 mov.u32 %r2, data; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; st.shared.u32 [%r4], %r1;
 setp.ge.u32 %p1, %r1, 64; @%p1 bra SECOND;
 {}
 bra READ;
SECOND:
 {}
READ: xor.b32 %r3, %r3, 252; add.u32 %r4, %r2, %r3; ld.shared.u32 %r4, [%r4];
 mul.wide.u32 %d2, %r1, 4; add.s64 %d1, %d1, %d2; st.global.u32 [%d1], %r4; ret;
}}
"""
MIXED = [
    ("bar.sync 1, 64;", "bar.sync 1, 64;"),
    ("bar.sync 1, 64; bar.arrive 2, 128;", "bar.sync 1, 64; bar.sync 2, 128;"),
]
APART = [
    ("bar.sync 1, 64;", "bar.sync 2, 64;"),
    ("bar.sync 1, 64; bar.arrive 2, 128;", "bar.sync 2, 128; bar.sync 1, 64;"),
    ("bar.sync 0; bar.sync 1, 64;", "bar.sync 0; bar.sync 2, 64;"),
    ("bar.sync 0; bar.sync 0; bar.sync 0;", "bar.sync 0; bar.sync 0; bar.sync 0;"),
]


@pytest.mark.parametrize("seed", SEEDS)
def test_two_groups_on_one_barrier(seed: int | None) -> None:
    def found(first: str, second: str) -> set[str]:
        out = np.zeros(128, np.uint32)
        text = GROUPS.format(first, second)
        return {f.code for f in report_of(text, [out], block=128, order_seed=seed).findings}

    assert all("barrier-shared" in found(*groups) for groups in MIXED)
    assert not any(found(*groups) for groups in APART)


MEET = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
RELAXED = MEET.replace("arrive", "arrive.relaxed")
PEER = """
.visible .entry k(.param .u64 out)
{{
 .reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %d<3>;
 .shared .align 4 .b32 data[32]; .shared .align 8 .b64 bar;
 ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; xor.b32 %r3, %r2, 1;
 mov.u32 %r4, data; shl.b32 %r5, %r1, 2; add.u32 %r4, %r4, %r5;
 mapa.shared::cluster.u32 %r3, %r4, %r3;
 {} {}
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 ret;
}}
"""
REACHES = {
    "store": "st.shared::cluster.u32 [%r3], %r1;",
    "load": "st.shared.u32 [%r4], %r1; ld.shared::cluster.u32 %r5, [%r3];",
    "atomic": "st.shared.u32 [%r4], 0; red.shared::cluster.add.u32 [%r3], 1;",
}


@pytest.mark.parametrize("seed", SEEDS[:4])
@pytest.mark.parametrize("name", REACHES)
def test_a_peer_has_to_have_started(name: str, seed: int | None) -> None:
    def found(before: str) -> set[str]:
        out = np.zeros(1, np.uint32)
        text = PEER.format(before, REACHES[name])
        report = report_of(text, [out], grid=2, cluster=2, order_seed=seed)
        return {f.code for f in report.findings}

    assert "peer-not-started" in found("")
    assert "peer-not-started" not in found(MEET) | found(RELAXED)


PAIR = """
.visible .entry k() .reqntid 32
{{
 .reg .b32 %r1; .shared .align 4 .b32 base;
 {}
 tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [base], 32;
 tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;
 ld.shared.b32 %r1, [base];
 barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
 tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 32; ret;
}}
"""


@pytest.mark.parametrize(("ordering", "severity"), [("silicon", "warning"), ("isa", "error")])
def test_a_pair_meets_before_it_allocates(ordering: str, severity: str) -> None:
    def found(before: str) -> set[tuple[str, str]]:
        text = PAIR.format(before)
        return codes(report_of(text, [], grid=2, cluster=2, ordering=ordering))

    assert found("") == {(severity, "peer-not-started")}
    assert not found(RELAXED)


# --- a second launch -----------------------------------------------------------------------------

LAST = """
.global .align 4 .u32 count;
.visible .entry k(.param .u64 out, .param .u64 slots)
{{
 .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %d<3>;
 ld.param.u64 %d1, [out]; ld.param.u64 %d2, [slots];
 atom.global.add.u32 %r1, [{}], 1; setp.ne.u32 %p1, %r1, 3; @%p1 bra DONE;
 st.global.u32 [%d1], 7; {}
DONE: ret;
}}
"""


@pytest.mark.parametrize("place", ["count", "%d2"])
def test_a_counter_that_nobody_sets_back(place: str) -> None:
    def run(reset: str, again: bool) -> tuple[RunReport, int]:
        out = np.zeros(2, np.uint32)
        args = [Uninitialized(out), np.zeros(1, np.uint32)]
        report = report_of(LAST.format(place, reset), args, grid=4, block=1, again=again)
        return report, int(out[0])

    report, stored = run("", again=False)
    assert report.ok and stored == 7 and report.left == ["count"] * (place == "count")
    report, _ = run("", again=True)
    assert [e.code for e in report.errors] == ["second-launch"], str(report)
    reset = f"st.relaxed.gpu.global.u32 [{place}], 0;"
    report, stored = run(reset, again=True)
    assert report.ok and stored == 7 and not report.left


def test_an_array_that_is_added_to_may_go_on() -> None:
    text = """
.visible .entry k(.param .u64 sum) {
 .reg .b64 %d1; ld.param.u64 %d1, [sum]; red.global.add.u32 [%d1], 1; ret;
}"""
    total = np.zeros(1, np.uint32)
    assert report_of(text, [total], block=1, again=True).ok and total[0] == 2
    with pytest.raises(LaunchError, match="again: expected True or False"):
        report_of(text, [total], block=1, again=1)


@pytest.mark.parametrize("name", ["again", "cooperative", "programmatic", "lockstep"])
def test_flags(name: str) -> None:
    """numpy's booleans are True and False; other values are neither."""
    text = ".visible .entry k() { ret; }"
    assert report_of(text, [], block=1, **{name: np.True_}).ok
    for given in (1, "yes", None, np.ones(1, bool)):
        with pytest.raises(LaunchError, match=f"{name}: expected True or False, got"):
            report_of(text, [], block=1, **{name: given})


def test_flags_of_compile() -> None:
    for name in ("validate", "cache", "tune"):
        with pytest.raises(LaunchError, match=f"{name}: expected True or False, got 1"):
            tcir.compile("", "gemm", **{name: 1})
