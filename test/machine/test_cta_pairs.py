"""cta_group::2: the tensor core of two CTAs, against numpy; and what a pair has to order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tcir.machine import Agent, Assumptions, ElementAddresses, Machine, MachineError, TmemAddr
from tcir.machine.sync.mbarriers import Mbarriers

from .bench import at_column_0
from .issue import issue_mma
from .test_clusters import OF_CLUSTER, RANK, meet

ORDERS = (None, *range(6))
WORD, BARS, A, B = 32, 64, 1024, 16384
D, SLAB = 0, 256
Body = Callable[[Agent], Any]


def bar(i: int) -> int:
    return BARS + 8 * i


def rows(count: int, base: int, step: int = 2) -> ElementAddresses:
    """Rows of 32 bytes, one after the other."""
    return ElementAddresses(base + 32 * np.arange(count)[:, None] + np.arange(0, 32, step))


def values(m: int, first: int) -> Any:
    """Small integers, every row different."""
    k = np.arange(16)
    return ((np.arange(m)[:, None] * 7 + k * 3 + first) % 31 - 15.5).astype(np.float16)


class Pair:
    """Two CTAs of `warps` warps; warp 0 of each allocates 512 columns, thread 0 of CTA 0 issues."""

    def __init__(self, m: int, n: int, seed: int | None = None, ctas: int = 2) -> None:
        self.m, self.n = m, n
        self.machine = Machine(
            grid=(ctas, 1, 1),
            block=(128, 1, 1),
            cluster=(ctas, 1, 1),
            dynamic_smem=32768,
            options=at_column_0(seed),
        )
        self.a, self.b = values(m, 1), values(n, 2)
        self.d = np.zeros((m, n), np.float32)
        self.error: MachineError | None = None
        self.peer_bar = 0

    def run(
        self, issue: Body, *, fence: bool = True, last: bool = True, meets: bool = True
    ) -> Pair:
        """Loads the halves, runs `issue` in warp 0 of CTA 0, waits for mbarrier 0, reads D.

        last: a cluster barrier in front of dealloc; else one of the CTA, if ``meets``.
        """

        def program(agent: Agent) -> Any:
            rank, own = agent.cta.rank_in_cluster, agent.cta.window
            yield from meet(agent, relaxed=True)
            if agent.warp == 0:
                yield from agent.tmem.alloc(own + WORD, 512, cta_group=2, site="alloc")
                agent.tmem.relinquish(cta_group=2, site="relinquish")
                for i in range(2):
                    agent.mbarrier.init(own + bar(i), 1, site="init")
                agent.fence("mbarrier_init", site="fence.mbarrier_init")
                for base, data in ((A, self.half(self.a, rank)), (B, self.half(self.b, rank))):
                    raw = np.ascontiguousarray(data).view(np.uint8).reshape(-1, 16)
                    agent.memory.store(
                        "shared", own + base + 16 * np.arange(len(raw)), raw, site="fill"
                    )
                if fence:
                    agent.fence("proxy.async", site="fence.proxy.async")
            agent.fence("tcgen05.before", site="before")
            agent.cluster_barrier.arrive(site="arrive")
            yield from agent.cluster_barrier.wait(site="wait")
            agent.fence("tcgen05.after", site="after")
            if agent.warp == 0 and rank == 0:
                yield from issue(agent)
            yield from agent.mbarrier.wait(own + bar(0), 0, site="done")
            agent.fence("tcgen05.after", site="after done")
            self.read(agent, rank)
            agent.fence("tcgen05.before", site="before end")
            if last:
                yield from meet(agent)
            elif meets:
                yield from agent.barrier.sync(0, None, site="bar")
            agent.fence("tcgen05.after", site="after end")
            if agent.warp == 0:
                yield from agent.tmem.pair_dealloc(0, 512, site="dealloc")

        def start(cta: Any) -> list[Agent]:
            return [cta.agent(f"warp {w}", warp=w, body=program) for w in range(4)]

        try:
            self.machine.run(start)
        except MachineError as error:
            self.error = error
        return self

    @staticmethod
    def half(array: Any, rank: int) -> Any:
        return np.split(array, 2)[rank]

    def read(self, agent: Agent, rank: int) -> None:
        """D of the warp's quarter: path A (M = 256) or B (M = 128)."""
        w, half = agent.warp, self.n // 2
        count = self.n if self.m == 256 else half
        for column in range(0, count, 8):
            words = agent.tmem.ld(32 * w << 16 | D + column, num=8, site="ld")
            part = np.ascontiguousarray(words.T).view(np.float32)
            row, at = 128 * rank + 32 * w, column
            if self.m == 128:
                row, at = 64 * rank + 32 * (w % 2), column + half * (w // 2)
            self.d[row : row + 32, at : at + 8] = part
        agent.tmem.wait("ld", site="wait::ld")

    def mma(self, agent: Agent, a: Any = None, **flags: Any) -> None:
        options: dict[str, Any] = {"enable_input_d": False, "site": "mma", "cta_group": 2} | flags
        operand = rows(self.m // 2, A) if a is None else a
        issue_mma(agent, D, operand, rows(self.n // 2, B), self.m, self.n, "f16", "f16", **options)

    @property
    def codes(self) -> set[str]:
        found = {f.code for f in self.machine.findings}
        return found | ({self.error.code} if self.error else set())

    @property
    def product(self) -> Any:
        return self.a.astype(np.float32) @ self.b.astype(np.float32).T


def commit(agent: Agent, mask: int | None = 3) -> None:
    agent.tensor_core.commit(bar(0), cta_mask=mask, cta_group=2, site="commit")


SHAPES = [(256, 32), (256, 256), (128, 16), (128, 64), (128, 256)]


@pytest.mark.parametrize("seed", (None, 3))
@pytest.mark.parametrize(("m", "n"), SHAPES)
def test_product_of_a_pair(m: int, n: int, seed: int | None) -> None:
    p = Pair(m, n, seed)

    def issue(agent: Agent) -> Any:
        p.mma(agent)
        p.mma(agent, enable_input_d=True, site="mma 2")
        commit(agent)
        yield from ()

    p.run(issue)
    assert not p.codes, (p.machine.findings, p.error)
    np.testing.assert_array_equal(p.d, 2 * p.product)
    counters = p.machine.counters
    assert counters.mma == 2
    assert counters.tensor_cycles == 2 * 2 * max(
        n // (4 if m == 128 else 2), (m + n) // 2 * 32 // 128
    )


@pytest.mark.parametrize(("m", "n"), [(256, 32), (128, 64)])
def test_a_in_tensor_memory(m: int, n: int) -> None:
    """Each CTA copies its own rows; with M = 128 they lie twice, 64 lanes apart."""
    p = Pair(m, n)

    def issue(agent: Agent) -> Any:
        for column in (0, 4):
            if m == 256:
                agent.tensor_core.cp(SLAB, rows(128, A, 1), cta_group=2, site="cp")
                break
            half = ElementAddresses(A + 4 * column + 32 * np.arange(64)[:, None] + np.arange(16))
            agent.tensor_core.cp(
                SLAB + column, half, "64x128b", "warpx2::02_13", cta_group=2, site="cp"
            )
        p.mma(agent, TmemAddr(SLAB))
        commit(agent)
        yield from ()

    p.run(issue)
    assert not p.codes, (p.machine.findings, p.error)
    np.testing.assert_array_equal(p.d, p.product)


def test_copies_of_a_have_to_be_equal() -> None:
    p = Pair(128, 64)

    def issue(agent: Agent) -> Any:
        agent.tensor_core.cp(SLAB, rows(128, A, 1), cta_group=2, site="cp")
        p.mma(agent, TmemAddr(SLAB))
        commit(agent)
        yield from ()

    p.a = values(128, 1)
    p.half = lambda array, rank: array if len(array) == 128 else np.split(array, 2)[rank]  # type: ignore[method-assign]
    p.run(issue)
    assert p.codes == {"operand-copies"}


def test_ashift_moves_the_rows_of_each_cta() -> None:
    p = Pair(256, 32)

    def issue(agent: Agent) -> Any:
        agent.tensor_core.cp(SLAB, rows(128, A, 1), cta_group=2, site="cp")
        p.mma(agent, TmemAddr(SLAB), ashift=True)
        p.mma(agent, TmemAddr(SLAB), enable_input_d=True, site="mma 2")
        commit(agent)
        yield from ()

    p.run(issue)
    assert not p.codes, (p.machine.findings, p.error)
    row = np.arange(256)
    shifted = p.a[np.where(row % 32 == 31, row, row + 1)]
    total = p.a.astype(np.float32) + shifted.astype(np.float32)
    np.testing.assert_array_equal(p.d, total @ p.b.astype(np.float32).T)


def test_lane_masks_of_both_ctas() -> None:
    """Masks 4 to 7 are of the CTA of odd rank."""
    p = Pair(256, 32)
    masks = (1, 0, 0, 0, 0, 0, 2, 1 << 31)

    def issue(agent: Agent) -> Any:
        p.mma(agent)
        p.mma(agent, enable_input_d=True, disable_lanes=masks, site="mma 2")
        commit(agent)
        yield from ()

    p.run(issue)
    factor = np.full(256, 2)
    factor[[0, 128 + 64 + 1, 128 + 127]] = 1
    assert not p.codes
    np.testing.assert_array_equal(p.d, factor[:, None] * p.product)
    p = Pair(256, 32)

    def short(agent: Agent) -> Any:
        p.mma(agent, disable_lanes=(0, 0, 0, 0))
        yield from ()

    assert p.run(short).codes == {"lane-mask"}


@pytest.mark.parametrize("copies", ["both", "first"])
def test_ashift_of_duplicated_rows(copies: str) -> None:
    """M = 128: each CTA has its 64 rows twice. If one copy stayed, A would be of no more use."""
    p = Pair(128, 64)
    p.machine.assumptions = Assumptions(ashift_copies=copies)

    def issue(agent: Agent) -> Any:
        for column in (0, 4):
            half = ElementAddresses(A + 4 * column + 32 * np.arange(64)[:, None] + np.arange(16))
            agent.tensor_core.cp(
                SLAB + column, half, "64x128b", "warpx2::02_13", cta_group=2, site="cp"
            )
        p.mma(agent, TmemAddr(SLAB), ashift=True)
        p.mma(agent, TmemAddr(SLAB), enable_input_d=True, site="mma 2")
        commit(agent)
        yield from ()

    p.run(issue)
    if copies == "first":
        assert p.codes == {"operand-copies"}
        return
    assert not p.codes, (p.machine.findings, p.error)
    row = np.arange(128)
    shifted = p.a[np.where(row % 32 == 31, row, row + 1)]
    total = p.a.astype(np.float32) + shifted.astype(np.float32)
    np.testing.assert_array_equal(p.d, total @ p.b.astype(np.float32).T)


# --- pairs of programs ---------------------------------------------------------------------------


def found(build: Callable[[int | None], Pair]) -> set[str]:
    return set().union(*(build(seed).codes for seed in ORDERS))


@pytest.mark.parametrize("edge", [True, False])
def test_each_cta_needs_an_arrival(edge: bool) -> None:
    """The commit's mask has both CTAs of the pair."""

    def build(seed: int | None) -> Pair:
        p = Pair(256, 32, seed)

        def issue(agent: Agent) -> Any:
            p.mma(agent)
            commit(agent, 3 if edge else 1)
            yield from ()

        return p.run(issue)

    assert found(build) == (set() if edge else {"deadlock"})


@pytest.mark.parametrize("edge", [True, False])
def test_only_one_cta_issues(edge: bool) -> None:
    def build(seed: int | None) -> Pair:
        p = Pair(256, 32, seed)

        def issue(agent: Agent) -> Any:
            p.mma(agent)
            commit(agent)
            yield from ()

        def both(agent: Agent) -> Any:
            yield from issue(agent)

        if edge:
            return p.run(issue)
        original = p.read

        def read(agent: Agent, rank: int) -> None:
            if rank == 1 and agent.warp == 0:
                p.mma(agent, site="mma of the odd CTA")
                agent.tensor_core.commit(RANK + bar(1), cta_group=2, site="commit 1")
            original(agent, rank)

        p.read = read  # type: ignore[method-assign]
        return p.run(issue)

    codes = found(build)
    assert codes == set() if edge else "race" in codes


@pytest.mark.parametrize(
    "barrier, codes",
    [
        ("cluster", set()),
        ("cta", {"pair-dealloc"}),
        ("", {"pair-dealloc", "race", "tensor-memory-columns"}),
    ],
)
def test_a_cluster_barrier_before_dealloc(barrier: str, codes: set[str]) -> None:
    """A CTA's own barrier does not say that the peer's warps have read."""

    def build(seed: int | None) -> Pair:
        p = Pair(256, 32, seed)

        def issue(agent: Agent) -> Any:
            p.mma(agent)
            commit(agent)
            yield from ()

        return p.run(issue, last=barrier == "cluster", meets=barrier == "cta")

    assert found(build) == codes


@pytest.mark.parametrize("edge", [True, False])
def test_proxy_fences_of_both_ctas(edge: bool) -> None:
    def build(seed: int | None) -> Pair:
        p = Pair(256, 32, seed)

        def issue(agent: Agent) -> Any:
            p.mma(agent)
            commit(agent)
            yield from ()

        return p.run(issue, fence=edge)

    assert found(build) == (set() if edge else {"missing-proxy-fence"})


@pytest.mark.parametrize("edge", [True, False])
def test_one_group_in_a_kernel(edge: bool) -> None:
    def build(seed: int | None) -> Pair:
        p = Pair(256, 32, seed)

        def issue(agent: Agent) -> Any:
            p.mma(agent)
            agent.tensor_core.commit(bar(0), cta_mask=3, cta_group=2 if edge else 1, site="commit")
            yield from ()

        return p.run(issue)

    assert found(build) == (set() if edge else {"cta-group-mixed"})


def test_the_mask_of_another_pair() -> None:
    """3 << (rank & ~1), not 3: in a second pair the constant signals the first one's CTAs."""
    for right in (True, False):
        machine = Machine(grid=(4, 1, 1), block=(32, 1, 1), cluster=(4, 1, 1), dynamic_smem=1024)

        def program(agent: Agent, right: bool = right) -> Any:
            rank, own = agent.cta.rank_in_cluster, agent.cta.window
            agent.mbarrier.init(own + BARS, 1, site="init")
            agent.fence("mbarrier_init", site="fence")
            yield from meet(agent)
            if rank % 2 == 0:
                mask = 3 << (rank & ~1) if right else 3
                agent.tensor_core.commit(own + BARS, cta_mask=mask, cta_group=2, site="commit")
            yield from agent.mbarrier.wait(own + BARS, 0, site="wait")
            yield from meet(agent)

        def start(cta: Any, program: Any = program) -> Any:
            return [cta.agent("warp 0", warp=0, body=program)]

        if right:
            machine.run(start)
            assert not machine.findings
        else:
            with pytest.raises(MachineError) as caught:
                machine.run(start)
            assert caught.value.code in ("deadlock", "mbarrier-over-arrival")


def allocate(*bodies: Body) -> Machine:
    machine = Machine(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1), dynamic_smem=1024)
    machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=bodies[cta.rank_in_cluster])])
    return machine


def test_both_ctas_allocate_and_free() -> None:
    def body(agent: Agent) -> Any:
        yield from meet(agent, relaxed=True)
        for columns in (128, 64):
            where = agent.cta.window + WORD
            yield from agent.tmem.alloc(where, columns, cta_group=2, site=f"alloc {columns}")
            word = agent.memory.load("shared", np.array([where]), 4, site="ld").view(np.uint32)
            assert word[0, 0] == (0 if columns == 128 else 128)
        yield from agent.tmem.pair_dealloc(128, 64, site="dealloc")
        yield from agent.tmem.pair_dealloc(0, 128, site="dealloc")

    assert not allocate(body, body).findings

    def nothing(agent: Agent) -> Any:
        yield from agent.mbarrier.wait(agent.cta.window, 0, site="never")

    def other(agent: Agent) -> Any:
        yield from meet(agent, relaxed=True)
        yield from agent.tmem.alloc(agent.cta.window + WORD, 32, cta_group=2, site="alloc 32")
        yield from agent.tmem.pair_dealloc(0, 32, site="dealloc")

    with pytest.raises(MachineError, match=r"(?s)deadlock.*of the peer CTA"):
        allocate(body, other)

    def ends(agent: Agent) -> Any:
        yield from ()

    with pytest.raises(MachineError, match="peer-exited"):
        allocate(body, ends)


def test_a_barrier_between_the_two_deallocs_may_hang() -> None:
    """dealloc may wait for the other CTA's: a barrier after one and before the other hangs."""

    def body(agent: Agent) -> Any:
        own = agent.cta.window
        yield from meet(agent, relaxed=True)
        yield from agent.tmem.alloc(own + WORD, 32, cta_group=2, site="alloc")
        if own:
            yield from meet(agent)
        yield from agent.tmem.pair_dealloc(0, 32, site="dealloc")
        if not own:
            yield from meet(agent)

    with pytest.raises(MachineError, match="deadlock"):
        allocate(body, body)


@pytest.mark.parametrize("edge", [True, False])
def test_two_threads_of_a_pair_share_its_pipe(edge: bool) -> None:
    """cp by the odd CTA's thread, mma by the even one's: fences and an arrival order them."""

    def build(seed: int | None) -> Pair:
        p = Pair(256, 32, seed)

        def issue(agent: Agent) -> Any:
            yield from agent.mbarrier.wait(bar(1), 0, order=OF_CLUSTER, site="wait for cp")
            agent.fence("tcgen05.after", site="after")
            p.mma(agent, TmemAddr(SLAB))
            commit(agent)

        original = Mbarriers.wait

        def wait(unit: Any, address: int, parity: int, *, site: Any, **order: Any) -> Any:
            agent = unit.agent
            if agent.warp == 0 and agent.cta.rank_in_cluster == 1 and site == "done":
                agent.tensor_core.cp(SLAB, rows(128, A, 1), cta_group=2, site="cp")
                if edge:
                    agent.fence("tcgen05.before", site="before")
                agent.mbarrier.arrive(bar(1), order=OF_CLUSTER, site="cp issued")
                agent.tensor_core.commit(RANK + bar(1), cta_group=2, site="commit cp")
                yield from original(unit, RANK + bar(1), 0, site="cp done")
            yield from original(unit, address, parity, site=site, **order)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Mbarriers, "wait", wait)
            p.run(issue)
        if edge:
            np.testing.assert_array_equal(p.d, p.product)
        return p

    codes = found(build)
    assert codes == set() if edge else "race" in codes


@pytest.mark.parametrize("seed", ORDERS)
@pytest.mark.parametrize("waits", [True, False])
def test_a_pairs_cp_is_in_order_of_issue(waits: bool, seed: int | None) -> None:
    """A is copied anew between two mma; without a wait that is DeepGEMM's way with scales."""
    p = Pair(256, 32, seed)

    def issue(agent: Agent) -> Any:
        for again in (False, True):
            agent.tensor_core.cp(SLAB, rows(128, A, 1), cta_group=2, site="cp")
            p.mma(agent, TmemAddr(SLAB), enable_input_d=again)
            if waits and not again:
                agent.tensor_core.commit(bar(1), cta_group=2, site="commit")
                yield from agent.mbarrier.wait(bar(1), 0, site="copied")
                agent.fence("tcgen05.after", site="after")
        commit(agent)

    p.run(issue)
    assert p.codes == (set() if waits else {"issue-order"}), (p.machine.findings, p.error)
    np.testing.assert_array_equal(p.d, 2 * p.product)
