"""What tensor memory holds, word by word, after cp, shift, .ashift, masked and M = 64 mma."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcir.machine import Agent, Assumptions, ElementAddresses, Machine, TmemAddr
from tcir.machine.memory.tensor_memory import POISON_WORD, UNSPECIFIED_HALF

from .bench import A_VALUES, B_VALUES, D2, ORDERS, SLAB, A, B, Bench, D, N, finish, mma, rows
from .issue import issue_mma

STAY = [31, 63, 95, 127]
"""Lanes whose content no shift changes: the last one of each quarter."""
WORDS = A_VALUES.view(np.uint32)
"""A as tensor memory holds it: lane, 8 columns."""
UP = np.array([lane if lane in STAY else lane + 1 for lane in range(128)])
PRODUCT = (A_VALUES.astype(np.float32) @ B_VALUES.astype(np.float32).T).view(np.uint32)


def after(body: Any, seed: int | None = None, **options: Any) -> Any:
    """(words, defined) of the whole tensor memory when the body's operations are complete."""
    bench = Bench(seed, **options)
    held: list[Any] = []

    def program(agent: Agent) -> Any:
        body(agent)
        yield from finish(agent, 7)
        held.extend((agent.cta.tmem.words.copy(), agent.cta.tmem.defined.copy()))

    bench.run(program)
    assert not bench.codes, (bench.error, bench.machine.findings)
    return held


def copy(agent: Agent, taddr: int = SLAB, shape: str = "128x256b", **flags: Any) -> None:
    count, width = {
        "128x256b": (128, 32),
        "128x128b": (128, 16),
        "64x128b": (64, 16),
        "32x128b": (32, 16),
        "4x256b": (4, 32),
    }[shape]
    agent.tensor_core.cp(
        taddr, ElementAddresses(rows(count, A, step=1)[:, :width]), shape, site="cp", **flags
    )


@pytest.mark.parametrize("seed", ORDERS)
def test_ashift_moves_the_slab_after_the_product(seed: int | None) -> None:
    def body(agent: Agent) -> None:
        copy(agent)
        mma(agent, D, TmemAddr(SLAB), ashift=True)

    words, defined = after(body, seed)
    np.testing.assert_array_equal(words[:, D : D + N], PRODUCT)  # of the slab as it was
    np.testing.assert_array_equal(words[:, SLAB : SLAB + 8], WORDS[UP])
    np.testing.assert_array_equal(words[STAY, SLAB : SLAB + 8], WORDS[STAY])
    assert defined[:, SLAB : SLAB + 8].all() and not defined[:, SLAB + 8 :].any()


@pytest.mark.parametrize("seed", ORDERS)
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_chain_of_ashift(times: int, seed: int | None) -> None:
    """Every tap of a filter row sees the slab one lane further; the last lanes are stale."""

    def body(agent: Agent) -> None:
        copy(agent)
        for _ in range(times):
            mma(agent, D, TmemAddr(SLAB), ashift=True)
        mma(agent, D, TmemAddr(SLAB))

    words, _ = after(body, seed)
    source = np.arange(128)
    for _ in range(times):
        source = source[UP]
    assert source[0] == times and source[31 - times] == 31 and set(source[31 - times : 32]) == {31}
    np.testing.assert_array_equal(words[:, SLAB : SLAB + 8], WORDS[source])
    np.testing.assert_array_equal(words[:, D : D + N], PRODUCT[source])


@pytest.mark.parametrize("quarter", range(4))
@pytest.mark.parametrize("reading", ["one", "all"])
def test_a_stand_alone_shift(reading: str, quarter: int) -> None:
    def body(agent: Agent) -> None:
        copy(agent)
        mma(agent, D, TmemAddr(SLAB))
        agent.tensor_core.shift(32 * quarter << 16 | SLAB, site="shift")

    words, _ = after(body, assumptions=Assumptions(shift_quarters=reading))
    moved = np.arange(128) // 32 == quarter if reading == "one" else np.ones(128, bool)
    expected = np.where(moved[:, None], WORDS[UP], WORDS)
    np.testing.assert_array_equal(words[:, SLAB : SLAB + 8], expected)


def test_a_shift_moves_eight_columns() -> None:
    def body(agent: Agent) -> None:
        copy(agent, SLAB)
        copy(agent, SLAB + 8)
        mma(agent, D, TmemAddr(SLAB), ashift=True)

    words, _ = after(body)
    np.testing.assert_array_equal(words[:, SLAB + 8 : SLAB + 16], WORDS)


@pytest.mark.parametrize("lane", [0, 17, 31])
def test_cp_of_four_rows_goes_to_one_lane_of_each_quarter(lane: int) -> None:
    words, defined = after(lambda agent: copy(agent, lane << 16 | SLAB, "4x256b"))
    np.testing.assert_array_equal(words[lane::32, SLAB : SLAB + 8], WORDS[:4])
    assert defined[:, SLAB].nonzero()[0].tolist() == [lane + 32 * q for q in range(4)]


@pytest.mark.parametrize(
    ("shape", "multicast", "source"),
    [
        ("128x128b", None, np.arange(128)),
        ("64x128b", "warpx2::02_13", np.arange(128) % 64),
        ("64x128b", "warpx2::01_23", np.arange(128) % 32 + 32 * (np.arange(128) // 64)),
        ("32x128b", "warpx4", np.arange(128) % 32),
    ],
)
def test_cp_of_half_rows(shape: str, multicast: str | None, source: Any) -> None:
    words, defined = after(lambda agent: copy(agent, SLAB, shape, multicast=multicast))
    np.testing.assert_array_equal(words[:, SLAB : SLAB + 4], WORDS[source, :4])
    assert defined[:, SLAB : SLAB + 4].all() and not defined[:, SLAB + 4].any()


MASK = (0x0000FFFF, 0, 0xFFFFFFFF, 1 << 31)
OFF = np.array([MASK[lane // 32] >> lane % 32 & 1 for lane in range(128)], bool)


def test_a_masked_lane_is_not_written() -> None:
    """What it held stays, also when D is not an input."""

    def body(agent: Agent) -> None:
        mma(agent)
        mma(agent, disable_lanes=MASK, enable_input_d=True)

    words, defined = after(body)
    twice = (2 * PRODUCT.view(np.float32)).view(np.uint32)
    np.testing.assert_array_equal(words[:, D : D + N], np.where(OFF[:, None], PRODUCT, twice))
    assert defined[:, D : D + N].all()


def test_two_masked_mma_fill_one_accumulator() -> None:
    rest = tuple(~m & 0xFFFFFFFF for m in MASK)

    def body(agent: Agent) -> None:
        mma(agent, disable_lanes=MASK)
        mma(agent, disable_lanes=rest)

    words, defined = after(body)
    np.testing.assert_array_equal(words[:, D : D + N], PRODUCT)
    assert defined[:, D : D + N].all()


def test_a_masked_lane_nobody_wrote_stays_undefined() -> None:
    words, defined = after(lambda agent: mma(agent, disable_lanes=MASK))
    assert (words[OFF, D : D + N] == POISON_WORD).all()
    np.testing.assert_array_equal(defined[:, D], ~OFF)


@pytest.mark.parametrize("half", [0, 16])
def test_m64_uses_half_of_the_lanes_of_each_quarter(half: int) -> None:
    def body(agent: Agent) -> None:
        issue_mma(
            agent,
            half << 16 | D,
            ElementAddresses(rows(64, A)),
            ElementAddresses(rows(N, B)),
            64,
            N,
            "f16",
            "f16",
            enable_input_d=False,
            site="mma",
        )

    words, defined = after(body)
    lanes = np.array([m % 16 + 32 * (m // 16) + half for m in range(64)])
    np.testing.assert_array_equal(words[lanes, D : D + N], PRODUCT[:64])
    assert sorted(defined[:, D].nonzero()[0]) == sorted(lanes)


@pytest.mark.parametrize("half", [0, 16])
def test_m64_takes_a_from_the_same_lanes(half: int) -> None:
    def body(agent: Agent) -> None:
        copy(agent)
        issue_mma(
            agent,
            half << 16 | D,
            TmemAddr(half << 16 | SLAB),
            ElementAddresses(rows(N, B)),
            64,
            N,
            "f16",
            "f16",
            enable_input_d=False,
            site="mma",
        )

    words, _ = after(body)
    lanes = np.array([m % 16 + 32 * (m // 16) + half for m in range(64)])
    np.testing.assert_array_equal(words[lanes, D : D + N], PRODUCT[lanes])


def test_two_m64_accumulators_share_columns() -> None:
    def body(agent: Agent) -> None:
        for half, base in ((0, A), (16, A + 64 * 32)):
            issue_mma(
                agent,
                half << 16 | D,
                ElementAddresses(rows(64, base)),
                ElementAddresses(rows(N, B)),
                64,
                N,
                "f16",
                "f16",
                enable_input_d=False,
                site=f"mma {half}",
            )

    words, defined = after(body)
    assert defined[:, D : D + N].all()
    lanes = np.array([m % 16 + 32 * (m // 16) for m in range(64)])
    np.testing.assert_array_equal(words[lanes + 16, D : D + N], PRODUCT[64:])


def test_an_f16_accumulator_lies_one_per_column() -> None:
    words, _ = after(lambda agent: mma(agent, D2, d_type="f16"))
    expected = PRODUCT.view(np.float32).astype(np.float16).view(np.uint16)
    np.testing.assert_array_equal(words[:, D2 : D2 + N] & 0xFFFF, expected)
    assert ((words[:, D2 : D2 + N] & 0xFFFF0000) == UNSPECIFIED_HALF).all()


def test_pack_and_unpack_are_inverse() -> None:
    bench = Bench()
    data = np.arange(16 * 32, dtype=np.uint32).reshape(16, 32) * 0x00010003
    seen: list[Any] = []

    def body(agent: Agent) -> Any:
        agent.tmem.st(D, "32x32b", 16, data, unpack=True, site="st")
        agent.tmem.wait("st", site="wait")
        seen.append(agent.tmem.ld(D, "32x32b", 16, pack=True, site="ld"))
        seen.append(agent.tmem.ld(D, "32x32b", 32, site="ld"))
        agent.tmem.wait("ld", site="wait")
        yield from ()

    bench.run(body)
    assert not bench.codes
    np.testing.assert_array_equal(seen[0], data)
    np.testing.assert_array_equal(seen[1][::2] & 0xFFFF, data & 0xFFFF)
    np.testing.assert_array_equal(seen[1][1::2] & 0xFFFF, data >> 16)


def cp_rows(agent: Agent, lane: int, count: int, shape: str = "128x256b") -> None:
    """A copy of some rows of A."""
    source = ElementAddresses(rows(count, A, step=1))
    agent.tensor_core.cp(lane << 16 | SLAB, source, shape, site="")


@pytest.mark.parametrize(
    ("act", "code"),
    [
        (lambda a: cp_rows(a, 32, 4, "4x256b"), "lane"),
        (lambda a: cp_rows(a, 1, 128), "lane"),
        (lambda a: cp_rows(a, 0, 64), "cp-source"),
        (lambda a: a.tensor_core.shift(16 << 16 | SLAB, site=""), "lane"),
        (lambda a: a.tensor_core.shift(128 << 16 | SLAB, site=""), "lane"),
        (lambda a: mma(a, 16 << 16 | D), "lane"),
        (lambda a: mma(a, D, TmemAddr(16 << 16 | SLAB)), "lane"),
        (lambda a: mma(a, D, A, ashift=True), "ashift-operand"),
        (lambda a: mma(a, D, TmemAddr(SLAB), ashift=True, collector="use"), "ashift-collector"),
        (lambda a: mma(a, disable_lanes=(1, 2)), "lane-mask"),
        (lambda a: mma(a, n=12), "mma-shape"),
        (lambda a: mma(a, a=A + 1), "misaligned"),
        (lambda a: mma(a, a=32768 - 64), "out-of-bounds"),
        (lambda a: issue_mma(
            a, D, TmemAddr(SLAB), ElementAddresses(rows(N, B)), 64, N, "f16", "f16",
            enable_input_d=False, ashift=True, site=""), "ashift-rows"),
    ],
)  # fmt: skip
def test_what_the_hardware_does_not_do_is_refused(act: Any, code: str) -> None:
    bench = Bench()

    def body(agent: Agent) -> Any:
        act(agent)
        yield from finish(agent, 0)

    bench.run(body)
    assert bench.error is not None and code in bench.error.code, bench.error


def test_a_cta_that_does_not_use_it_holds_no_words() -> None:
    """Nor accesses to them: a grid of small CTAs would spend most of its time on these."""
    held: list[set[str]] = []

    def body(agent: Agent) -> Any:
        yield from agent.barrier.sync(0, 32, site="bar")
        held.append({"words", "shadow"} & vars(agent.cta.tmem).keys())

    machine = Machine(grid=(2, 1, 1), block=(32, 1, 1))
    machine.run(lambda cta: [cta.agent("warp 0", warp=0, body=body)])
    assert not machine.findings and held == [set(), set()]
