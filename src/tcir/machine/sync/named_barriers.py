"""bar.arrive: an arrival at a named barrier that does not wait (PTX ISA 9.7.13.1)."""

from __future__ import annotations

from typing import Any

from tcir.machine.engine.agent import Agent


def arrive(agent: Agent, number: int, threads: int, *, site: Any) -> None:
    """Counts the warp at barrier `number`; what the others did it does not get to know."""
    known = dict(agent.clock)
    waiting = agent.barrier(number, threads, site=site)
    next(waiting, None)
    waiting.close()
    known[agent.me] = agent.clock[agent.me]
    agent.clock.clear()
    agent.clock.update(known)
