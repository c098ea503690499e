"""mbarrier objects (PTX ISA 9.7.13.15)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from tcir.machine.errors import MachineError
from tcir.machine.order.clocks import EARLIER, Access, Clock, Component, beyond, join

MAX_COUNT = (1 << 20) - 1


class MemoryOrder(NamedTuple):
    """.sem and .scope of an arrival or a wait; the default values are those of PTX ISA
    9.7.13.15.13.
    """

    relaxed: bool = False
    scope: str = "cta"

    @property
    def of_cluster(self) -> bool:
        """Whether the scope includes the threads of other CTAs."""
        return self.scope == "cluster"


@dataclass
class Released:
    """Clocks that arrivals and asynchronous operations release to threads that wait.

    near: released by threads of the mbarrier's own CTA and by asynchronous operations; a wait of
        any scope acquires it (PTX ISA 9.7.9.25.4.1)
    far:  released by threads of other CTAs, with .cluster
    """

    near: Clock = field(default_factory=dict)
    far: Clock = field(default_factory=dict)

    def join(self, other: Released) -> None:
        """Merges the clocks of another `Released`."""
        join(self.near, other.near)
        if other.far:
            join(self.far, other.far)

    def copy(self) -> Released:
        """A copy."""
        return Released(dict(self.near), dict(self.far))

    def to(self, order: MemoryOrder) -> Clock:
        """The clock released by other CTAs with which a wait of this .sem and .scope
        synchronises.
        """
        return self.far if order.of_cluster or not self.far else beyond(self.far)


@dataclass(eq=False)
class PhaseWait:
    """A wait for the open phase of an mbarrier. The end of that phase wakes the waiter, even if the
    next phase also completes before the waiter's turn. released: the clock that the phase released,
    once it is complete.
    """

    released: Released | None = None


@dataclass(eq=False)
class Mbarrier:
    """An mbarrier: its phase, pending arrivals and transaction count, and the accesses that the
    arrivals of a phase have observed.

    ``released`` has the observations of all completed phases. A thread that waits for a completed
    phase is ordered after that phase and all earlier phases. It learns nothing from the arrivals of
    the open phase (``collected``).
    """

    address: int
    count: int
    site: object
    tma: Component
    """The line of TMA loads that signal this object; the n-th has number n."""
    phase: int = 0
    pending: int = 0
    tx: int = 0
    live: bool = True
    collected: Released = field(default_factory=Released)
    released: Released = field(default_factory=Released)
    users: dict[Component, tuple[int, object]] = field(default_factory=dict)
    """Last use by each component: its number and site."""
    loads: int = 0
    """TMA loads issued."""
    landed: set[int] = field(default_factory=set)
    """Numbers of complete loads of the open phase, and of those that overtook an earlier one."""
    in_order: int = 0
    """All loads up to this number are complete."""
    waits: list[PhaseWait] = field(default_factory=list)
    """For the open phase."""
    asked: int = -1
    """The last phase that somebody found open, or waited for."""
    announced: tuple[int, object] | None = None
    """Bytes and site of the last expect_tx."""
    name: str = ""
    """The program's name for its place, if known."""
    ended_empty: tuple[int, object] | None = None
    """The last phase that ended without bytes, and the arrival that ended it."""
    again: list[Access] = field(default_factory=list)
    """Further initialisations, before any use."""
    _bytes: bool = False
    """Whether bytes of the open phase were announced, or came."""

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MAX_COUNT:
            raise MachineError(
                "mbarrier-count",
                f"expected an arrival count in 1..{MAX_COUNT}, got {self.count}",
                site=self.site,
            )
        self.pending = self.count

    @property
    def unused(self) -> bool:
        """Whether the mbarrier has had no arrival, test or signal since its initialisation."""
        open_still = self.phase == 0 and self.pending == self.count and self.tx == 0
        return open_still and not (self.users or self.loads or self.waits) and self.asked < 0

    @property
    def where(self) -> str:
        """Describes the place of the mbarrier, for messages."""
        return self.name or f"{self.address:#x}"

    def load(self, issuer: Clock) -> int:
        """Registers a load that signals the mbarrier; returns the load's number.

        Threads that wait for the load's bytes are also ordered after the earlier launches that the
        load's issuer has waited for, since those launches had ended before the load
        (ThunderKittens' consumers rely on it).
        """
        self.loads += 1
        if EARLIER in issuer:
            self.collected.near[EARLIER] = issuer[EARLIER]
        return self.loads

    def complete(self, parity: int) -> bool:
        """test_wait.parity: whether the phase of ``parity`` (the current phase or the one before
        it) is complete.
        """
        return (self.phase & 1) != (parity & 1)

    def watch(self) -> PhaseWait:
        """Returns a `PhaseWait` for the open phase."""
        self.asked = self.phase
        self.waits.append(wait := PhaseWait())
        return wait

    def arrive(self, count: int, clock: Clock, site: object, *, far: bool = False) -> None:
        """Counts ``count`` arrivals by threads that have observed ``clock``. far: whether the
        threads are in another CTA.
        """
        self.check_live(site)
        if count < 1 or count > self.pending:
            raise MachineError(
                "mbarrier-over-arrival",
                f"expected at most {self.pending} arrivals in phase {self.phase} of the mbarrier "
                f"at {self.where} (count {self.count}), got {count} more",
                site=site,
            )
        self.pending -= count
        join(self.collected.far if far else self.collected.near, clock)
        if not (self.pending or self.tx or self._bytes):
            self.ended_empty = self.phase, site
        self.advance()

    def drop(self, count: int, site: object) -> None:
        """arrive_drop: the phases after this one expect ``count`` fewer arrivals."""
        self.check_live(site)
        if count > self.count:
            raise MachineError(
                "mbarrier-over-arrival",
                f"expected at most {self.count} arrivals to drop from the mbarrier at "
                f"{self.where}, got {count}",
                site=site,
            )
        self.count -= count

    def expect(self, nbytes: int, site: object) -> None:
        """expect_tx. It cannot end a phase by itself: only an arrival or bytes can
        (9.7.13.15.5).
        """
        self.check_live(site)
        self.announced = nbytes, site
        self._move(nbytes, site)

    def complete_tx(self, nbytes: int, number: int, site: object) -> None:
        """Counts the bytes of TMA load ``number``, which have arrived. Releases only these bytes,
        not the accesses or knowledge of the load's issuer (PTX ISA 8.9.1.1)."""
        self.check_live(site)
        self.landed.add(number)
        self._move(-nbytes, site)
        self.advance()

    def count_bytes(self, nbytes: int, site: object) -> None:
        """mbarrier.complete_tx: counts bytes that no operation transferred. Releases nothing."""
        self.check_live(site)
        self._move(-nbytes, site)
        self.advance()

    def check_live(self, site: object) -> None:
        """Raises MachineError if the mbarrier has been invalidated."""
        if not self.live:
            raise MachineError(
                "mbarrier-invalidated",
                f"expected the mbarrier at {self.where} (from {self.site}) to live until the "
                "operations that signal it are complete, got an mbarrier.inval before",
                site=site,
            )

    def _move(self, nbytes: int, site: object) -> None:
        self._bytes = True
        self.tx += nbytes
        if abs(self.tx) > MAX_COUNT:
            raise MachineError(
                "mbarrier-tx-range",
                f"expected a tx-count within +-{MAX_COUNT} at {self.where}, got {self.tx}",
                site=site,
            )

    def advance(self) -> None:
        """Ends the phase if no arrival and no bytes are pending."""
        if self.pending or self.tx:
            return
        self.phase += 1
        self._bytes = False
        self.pending = self.count
        while self.in_order + 1 in self.landed:
            self.in_order += 1
            self.landed.remove(self.in_order)
        self.collected.near[self.tma] = self.in_order
        for number in self.landed:
            self.collected.near[(self.tma, number)] = 1
        self.released.join(self.collected)
        self.collected = Released()
        if self.waits:
            released = self.released.copy()
            for wait in self.waits:
                wait.released = released
            self.waits = []

    @property
    def spare(self) -> bool:
        """Whether the open phase expects bytes that no operation will send and no thread waits
        for.
        """
        return self.tx > 0 and not self.landed and self.asked != self.phase

    @property
    def lacks(self) -> str:
        """Describes the arrivals or bytes that are missing in the open phase."""
        words = [f"{self.pending} of {self.count} arrivals"] if self.pending else []
        if self.tx > 0 and self.announced:
            nbytes, site = self.announced
            words.append(f"{self.tx} of the {nbytes} bytes announced at {site}")
        if self.tx < 0:
            words.append(f"an announcement of the {-self.tx} bytes that came")
        where = str(self.site).rstrip(";")
        return f"initialised at {where}; it lacks {' and '.join(words) or 'nothing'}{self.early}"

    @property
    def early(self) -> str:
        """Describes a phase that ended without bytes although loads signal the mbarrier; "" if
        there is none.
        """
        if self.ended_empty is None or not self.loads:
            return ""
        phase, site = self.ended_empty
        return f"; phase {phase} of the mbarrier at {self.where} ended without bytes, by {site}"

    def __str__(self) -> str:
        return (
            f"mbarrier at {self.where} (phase {self.phase}, {self.pending} of {self.count} "
            f"arrivals pending, tx-count {self.tx})"
        )
