"""Neighbouring elements of one 32-bit word may have different writers; one element may not."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from tcir.machine import Agent, Machine


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32])
@pytest.mark.parametrize("apart", [True, False])
def test_two_warps_write_neighbours(dtype: Any, apart: bool) -> None:
    out = np.zeros(4, dtype)
    width = out.itemsize
    machine = Machine(grid=(1, 1, 1), block=(64, 1, 1))
    base = machine.memory.bind(out)

    def body(agent: Agent) -> Generator[Any, Any, None]:
        element = 1 + agent.warp if apart else 1
        data = np.full((1, width), 1 + agent.warp, np.uint8)
        agent.store("global", np.array([base + element * width]), data, site=agent.name)
        yield None

    machine.run(lambda cta: [cta.agent(f"warp {w}", warp=w, body=body) for w in (0, 1)])
    assert [f.code for f in machine.findings] == ([] if apart else ["race"])
