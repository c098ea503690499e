"""Happens-before: who has observed what, and the findings where nobody made sure.

A *component* is a line of events of its own: an agent's program, the tensor-core operations one
agent issued, its tensor-memory loads (and stores), the TMA operations that signal one mbarrier
phase. A *clock* maps components to the number of events observed to be complete. An access is
recorded with its component and number; a later access to the same place is ordered after it iff
its own clock has reached that number (vector clocks, as in FastTrack).

Two marks travel with a clock like components of their own: ``(PROXY, c)``, how far events of ``c``
have passed a ``fence.proxy.async``, and ``(BEFORE, c)``, how far tensor-memory accesses of ``c``
have passed a ``tcgen05.fence::before_thread_sync``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Component = Any
Clock = dict[Component, int]

PROXY = "proxy"
BEFORE = "before"


@dataclass(frozen=True)
class Finding:
    """One hazard: two operations, and the edge that is missing between them.

    severity "error": the result depends on timing under every reading of the ISA. "warning": the
    ISA's text asks for the edge, shipping compilers leave it out.
    """

    severity: str
    code: str
    first: str
    second: str
    missing: str
    cta: tuple[int, int, int] = (0, 0, 0)

    def __str__(self) -> str:
        second = f" and {self.second}" if self.second else ""
        return f"{self.code}: {self.first}{second}: {self.missing} (CTA {self.cta})"


class Findings(list[Finding]):
    """Findings without repetitions: the same pair of sites counts once, whatever the CTA."""

    LIMIT = 200

    def __init__(self) -> None:
        super().__init__()
        self._seen: set[tuple[str, str, str]] = set()

    def append(self, finding: Finding) -> None:
        key = (finding.code, finding.first, finding.second)
        if key in self._seen or len(self) >= self.LIMIT:
            return
        self._seen.add(key)
        super().append(finding)


def join(clock: Clock, other: Clock) -> None:
    """``clock`` has observed what ``other`` has."""
    for component, count in other.items():
        if clock.get(component, 0) < count:
            clock[component] = count


@dataclass(frozen=True, slots=True)
class Access:
    """One recorded access.

    kind: "mma", "cp", "shift", "ld", "st", "tma", "generic". space: what a report calls the place.
    proxy: "generic" or "async" (of shared memory). target: D address of an mma, for its order.
    """

    component: Component
    number: int
    kind: str
    site: Any
    proxy: str = "generic"
    target: Any = None


class Shadow:
    """Last writer and readers of every granule of one memory."""

    def __init__(self, granules: int, space: str) -> None:
        self.space = space
        self.writer = np.zeros(granules, np.int32)
        self.readers = np.zeros(granules, np.int32)
        self.accesses: list[Access] = []
        self.sets: list[frozenset[int]] = [frozenset()]
        self._set_ids: dict[frozenset[int], int] = {frozenset(): 0}

    def writers_at(self, where: Any) -> list[Access]:
        """Distinct last writers of the granules."""
        return [self.accesses[i - 1] for i in _distinct(self.writer[where]) if i]

    def readers_at(self, where: Any) -> list[Access]:
        """Distinct accesses that read the granules since they were last written."""
        found: set[int] = set()
        for i in _distinct(self.readers[where]):
            found |= self.sets[i]
        return [self.accesses[i - 1] for i in sorted(found)]

    def record_read(self, where: Any, access: Access, clock: Clock) -> None:
        """Adds a reader; readers that it is ordered after and that share its component drop out."""
        self.accesses.append(access)
        number = len(self.accesses)
        current = self.readers[where]
        distinct = _distinct(current)
        if len(distinct) == 1:
            self.readers[where] = self._with(int(distinct[0]), number, access)
            return
        table = {int(i): self._with(int(i), number, access) for i in distinct}
        lookup = np.array([table[int(i)] for i in distinct], np.int32)
        self.readers[where] = lookup[np.searchsorted(distinct, current)]

    def record_write(self, where: Any, access: Access) -> None:
        """The new last writer."""
        self.accesses.append(access)
        self.writer[where] = len(self.accesses)
        self.readers[where] = 0

    def _with(self, old: int, number: int, access: Access) -> int:
        kept = {
            i
            for i in self.sets[old]
            if self.accesses[i - 1].component != access.component
            or self.accesses[i - 1].kind != access.kind
            or self.accesses[i - 1].target != access.target
        }
        key = frozenset(kept | {number})
        if key not in self._set_ids:
            self._set_ids[key] = len(self.sets)
            self.sets.append(key)
        return self._set_ids[key]


def _distinct(values: NDArray[np.int32]) -> NDArray[np.int32]:
    flat = values.ravel()
    if flat.size and (flat[0] == flat).all():
        return flat[:1]
    return np.unique(flat)


def observed(clock: Clock, access: Access) -> bool:
    """Whether an operation with ``clock`` is ordered after ``access``."""
    return clock.get(access.component, 0) >= access.number


def proxy_fenced(clock: Clock, access: Access) -> bool:
    """Whether a fence.proxy.async lies between ``access`` and an operation with ``clock``."""
    return clock.get((PROXY, access.component), 0) >= access.number


def before_fenced(clock: Clock, access: Access) -> bool:
    """Whether a tcgen05.fence::before_thread_sync followed ``access`` on its side."""
    return clock.get((BEFORE, access.component), 0) >= access.number


def mark(clock: Clock, which: str, components: Iterable[Component]) -> None:
    """Moves the marks of ``components`` up to what ``clock`` has observed of them."""
    for component in components:
        clock[(which, component)] = clock.get(component, 0)
