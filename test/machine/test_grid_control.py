"""Programmatic dependent launch: what is not behind griddepcontrol.wait is a race."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tcir.machine import Agent, Machine, TensorMap, TensorOperand
from tcir.run_options import RunOptions

BAR, TILE = 64, 1024
WAITS = ("nobody", "after", "before", "another", "another-unsynchronised")
RACES = {"nobody", "after", "another-unsynchronised"}


def run(waits: str, what: str, *, programmatic: bool = True) -> list[str]:
    """Kinds of findings of two warps, the first of which accesses `what`."""
    data = np.arange(32, dtype=np.uint32)
    machine = Machine(
        grid=(1, 1, 1),
        block=(64, 1, 1),
        dynamic_smem=4096,
        options=RunOptions(None),
    )
    machine.programmatic = programmatic
    address = machine.memory.bind(data)
    tensor = TensorMap.tiled(data, dtype="u32", dims=(32,), strides_bytes=(), box=(32,))

    def first(agent: Agent) -> Iterator[Any]:
        agent.mbarrier.init(BAR, 1, site="init")
        agent.fence("mbarrier_init", site="fence.mbarrier_init")
        if waits == "before":
            agent.grid_control.wait(site="wait")
        if waits == "another":
            yield from agent.barrier.sync(0, None, site="bar.sync")
        where = address + 4 * np.arange(32)
        if what == "load":
            agent.memory.load("global", where, 4, site="ld")
        elif what == "constant load":
            agent.memory.read("global", where, 4, constant=True, site="ld.nc")
        elif what == "store":
            agent.memory.store("global", where, np.zeros((32, 4), np.uint8), site="st")
        else:
            agent.mbarrier.arrive(BAR, expect_tx=128, site="expect")
            operand = TensorOperand(TensorMap.decode(tensor.encode(address)), (0,))
            agent.tma.load(TILE, operand, BAR, site="tma")
            yield from agent.mbarrier.wait(BAR, 0, site="wait for it")
        if waits == "after":
            agent.grid_control.wait(site="wait")

    def second(agent: Agent) -> Iterator[Any]:
        if waits.startswith("another"):
            agent.grid_control.wait(site="wait")
        if waits == "another":
            yield from agent.barrier.sync(0, None, site="bar.sync")

    machine.run(
        lambda cta: [
            cta.agent(f"warp {n}", warp=n, body=body) for n, body in enumerate((first, second))
        ]
    )
    return [f"{f.severity} {f.code}: {f.first}" for f in machine.findings]


@pytest.mark.parametrize("what", ["load", "constant load", "store", "tma"])
@pytest.mark.parametrize("waits", WAITS)
def test_a_programmatic_launch_waits(waits: str, what: str) -> None:
    found = run(waits, what)
    assert bool(found) == (waits in RACES), found
    assert all(text.startswith("error race: a launch before this") for text in found)


@pytest.mark.parametrize("what", ["load", "store", "tma"])
def test_another_launch_need_not(what: str) -> None:
    assert not run("nobody", what, programmatic=False)
