"""`jobs`: a grid in several processes; the same results, findings and counters, or one process."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import tcir
import tcir.interp.ptx.jobs.launch as jobs_launch
from tcir.interp.ptx.jobs.part import TogetherError, blocks
from tcir.interp.ptx.jobs.workers import in_workers
from tcir.interp.ptx.lockstep.abandoned import LockstepDivergence
from tcir.run import Uninitialized, run_ptx
from tcir.workers import Forks

from .conftest import HEADER
from .test_lockstep import BODIES, START, _no_such_place, check_alike, run


@pytest.fixture(autouse=True)
def _small_grids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Divides grids that one process executes as fast."""
    monkeypatch.setattr(jobs_launch, "IN_LOCKSTEP", 0)


FINDINGS, ENDS = "findings", "what ends the run"
TOUCH = "CTAs that touch what others write"
STRONG = "atomics or strong accesses of global memory"
TOGETHER = {
    "no rule": STRONG,
    "cross-CTA race": FINDINGS,
    "reads what others write": FINDINGS,
    "out of bounds": ENDS,
    "stores beyond shared memory": ENDS,
    "copies beyond shared memory": ENDS,
    "undefined": FINDINGS,
    "the undefined half stored": FINDINGS,
}
"""Why bodies of `BODIES` run in one process; the others do in three."""


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_the_same_as_in_one_process(name: str, together: bool) -> None:
    body, _ = BODIES[name]
    one = run(body, together=together)
    several = run(body, together=together, jobs=3)
    check_alike(one, several)
    report = several[0]
    assert report.together == TOGETHER.get(name, "")
    assert report.processes == (1 if name in TOGETHER else 3)
    words = f"one process ({TOGETHER[name]})" if name in TOGETHER else "3 processes"
    assert words in str(report).splitlines()[0] and "process" not in str(one[0])


READ = {
    "in place": TOUCH,
    "no rule": "CTAs may communicate: atom. at line 13",
    "cross-CTA race": TOUCH,
    "reads what others write": TOUCH,
    "reads its own writes": TOUCH,
    "out of bounds": ENDS,
    "stores beyond shared memory": ENDS,
    "copies beyond shared memory": ENDS,
}
"""The same with hazards off, where a load counts as one of the whole array."""


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_several_processes_with_hazards_off(name: str, together: bool) -> None:
    body, _ = BODIES[name]
    one, several = (run(body, together=together, hazards="off", jobs=jobs) for jobs in (1, 3))
    check_alike(one, several)
    assert several[0].together == READ.get(name, "")
    assert several[0].processes == (1 if name in READ else 3)


#: Only CTAs 5 and 6 of 12 meet: in two blocks of six they are in different ones.
ACROSS = {
    "both write": (5, "st.global.b32 [%rd5+128], %r6;"),
    "the later one's loads were stored to": (6, "ld.global.b32 %r6, [%rd5+-128];"),
    "the earlier one loads what is stored": (5, "ld.global.b32 %r6, [%rd5+128];"),
}


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("name", ACROSS)
def test_a_race_of_ctas_in_different_blocks_is_found(name: str, together: bool) -> None:
    cta, act = ACROSS[name]
    body = f"mov.u32 %r6, 3; setp.eq.u32 %p1, %r2, {cta}; st.global.b32 [%rd5], %r5; @%p1 {act}"
    for hazards in ("off", "report"):
        one, several = (run(body, together=together, jobs=jobs, hazards=hazards) for jobs in (1, 2))
        check_alike(one, several)
        assert several[0].together == TOUCH and several[0].processes == 1
    assert any("(5, 0, 0)" in f"{f} {f.who}" for f in several[0].findings), str(several[0])
    assert not several[0].ok
    whole = run(body.replace(f"@%p1 {act}", ""), together=together, jobs=2)
    assert whole[0].ok and whole[0].processes == 2


@pytest.mark.parametrize("seed", [None, 3])
def test_blocks_under_a_seed(seed: int | None) -> None:
    body, _ = BODIES["shared memory"]
    one, several = (run(body, together=False, jobs=jobs, order_seed=seed) for jobs in (1, 4))
    check_alike(one, several)
    assert several[0].processes == 4


@pytest.mark.parametrize("waits", [True, False])
def test_blocks_of_a_programmatic_launch(waits: bool) -> None:
    """Launches before it have no CTAs: what they may write is nothing that a block writes."""
    body = "griddepcontrol.wait;\n" * waits + BODIES["copy"][0]
    one, several = (run(body, together=False, jobs=jobs, programmatic=True) for jobs in (1, 2))
    check_alike(one, several)
    assert {each.code for each in one[0].findings} == (set() if waits else {"race"})
    assert several[0].processes == (2 if waits else 1)


def test_why_one_process() -> None:
    body, _ = BODIES["copy"]
    shared = run(body, together=True, jobs=2, ctas_per_sm=2)[0]
    assert shared.together == "CTAs run side by side"
    kept = run(body, together=True, jobs=2, repeats={})[0]
    assert kept.together == "completion orders share what the first one leaves"
    clock = run("mov.u32 %r6, %clock; st.global.b32 [%rd5], %r6;", together=True, jobs=2)
    check_alike(run("mov.u32 %r6, %clock; st.global.b32 [%rd5], %r6;", together=True), clock)
    assert "clocks" in clock[0].together
    few = run_ptx(HEADER + START + "ret;\n}\n", grid=3, block=32, jobs=2,
                  args=(np.zeros(4), np.zeros(4), np.uint32(1)))  # fmt: skip
    assert few.ok and few.together == "a grid of few CTAs"
    with pytest.raises(tcir.LaunchError, match="jobs: expected an integer of at least 1, got 0"):
        run(body, together=True, jobs=0)


def test_small_grids_in_lockstep_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    body, _ = BODIES["copy"]
    for hazards in ("report", "off"):
        small = run(body, together=True, jobs=2, hazards=hazards)[0]
        assert small.together == "at most 128 CTAs in lockstep" and small.processes == 1
        assert run(body, together=False, jobs=2, hazards=hazards)[0].processes == 2


def test_a_budget_that_no_block_spends_alone() -> None:
    body, _ = BODIES["loop"]
    used = run(body, together=True)[0].instructions
    one, several = (
        run(body, together=False, jobs=jobs, max_instructions=used - 1) for jobs in (1, 2)
    )
    check_alike(one, several)
    assert several[0].together == "the instruction budget" and several[0].errors
    assert run(body, together=False, jobs=2, max_instructions=used)[0].ok


def test_undefined_results_and_who_wrote_them() -> None:
    """What nobody stores stays undefined; the record of who stored the rest is there."""
    from tcir.debug import LastWriters

    texts = []
    for jobs in (1, 3):
        y, writers = np.zeros(32 * 13, np.int32), LastWriters()
        body = "setp.lt.u32 %p1, %r3, 31; @%p1 st.global.b32 [%rd5], %r5;"
        report = run_ptx(
            HEADER + START + body + "ret;\n}\n",
            grid=12,
            block=32,
            observer=writers,
            jobs=jobs,
            args=(np.zeros(4), Uninitialized(y), np.uint32(1)),
        )
        assert report.processes == jobs
        assert writers.unwritten(y) == 4 * (12 + 32)
        texts.append([writers.finder(y)((n,)) for n in (0, 31, 200, 383, 400)])
    assert texts[0] == texts[1] and "CTA (6, 0, 0)" in texts[0][2]
    assert texts[0][1] == "nothing wrote it"


def test_what_nobody_stored_with_hazards_off() -> None:
    from tcir.debug import LastWriters

    for jobs in (1, 3):
        y, writers = np.zeros(32 * 13, np.int32), LastWriters()
        body = "setp.lt.u32 %p1, %r3, 31; @%p1 st.global.b32 [%rd5], %r5;"
        report = run_ptx(
            HEADER + START + body + "ret;\n}\n",
            grid=12,
            block=32,
            observer=writers,
            jobs=jobs,
            hazards="off",
            args=(np.zeros(4), Uninitialized(y), np.uint32(1)),
        )
        assert report.processes == jobs and writers.unwritten(y) == 4 * (12 + 32)


def test_bytes_and_halves_share_no_word() -> None:
    """Accesses of single bytes: CTA n writes bytes n, n + 12, … of an array of words."""
    body = (
        "mad.lo.u32 %r6, %r3, 12, %r2; cvt.u64.u32 %rd6, %r6; add.s64 %rd6, %rd6, %rd2; "
        "st.global.b8 [%rd6], %r6;"
    )
    one, several = (run(body, together=False, jobs=jobs) for jobs in (1, 2))
    check_alike(one, several)
    assert several[0].processes == 2 and several[0].ok


@pytest.mark.parametrize("words", [33, 40])
def test_a_block_of_words_beside_one_of_bytes(words: int) -> None:
    """CTA 0 of 4 writes words from word 0 on, CTA 3 bytes from word 32 on, of a small array."""
    text = (
        HEADER + START + "setp.eq.u32 %p1, %r2, 0; @%p1 st.global.b32 [%rd5], %r5; "
        "setp.eq.u32 %p1, %r2, 3; setp.lt.and.u32 %p1, %r3, 4, %p1; cvt.u64.u32 %rd6, %r3; "
        "add.s64 %rd6, %rd6, %rd2; @%p1 st.global.b8 [%rd6+128], %r3; ret;\n}\n"
    )
    found = []
    for jobs in (1, 2):
        y = np.full(words, -1, np.int32)
        report = run_ptx(text, grid=4, block=32, args=(np.zeros(4), y, np.uint32(1)), jobs=jobs)
        assert report.ok and report.processes == jobs, str(report)
        found.append(y.tolist())
    assert (
        found[0] == found[1] and found[0][32] == 0x03020100 and found[0][33:] == [-1] * (words - 33)
    )


def test_a_mapped_file_is_written_once(tmp_path: Path) -> None:
    """CTAs of two blocks meet: no worker has written to the file when the launch runs again."""
    x = np.arange(1000, dtype=np.int32)
    _, act = ACROSS["the earlier one loads what is stored"]
    body = (
        f"ld.global.b32 %r6, [%rd5]; add.u32 %r6, %r6, 1; setp.eq.u32 %p1, %r2, 5; "
        f"st.global.b32 [%rd5], %r6; @%p1 {act}"
    )
    for jobs in (1, 2):
        y = np.memmap(tmp_path / f"{jobs}", np.int32, "w+", shape=(32 * 13,))
        text = HEADER + START + body + "ret;\n}\n"
        report = run_ptx(text, grid=12, block=32, args=(x, y, np.uint32(0)), jobs=jobs)
        assert report.together == ("" if jobs == 1 else TOUCH) and report.processes == 1
        assert (y[: 32 * 12] == 1).all() and (y[32 * 12 :] == 0).all()
    done = run_ptx(HEADER + START + BODIES["copy"][0] + "ret;\n}\n", grid=12, block=32,
                   args=(x, y, np.uint32(0)), jobs=2)  # fmt: skip
    assert done.processes == 2 and (y[: 32 * 12] == x[: 32 * 12]).all()


def test_progress_counts_all_blocks() -> None:
    told: list[tuple[int, int]] = []
    run(BODIES["copy"][0], together=False, jobs=3, progress=lambda *now: told.append(now))
    assert told[-1] == (12, 12) and [n for n, _ in told] == sorted(n for n, _ in told)


def test_a_mistake_in_lockstep_is_warned_of_by_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = BODIES["copy"][0]
    one = run(body, together=False)
    _no_such_place(monkeypatch)
    with pytest.warns(LockstepDivergence, match="no such place"):
        several = run(body, together=True, jobs=2)
    check_alike(one, several)
    assert several[0].processes == 1 and "no such place" in several[0].together


@pytest.mark.parametrize(("count", "jobs"), [(12, 5), (4, 9), (7, 1), (576, 2), (4096, 7)])
def test_blocks_cover_the_grid(count: int, jobs: int) -> None:
    cut = blocks(range(count), jobs)
    assert sorted(n for block in cut for n in block) == list(range(count))
    assert all(list(block) == sorted(block) for block in cut)
    assert len(cut) == min(count, jobs)
    assert max(map(len, cut)) - min(map(len, cut)) <= count.bit_length()


def test_each_block_has_a_part_of_the_tails() -> None:
    """32 x 18 CTAs, of which those of the last row are other ones: each leads in both blocks."""
    halves = blocks(range(576), 2)
    assert [len([n for n in half if n >= 544]) for half in halves] == [14, 18]
    assert halves[0][:144] == list(range(144)) and halves[1][:144] == list(range(144, 288))


def test_what_ctas_print_stands_in_the_order_of_the_grid() -> None:
    """The blocks of 96 CTAs are no halves: what the workers print is mixed."""
    text = (
        HEADER.replace(
            ".address_size 64",
            ".address_size 64\n"
            ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
            ".global .align 1 .b8 words[5] = {37, 117, 59, 10, 0};",
            1,
        )
        + START.replace("{", "{\n.local .align 4 .b8 held[4]; .reg .b64 %v<3>;", 1)
        + "st.global.b32 [%rd5], %r5; rem.u32 %r6, %r2, 7; setp.eq.u32 %p1, %r6, 3; "
        "setp.eq.and.u32 %p1, %r3, 0, %p1; @!%p1 ret; st.local.u32 [held], %r2; "
        "mov.u64 %v1, words; mov.u64 %v2, held; cvta.local.u64 %v2, %v2; cvta.global.u64 %v1, %v1; "
        "{ .param .b64 f; st.param.b64 [f], %v1; .param .b64 a; st.param.b64 [a], %v2; "
        ".param .b32 r; call.uni (r), vprintf, (f, a); } ret;\n}\n"
    )
    printed = []
    for jobs in (1, 2):
        x, y = np.zeros(32 * 96, np.int32), np.zeros(32 * 96, np.int32)
        report = run_ptx(text, grid=96, block=32, args=(x, y, np.uint32(0)), jobs=jobs)
        assert report.ok and report.processes == jobs, str(report)
        printed.append(report.output)
    assert printed[0] == "".join(f"{n};\n" for n in range(3, 96, 7)) == printed[1]


def test_a_worker_that_raises_or_dies_ends_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[int] = []
    fork = os.fork

    def noted() -> int:
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", noted)

    def sleep(tell: Any) -> None:
        time.sleep(3600)  # to the end of the test, were it not ended

    def fail(tell: Any) -> None:
        raise ZeroDivisionError("of a rule")

    def die(tell: Any) -> None:
        os._exit(0)

    with pytest.raises(TogetherError, match="ZeroDivisionError: of a rule"):
        in_workers([sleep, fail], lambda n: None)
    with pytest.raises(TogetherError, match="a worker ended early"):
        in_workers([sleep, die], lambda n: None)
    assert len(children) == 4
    for child in children:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
    assert in_workers([lambda tell: 1, lambda tell: 2], lambda n: None) == [1, 2]


def test_a_worker_takes_one_core() -> None:
    def threads(_: Any) -> set[int]:
        np.ones((64, 64)) @ np.ones((64, 64))
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    assert in_workers([threads, threads], lambda n: None) == [{1}, {1}]
    assert [found for _, found in Forks(2).run(threads, [1, 2])] == [{1}, {1}]
