"""The other CTAs of an agent's cluster, found by address, by CTA mask or as the CTA pair. Naming a
CTA that does not exist is an error.
"""

from __future__ import annotations

from collections.abc import Hashable

from tcir.machine.errors import MachineError
from tcir.machine.memory.memories import RANK_SHIFT, address_words
from tcir.machine.memory.protocols import AgentProtocol, CtaProtocol
from tcir.machine.order.unpromised import PAIR_WITHOUT_MEETING


class Peers:
    """The CTAs of the cluster that one agent can access."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent = agent
        self._met = {agent.cta.index}
        """CTAs that it has synchronised with, or tried to."""

    def cta_of(self, address: int, site: object, *, own: bool = False) -> CtaProtocol:
        """The CTA whose shared memory contains an address. own: whether the address must be in this
        agent's CTA; if so, any other CTA is an error.
        """
        rank = address >> RANK_SHIFT
        mine = self.agent.cta
        if rank == mine.rank_in_cluster:
            return mine
        if own:
            raise MachineError(
                "foreign-shared-memory",
                f"expected an address in this CTA's shared memory ({mine.window:#x}, rank "
                f"{mine.rank_in_cluster} of its cluster), got {address_words(address)}, rank "
                f"{rank}: instructions that have .shared::cluster reach other CTAs with it",
                site=site,
            )
        return self._started(mine.cluster.at(rank, site), site)

    def multicast(self, address: int, cta_mask: int | None, site: object) -> list[int]:
        """Addresses that a multicast writes: the address itself without a mask, otherwise the same
        offset in each CTA of the mask.
        """
        if cta_mask is None:
            return [address]
        if cta_mask <= 0:
            raise MachineError("cta-mask", "expected a CTA in the mask, got none", site=site)
        offset = address & (1 << RANK_SHIFT) - 1
        ranks = [r for r in range(cta_mask.bit_length()) if cta_mask >> r & 1]
        peers = (self._started(self.agent.cta.cluster.at(rank, site), site) for rank in ranks)
        return [peer.window | offset for peer in peers]

    def group(self, cta_group: int, site: object) -> tuple[CtaProtocol, ...]:
        """The CTAs on which a tcgen05 instruction with this .cta_group acts, even rank first."""
        known = self.agent.machine.cta_group
        if known is None:
            self.agent.machine.cta_group = (cta_group, site)
        elif known[0] != cta_group:
            raise MachineError(
                "cta-group-mixed",
                f"expected .cta_group::{known[0]} as at {known[1]}, got .cta_group::{cta_group}: "
                "all tcgen05 instructions of a kernel use the same (PTX ISA 9.7.16.5)",
                site=site,
            )
        if cta_group == 1:
            return (self.agent.cta,)
        pair = self.agent.cta.cluster.pair(self.agent.cta.rank_in_cluster, site)
        for cta in pair:
            self._started(cta, site, tensor_core=True)
        return pair

    def _started(
        self, peer: CtaProtocol, site: object, *, tensor_core: bool = False
    ) -> CtaProtocol:
        """A CTA of the cluster that this one is about to reach: it has to be there already, which
        only something that it did, and this agent waited for, can tell."""
        if peer.index not in self._met:
            self._met.add(peer.index)
            clocks = (self.agent.clock, self.agent.met, *self.agent.seen)
            if not any(_is_of(line, peer.index) for clock in clocks for line in clock):
                self.agent.cta.report(
                    PAIR_WITHOUT_MEETING if tensor_core else "error",
                    "peer-not-started",
                    site,
                    "the start of the CTA that it reaches",
                    "a cluster barrier, or a wait for a signal of that CTA, before the first "
                    "access to it: CTAs of a cluster run together, but do not start at once",
                )
        return peer


def _is_of(line: Hashable, cta: Hashable) -> bool:
    """Whether a component, or a mark of one, is of a CTA."""
    return isinstance(line, tuple) and any(part == cta or _is_of(part, cta) for part in line)
