"""A fence by every thread, a barrier, and a ticket that one thread draws (PTX ISA 8.8, 8.9.4).

fence.sc (membar) on both sides orders memory: the other Fence-SC order contradicts the ticket that
was read. With fence.acq_rel on either side nothing is promised, and DeepEP's barrier_block ships.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.run import RunReport, run_ptx

from .test_async_store import entry

SEEDS = [None, 1, 2, 3, 4, 5, 6]
SC, GL, ACQ_REL = "fence.sc.gpu;", "membar.gl;", "fence.acq_rel.gpu;"
TICKET = "atom.relaxed.gpu.global.add.u32 %r8, [%d0], 1;"


def last_block(before: str, behind: str, meet: str = "bar.sync 0;", ticket: str = TICKET) -> str:
    """64 threads of two CTAs store a part each; the last CTA adds those of both."""
    return entry(
        ".shared .b32 last;\n"
        "mov.u32 %r7, %ctaid.x; mov.u32 %r6, %tid.x; mov.u32 %r5, %ntid.x;\n"
        "mad.lo.u32 %r4, %r7, %r5, %r6; mul.wide.u32 %d1, %r4, 4; add.s64 %d1, %d1, %d0;\n"
        "st.global.b32 [%d1+256], %r4;\n"
        f"{before} {meet}\n"
        f"setp.ne.u32 %p0, %r6, 0; @%p0 bra B; {ticket} st.shared.b32 [last], %r8;\n"
        "B: bar.sync 0; ld.shared.b32 %r9, [last]; setp.ne.u32 %p0, %r9, 1; @%p0 bra C;\n"
        f"{behind}\n"
        "mul.wide.u32 %d2, %r6, 4; add.s64 %d2, %d2, %d0; mul.wide.u32 %d3, %r5, 4;\n"
        "add.s64 %d3, %d3, %d2;\n"
        "ld.global.b32 %r10, [%d2+256]; ld.global.b32 %r11, [%d3+256]; add.u32 %r10, %r10, %r11;\n"
        "st.global.b32 [%d2+1024], %r10;\nC:"
    )


def run(text: str, seed: int | None, block: int, ordering: str = "silicon") -> RunReport:
    """The report; the values are right in every order that the machine executes."""
    out = np.zeros(512, np.uint32)
    report = run_ptx(text, args=[out], order_seed=seed, grid=2, block=block, ordering=ordering)
    assert (out[256 : 256 + block] == 2 * np.arange(block) + block).all(), report
    return report


def found(report: RunReport) -> set[tuple[str, str]]:
    return {(f.severity, f.code) for f in report.findings}


@pytest.mark.parametrize("block", [32, 64])
@pytest.mark.parametrize("fences", [(SC, SC), (GL, GL), (GL, SC)])
def test_fence_sc_on_both_sides_of_barriers(
    fences: tuple[str, str], block: int, assemble: Any
) -> None:
    for seed in SEEDS:
        for ordering in ("silicon", "isa"):
            assert not run(last_block(*fences), seed, block, ordering).findings
    assemble(last_block(*fences))


@pytest.mark.parametrize("block", [32, 64])
@pytest.mark.parametrize(
    "fences",
    [(ACQ_REL, ACQ_REL), (ACQ_REL, SC), (SC, ACQ_REL), ("fence.acq_rel.sys;", ACQ_REL)],
)
def test_another_threads_fence_is_not_promised(fences: tuple[str, str], block: int) -> None:
    for seed in SEEDS:
        report = run(last_block(*fences), seed, block)
        assert found(report) == {("warning", "fence-before-barrier")}, report
        report = run(last_block(*fences), seed, block, "isa")
        assert found(report) == {("error", "fence-before-barrier")}, report


def test_an_acquire_takes_the_place_of_the_second_fence() -> None:
    """Of the ticket's thread; what it knows, the barrier hands on."""
    acquire = TICKET.replace("relaxed", "acquire")
    report = run(last_block(ACQ_REL, "", ticket=acquire), None, 64)
    assert found(report) == {("warning", "fence-before-barrier")}, report
    assert not run(
        last_block("", "", ticket=TICKET.replace("relaxed", "acq_rel")), None, 64
    ).findings


@pytest.mark.parametrize("block", [32, 64])
@pytest.mark.parametrize(
    "fences",
    [
        ("", ""),
        (SC, ""),
        ("", SC),
        ("membar.cta;", "membar.cta;"),
        (SC, "fence.sc.cluster;"),
        # by one thread, which has not met the others yet
        (f"setp.ne.u32 %p1, %r6, 0; @!%p1 {SC}", SC),
    ],
)
def test_without_a_fence_on_one_side(fences: tuple[str, str], block: int) -> None:
    for seed in SEEDS:
        assert ("error", "race") in found(run(last_block(*fences), seed, block)), fences


@pytest.mark.parametrize("block", [32, 64])
def test_volatile_loads_without_a_fence_on_one_side(block: int) -> None:
    """PyTorch's batch norm: only the last one's fence may be missing, and one by each of its
    threads is another thread's."""
    cases = [
        (SC, "", ("warning", "missing-reader-fence")),
        (SC, "fence.sc.cluster;", ("warning", "missing-reader-fence")),
        (ACQ_REL, ACQ_REL, ("warning", "fence-before-barrier")),
        ("", SC, ("error", "race")),
        ("membar.cta;", "membar.cta;", ("error", "race")),
    ]
    for before, behind, finding in cases:
        text = last_block(before, behind).replace("ld.global.b32", "ld.volatile.global.b32")
        for seed in SEEDS:
            assert found(run(text, seed, block)) == {finding}, (before, behind)


@pytest.mark.parametrize("block", [32, 64])
def test_fences_without_the_barrier_between(block: int) -> None:
    for fences in ((SC, SC), (ACQ_REL, ACQ_REL)):
        report = run(last_block(*fences, meet=""), None, block)
        assert ("error", "race") in found(report), report


def test_a_fence_by_one_thread_behind_the_barrier_serves_all() -> None:
    meet = f"bar.sync 0; setp.ne.u32 %p1, %r6, 0; @!%p1 {ACQ_REL}"
    behind = ""
    text = last_block("", behind, meet=meet, ticket=TICKET + ACQ_REL)
    for seed in SEEDS:
        assert not run(text, seed, 64).findings
