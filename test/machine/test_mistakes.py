"""More of what commonly goes wrong, one small program each; docs/explanation/hazards.md lists all
of them.

As in `test_pairs.py`: with the edge no finding and one result under every order, without it the
code that the pair names under at least one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tcir.machine import Agent, Machine, SharedDesc

from . import test_block_scale
from .bench import A2, A2_VALUES, ORDERS, SLAB, TILE, B, Bench, D, bar, fill, finish, mma
from .issue import issue_mma_bits

PAIRS: dict[str, tuple[Callable[[Bench, bool], Any], set[str]]] = {}


def pair(*codes: str) -> Callable[[Any], Any]:
    """Registers ``build(bench, edge)``, which gives the bodies; without it, one of `codes`."""

    def register(build: Any) -> Any:
        PAIRS[build.__name__] = (build, set(codes))
        return build

    return register


@pair("missing-proxy-fence")
def cp_async_writes_through_the_generic_proxy(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        queue, lanes = agent.cp_async, np.arange(32)
        for part in range(TILE // 512):
            queue.copy(
                0xFFFFFFFF,
                A2 + 512 * part + 16 * lanes,
                b.source_at + 512 * part + 16 * lanes,
                16,
                np.full(32, 16),
                site="cp.async",
            )
        queue.commit(0xFFFFFFFF)
        yield from queue.wait(0xFFFFFFFF, 0, site="cp.async.wait_group")
        if edge:
            agent.fence("proxy.async", site="fence")
        mma(agent, a=A2)
        yield from finish(agent, 0)

    return [body]


@pair("race")
def a_thread_that_waited_for_tma_needs_no_proxy_fence(b: Bench, edge: bool) -> Any:
    def loader(agent: Agent) -> Any:
        b.tma(agent, 0)
        yield from agent.mbarrier.wait(bar(0), 0, site="full")

    def reader(agent: Agent) -> Any:
        if edge:
            yield from agent.mbarrier.wait(bar(0), 0, site="full")
        b.word(agent, "shared", A2)
        yield from agent.pause()

    def first(agent: Agent) -> Any:  # so that the bytes are not undefined
        if agent.warp == 0:
            fill(agent, A2, A2_VALUES)
            agent.fence("proxy.async", site="fence")
        yield from agent.barrier.sync(1, 64, site="filled")
        yield from (loader if agent.warp == 0 else reader)(agent)

    return [first, first]


IDESC = 1 << 4 | 16 // 8 << 17 | 128 // 16 << 24
"""f16 A and B, both K-major, f32 D, M = 128, N = 16."""
K_MAJOR = 2048 >> 4 << 16 | 128 >> 4 << 32 | 1 << 46
"""No swizzle: 8 rows of 16 bytes every 128 bytes (SBO), the second 16 bytes 2 KB on (LBO)."""
TALL = np.tile(A2_VALUES, (1, 2))[:, :16]


def by_descriptor(descriptor: int, idesc: int = IDESC, n: int = 16) -> Callable[[Agent], Any]:
    def body(agent: Agent) -> Any:
        fill(agent, A2, TALL)
        fill(agent, B, np.tile(A2_VALUES, (n // 128 + 1, 1))[: max(n, 128)])
        agent.fence("proxy.async", site="fence")
        b = B >> 4 | (max(n, 128) * 16) >> 4 << 16 | 128 >> 4 << 32 | 1 << 46
        issue_mma_bits(
            agent,
            D,
            SharedDesc(A2 >> 4 | descriptor),
            b,
            idesc,
            kind="f16",
            enable_input_d=False,
            site="mma",
        )
        yield from finish(agent, 0)

    return body


@pair("bad-descriptor")
def n_is_at_most_256(b: Bench, edge: bool) -> Any:
    b.columns = 512
    n = 256 if edge else 264
    return [by_descriptor(K_MAJOR, 1 << 4 | n // 8 << 17 | 128 // 16 << 24, 272)]


@pair("descriptor-constant")
def the_descriptor_has_the_constant_of_this_generation(b: Bench, edge: bool) -> Any:
    """JAX's Mosaic GPU leaves it 0, and its kernels run: the result is right, with a warning."""
    return [by_descriptor(K_MAJOR if edge else K_MAJOR & ~(1 << 46))]


@pair("descriptor-constant")
def the_descriptor_of_cp_has_it_too(b: Bench, edge: bool) -> Any:
    def body(agent: Agent) -> Any:
        descriptor = A2 >> 4 | (K_MAJOR if edge else K_MAJOR & ~(1 << 46))
        fill(agent, A2, TALL)
        agent.fence("proxy.async", site="fence")
        agent.tensor_core.cp(SLAB, SharedDesc(descriptor), site="cp")
        yield from finish(agent, 0)

    return [body]


@pair("bad-descriptor")
def bits_47_and_48_are_zero(b: Bench, edge: bool) -> Any:
    return [by_descriptor(K_MAJOR if edge else K_MAJOR | 1 << 47)]


@pair("bad-descriptor")
def a_swizzle_code_is_one_of_the_five(b: Bench, edge: bool) -> Any:
    return [by_descriptor(K_MAJOR if edge else K_MAJOR | 3 << 61)]


@pair("out-of-bounds", "undefined-read")
def lbo_and_sbo_have_their_own_places(b: Bench, edge: bool) -> Any:
    return [by_descriptor(K_MAJOR if edge else 128 >> 4 << 16 | 2048 >> 4 << 32 | 1 << 46)]


@pair("bad-descriptor")
def max_shift_belongs_to_ws(b: Bench, edge: bool) -> Any:
    return [by_descriptor(K_MAJOR, IDESC if edge else IDESC | 1 << 30)]


@pair("bad-descriptor")
def a_swizzle_pattern_starts_where_the_address_says(b: Bench, edge: bool) -> Any:
    """A base offset is refused: the machine takes the pattern's phase from the address."""
    return [by_descriptor(K_MAJOR if edge else K_MAJOR | 1 << 49 | 6 << 61)]


@pair("bad-descriptor")
def without_a_swizzle_the_base_offset_means_nothing(b: Bench, edge: bool) -> Any:
    """Triton sets it to address bits 9..7 in the descriptors of scales, which have no swizzle."""
    return [by_descriptor(K_MAJOR | 5 << 49 | (0 if edge else 6 << 61))]


@pair("phase-overtaken", "mbarrier-over-arrival")
def each_round_of_a_rendezvous_has_its_barrier(b: Bench, edge: bool) -> Any:
    """Two CTAs meet twice; who is ahead ends round 2 where round 1 is still awaited. The waiter is
    woken by its round all the same, as a suspended try_wait is."""
    rank_bit = 1 << 24

    def body(agent: Agent) -> Any:
        own = agent.cta.window
        for i in range(3):
            agent.mbarrier.init(own + bar(i), 2, site=f"init {i}")
        agent.fence("mbarrier_init", site="fence")
        agent.cluster_barrier.arrive(site="arrive")
        yield from agent.cluster_barrier.wait(site="wait")
        for turn in range(3):
            at = bar(turn if edge else 0)
            for rank in (0, 1):
                agent.mbarrier.arrive(rank * rank_bit + at, site=f"arrive, turn {turn}")
            if own or edge or turn != 1:  # CTA 0 leaves one wait out
                parity = 0 if edge else turn & 1
                yield from agent.mbarrier.wait(own + at, parity, site=f"wait, turn {turn}")
        agent.cluster_barrier.arrive(site="arrive")
        yield from agent.cluster_barrier.wait(site="wait")

    bench = Bench(b.machine.options.order_seed)
    bench.machine = Machine(
        grid=(2, 1, 1),
        block=(32, 1, 1),
        cluster=(2, 1, 1),
        dynamic_smem=1024,
        options=b.machine.options,
    )
    return bench.run(body, bare=True)


def run(name: str, edge: bool, seed: int | None, **options: Any) -> Bench:
    bench = Bench(seed, **options)
    built = PAIRS[name][0](bench, edge)
    return built if isinstance(built, Bench) else bench.run(*built)


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
    found = [run(name, False, seed).codes for seed in ORDERS]
    assert any(PAIRS[name][1] & codes for codes in found), found


@pytest.mark.parametrize("bit", [0, 1 << 12])
def test_a_bit_without_a_meaning(bit: int) -> None:
    """CuTe DSL 4.8 sets bit 12 of the instruction descriptor of mxf4nvf4 unless told not to."""

    class WithBit(test_block_scale.Case):
        def idesc(self, sf_id: int = 0) -> int:
            return super().idesc(sf_id) | bit

    case = WithBit(*test_block_scale.FORMS[5])
    machine, seen = test_block_scale.run(case.program())
    np.testing.assert_array_equal(seen["d"], case.expected())
    found = [(f.severity, f.code) for f in machine.findings]
    assert found == ([("warning", "ignored-bit")] if bit else [])
