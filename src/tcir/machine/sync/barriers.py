"""Named barriers: bar.sync, bar.red, bar.arrive (PTX ISA 9.7.13.1)."""

from __future__ import annotations

from tcir.machine.errors import MachineError
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import BY_EXIT, join, learn_by
from tcir.machine.order.operation import Blocking
from tcir.machine.order.rounds import Arrival, BarrierRound

WARP = 32


class Barriers:
    """Executes bar.sync, bar.red and bar.arrive for a warp."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.cta = agent, agent.cta
        self._waited: dict[int, BarrierRound] = {}
        """Barrier number -> the last use whose end the warp waited for."""

    def sync(
        self, number: int, threads: int | None, *, reduces: bool = False, site: object
    ) -> Blocking:
        """bar.sync, or bar.red if `reduces`: blocks until ``threads`` threads have arrived. None
        stands for all threads that have not exited.
        """
        this = self._enter(number, threads, "bar.red" if reduces else "bar.sync", site)
        yield from self.agent.wait(
            lambda: self._complete(number, this),
            lambda: (
                f"barrier {number} ({this.arrived} of {self._expected(this)} threads"
                f"{_earlier(this)}) at {site}"
            ),
        )
        join(self.agent.clock, this.clock)
        learn_by(BY_EXIT, self.agent.clock, this.gone)
        self._waited[number] = this
        if self.agent.events is not None:
            self.agent.events.wait_for(this.events)

    def arrive(self, number: int, threads: int, *, site: object) -> None:
        """bar.arrive: counts the warp's arrival. The warp does not wait and acquires nothing."""
        self._complete(number, self._enter(number, threads, "bar.arrive", site))

    def _enter(
        self, number: int, threads: int | None, instruction: str, site: object
    ) -> BarrierRound:
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
        this = self.cta.barriers.get(number)
        if this is None:
            before = self.cta.last_rounds.get(number)
            use = before.number + 1 if before is not None else 1
            this = self.cta.barriers[number] = BarrierRound(threads, use, before)
        if this.threads != threads:
            raise MachineError(
                "barrier-threads",
                f"expected the thread count of the threads that wait at barrier {number} "
                f"({this.threads}), got {threads}",
                site=site,
            )
        self._check_kind(number, this, instruction, site)
        if agent.machine.checking:
            self._follow(number, this, site)
        this.arrivals.append(Arrival(agent.name, instruction, site, agent.me, agent.lanes.number))
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

    def _check_kind(self, number: int, this: BarrierRound, instruction: str, site: object) -> None:
        """Reports a use of a barrier in which some threads reduce and others do not."""
        first = this.arrivals[0] if this.arrivals else None
        if first is not None and (first.instruction == "bar.red") != (instruction == "bar.red"):
            self.cta.report(
                "error",
                "barrier-mixed",
                f"{first.site} ({first.name})",
                site,
                f"{first.instruction} of all threads in one use of barrier {number}: mixing "
                "bar.red with bar.sync or bar.arrive is unpredictable (PTX ISA 9.7.13.1)",
            )

    def _follow(self, number: int, this: BarrierRound, site: object) -> None:
        """Reports an agent that is not ordered after all arrivals at the previous use: it might
        have been counted there in place of one of them."""
        before = this.before
        if before is None or self._waited.get(number) is before:
            return
        for arrival in before.arrivals:
            if not self.agent.comes_after(arrival.component, arrival.accesses):
                self.cta.report(
                    "error",
                    "barrier-shared",
                    f"{arrival.site} (arrives at barrier {number})",
                    f"{site} (arrives for its next use)",
                    "an order between the two: the first arrival is counted, so either may be "
                    "counted for the other; use another number, or wait for the first use to end",
                )
                return

    def _expected(self, this: BarrierRound) -> int:
        if this.threads is not None:
            return this.threads
        return sum(_whole_warps(a.threads) for a in self.cta.agents if not a.ended)

    def _complete(self, number: int, this: BarrierRound) -> bool:
        if not this.done and this.arrived >= self._expected(this):
            this.done, this.before = True, None
            self.cta.last_rounds[number] = self.cta.barriers.pop(number)
            for agent in self.cta.agents if this.threads is None else ():
                if agent.ended:
                    join(this.gone, agent.lanes.of_ended())
        return this.done


def _earlier(this: BarrierRound) -> str:
    """Describes in which use of the barrier a warp waits, and whose arrivals completed the previous
    use."""
    if this.before is None:
        return ""
    arrivals = ", ".join(map(str, this.before.arrivals))
    return f", use {this.number}; use {this.number - 1} was complete with {arrivals}"


def _whole_warps(threads: int) -> int:
    """Rounds threads up to whole warps: bar.sync counts a partial warp as a full one (PTX ISA
    9.7.13.1)."""
    return -(-threads // WARP) * WARP
