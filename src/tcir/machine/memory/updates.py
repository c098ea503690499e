"""Loads and stores of one word that ought to be one atomic (PTX ISA 8.9: only those are single).

Strong accesses are no data race, but between a thread's load of a word and the store that follows
from it, another thread may write. Two kinds are findings:

- it stores a result computed from the value, while only the word itself orders another thread's
  write before the load: that write may be lost;
- it continues if it finds a value, and replaces it by another, and so did another thread that found
  the same value: both may find it before either has stored. A turn that passes round, for which
  each thread waits with its own value, is no such case. Nor is a flag that both raise to one value,
  if both found it down (a maximum is, as the smaller value may be stored last, and so is a count).

What the load itself acquires is no order: it might have come first. So where it finds what another
thread put, it is also asked what the thread would do with the value before that: it may be that in
this order alone there is nothing to store any more, or another value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import Access
from tcir.machine.order.lanes import known_to
from tcir.machine.order.strong import Done, Place, Put, Update

KEPT = 64
"""Updates of a place that are remembered."""


class Loaded(NamedTuple):
    """A load, until the thread stores to the place. version: of the place then; writes: one of
    another thread that nothing orders before it; done: updates by others that nothing does."""

    update: Update
    site: object
    writes: bool
    done: Sequence[Done]
    version: int


class Updates:
    """Updates of an agent."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.machine = agent, agent.machine
        self._loads: dict[Place, Loaded] = {}
        self._found: dict[Place, bytes] = {}
        """What those loads found."""

    def load(self, places: Iterable[Place], update: Update, site: object) -> None:
        """In front of a strong load."""
        for place in places:
            known = self.machine.strong.get(place)
            others = () if known is None else self.machine.updates.get(place, ())
            done = [d for d in others if d.access.component != self.agent.me and not self._after(d)]
            lost = bool(update.feeds) and not update.decides and self._others_wrote(place)
            version = 0 if known is None else known.version
            self._loads[place] = Loaded(update, site, lost, done, version)

    def load_earlier(
        self, place: Place, address: int, follows: Callable[[bytes], Put | None]
    ) -> None:
        """Behind `load` of a place: what if it came before the changes by others that nothing
        orders before it. follows: the store to come if the load finds some bytes; address: of the
        place, as the thread names it."""
        loaded = self._loads[place]
        for done in loaded.done:
            put = follows(done.found)
            if put is None or put.address != address or len(put.value) != place[2]:
                continue
            if put.number in loaded.update.feeds or put.value != done.put:
                what = "two threads may both find one value before either of them stores"
                self._report(loaded, done.access.site, what)

    def found(self, values: Iterable[tuple[Place, bytes]]) -> None:
        """Behind it."""
        self._found.update(values)

    def store(self, values: Iterable[tuple[Place, bytes]], update: Update, site: object) -> None:
        """In front of a strong store."""
        for place, value in values:
            loaded, found = self._loads.pop(place, None), self._found.pop(place, b"")
            if loaded is None:
                continue
            if loaded.writes and update.number in loaded.update.feeds:
                self._report(loaded, site, "what another thread writes there in between is lost")
            elif loaded.update.decides and value != found:
                done = self.machine.updates.setdefault(place, [])
                made = update.number in loaded.update.feeds
                if any(d.found == found for d in loaded.done) or any(
                    d.found == found and d.version > loaded.version
                    for d in done
                    if made or d.put != value
                ):
                    what = "two threads may both find that value before either of them stores"
                    self._report(loaded, site, what)
                version = known.version if (known := self.machine.strong.get(place)) else 0
                access = self.agent.own_access("generic", site, by_lane=True)
                done.append(Done(access, place, version + 1, found, value))
                del done[:-KEPT]

    def _others_wrote(self, place: Place) -> bool:
        """Whether another agent wrote there, and nothing orders that before."""
        known = self.machine.strong.get(place)
        return known is not None and any(
            by != self.agent.me and not self._knows(place, Access(by, number, "", None), version)
            for by, (number, version) in known.writes.items()
        )

    def _after(self, done: Done) -> bool:
        return self._knows(done.place, done.access, done.version)

    def _knows(self, place: Place, access: Access, version: int) -> bool:
        """Whether the lanes that execute come after a write of a place, by order of memory, by
        having met, or since they saw what it wrote, or what came later."""
        agent = self.agent
        clocks = (agent.clock, agent.met, *agent.seen)
        if any(known_to(clock, access) for clock in clocks):
            return True
        known = self.machine.strong.get(place)
        return known is not None and known.read_by(version, agent.lanes.sees)

    def _report(self, loaded: Loaded, site: object, why: str) -> None:
        self.agent.cta.report(
            "error", "not-atomic", f"{loaded.site} (loads a word)", f"{site} (stores to it)",
            f"one atomic, or a lock around both, and around the other's: {why}",
        )  # fmt: skip
