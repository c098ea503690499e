"""Hazards as data: the kinds of conflict between two accesses that the simulated machine reports.

PTX ISA 8.7.1 calls two accesses to one location a conflict if at least one of them writes it. There
are two groups of tables. `fence_hazards` is for accesses that are ordered but also need a fence.
`race_hazards` is for accesses that the clocks do not order: it has the rules that order some of
these conflicts, and the reports about the others. `tcir.machine.engine.conflict` searches the
tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from tcir.machine.findings import Unpromised
from tcir.machine.order.clocks import Access, Clock, Component

TENSOR_MEMORY, SHARED_MEMORY = "tensor memory", "shared memory"

SCOPE_OF_CLUSTER = (
    ".release.cluster of the arrival and .acquire.cluster of the wait: without it their scope is "
    ".cta, which leaves out the threads of another CTA"
)


class Conflict(Protocol):
    """Two accesses to one location, with the properties that the rules use; the agent is about to
    make the second access.

    wrote, writes: whether the first and the second access write. space: name of the memory.
    """

    @property
    def first(self) -> Access: ...
    @property
    def second(self) -> Access: ...
    @property
    def wrote(self) -> bool: ...
    @property
    def writes(self) -> bool: ...
    @property
    def space(self) -> str: ...
    @property
    def me(self) -> Component:
        """The component of the agent's own accesses."""
        ...

    @property
    def tensor(self) -> Component:
        """Component of the agent's thread that issues tensor-core operations."""
        ...

    @property
    def clock(self) -> Clock:
        """Accesses that the agent has observed."""
        ...

    @property
    def after(self) -> Clock:
        """Accesses that the agent had observed at its last tcgen05.fence::after_thread_sync."""
        ...

    @property
    def met(self) -> Clock:
        """Accesses that cluster barriers put before this agent in time; relaxed arrivals count as
        well.
        """
        ...

    @property
    def words(self) -> str:
        """Describes the first access, and the effect of the second on its bytes, for a report."""
        ...

    @property
    def edge(self) -> str:
        """The synchronisation that would order the two accesses, for a report."""
        ...

    @property
    def edges(self) -> str:
        """Like `edge`; also names the wider scopes, if the first access would be observed only with
        these.
        """
        ...

    @property
    def beyond(self) -> bool:
        """Whether the first access would be observed if an arrival or a wait had a wider scope."""
        ...

    @property
    def on_its_way(self) -> bool:
        """Whether bytes that a thread stored, or copied by cp.async, to its CTA's shared memory may
        not yet be visible to another CTA.
        """
        ...

    @property
    def in_flight(self) -> bool:
        """Whether the first access is a load whose value no instruction has used yet."""
        ...

    @property
    def written_by(self) -> set[str]:
        """The kinds of access that wrote the bytes that the first access read."""
        ...

    @property
    def of_peer(self) -> bool:
        """Whether the memory belongs to another CTA of the cluster, which also issued the first
        access."""
        ...

    @property
    def near(self) -> bool:
        """Whether the first access is by a CTA to its own shared memory."""
        ...

    @property
    def same_bytes(self) -> bool:
        """Whether the second access writes bytes equal to those that memory contains, or will
        contain after the stores in flight.
        """
        ...

    def lose_operands(self) -> str:
        """Makes the results of an mma that races with a TMA load undefined (the first call only).
        Returns a description of the bytes and rows; returns "" for any other conflict, or if the
        results have been used.
        """
        ...

    def passed(self, mark: str) -> bool:
        """Whether the agent has observed that a fence covers the first access. mark: a mark of
        `clocks`, which selects the kind of fence.
        """
        ...

    def in_pipe(self, *, listed: bool) -> bool:
        """Whether the tensor core's pipe completes the first access before the second. listed:
        count only pairs of operations for which PTX ISA 9.7.16.6.2 guarantees this.
        """
        ...

    def read_since(self) -> bool:
        """Whether the first access is a strong write and the agent has observed a strong read that
        returned it.
        """
        ...


@dataclass(frozen=True)
class HazardRule:
    """A rule about conflicts.

    isa: sections of the PTX ISA that state the rule
    evidence: kernels that rely on the rule, or a measurement
    wrong, right: programs of test/corpus, ``right/NAME``, ``wrong/NAME`` or its legal twin
        ``twin/NAME``; without the rule the verdict on one of them changes
        (test/machine/test_hazard_rules.py)
    """

    name: str
    isa: str
    evidence: str
    wrong: str
    right: str
    applies: Callable[[Conflict], bool]


@dataclass(frozen=True)
class OrderRule(HazardRule):
    """A rule that orders two accesses although the clocks do not order them. fences: whether fences
    may still be missing between the accesses.
    """

    fences: bool = False


def _words(conflict: Conflict) -> str:
    return conflict.words


def _never(conflict: Conflict) -> bool:
    return False


@dataclass(frozen=True)
class Hazard(HazardRule):
    """A conflict that is reported.

    kind: kind of the finding, as in docs/explanation/hazards.md
    missing: the ordering that is missing between the accesses
    severity: "error" or "warning" under every profile; "unpromised": an error only under the
        profile "isa"
    promise: for "unpromised", the guarantee that the documents do not give
    first: name of the first access in reports
    fences: whether a missing fence is also reported, because silicon orders the two accesses
    """

    kind: str
    missing: str | Callable[[Conflict], str]
    severity: Literal["error", "warning", "unpromised"] = "error"
    promise: str = Unpromised.what
    first: Callable[[Conflict], str] = _words
    fences: Callable[[Conflict], bool] = _never

    @property
    def verdict(self) -> str | Unpromised:
        """The severity, in the form that `Cta.report` expects."""
        if self.severity == "unpromised":
            return Unpromised(self.isa, self.evidence, self.promise)
        return self.severity

    def edge(self, conflict: Conflict) -> str:
        """The synchronisation that is missing in this conflict, for a report."""
        return self.missing if isinstance(self.missing, str) else self.missing(conflict)


def first_site(conflict: Conflict) -> str:
    """The site of the first access, as a report names it."""
    return str(conflict.first.site)
