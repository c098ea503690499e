"""List of the accesses to which shadow memory refers by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tcir.machine.order.clocks import Access, Component

Index = tuple[int, int, int]
"""Index of a CTA."""
Twin = tuple[Access, Index]
"""The same access by another CTA, which becomes an `Access` on demand."""


@dataclass(frozen=True, eq=False)
class Loads:
    """Consecutive loads of a warp: the site and the lanes of each load, by its index.

    first: position of the first load in `Accesses`; valid until `Accesses.keep` drops accesses.
    """

    component: Component
    number: int
    sites: tuple[object, ...]
    which: NDArray[np.int64]
    lanes: NDArray[np.int64]
    first: int

    def __getitem__(self, place: int) -> Access:
        site, lanes = self.sites[self.which[place]], int(self.lanes[place])
        return Access(self.component, self.number, "generic", site, lanes=lanes)


class PlaceOfLoads(NamedTuple):
    """One load of a `Loads`; it becomes an `Access` when it is first read."""

    loads: Loads
    place: int


class Accesses:
    """List of accesses, each of which is built when it is first read. CTAs that are executed
    together add one access each, compiled loops add one per load, and few of these accesses are
    ever read.
    """

    def __init__(self) -> None:
        self._known: list[Access | Twin | Loads | PlaceOfLoads] = []

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, position: int) -> Access:
        found = self._known[position]
        if isinstance(found, Access):
            return found
        made = self._known[position] = _made(found, position)
        return made

    def __iter__(self) -> Iterator[Access]:
        return (self[position] for position in range(len(self._known)))

    def append(self, access: Access) -> None:
        """Appends one access."""
        self._known.append(access)

    def extend(self, accesses: Iterable[Access | Twin | Loads]) -> None:
        """Appends several accesses; a `Loads` must appear once for each load that it contains."""
        self._known += accesses

    def lines(self, start: int) -> Iterator[Component]:
        """Yields the component of each access from position `start` on."""
        for position in range(start, len(self._known)):
            known = self._known[position]
            if isinstance(known, Access | Loads):
                yield known.component
            else:
                yield _made(known, position).component

    def raw(self, positions: Iterable[int]) -> list[Access | Twin]:
        """Returns the accesses at these positions in the form in which `extend` received them; a
        load that is part of a `Loads` is returned as a single access.
        """
        found = []
        for position in positions:
            known = self._known[position]
            found.append(self[position] if isinstance(known, Loads | PlaceOfLoads) else known)
        return found

    def keep(self, chosen: Iterable[bool]) -> None:
        """Drops accesses. chosen: one boolean per access, true if the access is kept."""
        self._known = [
            PlaceOfLoads(one, position - one.first) if isinstance(one, Loads) else one
            for position, one in compress(enumerate(self._known), chosen)
        ]


def _made(known: Twin | Loads | PlaceOfLoads, position: int) -> Access:
    if isinstance(known, Loads):
        return known[position - known.first]
    if isinstance(known, PlaceOfLoads):
        return known.loads[known.place]
    return _of_cta(*known)


def _of_cta(access: Access, cta: Index) -> Access:
    first, second = access.component
    if access.cta is None:  # the TMA engine's, of an agent
        assert isinstance(second, tuple)
        second = (cta, second[1])
    component = (first, second) if access.cta is None else (cta, second)
    return Access(
        component, access.number, access.kind, access.site, access.proxy, lanes=access.lanes
    )
