"""Named barriers: bar.sync, bar.arrive (PTX ISA 9.7.13.1)."""

from __future__ import annotations

from tcir.machine.errors import MachineError
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import join
from tcir.machine.order.operation import Blocking
from tcir.machine.order.rounds import BarrierRound

WARP = 32


class Barriers:
    """bar.sync and bar.arrive of a warp."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.cta = agent, agent.cta

    def sync(self, number: int, threads: int | None, *, site: object) -> Blocking:
        """bar.sync: blocks until ``threads`` threads (None: all that still run) have arrived."""
        this = self._enter(number, threads, site)
        yield from self.agent.wait(
            lambda: self._complete(number, this),
            lambda: (
                f"barrier {number} ({this.arrived} of {self._expected(this)} threads) at {site}"
            ),
        )
        join(self.agent.clock, this.clock)
        if self.agent.events is not None:
            self.agent.events.wait_for(this.events)

    def arrive(self, number: int, threads: int, *, site: object) -> None:
        """bar.arrive: counts the warp, which does not learn what the others did."""
        self._complete(number, self._enter(number, threads, site))

    def _enter(self, number: int, threads: int | None, site: object) -> BarrierRound:
        agent = self.agent
        agent.proceed(site)
        agent.machine.counters.barriers += 1
        if not 0 <= number < 16:
            raise MachineError(
                "barrier-number", f"expected a barrier in 0..15, got {number}", site=site
            )
        if threads is not None and (threads < WARP or threads % WARP):
            raise MachineError(
                "barrier-threads",
                f"expected a multiple of {WARP} threads (PTX ISA 9.7.13.1), got {threads}",
                site=site,
            )
        this = self.cta.barriers.setdefault(number, BarrierRound(threads))
        if this.threads != threads:
            raise MachineError(
                "barrier-threads",
                f"expected the thread count of who waits at barrier {number} ({this.threads}), "
                f"got {threads}",
                site=site,
            )
        join(this.clock, agent.release())
        this.arrived += _whole_warps(agent.threads)
        if agent.events is not None:
            this.events.append(agent.events.last)
        if threads is not None and this.arrived > threads:
            raise MachineError(
                "barrier-over-arrival",
                f"expected {threads} threads at barrier {number}, got {this.arrived}",
                site=site,
            )
        return this

    def _expected(self, this: BarrierRound) -> int:
        if this.threads is not None:
            return this.threads
        return sum(_whole_warps(a.threads) for a in self.cta.agents if not a.ended)

    def _complete(self, number: int, this: BarrierRound) -> bool:
        if not this.done and this.arrived >= self._expected(this):
            this.done = True
            del self.cta.barriers[number]
        return this.done


def _whole_warps(threads: int) -> int:
    """bar.sync counts a warp that is not full like a full one (PTX ISA 9.7.13.1)."""
    return -(-threads // WARP) * WARP
