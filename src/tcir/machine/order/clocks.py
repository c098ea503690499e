"""Clocks and accesses: the basic terms of happens-before.

A *component* is a sequence of numbered events: an agent's program, the tensor-core operations that
one agent issued, its tensor-memory loads (or its stores), or the TMA loads that signal one
mbarrier. A *clock* maps components to the number of their events that have been observed to be
complete. An access is recorded with its component and number. A later access to the same place is
ordered after it if and only if the later access's clock has reached that number (vector clocks, as
in FastTrack).

A clock also contains marks, whose keys are pairs. Each mark is a number of events of the component
``c``:

- ``(PROXY, c)``: events that ``c`` itself has covered by a ``fence.proxy.async``
- ``(LATE, c)``: events that another agent covered by such a fence. For a fence that covers one
  state space, see `of_space`
- ``(INIT, c)``: events that ``c`` has covered by a ``fence.mbarrier_init``
- ``(BEFORE, c)`` and ``(PIPE, c)``: tensor-memory accesses, and issued tensor-core operations, that
  a ``tcgen05.fence::before_thread_sync`` covers
- ``(PIPED, class)``: tensor-core operations of another thread, of one kind and target, that the
  pipe completed before operations that a commit tracked
- ``(BEYOND, c)``: events known only from an mbarrier by which another CTA synchronised without
  .cluster
- ``(BY_EXIT, c)``: events known only because a thread that had observed them had ended when a
  barrier completed
- ``(BY_TICKET, c)``: events known only because a relaxed atomic counted a thread that released them
- ``(BY_WARP, c)``: events known only because lanes of the warp met in elect.sync
- ``(BY_WARPGROUP, c)``: events known only because another warp of the warpgroup waited for the same
  wgmma
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

Component = tuple[Hashable, ...]
Clock = dict[Component, int]
Line = TypeVar("Line", bound=Hashable)

REACHES = 3
"""How many there are of `Scope.reach`."""

PROXY, LATE, INIT, BEFORE, PIPE = "proxy", "late proxy", "init", "before", "pipe"
SPACES = ("shared memory", "global memory")
"""State spaces to which a fence.proxy.async may be restricted."""
PIPED = "piped"
BEYOND = "beyond the scope"
BY_EXIT, BY_TICKET = "by the end of a thread", "by a ticket"
BY_WARP, BY_WARPGROUP = "by a lane of the warp", "by a warp of the warpgroup"

UNUSED = "generic, unused"
"""Kind of a read by a lane in which nothing uses the value."""


def of_space(mark: str, space: str) -> str:
    """The mark `PROXY` or `LATE` for a fence.proxy.async that covers only one of the state spaces
    `SPACES`.
    """
    return f"{mark} of {space}"


_KEPT = frozenset(
    {BEYOND, PROXY, LATE, INIT, BEFORE}
    | {of_space(mark, space) for mark in (PROXY, LATE) for space in SPACES}
)
"""Marks that order nothing by themselves, and those of what is known like this already."""

EARLIER: Component = ("grid", "earlier")
"""The launches before a programmatic one: one event, their end."""
EARLIER_LAUNCH = "earlier launch"
"""Kind of the access that they may still do to any byte of global memory."""


@dataclass(frozen=True)
class Scope:
    """Scope of a strong operation: the threads of one CTA, the threads of one cluster, or all
    threads.

    cta: index of the CTA that executes the operation; cluster: index of the first CTA of its
        cluster.
    """

    word: str  # "cta", "cluster", "gpu" or "sys"
    cta: tuple[int, int, int]
    cluster: tuple[int, int, int]

    @property
    def reach(self) -> int:
        """Largest distance between threads in the scope: 0 if they are in one CTA, 1 in one
        cluster, 2 anywhere.
        """
        return {"cta": 0, "cluster": 1}.get(self.word, 2)

    @property
    def domains(self) -> tuple[Hashable, Hashable, Hashable]:
        """Keys of three sets of threads: those of this CTA, those of its cluster, and all
        threads.
        """
        return ("cta", self.cta), ("cluster", self.cluster), "all"

    def meets(self, other: Scope) -> bool:
        """Whether each of two scopes includes the thread of the other."""
        words = self.word, other.word
        if "cta" in words:
            return self.cta == other.cta
        return "cluster" not in words or self.cluster == other.cluster


@dataclass(frozen=True, slots=True)
class Access:
    """One recorded access.

    kind: name of the access in reports
    proxy: "generic" or "async" (for shared and global memory)
    target: the properties that order tensor-core operations among themselves: D's address and shape
        for an mma, the shape for a cp
    strong: scope of the operation if it is strong in PTX's memory model
    concurrent: earlier strong accesses to the same bytes that are not ordered with this access
    lanes: mask of the lanes that make the access; 0: all lanes together (see
        `tcir.machine.order.lanes`)
    size: bytes of each element of a strong access; 0 (any size) for an asynchronous access
    """

    component: Component
    number: int
    kind: str
    site: object
    proxy: str = "generic"
    target: Hashable = None
    strong: Scope | None = None
    concurrent: tuple[Access, ...] = ()
    lanes: int = 0
    size: int = 0

    @property
    def cta(self) -> tuple[Hashable, ...] | None:
        """The CTA whose agent made the access; None for an asynchronous access."""
        first = self.component[0]
        return first if isinstance(first, tuple) and len(first) == 3 else None

    @property
    def issuer(self) -> Hashable:
        """The CTA whose thread issued an access to tensor memory."""
        agent = self.component if self.cta else self.component[1]
        return agent[0] if isinstance(agent, tuple) else None


def of_tensor_memory(clock: Clock) -> Clock:
    """The part of a clock that concerns accesses to tensor memory and the fences after them."""
    found = {}
    for component, number in clock.items():
        line: Hashable = component
        while isinstance(line, tuple) and line[0] in (BEYOND, BEFORE, PIPE, PIPED):
            line = line[1]
        while isinstance(line, tuple) and isinstance(line[0], tuple):
            line = line[0]  # one event of it: see `complete`
        if isinstance(line, tuple) and line[0] in ("ld", "st", "tc"):
            found[component] = number
    return found


def join(clock: dict[Line, int], other: dict[Line, int]) -> None:
    """Adds the observations of ``other`` to ``clock``."""
    for component, count in other.items():
        if clock.get(component, 0) < count:
            clock[component] = count


def beyond(clock: Clock) -> Clock:
    """Returns a clock whose entries are all `BEYOND` marks: the form in which it is known outside
    the scope of an arrival or a wait.
    """
    found: Clock = {}
    for component, number in clock.items():
        known_as = component if component[0] in _KEPT else (BEYOND, component)
        if found.get(known_as, 0) < number:
            found[known_as] = number
    return found


def learn_by(mark: str, clock: Clock, other: Clock) -> None:
    """Orders ``clock`` after the contents of ``other``, although no document promises this order.
    The mark gives the reason: `BY_EXIT`, because threads have ended; `BY_TICKET`, because an atomic
    counted them.
    """
    kept = _KEPT | {mark}
    for component, number in other.items():
        known_as = component if component[0] in kept else (mark, component)
        if clock.get(component, 0) < number and clock.get(known_as, 0) < number:
            clock[known_as] = number


def complete(clock: Clock, component: Component, number: int) -> None:
    """Records in ``clock`` that one event is complete, for a component whose events complete in any
    order.
    """
    clock[(component, number)] = 1
    while (event := (component, clock.get(component, 0) + 1)) in clock:
        del clock[event]
        clock[component] = event[1]


def observed(clock: Clock, access: Access) -> bool:
    """Whether an operation with ``clock`` is ordered after ``access``.

    TMA loads may complete out of order; a load that completed before an earlier load has a clock
    entry of its own.
    """
    component, number = access.component, access.number
    return clock.get(component, 0) >= number or (component, number) in clock


def morally_strong(a: Access, b: Access) -> bool:
    """Whether two accesses to one place do not race even if nothing orders them (PTX ISA 8.7.2,
    "Morally strong operations").

    This holds if both accesses are strong, use the same proxy, are each in the other's scope, and
    overlap completely. A vector access counts as accesses to its elements, in any order.
    Overlapping elements of equal size overlap completely, because they are aligned.
    """
    if a.strong is None or b.strong is None or a.proxy != b.proxy:
        return False
    if a.size and b.size and a.size != b.size:
        return False
    return a.strong.meets(b.strong)


def marked(clock: Clock, which: str, access: Access) -> bool:
    """Whether a fence of the kind of the mark ``which`` covers ``access``."""
    return clock.get((which, access.component), 0) >= access.number


def observed_beyond(clock: Clock, access: Access) -> bool:
    """Whether ``access`` is known only by an arrival or a wait whose scope is too narrow to order
    it.
    """
    return marked(clock, BEYOND, access) or (BEYOND, (access.component, access.number)) in clock
