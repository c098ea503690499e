"""Neighbouring elements of one 32-bit word may have different writers; one element may not."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from tcir.machine import Agent, Machine

Body = Generator[Any, Any, None]


def two_warps(space: str, accesses: list[tuple[int, int, str]], late: int = 0) -> list[str]:
    """Codes found when warp w does accesses[w]: (first byte, bytes, "load" or "store")."""
    out = np.zeros(16, np.uint8 if min(size for _, size, _ in accesses) == 1 else np.float16)
    machine = Machine(grid=(1, 1, 1), block=(64, 1, 1), dynamic_smem=64)
    base = machine.memory.bind(out) if space == "global" else 0

    def body(agent: Agent) -> Body:
        if agent.warp == 0:  # so that no byte is undefined
            agent.memory.store(space, np.array([base]), np.zeros((1, 16), np.uint8), site="fill")
        yield from agent.barrier.sync(1, None, site="filled")
        first, size, what = accesses[agent.warp]
        where = np.array([base + first])
        if agent.warp == late:
            yield from agent.pause()
        if what == "load":
            agent.memory.load(space, where, size, site=agent.name)
        else:
            data = np.full((1, size), 1 + agent.warp, np.uint8)
            agent.memory.store(space, where, data, site=agent.name)

    machine.run(lambda cta: [cta.agent(f"warp {w}", warp=w, body=body) for w in (0, 1)])
    return [f.code for f in machine.findings]


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("first", ["load", "store"])
@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("size", [1, 2])
def test_halves_and_bytes_of_a_word(space: str, size: int, first: str, late: int) -> None:
    one = (4 + size, size, first)
    assert two_warps(space, [one, (4, size, "store")], late) == []
    assert two_warps(space, [one, (4 + size, size, "store")], late) == ["race"]


@pytest.mark.parametrize("late", [0, 1])
def test_a_word_meets_both_of_its_halves(late: int) -> None:
    for half in (4, 6):
        assert two_warps("shared", [(half, 2, "store"), (4, 4, "load")], late) == ["race"]
        assert two_warps("shared", [(half, 2, "load"), (4, 4, "store")], late) == ["race"]
        assert two_warps("shared", [(half, 2, "load"), (8, 4, "store")], late) == []


@pytest.mark.parametrize("apart", [True, False])
def test_words(apart: bool) -> None:
    accesses = [(4, 4, "store"), (8 if apart else 4, 4, "store")]
    assert two_warps("shared", accesses) == ([] if apart else ["race"])


def test_what_was_recorded_by_words_is_kept() -> None:
    """Warp 1 is the first to look at less than a word; what warp 0 stored before still counts."""
    machine = Machine(grid=(1, 1, 1), block=(64, 1, 1), dynamic_smem=64)

    def body(agent: Agent) -> Body:
        if agent.warp == 0:
            agent.memory.store("shared", np.array([0]), np.ones((1, 16), np.uint8), site="words")
        else:
            for _ in range(4):
                yield from agent.pause()
            agent.memory.load("shared", np.array([6]), 2, site="half")
        yield None

    machine.run(lambda cta: [cta.agent(f"warp {w}", warp=w, body=body) for w in (0, 1)])
    assert [(f.code, f.first.split(" ")[0]) for f in machine.findings] == [("race", "words")]
