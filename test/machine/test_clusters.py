"""Clusters: their barrier, the shared memory and mbarriers of other CTAs, and who ends too early.

Pairs as in `test_pairs.py`: with the edge one result and no finding under every order, without it
the finding or error that the pair names under at least one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tcir.machine import Agent, Machine, MachineError, TensorMap, TensorOperand
from tcir.machine.order.mbarrier import MemoryOrder

from .bench import at_column_0

ORDERS = (None, *range(8))
BAR, WORDS = 64, 1024
RANK = 1 << 24
"""Address of the first byte of rank 1."""
OF_CLUSTER = MemoryOrder(scope="cluster")

Body = Callable[[Agent], Any]


class Ctas:
    """One cluster of CTAs of one warp each, mbarrier `BAR` (count 1) in all of them."""

    def __init__(self, seed: int | None = None, ctas: int = 2, **options: Any) -> None:
        self.machine = Machine(
            grid=(ctas, 1, 1),
            block=(32, 1, 1),
            cluster=(ctas, 1, 1),
            dynamic_smem=4096,
            options=at_column_0(seed, **options),
        )
        self.seen: list[Any] = []
        self.error: MachineError | None = None

    def run(self, *bodies: Body, end: bool = True) -> Ctas:
        """Body n runs in CTA n, after the mbarriers are there; `end`: a cluster barrier closes."""

        def program(agent: Agent) -> Any:
            agent.mbarrier.init(agent.cta.window + BAR, 1, site="init")
            agent.fence("mbarrier_init", site="fence.mbarrier_init")
            yield from meet(agent, relaxed=True)
            yield from bodies[agent.cta.rank_in_cluster](agent)
            if end:
                yield from meet(agent)

        try:
            self.machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=program)])
        except MachineError as error:
            self.error = error
        return self

    @property
    def codes(self) -> set[str]:
        found = {f.code for f in self.machine.findings}
        return found | ({self.error.code} if self.error else set())

    def load(self, agent: Agent, address: int, space: str = "cluster") -> None:
        where = np.array([address])
        self.seen.append((agent.cta.index, agent.memory.load(space, where, 4, site="ld").tobytes()))


def meet(agent: Agent, relaxed: bool = False) -> Any:
    agent.cluster_barrier.arrive(relaxed=relaxed, site="cluster arrive")
    yield from agent.cluster_barrier.wait(site="cluster wait")


def store(agent: Agent, address: int, value: int, space: str = "cluster") -> None:
    raw = np.array([[value]], np.uint32).view(np.uint8)
    agent.memory.store(space, np.array([address]), raw, site="st")


def nothing(agent: Agent) -> Any:
    yield from ()


PAIRS: dict[str, tuple[Callable[[Ctas, bool], Any], str]] = {}


def pair(code: str) -> Callable[[Any], Any]:
    def register(build: Any) -> Any:
        PAIRS[build.__name__] = (build, code)
        return build

    return register


@pair("race")
def a_word_stored_in_a_peer(c: Ctas, edge: bool) -> Any:
    def writer(agent: Agent) -> Any:
        store(agent, RANK + WORDS, 7)
        yield from meet(agent, relaxed=not edge)

    def reader(agent: Agent) -> Any:
        yield from meet(agent)
        c.load(agent, RANK + WORDS, "shared")

    return [writer, reader]


@pair("race")
def a_relaxed_arrival_needs_a_fence(c: Ctas, edge: bool) -> Any:
    def writer(agent: Agent) -> Any:
        store(agent, RANK + WORDS, 7)
        agent.fence("cluster" if edge else "cta", site="fence.acq_rel")
        yield from meet(agent, relaxed=True)

    def reader(agent: Agent) -> Any:
        yield from meet(agent)
        c.load(agent, RANK + WORDS, "shared")

    return [writer, reader]


@pair("race")
def a_fence_covers_only_what_is_before_it(c: Ctas, edge: bool) -> Any:
    def writer(agent: Agent) -> Any:
        if not edge:
            agent.fence("cluster", site="too early")
        store(agent, RANK + WORDS, 7)
        if edge:
            agent.fence("cluster", site="fence.acq_rel")
        yield from meet(agent, relaxed=True)

    def reader(agent: Agent) -> Any:
        yield from meet(agent)
        c.load(agent, RANK + WORDS, "shared")

    return [writer, reader]


@pair("race")
def a_word_announced_by_a_remote_arrival(c: Ctas, edge: bool) -> Any:
    def writer(agent: Agent) -> Any:
        if edge:
            store(agent, RANK + WORDS, 7)
        agent.mbarrier.arrive(RANK + BAR, order=OF_CLUSTER, site="remote arrive")
        if not edge:
            store(agent, RANK + WORDS, 7)
        yield from ()

    def reader(agent: Agent) -> Any:
        yield from agent.mbarrier.wait(RANK + BAR, 0, order=OF_CLUSTER, site="wait")
        c.load(agent, RANK + WORDS, "shared")

    return [writer, reader]


@pair("race")
def a_peer_overwrites_what_is_read(c: Ctas, edge: bool) -> Any:
    def reader(agent: Agent) -> Any:
        store(agent, WORDS, 1, "shared")
        if edge:
            c.load(agent, WORDS, "shared")
        yield from meet(agent)
        if not edge:
            c.load(agent, WORDS, "shared")

    def writer(agent: Agent) -> Any:
        yield from meet(agent)
        store(agent, WORDS, 2)

    return [reader, writer]


@pair("peer-exited")
def a_peer_is_there_while_it_is_read(c: Ctas, edge: bool) -> Any:
    def reader(agent: Agent) -> Any:
        yield from meet(agent)
        c.load(agent, RANK + WORDS)
        if edge:
            yield from meet(agent)

    def owner(agent: Agent) -> Any:
        store(agent, RANK + WORDS, 3, "shared")
        yield from meet(agent)
        if edge:
            yield from meet(agent)

    return c.run(reader, owner, end=False)


@pair("peer-exited")
def a_peer_is_there_while_its_mbarrier_is_signalled(c: Ctas, edge: bool) -> Any:
    def sender(agent: Agent) -> Any:
        agent.mbarrier.arrive(RANK + BAR, order=OF_CLUSTER, site="remote arrive")
        yield from ()

    def owner(agent: Agent) -> Any:
        if edge:
            yield from agent.mbarrier.wait(RANK + BAR, 0, order=OF_CLUSTER, site="wait")

    return c.run(sender, owner, end=False)


@pair("relaxed-cluster-barrier")
def a_peer_that_is_met_by_relaxed_arrivals(c: Ctas, edge: bool) -> Any:
    """As JAX's Mosaic GPU ends: the CTA is there until all have arrived."""

    def sender(agent: Agent) -> Any:
        agent.mbarrier.arrive(RANK + BAR, order=OF_CLUSTER, site="remote arrive")
        yield from meet(agent, relaxed=not edge)

    def owner(agent: Agent) -> Any:
        yield from meet(agent)

    return c.run(sender, owner, end=False)


def initialises(c: Ctas, meets: Callable[[Agent], Any]) -> Any:
    def owner(agent: Agent) -> Any:
        agent.mbarrier.init(BAR + 8, 1, site="init 2")
        yield from meets(agent)
        yield from agent.mbarrier.wait(BAR + 8, 0, order=OF_CLUSTER, site="wait 2")

    def user(agent: Agent) -> Any:
        yield from meets(agent)
        agent.mbarrier.arrive(BAR + 8, order=OF_CLUSTER, site="remote arrive")

    return [owner, user]


@pair("mbarrier-init-race")
def a_remote_mbarrier_is_initialised(c: Ctas, edge: bool) -> Any:
    return initialises(c, meet if edge else nothing)


@pair("relaxed-cluster-barrier")
def a_relaxed_arrival_after_the_init(c: Ctas, edge: bool) -> Any:
    """As in CUTLASS's examples 70 and 72a."""
    return initialises(c, lambda agent: meet(agent, relaxed=not edge))


@pair("relaxed-cluster-barrier")
def the_word_of_alloc_behind_relaxed_arrivals(c: Ctas, edge: bool) -> Any:
    """As in DeepGEMM's pairs; of any other store it is a race: `a_word_stored_in_a_peer`."""

    def owner(agent: Agent) -> Any:
        yield from agent.tmem.alloc(WORDS, 32, site="alloc")
        yield from meet(agent, relaxed=not edge)
        agent.tmem.dealloc(0, 32, site="dealloc")

    def reader(agent: Agent) -> Any:
        yield from meet(agent)
        c.load(agent, WORDS)

    return [owner, reader]


@pair("race")
def the_word_of_alloc_behind_no_barrier(c: Ctas, edge: bool) -> Any:
    def owner(agent: Agent) -> Any:
        yield from agent.tmem.alloc(WORDS, 32, site="alloc")
        if edge:
            yield from meet(agent)
        agent.tmem.dealloc(0, 32, site="dealloc")

    def reader(agent: Agent) -> Any:
        if edge:
            yield from meet(agent)
        c.load(agent, WORDS)
        yield from ()

    return [owner, reader]


@pair("deadlock")
def every_cta_arrives_at_the_cluster_barrier(c: Ctas, edge: bool) -> Any:
    def stays(agent: Agent) -> Any:
        yield from agent.mbarrier.wait(RANK + BAR, 0, site="never")

    return [meet, meet if edge else stays]


@pair("cluster-barrier-order")
def a_wait_between_two_arrivals(c: Ctas, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        agent.cluster_barrier.arrive(site="one")
        if edge:
            yield from agent.cluster_barrier.wait(site="wait")
        agent.cluster_barrier.arrive(site="two")
        yield from agent.cluster_barrier.wait(site="wait")

    return [body, body]


@pair("cluster-barrier-order")
def an_arrival_before_the_wait(c: Ctas, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        if edge:
            agent.cluster_barrier.arrive(site="arrive")
        yield from agent.cluster_barrier.wait(site="wait")

    return [body, body]


@pair("foreign-shared-memory")
def shared_cta_is_the_own_memory(c: Ctas, edge: bool) -> Any:
    def owner(agent: Agent) -> Any:
        store(agent, WORDS, 5)
        yield from meet(agent)

    def reader(agent: Agent) -> Any:
        yield from meet(agent)
        c.load(agent, WORDS, "cluster" if edge else "shared")

    return [owner, reader]


@pair("foreign-shared-memory")
def nobody_waits_at_a_remote_mbarrier(c: Ctas, edge: bool) -> Any:
    def waiter(agent: Agent) -> Any:
        yield from agent.mbarrier.wait(BAR if edge else RANK + BAR, 0, site="wait")

    def sender(agent: Agent) -> Any:
        agent.mbarrier.arrive(BAR if edge else RANK + BAR, site="arrive")
        yield from ()

    return [waiter, sender]


@pair("cluster-rank")
def the_rank_is_below_the_size(c: Ctas, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        store(agent, (1 if edge else 2) * RANK + WORDS, 5)
        yield from ()

    return [body, nothing]


@pair("mbarrier-overwritten")
def a_peers_mbarrier_is_no_data(c: Ctas, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        store(agent, RANK + (WORDS if edge else BAR), 5)
        yield from ()

    return [body, nothing]


# --- TMA to several CTAs -------------------------------------------------------------------------


def tile(c: Ctas) -> Any:
    """A tensor map of one box of 128 bytes."""
    array = np.arange(1, 33, dtype=np.uint32).reshape(1, 32)
    tensor = TensorMap.tiled(array, dtype="u32", dims=(32, 1), strides_bytes=(128,), box=(32, 1))
    return TensorMap.decode(tensor.encode(c.machine.memory.bind(array)))


def multicast(c: Ctas, agent: Agent, mask: int | None = 3, at: int = 0, **flags: Any) -> None:
    bar = flags.pop("mbar", BAR)
    agent.tma.load(
        at + WORDS, TensorOperand(tile(c), (0, 0)), bar, cta_mask=mask, site="TMA", **flags
    )


@pair("race")
def each_cta_waits_for_its_multicast_data(c: Ctas, edge: bool) -> Any:
    def both(agent: Agent) -> Any:
        own = agent.cta.window
        agent.mbarrier.arrive(own + BAR, expect_tx=128, site="expect")
        if own == 0:
            multicast(c, agent)
        if edge or own == 0:
            yield from agent.mbarrier.wait(own + BAR, 0, site="wait")
        else:
            yield from agent.pause()
        c.load(agent, own + WORDS, "shared")

    return [both, both]


@pair("race")
def the_issuer_knows_that_the_peers_tile_is_free(c: Ctas, edge: bool) -> Any:
    def issuer(agent: Agent) -> Any:
        if edge:
            yield from meet(agent)
        agent.mbarrier.arrive(BAR, expect_tx=128, site="expect")
        multicast(c, agent)
        yield from agent.mbarrier.wait(BAR, 0, site="wait")
        if not edge:
            yield from meet(agent)

    def user(agent: Agent) -> Any:
        store(agent, RANK + WORDS, 9, "shared")
        agent.fence("proxy.async", site="fence.proxy.async")
        agent.mbarrier.arrive(RANK + BAR, expect_tx=128, site="expect")
        yield from meet(agent)
        yield from agent.mbarrier.wait(RANK + BAR, 0, site="wait")

    return [issuer, user]


@pair("deadlock")
def a_pairs_loads_all_count_on_the_leader(c: Ctas, edge: bool) -> Any:
    """Bit 24 cleared in the odd CTA names the even one's mbarrier; that takes .cta_group::2."""

    def leader(agent: Agent) -> Any:
        agent.mbarrier.arrive(BAR, expect_tx=256, site="expect")
        multicast(c, agent, mask=None)
        yield from agent.mbarrier.wait(BAR, 0, site="wait")
        c.load(agent, RANK + WORDS)

    def other(agent: Agent) -> Any:
        bar = (RANK + BAR) & ~RANK if edge else RANK + BAR
        multicast(c, agent, mask=None, at=RANK, mbar=bar, cta_group=2)
        yield from ()

    return [leader, other]


@pair("foreign-mbarrier")
def without_a_group_the_mbarrier_is_with_the_data(c: Ctas, edge: bool) -> Any:
    def issuer(agent: Agent) -> Any:
        agent.mbarrier.arrive(RANK + BAR, expect_tx=128, site="expect")
        multicast(c, agent, mask=None, at=RANK, mbar=RANK + BAR if edge else BAR)
        yield from ()

    def user(agent: Agent) -> Any:
        yield from agent.mbarrier.wait(RANK + BAR, 0, site="wait")

    return [issuer, user]


@pair("cta-mask")
def a_mask_names_some_cta(c: Ctas, edge: bool) -> Any:
    def issuer(agent: Agent) -> Any:
        agent.mbarrier.arrive(BAR, expect_tx=128, site="expect")
        multicast(c, agent, mask=1 if edge else 0)
        yield from agent.mbarrier.wait(BAR, 0, site="wait")

    return [issuer, nothing]


@pair("cluster-rank")
def a_mask_names_ctas_of_the_cluster(c: Ctas, edge: bool) -> Any:
    def issuer(agent: Agent) -> Any:
        agent.mbarrier.arrive(BAR, expect_tx=128, site="expect")
        multicast(c, agent, mask=1 if edge else 5)
        yield from agent.mbarrier.wait(BAR, 0, site="wait")

    return [issuer, nothing]


def test_multicast_to_some_of_four() -> None:
    """With cta_group::2 every destination signals the CTA of its pair with mbar's parity."""
    for seed in ORDERS:
        c = Ctas(seed, ctas=4)

        def program(agent: Agent, c: Ctas = c) -> Any:
            rank, own = agent.cta.rank_in_cluster, agent.cta.window
            if rank == 1:
                multicast(c, agent, mask=0b1101, cta_group=2, mbar=RANK + BAR)
            if rank % 2:
                agent.mbarrier.arrive(
                    own + BAR, expect_tx=128 * rank - 128 * (rank > 1), site="expect"
                )
                yield from agent.mbarrier.wait(own + BAR, 0, site="wait")
            yield from meet(agent)
            if rank != 1:
                data = agent.memory.load("shared", own + WORDS + 4 * np.arange(32), 4, site="ld")
                assert (data.view(np.uint32)[:, 0] == np.arange(1, 33)).all()

        c.run(*[program] * 4)
        assert not c.codes, (c.machine.findings, c.error)
        assert c.machine.counters.global_to_shared == 3 * 128
        assert c.machine.counters.global_to_shared_read == 128


def outcome(name: str, edge: bool, seed: int | None) -> Ctas:
    c = Ctas(seed)
    built = PAIRS[name][0](c, edge)
    return built if isinstance(built, Ctas) else c.run(*built)


@pytest.mark.parametrize("name", PAIRS)
def test_the_edge_is_enough(name: str) -> None:
    runs = [outcome(name, True, seed) for seed in ORDERS]
    for c in runs:
        assert not c.codes, (c.machine.findings, c.error)
    assert len({repr(sorted(c.seen)) for c in runs}) == 1


@pytest.mark.parametrize("name", PAIRS)
def test_without_the_edge(name: str) -> None:
    assert any(PAIRS[name][1] in outcome(name, False, seed).codes for seed in ORDERS)


@pytest.mark.parametrize("ordering, severity", [("silicon", "warning"), ("isa", "error")])
@pytest.mark.parametrize("name", [n for n in PAIRS if PAIRS[n][1] == "relaxed-cluster-barrier"])
def test_relaxed_arrivals_are_a_warning(name: str, ordering: str, severity: str) -> None:
    """They order execution; what they leave unpromised ships."""
    for seed in ORDERS:
        c = Ctas(seed, ordering=ordering)
        built = PAIRS[name][0](c, False)
        c = built if isinstance(built, Ctas) else c.run(*built)
        found = {(f.severity, f.code) for f in c.machine.findings}
        assert c.error is None and found == {(severity, "relaxed-cluster-barrier")}


def test_one_store_reaches_two_ctas() -> None:
    """Lanes of one instruction may address different CTAs."""
    c = Ctas(ctas=4)
    words = np.arange(8, dtype=np.uint32)[:, None].view(np.uint8)

    def first(agent: Agent) -> Any:
        targets = np.array([r * RANK + WORDS + 4 * i for i in range(2) for r in range(4)])
        agent.memory.store("cluster", targets, words, site="st")
        assert (agent.memory.load("cluster", targets, 4, site="ld") == words).all()
        yield from meet(agent)

    def other(agent: Agent) -> Any:
        yield from meet(agent)
        rank = agent.cta.rank_in_cluster
        at = agent.cta.window + WORDS + 4 * np.arange(2)
        got = agent.memory.load("shared", at, 4, site="ld").view(np.uint32)[:, 0]
        assert got.tolist() == [rank, rank + 4]

    c.run(first, other, other, other)
    assert not c.codes, (c.machine.findings, c.error)


def test_ranks_and_places() -> None:
    """The rank counts x first, then y, then z inside the cluster."""
    machine = Machine(grid=(4, 4, 2), block=(32, 1, 1), cluster=(2, 2, 1))
    seen: dict[Any, int] = {}

    def body(agent: Agent) -> Any:
        seen[agent.cta.index] = agent.cta.rank_in_cluster
        yield from ()

    machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=body)])
    assert seen == {
        (x, y, z): x % 2 + 2 * (y % 2) for x in range(4) for y in range(4) for z in (0, 1)
    }
    with pytest.raises(ValueError, match="multiple of the cluster"):
        Machine(grid=(3, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))


def test_a_deadlock_names_the_ctas() -> None:
    def waits(agent: Agent) -> Any:
        yield from agent.mbarrier.wait(agent.cta.window + BAR, 0, site="line 9")

    c = Ctas().run(meet, waits)
    assert c.error is not None and c.error.code == "deadlock"
    assert "without warp 0 of CTA (1, 0, 0)" in str(c.error) and "line 9" in str(c.error)


def test_a_peer_that_happens_to_stay_long_enough() -> None:
    """The finding does not depend on who ended first."""

    def reader(agent: Agent) -> Any:
        store(agent, RANK + WORDS, 1)
        yield from ()

    def owner(agent: Agent) -> Any:
        for _ in range(50):
            yield from agent.pause()

    c = Ctas().run(reader, owner, end=False)
    assert c.error is None and c.codes == {"peer-exited"}
