"""Pairs of small programs: with what orders two operations (or makes a use legal), and without.

With it: one result and no finding under every order. Without it: the finding or error that the pair
names, under at least one order. `test_hazards.py` does the same to the edges of whole pipelines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tcir.machine import Agent, Assumptions, ElementAddresses, TensorOperand, TmemAddr

from .bench import (
    A2,
    A2_VALUES,
    D2,
    ORDERS,
    OUT,
    SLAB,
    TILE,
    WORD2,
    A,
    Bench,
    D,
    N,
    bar,
    fill,
    finish,
    mma,
    rows,
    slab,
)

PAIRS: dict[str, tuple[Callable[[Bench, bool], Any], str]] = {}


def pair(code: str) -> Callable[[Any], Any]:
    """Registers ``build(bench, edge)``, which gives the bodies; without the edge, ``code``."""

    def register(build: Any) -> Any:
        PAIRS[build.__name__] = (build, code)
        return build

    return register


def run(name: str, edge: bool, seed: int | None, **options: Any) -> Bench:
    bench = Bench(seed, **options)
    built = PAIRS[name][0](bench, edge)
    return built if isinstance(built, Bench) else bench.run(*built)


# --- generic proxy, async proxy ------------------------------------------------------------------


@pair("missing-proxy-fence")
def the_proxy_fence_comes_after_the_store(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        agent.fence("proxy.async", site="too early")
        fill(agent, A2, A2_VALUES)
        if edge:
            agent.fence("proxy.async", site="fence")
        mma(agent, a=A2)
        yield from finish(agent, 0)

    return [body]


@pair("late-proxy-fence")
def the_writer_executes_the_proxy_fence(b: Bench, edge: bool) -> Any:
    def user(agent: Agent) -> Any:
        yield from agent.barrier.sync(1, None, site="written")
        agent.fence("proxy.async", site="late fence")
        mma(agent, a=A2)
        yield from finish(agent, 0)
        b.read(agent)

    def writer(agent: Agent) -> Any:
        fill(agent, A2, A2_VALUES)
        if edge:
            agent.fence("proxy.async", site="fence")
        yield from agent.barrier.sync(1, None, site="written")

    return [user, writer]


@pair("race")
def a_tma_load_of_what_another_warp_stores(b: Bench, edge: bool) -> Any:
    def loader(agent: Agent) -> Any:
        if edge:
            yield from agent.mbarrier.wait(bar(1), 0, site="written")
        b.tma(agent, 0)
        yield from agent.mbarrier.wait(bar(0), 0, site="full")

    def writer(agent: Agent) -> Any:
        b.word(agent, "global", b.source_at, 7)
        agent.fence("proxy.async", site="fence")
        agent.mbarrier.arrive(bar(1), site="written")
        yield from ()

    return [loader, writer]


@pair("race")
def what_a_tma_store_wrote_needs_the_whole_wait(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        agent.tma.store(A, TensorOperand(b.map(output=True), (0, 0)), site="store")
        agent.bulk.commit(site="group")
        yield from agent.bulk.wait(0, read=not edge, site="wait_group")
        b.word(agent, "global", b.target_at)

    return [body]


@pair("never-awaited")
def a_bulk_group_is_committed(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        agent.tma.store(A, TensorOperand(b.map(output=True), (0, 0)), site="store")
        if edge:
            agent.bulk.commit(site="group")
        yield from agent.bulk.wait(0, read=True, site="wait_group.read")

    return [body]


@pair("undefined-read")
def a_tma_store_has_defined_bytes(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        agent.tma.store(A if edge else A2, TensorOperand(b.map(output=True), (0, 0)), site="store")
        agent.bulk.commit(site="group")
        yield from agent.bulk.wait(0, site="wait_group")

    return [body]


# --- TMA loads and mbarriers ---------------------------------------------------------------------


@pair("race")
def two_loads_and_the_bytes_of_both(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        agent.mbarrier.arrive(bar(0), expect_tx=2 * TILE if edge else TILE, site="expect")
        agent.tma.load(A, TensorOperand(b.map(), (0, 0)), bar(0), site="TMA A")
        agent.tma.load(A2, TensorOperand(b.map(), (0, 0)), bar(0), site="TMA A2")
        yield from agent.mbarrier.wait(bar(0), 0, site="full")
        mma(agent, D, A)
        mma(agent, D2, A2)
        yield from finish(agent, 1)
        b.read(agent, D2)

    return [body]


@pair("expect-tx-mismatch")
def the_announced_bytes_arrive(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        b.tma(agent, 0)
        yield from agent.mbarrier.wait(bar(0), 0, site="full")
        if not edge:
            agent.mbarrier.expect_tx(bar(0), 16, site="bytes that never come")

    return [body]


@pair("never-awaited")
def a_tma_load_is_awaited(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        b.tma(agent, 0)
        if edge:
            yield from agent.mbarrier.wait(bar(0), 0, site="full")

    return [body]


@pair("race")
def a_tma_arrival_is_no_completion_of_mma(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        mma(agent)
        b.tma(agent, 0)
        yield from agent.mbarrier.wait(bar(0), 0, site="full")
        agent.fence("tcgen05.after", site="after")
        if edge:
            yield from finish(agent, 1)
        b.read(agent)
        yield from finish(agent, 2)

    return [body]


@pair("mbarrier-overwritten")
def a_store_spares_the_mbarriers(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        if edge:
            agent.mbarrier.inval(bar(0), site="inval")
        b.word(agent, "shared", bar(0) + 4, 3)
        yield from ()

    return [body]


@pair("mbarrier-overwritten")
def a_tma_load_spares_the_mbarriers(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        b.tma(agent, 0, target=A2 if edge else 0)
        yield from agent.mbarrier.wait(bar(0), 0, site="full")

    return [body]


@pair("mbarrier-read")
def a_load_spares_the_mbarriers(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        b.word(agent, "shared", A if edge else bar(0))
        yield from ()

    return [body]


@pair("mbarrier-reuse")
def an_mbarrier_is_invalidated_before_init(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        if edge:
            agent.mbarrier.inval(bar(0), site="inval")
        agent.mbarrier.init(bar(0), 3, site="init")
        yield from ()

    return [body]


@pair("race")
def an_mbarrier_outlives_the_copy_that_signals_it(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        b.tma(agent, 0)
        if edge:
            yield from agent.mbarrier.wait(bar(0), 0, site="full")
        agent.mbarrier.inval(bar(0), site="inval")
        yield from ()

    return [body]


@pair("mbarrier-invalidated")
def an_mbarrier_outlives_the_commit_that_signals_it(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        mma(agent)
        agent.tensor_core.commit(bar(0), site="commit")
        if edge:
            yield from agent.mbarrier.wait(bar(0), 0, site="done")
        agent.mbarrier.inval(bar(0), site="inval")
        yield from finish(agent, 1)

    return [body]


@pair("mbarrier-over-arrival")
def no_more_arrivals_than_counted(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        agent.mbarrier.arrive(bar(0), 1 if edge else 2, site="arrive")
        yield from agent.mbarrier.wait(bar(0), 0, site="wait")

    return [body]


@pair("race")
def an_arrival_releases_only_what_came_before_it(b: Bench, edge: bool) -> Any:
    def reader(agent: Agent) -> Any:
        yield from agent.mbarrier.wait(bar(0), 0, site="wait")
        b.word(agent, "shared", OUT)

    def writer(agent: Agent) -> Any:
        if edge:
            b.word(agent, "shared", OUT, 5)
        agent.mbarrier.arrive(bar(0), site="arrive")
        yield from agent.pause()
        if not edge:
            b.word(agent, "shared", OUT, 5)

    return [reader, writer]


@pair("race")
def a_wait_learns_from_its_phase_only(b: Bench, edge: bool) -> Any:
    """The second arrival belongs to the next phase, whoever waits for the first one."""

    def reader(agent: Agent) -> Any:
        yield from agent.mbarrier.wait(bar(0), 0, site="phase 0")
        agent.mbarrier.arrive(bar(1), site="go on")
        if edge:
            yield from agent.mbarrier.wait(bar(0), 1, site="phase 1")
        b.word(agent, "shared", OUT if edge else OUT + 4)
        b.word(agent, "shared", OUT)

    def writer(agent: Agent) -> Any:
        b.word(agent, "shared", OUT + 4, 6)
        agent.mbarrier.arrive(bar(0), site="first")
        yield from agent.mbarrier.wait(bar(1), 0, site="go on")
        b.word(agent, "shared", OUT, 5)
        agent.mbarrier.arrive(bar(0), site="second")

    return [reader, writer]


@pair("race")
def a_wait_learns_nothing_from_the_open_phase(b: Bench, edge: bool) -> Any:
    """Two arrivals a phase; one of the second phase is there when somebody waits for the first."""
    address = 256

    def reader(agent: Agent) -> Any:
        agent.mbarrier.init(address, 2, site="init")
        yield from agent.barrier.sync(1, None, site="initialised")
        agent.mbarrier.arrive(address, site="reader, phase 0")
        for _ in range(20):
            yield from agent.pause()
        yield from agent.mbarrier.wait(address, 0, site="phase 0")
        if edge:
            agent.mbarrier.arrive(address, site="reader, phase 1")
            yield from agent.mbarrier.wait(address, 1, site="phase 1")
        b.word(agent, "shared", OUT)

    def writer(agent: Agent) -> Any:
        yield from agent.barrier.sync(1, None, site="initialised")
        agent.mbarrier.arrive(address, site="writer, phase 0")
        yield from agent.mbarrier.wait(address, 0, site="phase 0")
        b.word(agent, "shared", OUT, 5)
        agent.mbarrier.arrive(address, site="writer, phase 1")

    return [reader, writer]


# --- the tensor core's pipe ----------------------------------------------------------------------


@pair("race")
def commit_tracks_what_came_before(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        if edge:
            mma(agent)
        agent.tensor_core.commit(bar(0), site="commit")
        if not edge:
            mma(agent)
        yield from agent.mbarrier.wait(bar(0), 0, site="done")
        agent.fence("tcgen05.after", site="after")
        b.read(agent)
        yield from finish(agent, 1)

    return [body]


@pair("race")
def commit_tracks_its_own_thread(b: Bench, edge: bool) -> Any:
    def issuer(agent: Agent) -> Any:
        mma(agent)
        if edge:
            agent.tensor_core.commit(bar(0), site="own commit")
        yield from agent.barrier.sync(1, None, site="issued")
        yield from agent.mbarrier.wait(bar(0), 0, site="done")
        agent.fence("tcgen05.after", site="after")
        b.read(agent)
        yield from finish(agent, 1)

    def other(agent: Agent) -> Any:
        yield from agent.barrier.sync(1, None, site="issued")
        if not edge:
            agent.tensor_core.commit(bar(0), site="foreign commit")

    return [issuer, other]


@pair("race")
def commit_tracks_its_own_lane(b: Bench, edge: bool) -> Any:
    """Two lanes of one warp are two threads."""

    def body(agent: Agent) -> Any:
        agent.issue.by_lane(3)
        mma(agent)
        agent.issue.by_lane(3 if edge else 4)
        yield from finish(agent, 0)
        b.read(agent)
        agent.issue.by_lane(3)
        yield from finish(agent, 1)

    return [body]


@pair("race")
def mma_of_two_lanes_on_one_accumulator(b: Bench, edge: bool) -> Any:
    """The pipe orders the operations of one thread; across lanes it takes the two fences."""

    def body(agent: Agent) -> Any:
        mma(agent)
        agent.fence("tcgen05.before", site="before")
        if edge:
            agent.fence("tcgen05.after", site="after")
        agent.issue.by_lane(1)
        mma(agent, enable_input_d=True)
        yield from finish(agent, 0)
        b.read(agent)
        agent.issue.by_lane(0)
        yield from finish(agent, 1)

    return [body]


@pair("race")
def cp_then_ld(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        slab(agent)
        if edge:
            yield from finish(agent, 0)
        b.read(agent, SLAB, 8)
        yield from finish(agent, 1)

    return [body]


@pair("issue-order")
def the_next_slab_lies_elsewhere(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        mma(agent, D, slab(agent))
        mma(agent, D, slab(agent, A, SLAB + 8 if edge else SLAB + 4), enable_input_d=True)
        yield from finish(agent, 1)
        b.read(agent)

    return [body]


@pair("race")
def cp_then_mma_of_another_thread(b: Bench, edge: bool) -> Any:
    """Across threads two fences and a barrier do; a barrier alone orders nothing."""

    def issuer(agent: Agent) -> Any:
        yield from agent.barrier.sync(1, None, site="copied")
        if edge:
            agent.fence("tcgen05.after", site="after")
        mma(agent, D, TmemAddr(SLAB))
        yield from finish(agent, 0)
        b.read(agent)
        yield from agent.barrier.sync(2, None, site="finished")

    def copier(agent: Agent) -> Any:
        slab(agent)
        if edge:
            agent.fence("tcgen05.before", site="before")
        yield from agent.barrier.sync(1, None, site="copied")
        yield from finish(agent, 1)
        yield from agent.barrier.sync(2, None, site="finished")

    return [issuer, copier]


@pair("race")
def a_commit_covers_the_cp_that_its_mma_reads(b: Bench, edge: bool) -> Any:
    """Of another thread, which commits nothing itself; not a cp that it issues afterwards."""

    def issuer(agent: Agent) -> Any:
        yield from agent.barrier.sync(1, None, site="copied")
        agent.fence("tcgen05.after", site="after")
        mma(agent, D, TmemAddr(SLAB))
        yield from finish(agent, 0)
        b.read(agent)
        yield from agent.barrier.sync(2, None, site="finished")
        b.read(agent, SLAB, 8)

    def copier(agent: Agent) -> Any:
        slab(agent)
        agent.fence("tcgen05.before", site="before")
        yield from agent.barrier.sync(1, None, site="copied")
        if not edge:
            slab(agent, A, SLAB + 8)
        yield from agent.barrier.sync(2, None, site="finished")
        if not edge:
            b.read(agent, SLAB + 8, 8)

    return [issuer, copier]


@pair("issue-order")
def mma_of_one_shape_on_one_accumulator(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        mma(agent)
        mma(agent, enable_input_d=True, n=N if edge else 8)
        yield from finish(agent, 0)
        b.read(agent)

    return [body]


@pair("issue-order")
def a_slab_that_shifts_later_serves_one_accumulator(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        tile = slab(agent)
        mma(agent, D2, tile)
        if edge:
            yield from finish(agent, 1)
        mma(agent, D, tile, ashift=True)
        yield from finish(agent, 0)
        b.read(agent, D2)

    return [body]


@pair("race")
def shift_then_cp_of_four_rows_only(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        tile = slab(agent)
        mma(agent, D, tile)
        for quarter in range(4):
            agent.tensor_core.shift(32 * quarter << 16 | SLAB, site=f"shift {quarter}")
        if edge:
            agent.tensor_core.cp(
                31 << 16 | SLAB, ElementAddresses(rows(4, A, step=1)), "4x256b", site="refresh"
            )
        else:
            slab(agent)
        mma(agent, D, tile, enable_input_d=True)
        yield from finish(agent, 0)
        b.read(agent)

    return [body]


@pair("race")
def cp_then_shift_needs_an_mma_between(b: Bench, edge: bool) -> Any:
    """cp -> mma and mma -> shift are kept in order, and so is the chain of both."""

    def body(agent: Agent) -> Any:
        tile = slab(agent)
        if edge:
            mma(agent, D2, tile)
        agent.tensor_core.shift(SLAB, site="shift")
        mma(agent, D, tile)
        yield from finish(agent, 0)
        b.read(agent)

    return [body]


@pair("race")
def an_accumulator_is_no_operand_meanwhile(b: Bench, edge: bool) -> Any:
    """Both mma are of one shape; the second reads as A what the first writes as D."""

    def body(agent: Agent) -> Any:
        mma(agent, D)
        if edge:
            yield from finish(agent, 0)
        mma(agent, D2, TmemAddr(D))
        yield from finish(agent, 1)
        b.read(agent, D2)

    return [body]


def scales_again(b: Bench, edge: bool, ashift: bool = False) -> Any:
    """A tile is multiplied, then overwritten for the next product, all by one thread."""

    def body(agent: Agent) -> Any:
        fill(agent, A2, A2_VALUES)
        agent.fence("proxy.async", site="fence")
        mma(agent, D, slab(agent), ashift=ashift)
        if edge:
            yield from finish(agent, 1)
        mma(agent, D, slab(agent, A2), enable_input_d=True)
        yield from finish(agent, 0)
        b.read(agent)

    return [body]


@pair("issue-order")
def cp_over_what_an_mma_reads_is_in_order_of_issue(b: Bench, edge: bool) -> Any:
    return scales_again(b, edge)


@pair("race")
def cp_over_what_ashift_moves_waits(b: Bench, edge: bool) -> Any:
    """No shipping kernel overwrites an A that moves: an mma before it orders nothing, either."""
    return scales_again(b, edge, ashift=True)


@pair("race")
def an_mma_between_does_not_order_ashift_and_cp(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        tile = slab(agent)
        mma(agent, D, tile, ashift=True)
        mma(agent, D, tile, enable_input_d=True)
        if edge:
            yield from finish(agent, 1)
        mma(agent, D, slab(agent), enable_input_d=True)
        yield from finish(agent, 0)
        b.read(agent)

    return [body]


@pair("issue-order")
def cp_over_what_cp_wrote_is_in_order_of_issue(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        fill(agent, A2, A2_VALUES)
        agent.fence("proxy.async", site="fence")
        slab(agent, A2)
        if edge:
            yield from finish(agent, 1)
        mma(agent, D, slab(agent))
        yield from finish(agent, 0)
        b.read(agent)

    return [body]


@pair("race")
def cp_over_what_an_mma_of_another_lane_reads(b: Bench, edge: bool) -> Any:
    """Order of issue is that of one thread."""

    def body(agent: Agent) -> Any:
        tile = slab(agent)
        mma(agent, D, tile)
        agent.issue.by_lane(0 if edge else 1)
        if edge:
            yield from finish(agent, 1)
        slab(agent, A)
        yield from finish(agent, 2)
        agent.issue.by_lane(0)
        yield from finish(agent, 0)
        b.read(agent)

    return [body]


@pair("issue-order")
def mma_over_what_one_of_another_accumulator_reads(b: Bench, edge: bool) -> Any:
    """A in tensor memory is the second one's D, as in CUTLASS's example 77."""

    def body(agent: Agent) -> Any:
        mma(agent, D, slab(agent))
        if edge:
            yield from finish(agent, 1)
        mma(agent, SLAB)
        yield from finish(agent, 0)
        b.read(agent)
        b.read(agent, SLAB)

    return [body]


@pytest.mark.parametrize("name", [n for n, (_, code) in PAIRS.items() if code == "issue-order"])
@pytest.mark.parametrize("seed", ORDERS)
def test_order_of_issue_gives_the_same_result(name: str, seed: int | None) -> None:
    """What only shipping kernels prove is a warning, and no order of completion changes it."""
    sound, relying = run(name, True, seed), run(name, False, seed)
    assert {(f.severity, f.code) for f in relying.machine.findings} == {("warning", "issue-order")}
    assert "ships in" in relying.machine.findings[0].missing
    if name not in ("the_next_slab_lies_elsewhere", "mma_of_one_shape_on_one_accumulator"):
        assert relying.result == sound.result  # in those two the edge is another address or shape


def test_without_order_of_issue_each_of_them_is_a_race() -> None:
    """Assumption pipe_order: the ISA's list only."""
    listed = Assumptions(pipe_order="listed")
    for name, (build, code) in PAIRS.items():
        if code == "issue-order":
            assert Bench(assumptions=listed).run(*build(Bench(), False)).codes == {"race"}, name
            assert not Bench(assumptions=listed).run(*build(Bench(), True)).codes, name


# --- allocation ----------------------------------------------------------------------------------


@pair("race")
def dealloc_waits_for_the_ld_of_another_warp(b: Bench, edge: bool) -> Any:
    def owner(agent: Agent) -> Any:
        mma(agent)
        yield from finish(agent, 0)
        if edge:
            yield from agent.barrier.sync(1, None, site="read")
        agent.tmem.dealloc(0, 128, site="dealloc")
        if not edge:
            yield from agent.barrier.sync(1, None, site="read")

    def reader(agent: Agent) -> Any:
        yield from agent.mbarrier.wait(bar(0), 0, site="full")
        agent.fence("tcgen05.after", site="after")
        if not edge and not agent.cta.tmem.allocations:
            return (yield from agent.barrier.sync(1, None, site="read"))
        b.read(agent)
        yield from agent.barrier.sync(1, None, site="read")

    return [owner, reader]


@pair("race")
def dealloc_of_other_columns_may_come_early(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        yield from agent.tmem.alloc(WORD2, 128, site="second alloc")
        mma(agent, D)
        agent.tmem.dealloc(128 if edge else 0, 128, site="dealloc")
        yield from finish(agent, 0)

    return [body]


@pair("tensor-memory-relinquished")
def relinquish_comes_after_the_last_alloc(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        if not edge:
            agent.tmem.relinquish(site="relinquish")
        yield from agent.tmem.alloc(WORD2, 32, site="second alloc")
        if edge:
            agent.tmem.relinquish(site="relinquish")

    return [body]


@pair("tensor-memory-growth")
def a_later_allocation_is_not_larger(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        yield from agent.tmem.alloc(WORD2, 128 if edge else 256, site="second alloc")

    return [body]


@pair("tensor-memory-dealloc")
def dealloc_names_a_whole_allocation(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        agent.tmem.dealloc(0, 128 if edge else 64, site="dealloc")
        yield from ()

    return [body]


@pair("deadlock")
def alloc_finds_free_columns(b: Bench, edge: bool) -> Any:
    b.columns = 256 if edge else 512

    def body(agent: Agent) -> Any:
        yield from agent.tmem.alloc(WORD2, 256, site="second alloc")

    return [body]


@pair("tensor-memory-columns")
def columns_lie_inside_the_allocation(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        mma(agent, 128 - N if edge else 128 - N + 1)
        yield from finish(agent, 0)

    return [body]


# --- undefined -----------------------------------------------------------------------------------


@pair("undefined-read")
def tensor_memory_is_written_before_ld(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        mma(agent)
        yield from finish(agent, 0)
        b.read(agent, D, N if edge else 32)

    return [body]


@pair("undefined-read")
def an_output_is_written_before_it_is_read(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        if edge:
            b.word(agent, "global", b.target_at, 5)
        b.word(agent, "global", b.target_at)
        yield from ()

    return [body]


@pair("undefined-read")
def a_masked_first_mma_leaves_lanes_undefined(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        mma(agent, disable_lanes=None if edge else (1 << 31, 0, 0, 0))
        yield from finish(agent, 0)
        b.read(agent)

    return [body]


@pair("undefined-read")
def columns_allocated_anew_are_undefined(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        mma(agent)
        yield from finish(agent, 0)
        if not edge:
            agent.tmem.dealloc(0, 128, site="dealloc")
            yield from agent.tmem.alloc(WORD2, 128, site="alloc again")
        b.read(agent)

    return [body]


# --- warps and CTAs ------------------------------------------------------------------------------


@pair("barrier-threads")
def one_thread_count_at_one_barrier(b: Bench, edge: bool) -> Any:
    def warp(agent: Agent) -> Any:
        yield from agent.barrier.sync(1, 64 if edge or agent.warp else 96, site="barrier")

    return [warp, warp]


@pair("barrier-over-arrival")
def no_more_warps_than_a_barrier_counts(b: Bench, edge: bool) -> Any:
    def warp(agent: Agent) -> Any:
        yield from agent.barrier.sync(1, 96 if edge else 64, site="barrier")

    lone = Bench(b.machine.options.order_seed)
    extra = [warp] * 3
    if edge:
        return lone.run(*extra, bare=True)
    # Two rounds of two warps would be legal; a warp that counts twice is not.

    def wide(agent: Agent) -> Any:
        agent.threads = 96
        yield from agent.barrier.sync(1, 64, site="barrier")

    return lone.run(wide, bare=True)


@pair("deadlock")
def every_counted_thread_reaches_the_barrier(b: Bench, edge: bool) -> Any:
    def warp(agent: Agent) -> Any:
        yield from agent.barrier.sync(1, 64 if edge else 96, site="barrier")

    return [warp, warp]


@pair("race")
def a_barrier_releases_only_what_came_before_it(b: Bench, edge: bool) -> Any:
    def reader(agent: Agent) -> Any:
        yield from agent.barrier.sync(1, None, site="barrier 1")
        if edge:
            yield from agent.barrier.sync(2, None, site="barrier 2")
        b.word(agent, "shared", OUT)
        if not edge:
            yield from agent.barrier.sync(2, None, site="barrier 2")

    def writer(agent: Agent) -> Any:
        yield from agent.barrier.sync(1, None, site="barrier 1")
        b.word(agent, "shared", OUT, 5)
        yield from agent.barrier.sync(2, None, site="barrier 2")

    return [reader, writer]


def two_ctas(b: Bench, body: Callable[[Bench, Agent, int], Any]) -> Bench:
    two = Bench(b.machine.options.order_seed, grid=2)
    return two.run(lambda agent: body(two, agent, agent.cta.index[0]), bare=True)


@pair("race")
def ctas_write_different_places(b: Bench, edge: bool) -> Any:
    def body(two: Bench, agent: Agent, cta: int) -> Any:
        two.word(agent, "global", two.target_at + (4 * cta if edge else 0), 5 + cta)
        yield from ()

    return two_ctas(b, body)


@pair("race")
def ctas_read_and_write_different_places(b: Bench, edge: bool) -> Any:
    """The reader runs first here; on the machine nothing says so."""

    def body(two: Bench, agent: Agent, cta: int) -> Any:
        if cta == 0:
            two.word(agent, "global", two.source_at)
        else:
            two.word(agent, "global", two.source_at + (4 if edge else 0), 5)
        yield from ()

    return two_ctas(b, body)


@pair("race")
def a_tma_load_and_a_store_of_another_cta(b: Bench, edge: bool) -> Any:
    def body(two: Bench, agent: Agent, cta: int) -> Any:
        if cta == 0:
            agent.mbarrier.init(bar(0), 1, site="init")
            two.tma(agent, 0)
            yield from agent.mbarrier.wait(bar(0), 0, site="full")
        elif not edge:
            two.word(agent, "global", two.source_at, 5)

    return two_ctas(b, body)


# --- the pairs, run ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRS)
def test_with_the_edge_every_order_is_right(name: str) -> None:
    results = []
    for seed in ORDERS:
        bench = run(name, True, seed)
        assert not bench.codes, f"order {seed}: {bench.error} {bench.machine.findings}"
        results.append(bench.result)
    assert all(r == results[0] for r in results)


@pytest.mark.parametrize("name", PAIRS)
def test_without_it_some_order_shows_it(name: str) -> None:
    code = PAIRS[name][1]
    found = [run(name, False, seed).codes for seed in ORDERS]
    assert any(code in codes for codes in found), found


def test_a_writeable_table_is_not_remembered() -> None:
    table = np.array(rows(128, A))
    operand = ElementAddresses(table)
    before = operand.footprint(2).low
    table += 32
    assert operand.footprint(2).low == before + 32
