"""The list of open hardware questions; choosing otherwise changes what the machine does."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from tcir.errors import LaunchError
from tcir.machine import REGISTRY, Agent, Assumptions, ElementAddresses

from .bench import SLAB, A, Bench, D, finish, mma, rows, slab


def test_every_choice_is_listed_once() -> None:
    names = [entry.name for entry in REGISTRY]
    assert sorted(names) == sorted({f.name for f in fields(Assumptions)})


@pytest.mark.parametrize("entry", REGISTRY, ids=lambda e: e.name)
def test_an_entry_says_what_it_is_about(entry: Any) -> None:
    assert getattr(Assumptions(), entry.name) == entry.default
    assert entry.default in entry.alternatives and len(entry.alternatives) > 1
    assert entry.question.endswith("?") and entry.evidence and entry.used_by


@pytest.mark.parametrize("entry", REGISTRY, ids=lambda e: e.name)
def test_other_values_are_refused(entry: Any) -> None:
    with pytest.raises(LaunchError, match=entry.name):
        Assumptions(**{entry.name: "whatever"})
    for value in entry.alternatives:
        assert getattr(Assumptions(**{entry.name: value}), entry.name) == value


@pytest.mark.parametrize(("choice", "codes"), [("unordered", {"race"}), ("ordered", set())])
def test_refreshing_a_slab_after_ashift(choice: str, codes: set[str]) -> None:
    def body(agent: Agent) -> Any:
        tile = slab(agent)
        mma(agent, D, tile, ashift=True)
        agent.tensor_core.cp(
            31 << 16 | SLAB, ElementAddresses(rows(4, A, step=1)), "4x256b", site="refresh"
        )
        mma(agent, D, tile, enable_input_d=True)
        yield from finish(agent, 0)

    assert Bench(assumptions=Assumptions(ashift_then_cp=choice)).run(body).codes == codes


@pytest.mark.parametrize(("choice", "codes"), [("one", set()), ("all", {"race"})])
def test_shifts_of_two_quarters(choice: str, codes: set[str]) -> None:
    """Two shifts are not kept in order; whether they meet depends on how much one moves."""

    def body(agent: Agent) -> Any:
        tile = slab(agent)
        mma(agent, D, tile)
        yield from finish(agent, 0)
        agent.tensor_core.shift(32 << 16 | SLAB, site="shift of quarter 1")
        agent.tensor_core.shift(64 << 16 | SLAB, site="shift of quarter 2")
        yield from finish(agent, 1)

    assert Bench(assumptions=Assumptions(shift_quarters=choice)).run(body).codes == codes
