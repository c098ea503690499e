"""Strong accesses: which writes a read of a location observes (PTX ISA 8.7 to 8.9).

A release pattern is a release, or a fence followed by a strong write. An acquire pattern is an
acquire, or a strong read followed by a fence. The two synchronise if the read observes the write,
directly or through atomics, and if the release and the acquire (or the fences) include each other
in their scopes. A relaxed access without a fence orders no other accesses.

Whether two scopes include each other depends on the distance between the threads. Therefore there
is one clock per *reach*: 0 within a CTA, 1 within a cluster, 2 for all threads. A release or fence
publishes to all reaches up to that of its scope.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tcir.machine.order.clocks import Access, Clock, Component, Scope, join
from tcir.machine.order.fence_marks import Covered

Place = tuple[Hashable, int, int]
"""The owner of the memory (None: global), the address and the size of an element: what reads
another size observes no write as a whole (PTX ISA 8.7.2)."""


Awaited = Callable[[int, bytes], bool]
"""Whether a lane that polls a word would go on if it read these bytes."""


class Update(NamedTuple):
    """A strong load or store that may be part of an update of a word.

    number: number of the instruction
    feeds: the stores of results that are computed from the load's value
    decides: whether the value decides which instructions the thread executes next
    """

    number: int
    feeds: frozenset[int]
    decides: bool


class Put(NamedTuple):
    """A strong store that a thread would execute: the number of the instruction, the address, and
    the bytes.
    """

    number: int
    address: int
    value: bytes


class AtomicUpdate(NamedTuple):
    """A thread's atomic update of a place: it read one value and stored another.

    access: the store; version: version of the place after the store; found: the value read; put:
        the value stored.
    """

    access: Access
    place: Place
    version: int
    found: bytes
    put: bytes


@dataclass(frozen=True)
class Strong:
    """The qualifiers of a strong access.

    size: bytes of an element
    atomic: whether the access is a read-modify-write
    observes: False for the read of a red, which is part of no acquire pattern
    counts: whether it is an atomic that adds, such as one that draws a ticket
    polled: whether the load is repeated until it reads an awaited value
    awaited: the awaited value, if only this value ends the loop
    """

    scope: str
    size: int
    acquire: bool = False
    release: bool = False
    atomic: bool = False
    observes: bool = True
    polled: bool = False
    awaited: Awaited | None = None
    counts: bool = False


@dataclass(eq=False)
class StrongWrites:
    """The strong writes that a strong read of a location observes: the last write and, if that is
    an atomic, the writes that the atomic observed.

    writes: by component, the number of its last write and the version of the location that the
        write made
    released: the clocks that release patterns have published, by domain
    covered: further accesses, by domain, that are covered by fences of other threads before these
        writes
    readers: by component (or lane), the number of its first read of a version, and the version
    """

    version: int
    last: Scope
    writes: dict[Component, tuple[int, int]] = field(default_factory=dict)
    released: dict[Hashable, Clock] = field(default_factory=dict)
    covered: dict[Hashable, Covered] = field(default_factory=dict)
    readers: dict[Component, tuple[int, int]] = field(default_factory=dict)

    def add(
        self,
        by: Component,
        number: int,
        scope: Scope,
        released: Sequence[Clock],
        covered: Sequence[Covered],
    ) -> None:
        """Records a write. released, covered: the clocks that it publishes, by reach."""
        self.version += 1
        self.last = scope
        self.writes[by] = number, self.version
        for domain, clock in zip(scope.domains, released, strict=True):
            known = self.released.get(domain)
            if clock and clock is not known:
                self.released[domain] = merged(known, clock) if known else clock
        for domain, (acq_rel, sc) in zip(scope.domains, covered, strict=True):
            if acq_rel or sc:
                mine = self.covered.setdefault(domain, ({}, {}))
                join(mine[0], acq_rel)
                join(mine[1], sc)

    def read(self, by: Component, number: int) -> None:
        """Records a strong read by a component."""
        if self.readers.get(by, (0, -1))[1] != self.version:
            self.readers[by] = number, self.version

    def read_by(self, version: int, sees: Callable[[Component, int], bool]) -> bool:
        """Whether an observer has observed a read of this version or of a later one. ``sees`` tells
        what the observer has observed.
        """
        return any(seen >= version and sees(by, at) for by, (at, seen) in self.readers.items())

    def precedes(self, access: Access, sees: Callable[[Component, int], bool]) -> bool:
        """Whether an observer has observed a read that returned the write ``access``. ``sees``
        tells what the observer has observed.
        """
        number, version = self.writes.get(access.component, (-1, 0))
        return number == access.number and self.read_by(version, sees)


def merged(a: Clock, b: Clock) -> Clock:
    """Returns the union of two clocks as a new clock."""
    both = dict(a)
    join(both, b)
    return both
