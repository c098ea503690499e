"""Fences of an agent: which accesses each kind of fence marks as covered, or makes observed."""

from __future__ import annotations

from typing import Protocol, cast

from tcir.machine.errors import NotModelled
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.memory.strong import StrongAccesses
from tcir.machine.order.clocks import (
    BEYOND,
    INIT,
    LATE,
    PROXY,
    Clock,
    Component,
    join,
    of_space,
    of_tensor_memory,
)
from tcir.machine.order.lanes import LANE
from tcir.machine.order.strong import merged


class Fencing(AgentProtocol, Protocol):
    """Protocol of an agent that executes fences."""

    @property
    def strong(self) -> StrongAccesses: ...


def execute_fence(agent: Fencing, kind: str, site: object) -> None:
    """Executes a fence of a kind such as "tcgen05.after", "proxy.async", "mbarrier_init" or
    "cta".
    """
    agent.proceed_unless_polling(site)
    agent.lanes.learn()
    match kind:
        case "tcgen05.after":
            for seen in agent.seen:
                join(agent.clock, of_tensor_memory(seen))
            agent.lanes.knows.after = dict(agent.clock)
        case "tcgen05.before":
            agent.issue.mark_before(agent.issue.threads)
            # Relaxed arrivals carry it (PTX ISA 9.7.16.6.4.3, 9.7.16.6.4.4).
            ordered = of_tensor_memory(agent.clock)
            carried = agent.lanes.knows.fenced
            carried[:] = [merged(clock, ordered) for clock in carried]
        case "proxy.async" | "proxy.async.shared" | "proxy.async.global":
            _mark_proxies(agent, kind.removeprefix("proxy.async").removeprefix("."))
            agent.mark(INIT)
        case "mbarrier_init":
            agent.mark(INIT)
            inits: Clock = {(agent.me, number): 1 for number in agent.inits}
            inits[(INIT, agent.me)] = agent.clock[(INIT, agent.me)]
            carried = agent.lanes.knows.fenced
            for reach in range(agent.scope("cluster").reach + 1):
                carried[reach] = merged(carried[reach], inits)
        case "cta" | "cluster" | "gpu" | "sys":
            agent.strong.fence(kind)
        case "proxy.tensormap" | "proxy.alias":
            pass  # memory here is coherent
        case _:
            raise NotModelled(f"fence {kind}", site=site)


def _mark_proxies(agent: AgentProtocol, space: str) -> None:
    """Marks its own accesses, its cp.async included, and late ones of other agents, as fenced.

    space: "shared" or "global", which the fence covers alone, or "" for both
    """
    proxy, late = (of_space(m, f"{space} memory") if space else m for m in (PROXY, LATE))
    known = {**agent.clock, **agent.lanes.done()}
    for known_as, number in known.items():
        c = cast(Component, known_as[1]) if known_as[0] == BEYOND else known_as
        if not isinstance(c[0], str) or c[0] == LANE:
            own = c == agent.me or c[1] == agent.me
            mark = proxy if own else late, c
            agent.clock[mark] = max(number, agent.clock.get(mark, 0))
