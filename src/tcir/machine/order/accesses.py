"""The accesses that a record of a memory names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress

from tcir.machine.order.clocks import Access

Index = tuple[int, int, int]
"""Of a CTA."""
Twin = tuple[Access, Index]
"""The same access by another CTA, which becomes an `Access` when somebody asks for it."""


class Accesses:
    """By position. CTAs that are executed together note an access of each, and hardly any of these
    is ever looked at."""

    def __init__(self) -> None:
        self._known: list[Access | Twin] = []

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, position: int) -> Access:
        found = self._known[position]
        if isinstance(found, tuple):
            found = self._known[position] = _of_cta(*found)
        return found

    def __iter__(self) -> Iterator[Access]:
        return (self[position] for position in range(len(self._known)))

    def append(self, access: Access) -> None:
        """One more."""
        self._known.append(access)

    def extend(self, accesses: Iterable[Access | Twin]) -> None:
        """Some more."""
        self._known += accesses

    def raw(self, positions: Iterable[int]) -> list[Access | Twin]:
        """What `extend` was given."""
        return [self._known[position] for position in positions]

    def keep(self, chosen: Iterable[bool]) -> None:
        """Forgets the others; chosen: one for each."""
        self._known = list(compress(self._known, chosen))


def _of_cta(access: Access, cta: Index) -> Access:
    first, second = access.component
    if access.cta is None:  # the TMA engine's, of an agent
        assert isinstance(second, tuple)
        second = (cta, second[1])
    component = (first, second) if access.cta is None else (cta, second)
    return Access(component, access.number, access.kind, access.site, access.proxy,
                  lanes=access.lanes)  # fmt: skip
