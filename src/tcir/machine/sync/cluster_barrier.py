"""barrier.cluster (PTX ISA 9.7.13.4)."""

from __future__ import annotations

from tcir.machine.errors import MachineError
from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import BY_EXIT, join, learn_by
from tcir.machine.order.operation import Blocking
from tcir.machine.order.rounds import ClusterRound


class ClusterBarrier:
    """barrier.cluster.arrive and .wait; every thread of the cluster that has not exited must
    arrive.
    """

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.cta = agent, agent.cta
        self._entered: ClusterRound | None = None
        """The round at which the agent has arrived and not yet waited."""

    def arrive(self, *, relaxed: bool = False, site: object) -> None:
        """barrier.cluster.arrive.

        A ``relaxed`` arrival releases only accesses that an earlier fence covers:
        fence.acq_rel.cluster, or a fence of wider scope, covers all accesses before it;
        fence.mbarrier_init.release.cluster covers the mbarrier.init before it.
        """
        self.agent.proceed(site)
        if self._entered is not None:
            raise MachineError(
                "cluster-barrier-order",
                "expected barrier.cluster.wait between two barrier.cluster.arrive of a thread, got "
                "none",
                site=site,
            )
        cluster = self.cta.cluster
        if cluster.round is None:
            cluster.round = ClusterRound()
        self._entered = cluster.round
        self._entered.arrived.add(self.agent)
        if self.agent.events is not None:
            self._entered.events.append(self.agent.events.last)
        agent = self.agent
        fenced, done = agent.lanes.fenced(agent.scope("cluster").reach), agent.release()
        join(self._entered.clock, fenced if relaxed else done)
        join(self._entered.met, done)

    def wait(self, *, site: object) -> Blocking:
        """barrier.cluster.wait: acquires the accesses that the arrivals released."""
        self.agent.proceed(site)
        this = self._own_round(site)
        yield from self.agent.wait(lambda: self._complete(this), lambda: self._describe(this, site))
        self._entered = None
        self._acquire(this)

    def test(self, *, last: bool, site: object) -> bool:
        """Whether the wait of some threads of the agent can end; ``last``: whether all other
        threads of the agent have already waited.
        """
        this = self._own_round(site)
        if not self._complete(this):
            self.agent.poll(site, self._describe(this, site))
            return False
        self.agent.proceed(site)
        self.agent.lanes.learn()
        self._acquire(this)
        if last:
            self._entered = None
        return True

    def _acquire(self, this: ClusterRound) -> None:
        join(self.agent.clock, this.clock)
        learn_by(BY_EXIT, self.agent.clock, this.gone)
        join(self.agent.met, this.met)
        if self.agent.events is not None:
            self.agent.events.wait_for(this.events)

    def _own_round(self, site: object) -> ClusterRound:
        if self._entered is None:
            raise MachineError(
                "cluster-barrier-order",
                "expected barrier.cluster.arrive before barrier.cluster.wait, got none",
                site=site,
            )
        return self._entered

    def _not_arrived(self, this: ClusterRound) -> list[str]:
        return [
            f"{a.name} of CTA {a.cta.index}"
            for a in self.cta.cluster.agents
            if not a.ended and a not in this.arrived
        ]

    def _complete(self, this: ClusterRound) -> bool:
        if not this.done and not self._not_arrived(this):
            this.done, self.cta.cluster.round = True, None
            for agent in self.cta.cluster.agents:
                if agent.ended:
                    join(this.gone, agent.lanes.of_ended())
        return this.done

    def _describe(self, this: ClusterRound, site: object) -> str:
        return f"the cluster barrier (without {', '.join(self._not_arrived(this))}) at {site}"
