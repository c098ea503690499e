"""barrier.cluster of an agent (PTX ISA 9.7.13.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tcir.machine.engine.core import Blocking
from tcir.machine.errors import MachineError
from tcir.machine.order.hazards import Clock, join
from tcir.machine.sync.barriers import Barriers


@dataclass(eq=False)
class ClusterRound:
    """One use of the cluster's barrier: who has arrived so far, and what they released."""

    arrived: set[Any] = field(default_factory=set)
    clock: Clock = field(default_factory=dict)
    done: bool = False


class ClusterBarrier(Barriers):
    """barrier.cluster.arrive and .wait; every thread that still runs has to arrive."""

    _entered: ClusterRound | None = None
    """Where it has arrived and not yet waited."""

    def cluster_arrive(self, *, relaxed: bool = False, site: Any) -> None:
        """barrier.cluster.arrive.

        ``relaxed`` releases only what an earlier fence did: everything before fence.acq_rel.cluster
        (or wider), and the mbarrier.init before fence.mbarrier_init.release.cluster.
        """
        self._at(site)
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
        self._entered.arrived.add(self)
        join(self._entered.clock, dict(self.fenced) if relaxed else self.release())

    def cluster_wait(self, *, site: Any) -> Blocking:
        """barrier.cluster.wait: acquires what was released at the arrivals."""
        self._at(site)
        this = self._own_round(site)
        yield from self._wait(
            lambda: self._round_complete(this), lambda: self._round_words(this, site)
        )
        self._entered = None
        join(self.clock, this.clock)

    def cluster_test(self, *, last: bool, site: Any) -> bool:
        """Whether the wait of some threads of the agent is over; ``last``: no other has to wait."""
        this = self._own_round(site)
        if not self._round_complete(this):
            self.site, self.polls = site, self._round_words(this, site)
            return False
        self._at(site)
        join(self.clock, this.clock)
        if last:
            self._entered = None
        return True

    def _own_round(self, site: Any) -> ClusterRound:
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

    def _round_complete(self, this: ClusterRound) -> bool:
        if not this.done and not self._not_arrived(this):
            this.done, self.cta.cluster.round = True, None
        return this.done

    def _round_words(self, this: ClusterRound, site: Any) -> str:
        return f"the cluster barrier (without {', '.join(self._not_arrived(this))}) at {site}"
