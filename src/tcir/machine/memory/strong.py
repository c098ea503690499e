"""Release and acquire by an agent's strong accesses (PTX ISA 8.8, 8.9)."""

from __future__ import annotations

from collections.abc import Iterable

from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import BY_TICKET, REACHES, Clock, join, learn_by
from tcir.machine.order.fence_marks import in_front, mark_fence, observe_fences, see
from tcir.machine.order.strong import Place, Strong, StrongWrites, merged


class StrongAccesses:
    """Memory order of ld, st, atom and red with a scope. `Memory` reads and writes the bytes."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.machine = agent, agent.machine
        self._released: dict[Place, tuple[int, Clock]] = {}
        """The agent's last release on each place, which its later strong writes there carry on."""

    def read(self, places: Iterable[Place], strong: Strong) -> None:
        """Performs a strong read, which observes the last writes to the location. An acquire joins
        the clocks that these writes released; after a relaxed read, a later fence joins them.
        """
        agent, here = self.agent, self.agent.scope(strong.scope)
        acquired = here.reach if strong.acquire else -1
        for place in places:
            writes = self.machine.strong.get(place)
            if writes is None or not writes.last.meets(here):
                continue
            writes.read(agent.lanes.line, agent.lanes.number)
            if agent.lanes.knows.read.get(place) == (writes.version, acquired):
                continue  # polling
            if any(d in writes.released or d in writes.covered for d in here.domains):
                agent.lanes.learn()
            agent.lanes.knows.read[place] = writes.version, acquired
            for reach, domain in enumerate(here.domains):
                released = writes.released.get(domain)
                if released:
                    join(agent.clock if reach <= acquired else agent.seen[reach], released)
                covered = writes.covered.get(domain)
                if covered:
                    see(agent.clock, covered, reach, acquire=reach <= acquired)
                if strong.counts and acquired < reach <= here.reach:
                    for known in (released or {}, *(covered or ())):
                        learn_by(BY_TICKET, agent.clock, known)

    def write(self, places: Iterable[Place], strong: Strong) -> None:
        """Records a strong write after it took place. The write needs an access number of its
        own.
        """
        agent, here = self.agent, self.agent.scope(strong.scope)
        number = agent.lanes.number
        now = agent.release() if strong.release else {}
        if not strong.release:
            agent.lanes.step()
        reached = here.reach if strong.release else -1
        released = [now if r <= reached else agent.lanes.fenced(r) for r in range(REACHES)]
        covered = in_front(agent.clock, released)
        for place in places:
            known = self.machine.strong.get(place)
            if known is None or not (strong.atomic and known.last.meets(here)):
                readers = known.readers if known else {}
                known = StrongWrites(known.version if known else 0, here, readers=readers)
                self.machine.strong[place] = known
            if strong.release:
                self._released[place] = here.reach, now
            elif place in self._released:
                reach, earlier = self._released[place]
                carried = [merged(c, earlier) if r <= reach else c for r, c in enumerate(released)]
                known.add(agent.me, number, here, carried, covered)
                continue
            known.add(agent.me, number, here, released, covered)

    def fence(
        self, scope: str, *, sc: bool = False, acquire: bool = True, release: bool = True
    ) -> None:
        """fence.acq_rel, its acquire half or its release half, or fence.sc: completes an acquire
        for the relaxed reads before it, and begins a release for the relaxed writes after it.
        """
        agent, reach = self.agent, self.agent.scope(scope).reach
        agent.lanes.learn()
        if acquire:
            for near in range(reach + 1):
                join(agent.clock, agent.seen[near])
                agent.seen[near] = {}
            observe_fences(agent.clock, reach, sc=sc)
        if release:
            mark_fence(agent.clock, {**agent.clock, **agent.lanes.done()}, reach, sc=sc)
            agent.lanes.fence(reach)
