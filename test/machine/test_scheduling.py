"""What runs when: CTAs that wait for each other, polling without end, interrupts, shadow upkeep."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcir.machine.order.shadow as order_shadow
from tcir.machine import Agent, Assumptions, Deadlock, Machine, NotModelled, TensorOperand
from tcir.machine.order.clocks import Access
from tcir.machine.order.shadow import COMPACT, MANY, LastShadow, Shadow
from tcir.run_options import RunOptions
from tcir.target import DEFAULT_TARGET, TARGETS

from .bench import A2, ORDERS, TILE, Bench, bar, finish, mma


def idle(agent: Agent) -> Any:
    yield from ()


def peek(agent: Agent, address: int) -> int:
    raw = agent.memory.load("global", np.array([address]), 4, site="ld.flag")
    return int(raw.view(np.uint32)[0, 0])


def poke(agent: Agent, address: int, value: int) -> None:
    raw = np.array([[value]], np.uint32).view(np.uint8)
    agent.memory.store("global", np.array([address]), raw, site="st.flag")


def flags(
    count: int, body: Any, seed: int | None = None, spin_limit: int = 2000, **launch: Any
) -> Any:
    """Runs ``count`` CTAs on an array of flags."""
    options = RunOptions(seed, "off", assumptions=launch.pop("assumptions", None))
    sizes: Any = {"grid": (count, 1, 1), "block": (32, 1, 1)} | launch
    target, registers = sizes.pop("target", DEFAULT_TARGET), sizes.pop("registers", 0)
    machine = Machine(options=options, **sizes)
    machine.on(target, registers)
    machine.spin_limit = spin_limit
    array = np.zeros(count, np.uint32)
    base = machine.memory.bind(array)
    machine.run(
        lambda cta: [
            cta.agent("warp 0", warp=0, body=lambda agent: body(agent, base, cta.index[0]))
        ]
    )
    return array


@pytest.mark.parametrize("seed", ORDERS[:4])
def test_a_cta_may_wait_for_a_later_one(seed: int | None) -> None:
    """As in split-K: CTA 0 collects what all others have announced."""

    def body(agent: Agent, base: int, me: int) -> Any:
        if me:
            poke(agent, base + 4 * me, me)
            return
        for other in range(1, 4):
            while not peek(agent, base + 4 * other):
                yield from agent.pause()
        poke(agent, base, sum(range(4)))

    assert flags(4, body, seed).tolist() == [6, 1, 2, 3]


@pytest.mark.parametrize("seed", ORDERS[:4])
def test_ctas_may_take_turns(seed: int | None) -> None:
    def body(agent: Agent, base: int, me: int) -> Any:
        for turn in range(3):
            while peek(agent, base + 4 * (1 - me)) < turn + 1 - me:
                yield from agent.pause()
            poke(agent, base + 4 * me, turn + 1)

    assert flags(2, body, seed).tolist() == [3, 3]


def test_a_cta_that_polls_is_set_aside_at_once() -> None:
    """Turns are few: a word is read again a few times, until others have written it."""
    polls = 0

    def body(agent: Agent, base: int, me: int) -> Any:
        nonlocal polls
        while me < 7 and not peek(agent, base + 4 * (me + 1)):
            polls += 1
            yield from agent.pause()
        poke(agent, base + 4 * me, 1)

    assert flags(8, body).tolist() == [1] * 8 and polls < 8 * 8 * 10


SMS = DEFAULT_TARGET.sms
HALF = 113 << 10
"""Bytes of shared memory of which an SM has room for two."""


@pytest.mark.parametrize(
    ("launch", "each", "why"),
    [
        ({"dynamic_smem": 2 * HALF}, 1, "233472 bytes of shared memory"),
        ({"block": (1000, 1, 1)}, 2, "2048 threads, a CTA 1024"),
        ({"block": (256, 1, 1), "registers": 255}, 1, "65536 registers, a CTA 65280"),
        ({"cluster": (4, 1, 1), "dynamic_smem": 2 * HALF}, 1, "233472 bytes"),
        ({"cluster": (8, 1, 1), "dynamic_smem": 2 * HALF}, 144 / 148, "233472 bytes"),
        ({"dynamic_smem": 2 * HALF, "target": TARGETS["sm_90a"]}, 132 / 148, "sm_90a has 132 SMs"),
    ],
)
def test_more_ctas_than_the_sms_hold_cannot_all_wait(
    launch: dict[str, Any], each: float, why: str
) -> None:
    """The last CTA frees the others: it has to get a place while they wait."""

    def body(agent: Agent, base: int, me: int) -> Any:
        if me == count - 1:
            poke(agent, base + 4 * me, 1)
            return
        while not peek(agent, base + 4 * (count - 1)):
            yield from agent.pause()

    size = launch.get("cluster", (1,))[0]
    count = round(each * SMS)
    assert flags(count, body, spin_limit=50, **launch)[-1] == 1
    count += size
    with pytest.raises(Deadlock, match=r"global bytes at.*to change") as caught:
        flags(count, body, spin_limit=50, **launch)
    assert f"{count - size} of {count} CTAs are resident and wait" in str(caught.value)
    assert why in str(caught.value)


def test_columns_of_tensor_memory_keep_others_out() -> None:
    """A CTA that waits with half of the columns leaves room for one more on its SM."""

    def run(count: int, columns: int) -> None:
        def body(agent: Agent) -> Any:
            me = agent.cta.index[0]
            if me == count - 1:
                poke(agent, base, 1)
                return
            yield from agent.tmem.alloc(32, columns, site="alloc")
            while not peek(agent, base):
                yield from agent.pause()

        machine = Machine(grid=(count, 1, 1), block=(32, 1, 1), static_smem=64)
        machine.spin_limit = 50
        base = machine.memory.bind(np.zeros(1, np.uint32))
        machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=body)])

    run(SMS, 512)
    run(SMS + 1, 256)
    with pytest.raises(Deadlock, match=r"512 columns of tensor memory, a CTA 512"):
        run(SMS + 1, 512)


def test_ctas_may_wait_for_those_in_front() -> None:
    """However many: CTAs start in the order of their indices, if not assumed otherwise."""

    def body(agent: Agent, base: int, me: int) -> Any:
        while me and not peek(agent, base + 4 * (me - 1)):
            yield from agent.pause()
        poke(agent, base + 4 * me, 1)

    assert flags(2 * SMS, body, dynamic_smem=2 * HALF).all()
    any_order = Assumptions(cta_order="any")
    for count, seed in ((SMS, None), (8, 1), (8, 2)):
        assert flags(count, body, seed, dynamic_smem=2 * HALF, assumptions=any_order).all()
    with pytest.raises(Deadlock, match=f"{SMS} of {2 * SMS} CTAs are resident and wait"):
        flags(2 * SMS, body, spin_limit=50, dynamic_smem=2 * HALF, assumptions=any_order)


def test_polling_for_what_never_comes_is_a_deadlock() -> None:
    def flag(agent: Agent, base: int, me: int) -> Any:
        while not peek(agent, base):
            yield from agent.pause()

    with pytest.raises(Deadlock, match=r"warp 0 waits for global bytes.*ld.flag"):
        flags(2, flag)

    def barrier(agent: Agent) -> Any:
        while not agent.mbarrier.test(bar(0), 0, site="poll"):
            yield from agent.pause()

    bench = Bench().run(barrier, idle)
    assert bench.error is not None and bench.error.code == "deadlock"
    for words in ("parity 0", f"{bar(0):#x}", "phase 0", "1 of 1 arrivals pending", "poll"):
        assert words in str(bench.error)
    assert "warp 1 waits for barrier 0" in str(bench.error)


def test_a_long_loop_is_no_deadlock() -> None:
    """Instructions without any effect outside of the registers are progress, unless it polls."""

    def body(agent: Agent) -> Any:
        for _ in range(3 * agent.machine.spin_limit):
            agent.tick(1)
            yield from agent.pause()

    assert not Bench().run(body).codes


def test_an_interrupt_ends_the_run() -> None:
    def body(agent: Agent) -> Any:
        yield from agent.pause()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Bench().run(body)


def test_what_is_not_modelled_says_so() -> None:
    def body(agent: Agent) -> Any:
        agent.fence("of another world", site="line 7")
        yield from ()

    with pytest.raises(NotModelled, match="fence of another world") as caught:
        Bench().run(body)
    assert caught.value.site == "line 7"


@pytest.mark.parametrize("kind", [Shadow, LastShadow])
def test_forgotten_accesses_change_nothing(
    kind: type[Shadow], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long programs: only accesses that some granule still names are kept."""
    monkeypatch.setattr(order_shadow, "MANY", COMPACT)
    rng = np.random.default_rng(0)
    shadow, plain = kind(64, "memory"), kind(64, "memory")
    plain._room = 10**9
    for number in range(1, 3 * COMPACT):
        first, count = int(rng.integers(64)), int(rng.integers(1, 16))
        where = slice(first, first + count)
        access = Access(int(rng.integers(4)), number, "generic", number)
        for memory in (shadow, plain):
            if number % 3:
                memory.record_read(where, access)
            else:
                memory.record_write(where, access)
        if number % 500 == 0:
            for granule in range(64):
                at = slice(granule, granule + 1)
                assert shadow.writers_at(at) == plain.writers_at(at)
                assert set(shadow.readers_at(at)) == set(plain.readers_at(at))
    assert len(shadow.accesses) <= 2 * COMPACT < len(plain.accesses)


def test_what_ctas_did_together_is_named_after_others_are_forgotten() -> None:
    """The record has one access of a warp for all of them, until somebody asks for one's own."""
    shadow, count = LastShadow(64, "memory"), 2 * MANY
    ctas = [(x, 1, 2) for x in range(count)]
    for number in (1, 2):
        first = Access(((0, 1, 2), "warp 3"), number, "generic", "line 7", lanes=5)
        shadow.record_writes(np.arange(64), 1, np.arange(64) + number, [(first, c) for c in ctas])
    shadow.record_writes(np.array([9]), 1, np.array([0]), [Access("other", 1, "generic", "line 8")])
    for granule in range(64):
        (found,) = shadow.writers_at(slice(granule, granule + 1))
        if granule == 9:
            assert found.site == "line 8"
            continue
        assert found.cta == (granule + 2, 1, 2) and found.component[1] == "warp 3"
        assert (found.number, found.site, found.lanes) == (2, "line 7", 5)
        assert shadow.writers_at(slice(granule, granule + 1))[0] is found
    assert len(shadow.accesses) < 100


def test_clocks_do_not_grow_with_the_number_of_steps() -> None:
    def sizes(steps: int) -> list[int]:
        bench, found = Bench(), []

        def consumer(agent: Agent) -> Any:
            for step in range(steps):
                yield from agent.mbarrier.wait(bar(0), step & 1, site="full")
                agent.fence("tcgen05.after", site="after")
                mma(agent, a=A2, enable_input_d=step > 0)
                agent.tensor_core.commit(bar(1), site="empty")
            yield from finish(agent, 2)
            found.append(len(agent.clock))

        def producer(agent: Agent) -> Any:
            for step in range(steps):
                yield from agent.mbarrier.wait(bar(1), step & 1 ^ 1, site="empty")
                agent.mbarrier.arrive(bar(0), expect_tx=TILE, site="expect")
                agent.tma.load(A2, TensorOperand(bench.map(), (0, 0)), bar(0), site="TMA")
            found.append(len(agent.clock))

        bench.run(consumer, producer)
        assert not bench.codes
        return found

    assert sizes(5) == sizes(50)
