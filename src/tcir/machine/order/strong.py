"""Strong accesses: what a read of a location observes (PTX ISA 8.7 to 8.9).

A release pattern is a release, or a fence and a strong write behind it; an acquire pattern an
acquire, or a strong read and a fence behind it. The two synchronise if the read observes the write,
directly or through atomics, and if release and acquire (or the fences) are each in the other's
scope. What a relaxed access alone hands over is itself.

Whether two scopes meet depends on how far apart the threads are, so clocks are kept by *reach*: 0
for threads of one CTA, 1 for those of one cluster, 2 for all; what a release or a fence of a scope
covers is known up to the reach of that scope.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from tcir.machine.order.clocks import Access, Clock, Component, Scope, join

REACHES = 3
Place = tuple[Hashable, int]
"""Whose memory (None: global) and the address."""


@dataclass(frozen=True)
class Strong:
    """The qualifiers of a strong access.

    atomic: it writes what follows from what it reads. observes: False for the read of a red, which
    starts no acquire pattern.
    """

    scope: str
    acquire: bool = False
    release: bool = False
    atomic: bool = False
    observes: bool = True


@dataclass(eq=False)
class Writes:
    """What a strong read of a location observes: the last strong write and, where that is of an
    atomic, what the atomic has observed.

    writes: of each component the number of its last one and the version of the location it made.
    released: what release patterns have published to each domain. readers: of each component the
    number of its first read of a version, and the version.
    """

    version: int
    last: Scope
    writes: dict[Component, tuple[int, int]] = field(default_factory=dict)
    released: dict[Hashable, Clock] = field(default_factory=dict)
    readers: dict[Component, tuple[int, int]] = field(default_factory=dict)

    def add(self, by: Component, number: int, scope: Scope, released: Sequence[Clock]) -> None:
        """Another write; ``released``: the clock that it publishes, by reach."""
        self.version += 1
        self.last = scope
        self.writes[by] = number, self.version
        for domain, clock in zip(scope.domains, released, strict=True):
            known = self.released.get(domain)
            if clock and clock is not known:
                self.released[domain] = merged(known, clock) if known else clock

    def read(self, by: Component, number: int) -> None:
        """A strong read by a component."""
        if self.readers.get(by, (0, -1))[1] != self.version:
            self.readers[by] = number, self.version

    def precedes(self, access: Access, clock: Clock) -> bool:
        """Whether ``clock`` has observed a read that observed the write ``access``."""
        number, version = self.writes.get(access.component, (-1, 0))
        return number == access.number and any(
            seen >= version and clock.get(reader, 0) >= at
            for reader, (at, seen) in self.readers.items()
        )


def merged(a: Clock, b: Clock) -> Clock:
    """What both have observed; the two stay as they are."""
    both = dict(a)
    join(both, b)
    return both
