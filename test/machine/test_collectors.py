"""Collector buffers (PTX ISA 9.7.16.10.9): who may `use` what an mma left there, and who may not.

The corpus (`test/corpus`, class collector) has whole kernels; here are the rules one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tcir.machine import Agent, ElementAddresses, TmemAddr

from .bench import A2, A2_VALUES, D2, ORDERS, SLAB, A, B, Bench, D, fill, finish, mma, rows, slab
from .issue import issue_mma

Step = Callable[[Agent], Any]


def step(collector: str = "discard", **more: Any) -> Step:
    """An mma of A (or of `a`) into an accumulator of its own."""
    return lambda agent: mma(agent, **({"collector": collector, "site": collector} | more))


def stationary(collector: str = "discard", buffer: str = "b0", b: int = B) -> Step:
    """An mma.ws of A and the 64 rows at `b`."""

    def issue(agent: Agent) -> None:
        issue_mma(
            agent, D, ElementAddresses(rows(32, A)), ElementAddresses(rows(64, b)), 32, 64,
            "f16", "f16", ws=True, enable_input_d=False, collector=collector,
            collector_buffer=buffer, site=f"{buffer} {collector}",
        )  # fmt: skip

    return issue


def bfloat(collector: str) -> Step:
    operands = ElementAddresses(rows(128, A)), ElementAddresses(rows(16, B))
    return lambda agent: issue_mma(
        agent, D, *operands, 128, 16, "bf16", "bf16", enable_input_d=False, collector=collector,
        site=collector,
    )  # fmt: skip


def half(collector: str) -> Step:
    """M = 64: the upper half of A."""
    operands = ElementAddresses(rows(64, A)), ElementAddresses(rows(16, B))
    return lambda agent: issue_mma(
        agent, D, *operands, 64, 16, "f16", "f16", enable_input_d=False, collector=collector,
        site=collector,
    )  # fmt: skip


def copy(agent: Agent) -> None:
    slab(agent)


def refresh(agent: Agent) -> None:
    """Another A to the same columns: the pipe runs it behind the mma that read them."""
    slab(agent, A2)


IN_TMEM = {"a": TmemAddr(SLAB)}
UNFILLED, MISMATCH = ("error", "collector-not-filled"), ("error", "collector-mismatch")

RIGHT: dict[str, list[Step]] = {
    "fill, use, lastuse": [step("fill"), step("use", d=D2), step("lastuse")],
    "fill anew": [step("fill"), step("fill", a=A2), step("use", a=A2)],
    "use in between": [step("fill"), step("use"), step("use"), step("fill"), step("lastuse")],
    "another N": [step("fill"), step("use", d=D2, n=8)],
    "A in tensor memory": [copy, step("fill", **IN_TMEM), step("use", **IN_TMEM)],
    "lastuse with .ashift": [
        copy, step("fill", **IN_TMEM), step("lastuse", ashift=True, **IN_TMEM),
    ],
    "two buffers for B": [
        stationary("fill", "b1"), stationary("fill", "b2", A), stationary(),
        stationary("use", "b1"), stationary("lastuse", "b2", A),
    ],
    "B and A": [step("fill"), stationary("fill", "b0"), step("use"), stationary("use", "b0")],
}  # fmt: skip

WRONG: dict[str, tuple[list[Step], tuple[str, str]]] = {
    "no fill": ([step("use")], UNFILLED),
    "after lastuse": ([step("fill"), step("lastuse"), step("use")], UNFILLED),
    "after a default": ([step("fill"), step(d=D2), step("use")], UNFILLED),
    "lastuse of nothing": ([step("lastuse")], ("warning", "collector-not-filled")),
    "another place": ([step("fill"), step("use", a=A2)], MISMATCH),
    "lastuse of another place": ([step("fill"), step("lastuse", a=A2)], MISMATCH),
    "another type": ([step("fill"), bfloat("use")], MISMATCH),
    "another M": ([step("fill"), half("use")], MISMATCH),
    "another memory": ([copy, step("fill"), step("use", **IN_TMEM)], MISMATCH),
    "overwritten": ([copy, step("fill", **IN_TMEM), refresh, step("use", **IN_TMEM)], MISMATCH),
    "shifted": (
        [copy, step("fill", **IN_TMEM), lambda a: a.tensor_core.shift(SLAB, site="shift"),
         step("use", **IN_TMEM)], MISMATCH,
    ),
    "buffer of another number": ([stationary("fill", "b1"), stationary("use", "b2")], UNFILLED),
    "b0 is the default": ([stationary("fill"), stationary(b=A), stationary("use")], UNFILLED),
    "another B": ([stationary("fill", "b1"), stationary("use", "b1", A)], MISMATCH),
}  # fmt: skip


def run(steps: list[Step], seed: int | None) -> Bench:
    bench = Bench(seed)

    def body(agent: Agent) -> Any:
        fill(agent, A2, A2_VALUES)
        fill(agent, B + 512, A2_VALUES)
        agent.fence("proxy.async", site="fence")
        for issue in steps:
            issue(agent)
        yield from finish(agent, 0)

    return bench.run(body)


def found(bench: Bench) -> set[tuple[str, str]]:
    """Findings but for those of cp over what an mma reads."""
    assert bench.error is None, bench.error
    return {(f.severity, f.code) for f in bench.machine.findings if f.code != "issue-order"}


@pytest.mark.parametrize("name", RIGHT)
def test_what_a_fill_left_may_be_used(name: str) -> None:
    for seed in ORDERS:
        assert not found(run(RIGHT[name], seed)), seed


@pytest.mark.parametrize("name", WRONG)
def test_a_use_needs_a_fill_of_the_same_matrix(name: str) -> None:
    steps, finding = WRONG[name]
    for seed in ORDERS:
        assert found(run(steps, seed)) == {finding}, seed


@pytest.mark.parametrize("edge", [True, False])
def test_the_use_of_another_thread_is_ordered_behind_the_fill(edge: bool) -> None:
    """Lane 1 uses what lane 0 filled, for an accumulator of its own."""
    bench = Bench()

    def body(agent: Agent) -> Any:
        agent.issue.by_lane(0)
        step("fill")(agent)
        if edge:
            yield from finish(agent, 0)
        agent.issue.by_lane(1)
        step("use", d=D2)(agent)
        yield from finish(agent, 1)
        agent.issue.by_lane(0)
        yield from finish(agent, 2)

    bench.run(body)
    assert bench.codes == (set() if edge else {"collector-mismatch"}), bench.machine.findings
