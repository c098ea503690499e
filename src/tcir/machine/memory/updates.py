"""Finds a load and a store of one word that should be one atomic operation (PTX ISA 8.9: only
atomics are indivisible).

Strong accesses are no data race. But between a thread's load of a word and the store that depends
on it, another thread may write the word. Two patterns are reported:

- The thread stores a result that it computed from the loaded value, and only the accesses to the
  word itself order another thread's write before the load. In another execution that write may be
  lost.
- The thread continues if it loads a certain value, and replaces that value by another. Another
  thread does the same with the same loaded value: both threads may load the value before either has
  stored. Two patterns of this form are not reported: a turn that is passed on, for which each
  thread waits with a value of its own; and a flag that both threads raise to the same value if they
  find it down. A maximum is reported, because the smaller value may be stored last, and a count is
  reported for the same reason.

An acquire by the load itself is not counted as an order here, because in another execution the load
might have come first. Therefore, if the load returns another thread's value, the check also
computes what the thread would store if it had loaded the previous value. In that order it might
store another value, or store nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tcir.machine.memory.protocols import AgentProtocol
from tcir.machine.order.clocks import Access
from tcir.machine.order.lanes import known_to
from tcir.machine.order.strong import AtomicUpdate, Place, Put, Update

KEPT = 64
"""Number of the last updates of a place that are kept."""


class Loaded(NamedTuple):
    """A load of a word, remembered until the thread stores to the same place.

    version: version of the place at the load. writes: whether there is a write by another thread
        that is not ordered before the load. done: updates by other threads that are not ordered
        before the load.
    """

    update: Update
    site: object
    writes: bool
    done: Sequence[AtomicUpdate]
    version: int


class Updates:
    """Checks an agent's updates; an update is a load of a word and the later store to it."""

    def __init__(self, agent: AgentProtocol) -> None:
        self.agent, self.machine = agent, agent.machine
        self._loads: dict[Place, Loaded] = {}
        self._found: dict[Place, bytes] = {}
        """Values that those loads found."""

    def load(self, places: Iterable[Place], update: Update, site: object) -> None:
        """Records a strong load before it takes effect."""
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
        """Checks, after the `load` of a place, the opposite order, in which the load precedes the
        updates by other threads that are not ordered before it.

        follows: returns the store that the thread would execute if the load returned the given
            bytes
        address: address of the place, as the thread names it
        """
        loaded = self._loads[place]
        for done in loaded.done:
            put = follows(done.found)
            if put is None or put.address != address or len(put.value) != place[2]:
                continue
            if put.number in loaded.update.feeds or put.value != done.put:
                what = "two threads may both find one value before either of them stores"
                self._report(loaded, done.access.site, what)

    def found(self, values: Iterable[tuple[Place, bytes]]) -> None:
        """Records the values that a strong load returned; called after the load."""
        self._found.update(values)

    def store(self, values: Iterable[tuple[Place, bytes]], update: Update, site: object) -> None:
        """Checks and records a strong store before it takes effect."""
        for place, value in values:
            loaded, found = self._loads.pop(place, None), self._found.pop(place, b"")
            if loaded is None:
                continue
            if loaded.writes and update.number in loaded.update.feeds:
                self._report(loaded, site, "a write by another thread in between is lost")
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
                done.append(AtomicUpdate(access, place, version + 1, found, value))
                del done[:-KEPT]

    def _others_wrote(self, place: Place) -> bool:
        """Whether another agent wrote to a place, and nothing orders that write before this
        agent."""
        known = self.machine.strong.get(place)
        return known is not None and any(
            by != self.agent.me and not self._knows(place, Access(by, number, "", None), version)
            for by, (number, version) in known.writes.items()
        )

    def _after(self, done: AtomicUpdate) -> bool:
        return self._knows(done.place, done.access, done.version)

    def _knows(self, place: Place, access: Access, version: int) -> bool:
        """Whether the executing lanes come after a write of a place: by memory order, by a barrier,
        or because they read its value or a later one."""
        agent = self.agent
        clocks = (agent.clock, agent.met, *agent.seen)
        if any(known_to(clock, access) for clock in clocks):
            return True
        known = self.machine.strong.get(place)
        return known is not None and known.read_by(version, agent.lanes.sees)

    def _report(self, loaded: Loaded, site: object, why: str) -> None:
        self.agent.cta.report(
            "error",
            "not-atomic",
            f"{loaded.site} (loads a word)",
            f"{site} (stores to it)",
            f"one atomic, or a lock around both and around the other thread's: {why}",
        )
