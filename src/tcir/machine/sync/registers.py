"""setmaxnreg: moves registers between warps and the CTA's pool of free registers (PTX ISA
9.7.19.5).

At entry all warps own the same number of registers, and the pool is empty. All numbers are
registers per thread of a warp.
"""

from __future__ import annotations

from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import Component
from tcir.machine.order.operation import Blocking
from tcir.machine.order.register_pool import Request
from tcir.machine.order.unpromised import SETMAXNREG, SETMAXNREG_APART, SETMAXNREG_FOR_NOTHING

WARPGROUP = 4
GRANULE = 8
"""Registers per thread are allocated in multiples of this."""


class RegisterQuota:
    """Number of registers that one warp owns."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.cta = agent, agent.cta

    def change(self, request: Request, entry: int) -> Blocking:
        """setmaxnreg: from now on the warp owns `request.count` registers per thread.
        setmaxnreg.inc blocks until the pool contains the additional registers.

        entry: registers per thread at the kernel's entry.
        """
        agent, pool = self.agent, self.cta.register_pool
        agent.proceed(request.site)
        mine = pool.done.setdefault(agent.warp, [])
        before = pool.owned.setdefault(agent.warp, -(-entry // GRANULE) * GRANULE)
        more = request.count - before
        self._check_order(mine, request, more)
        self._check_group(mine, request)
        mine.append(request)
        component = _component(agent)
        for knowledge in agent.lanes.groups:  # .aligned: all lanes know
            knowledge.clock[component] = len(mine)
        if more and (more > 0) != (request.action == "inc"):
            self.cta.report(
                "error",
                "register-count",
                f"{before} registers per thread",
                request.site,
                f"at {'most' if request.action == 'dec' else 'least'} {before}, which the warp "
                f"owns, in {request}: undefined (PTX ISA {SETMAXNREG})",
            )
            return
        yield from agent.wait(
            lambda: more <= pool.free,
            lambda: (
                f"{request}: {more} more registers per thread, with {pool.free} in the CTA's pool, "
                f"at {request.site}"
            ),
        )
        pool.free -= more
        pool.owned[agent.warp] = request.count

    def at_exit(self) -> None:
        """Reports each setmaxnreg that this exiting warp executed and another warp of its warpgroup
        did not.
        """
        done = self.cta.register_pool.done
        mine = done.get(self.agent.warp, [])
        least = min(len(done.get(mate.warp, [])) for mate in self._group)
        if len(mine) > least:
            self._apart(mine[least].site, "the end of the kernel")

    @property
    def _group(self) -> list[AgentProtocol]:
        number = self.agent.warp // WARPGROUP
        return [agent for agent in self.cta.agents if agent.warp // WARPGROUP == number]

    def _check_order(self, mine: list[Request], request: Request, more: int) -> None:
        """Reports a missing barrier of the group since its last request; more: registers
        requested."""
        known = self.agent.lanes.everything()
        if any(known.get(_component(mate), 0) < len(mine) for mate in self._group):
            self.cta.report(
                "error" if more else SETMAXNREG_FOR_NOTHING,
                "register-order",
                mine[-1].site,
                request.site,
                f"a barrier of the warpgroup between two setmaxnreg (PTX ISA {SETMAXNREG})",
            )

    def _check_group(self, mine: list[Request], request: Request) -> None:
        """Reports an n-th request that differs from that of another warp of the group."""
        for mate in self._group:
            theirs = self.cta.register_pool.done.get(mate.warp, [])
            other = theirs[len(mine)] if len(theirs) > len(mine) else request
            if (other.action, other.count) != (request.action, request.count):
                self._apart(other.site, request.site)
                return

    def _apart(self, first: object, second: object) -> None:
        self.cta.report(
            SETMAXNREG_APART,
            "register-warpgroup",
            first,
            second,
            "the same setmaxnreg in all warps of the warpgroup",
        )


def _component(agent: AgentProtocol) -> Component:
    return ("setmaxnreg", agent.me)
