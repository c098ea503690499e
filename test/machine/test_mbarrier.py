"""mbarrier objects against a model of their definition, and what using them wrongly gives."""

from __future__ import annotations

import contextlib
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from tcir.machine import Agent, Deadlock, MachineError, TensorOperand

from .agent_programs import A_AT, A_BYTES, FULL, SMEM, Run, load_ab


def alone(program):
    """Runs one warp that never blocks."""
    run = Run()

    def body(agent):
        program(agent)
        yield from agent.pause()

    run.agents(body)
    return run


STEP = st.one_of(
    st.tuples(st.just("arrive"), st.integers(1, 3)),
    st.tuples(st.just("expect"), st.integers(1, 4)),
    st.tuples(st.just("load"), st.just(1)),
)


@settings(max_examples=200, deadline=None)
@given(count=st.integers(1, 4), steps=st.lists(STEP, max_size=25))
def test_phases_follow_the_definition(count, steps):
    """A phase ends with the arrival or the bytes after which neither is outstanding.

    Parity names the current phase and the one before it. expect_tx by itself never ends a phase.
    """
    phase, pending, tx = 0, count, 0
    legal = True

    def program(agent):
        nonlocal phase, pending, tx, legal
        agent.mbarrier.init(FULL, count, site="init")
        for kind, number in steps:
            if kind == "arrive":
                legal = number <= pending
                if not legal:
                    break
                agent.mbarrier.arrive(FULL, number, site="arrive")
                pending -= number
            elif kind == "expect":
                agent.mbarrier.expect_tx(FULL, number * A_BYTES, site="expect")
                tx += number
            else:
                agent.tma.load(A_AT, TensorOperand(run.map_a, (0, 0)), FULL, site="load")
                tx -= 1
            if kind != "expect" and pending == 0 and tx == 0:
                phase, pending = phase + 1, count
            assert agent.mbarrier.test(FULL, phase & 1 ^ 1, site="test")  # the one before
            assert not agent.mbarrier.test(FULL, phase & 1, site="test")  # the current one
        if not legal:
            with pytest.raises(MachineError, match="over-arrival"):
                agent.mbarrier.arrive(FULL, number, site="arrive")

    run = Run()

    def body(agent):
        program(agent)
        yield from agent.pause()

    run.agents(body)
    # What is left over at the end of the kernel is reported.
    assert (("error", "expect-tx-mismatch") in run.codes) == (tx != 0)


@pytest.mark.parametrize("ordering, severity", [("silicon", "warning"), ("isa", "error")])
def test_announced_bytes_of_a_phase_that_is_never_used(ordering: str, severity: str) -> None:
    """As producer_tail of CuTe DSL leaves them; of a phase that is, they are an error."""

    def left(asks: bool, loads: bool) -> set[tuple[str, str]]:
        run = Run(1, ordering=ordering)

        def body(agent: Agent) -> Any:
            agent.mbarrier.init(FULL, 1, site="init")
            agent.mbarrier.arrive(FULL, expect_tx=2 * A_BYTES, site="announce")
            if asks:
                assert not agent.mbarrier.test(FULL, 0, site="test")
            if loads:
                agent.tma.load(A_AT, TensorOperand(run.map_a, (0, 0)), FULL, site="load")
            yield from agent.pause()

        run.agents(body)
        return {c for c in run.codes if c[1] == "expect-tx-mismatch"}

    assert left(asks=False, loads=False) == {(severity, "expect-tx-mismatch")}
    assert left(asks=True, loads=False) == {("error", "expect-tx-mismatch")}
    assert left(asks=False, loads=True) == {("error", "expect-tx-mismatch")}


def test_arrive_with_expect_tx_announces_before_it_arrives():
    run = Run(3)

    def body(agent):
        agent.mbarrier.init(FULL, 1, site="init")
        for phase in range(4):
            load_ab(agent, run)
            assert not agent.mbarrier.test(FULL, phase & 1, site="test")  # nothing has landed yet
            yield from agent.mbarrier.wait(FULL, phase & 1, site="wait")
            assert agent.mbarrier.test(FULL, phase & 1, site="test")

    run.agents(body)
    assert not [f for f in run.findings if f.severity == "error"]


def test_a_second_init_before_any_use():
    """It changes nothing, and is told; `wrong/mbarrier_init_again_behind_a_use` is behind one."""

    def program(agent):
        for site in ("init", "again"):
            agent.mbarrier.init(FULL, 2, site=site)
        agent.mbarrier.arrive(FULL, 2, site="arrive")
        assert agent.mbarrier.test(FULL, 0, site="test")

    found = [(f.severity, f.code, f.first, f.second) for f in alone(program).findings]
    assert found == [("warning", "mbarrier-init-again", "init", "again")]


@pytest.mark.parametrize("meet", [True, False])
def test_a_use_behind_one_of_two_inits(meet):
    """It has to be behind the other warp's, too, although that one changes nothing."""
    run = Run()

    def user(agent):
        agent.mbarrier.init(FULL, 2, site="init")
        yield from agent.pause()
        if meet:
            yield from agent.barrier.sync(1, None, site="barrier")
        agent.mbarrier.arrive(FULL, 2, site="arrive")

    def other(agent):
        agent.mbarrier.init(FULL, 2, site="again")
        if meet:
            yield from agent.barrier.sync(1, None, site="barrier")
        yield from agent.pause()

    run.agents(user, other)
    found = {f.code for f in run.findings if f.severity == "error"}
    assert found == (set() if meet else {"mbarrier-init-race"})


def misuse(name):
    def program(agent):
        match name:
            case "mbarrier-not-initialised":
                agent.mbarrier.arrive(FULL, site="here")
            case "mbarrier-over-arrival":
                agent.mbarrier.init(FULL, 2, site="init")
                agent.mbarrier.arrive(FULL, 3, site="here")
            case "mbarrier-reuse":
                agent.mbarrier.init(FULL, 2, site="init")
                agent.mbarrier.init(FULL, 1, site="here")
            case "mbarrier-count":
                agent.mbarrier.init(FULL, 0, site="here")
            case "mbarrier-tx-range":
                agent.mbarrier.init(FULL, 1, site="init")
                agent.mbarrier.expect_tx(FULL, 1 << 20, site="here")
            case "misaligned":
                agent.mbarrier.init(FULL + 4, 1, site="here")
            case "out-of-bounds":
                agent.mbarrier.init(SMEM, 1, site="here")
            case "mbarrier-overwritten":
                agent.mbarrier.init(FULL, 1, site="init")
                data = np.zeros((1, 4), np.uint8)
                agent.memory.store("shared", np.array([FULL + 4]), data, site="here")
            case "mbarrier-read":
                agent.mbarrier.init(FULL, 1, site="init")
                agent.memory.load("shared", np.array([FULL]), 8, site="here")

    return program


@pytest.mark.parametrize(
    "code",
    [
        "mbarrier-not-initialised",
        "mbarrier-over-arrival",
        "mbarrier-reuse",
        "mbarrier-count",
        "mbarrier-tx-range",
        "misaligned",
        "out-of-bounds",
        "mbarrier-overwritten",
        "mbarrier-read",
    ],
)
def test_misuse_is_refused(code):
    with pytest.raises(MachineError) as caught:
        alone(misuse(code))
    assert caught.value.code == code
    assert caught.value.site == "here"
    assert "expected" in str(caught.value)
    assert "got" in str(caught.value)


def test_inval_frees_the_memory():
    def program(agent):
        agent.mbarrier.init(FULL, 1, site="init")
        agent.mbarrier.inval(FULL, site="inval")
        agent.memory.store("shared", np.array([FULL]), np.ones((1, 8), np.uint8), site="store")
        assert agent.memory.load("shared", np.array([FULL]), 8, site="load").all()
        agent.mbarrier.init(FULL, 1, site="init again")

    assert alone(program).findings == []


@pytest.mark.parametrize("seed", range(6))
def test_inval_before_the_load_has_landed(seed):
    run = Run(seed)

    def body(agent):
        agent.mbarrier.init(FULL, 1, site="init")
        agent.mbarrier.arrive(FULL, expect_tx=A_BYTES, site="expect")
        agent.tma.load(A_AT, TensorOperand(run.map_a, (0, 0)), FULL, site="load")
        agent.mbarrier.inval(FULL, site="inval")
        yield from agent.pause()

    with pytest.raises(MachineError, match=r"live.*load"):
        run.agents(body)
    assert ("error", "race") in run.codes


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("waits", [True, False])
def test_inval_by_another_warp_than_that_of_the_load(seed: int, waits: bool) -> None:
    """A load is over once its bytes are there: its warp did nothing else to wait for."""
    run = Run(seed)

    def loads(agent: Agent) -> Any:
        agent.mbarrier.init(FULL, 1, site="init")
        yield from agent.barrier.sync(0, None, site="meet")
        agent.mbarrier.arrive(FULL, expect_tx=A_BYTES, site="expect")
        yield from agent.barrier.sync(0, None, site="meet again")
        agent.tma.load(A_AT, TensorOperand(run.map_a, (0, 0)), FULL, site="load")
        yield from agent.pause()

    def ends(agent: Agent) -> Any:
        yield from agent.barrier.sync(0, None, site="meet")
        yield from agent.barrier.sync(0, None, site="meet again")
        if waits:
            yield from agent.mbarrier.wait(FULL, 0, site="wait")
        else:
            yield from agent.pause()
        agent.mbarrier.inval(FULL, site="inval")

    if waits:
        run.agents(loads, ends)
        assert not [f for f in run.findings if f.severity == "error"]
    else:
        with contextlib.suppress(MachineError):  # the load finds no mbarrier, or it ends too late
            run.agents(loads, ends)
            assert ("error", "race") in run.codes


def test_a_fresh_mbarrier_passes_parity_1_and_holds_parity_0():
    def body(parity):
        def program(agent):
            agent.mbarrier.init(FULL, 1, site="init")
            yield from agent.mbarrier.wait(FULL, parity, site="wait")

        return program

    Run().agents(body(1))
    with pytest.raises(Deadlock, match="parity 0 of mbarrier at 0x4000"):
        Run().agents(body(0))
