"""Records the events of a launch, which `tcir.machine.events` defines.

A `Recorder` exists only if events are requested. The agents (warps) of recorded CTAs have a
`WarpEvents`, to which instructions and units report; all other agents have None.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from tcir.machine.events import Event, EventStream, Recording, Triple
from tcir.machine.order.clocks import Component
from tcir.machine.order.mbarrier import Mbarrier
from tcir.machine.order.operation import AsyncOperation

NOTHING: Mapping[str, int | str] = {}
NO_MISS = (0, 0)


class _Draft:
    """An event whose dependences may still be added."""

    __slots__ = ("after", "cta", "detail", "line", "op", "warp")

    def __init__(self, cta: int, warp: int, op: str, line: int) -> None:
        self.cta, self.warp, self.op, self.line = cta, warp, op, line
        self.detail: dict[str, int | str] = {}
        self.after: list[int] = []


class Recorder:
    """Records the events of one launch.

    current: index of the event that is being executed, or whose effect is taking place
    """

    def __init__(self, recording: Recording, grid: Triple, cluster: Triple) -> None:
        self.recording, self.grid, self.cluster = recording, grid, cluster
        self.drafts: list[_Draft] = []
        self.current = -1
        self._chosen = self._clusters(recording.ctas or (0,))
        self._like: dict[int, int] = {}
        """The recorded CTA whose events those of a chosen one are."""

    def _clusters(self, ctas: Iterable[int]) -> set[int]:
        """The CTAs in the clusters of some."""
        total = math.prod(self.grid)
        x, y, _ = self.grid
        found: set[int] = set()
        for cta in ctas:
            if not 0 <= cta < total:
                continue
            at = cta % x, cta // x % y, cta // (x * y)
            first = [a // c * c for a, c in zip(at, self.cluster, strict=True)]
            found |= {
                self.linear((first[0] + i, first[1] + j, first[2] + k))
                for k in range(self.cluster[2])
                for j in range(self.cluster[1])
                for i in range(self.cluster[0])
            }
        return found

    def linear(self, index: tuple[int, ...]) -> int:
        """The linear index of a CTA in the grid."""
        x, y, _ = self.grid
        return index[0] + x * (index[1] + y * index[2])

    def wants(self, index: tuple[int, ...]) -> bool:
        """Whether the events of this CTA are recorded: its events were requested, or a CTA whose
        events were requested may repeat it.
        """
        return self.linear(index) in self._chosen or bool(self._chosen - self._like.keys())

    def begin(self, index: tuple[int, ...]) -> None:
        """Notes that this CTA is being recorded."""
        self._like[self.linear(index)] = self.linear(index)

    def follow(self, leader: tuple[int, ...], followers: Iterable[tuple[int, ...]]) -> None:
        """Notes that the CTAs `followers` executed the same operations as the recorded CTA
        `leader`.
        """
        for index in followers:
            if (cta := self.linear(index)) in self._chosen:
                self._like[cta] = self.linear(leader)

    def bind(self, operation: AsyncOperation) -> None:
        """Attributes the later effects of an operation to the current event, which issues the
        operation.
        """
        event, run = self.current, operation.run

        def as_event() -> None:
            self.current = event
            run()

        operation.run = as_event

    def stream(self, kernel: str, block: Triple, shared_bytes: int) -> EventStream:
        """The events of the CTAs that were requested and executed."""
        ctas = sorted(cta for cta in self._chosen if cta in self._like)
        apart: dict[int, list[int]] = {}
        for index, draft in enumerate(self.drafts):
            apart.setdefault(draft.cta, []).append(index)
        events: list[Event] = []
        own = [cta for cta in ctas if self._like[cta] == cta]
        indices = sorted(index for cta in own for index in apart.get(cta, ()))
        self._append(events, indices, None)
        for cta in ctas:
            if self._like[cta] != cta:
                self._append(events, apart.get(self._like[cta], []), cta)
        return EventStream(
            events, kernel=kernel, grid=self.grid, cluster=self.cluster, block=block,
            ctas=tuple(ctas), shared_bytes=shared_bytes,
        )  # fmt: skip

    def _append(self, events: list[Event], indices: Sequence[int], cta: int | None) -> None:
        """Appends the events of these drafts, or those of another CTA that did the same."""
        place = {index: len(events) + n for n, index in enumerate(indices)}
        for index in indices:
            draft = self.drafts[index]
            after = dict.fromkeys(place[i] for i in draft.after if i in place and i != index)
            events.append(
                Event(
                    draft.cta if cta is None else cta,
                    draft.warp,
                    draft.op,
                    draft.detail,
                    tuple(after),
                    draft.line,
                )
            )


class RecordedMbarrier(Mbarrier):
    """An mbarrier that also keeps the events that completed each of its phases."""

    def __init__(
        self,
        recorder: Recorder,
        window: int,
        address: int,
        count: int,
        site: object,
        tma: Component,
    ) -> None:
        super().__init__(address, count, site, tma)
        self.recorder, self.place = recorder, window + address
        self.ended: list[tuple[int, ...]] = []
        self._open: list[int] = []

    def advance(self) -> None:
        event = self.recorder.current
        self._open.append(event)
        self.recorder.drafts[event].detail.setdefault("barrier", self.place)
        phase = self.phase
        super().advance()
        if self.phase != phase:
            self.ended.append(tuple(self._open))
            self._open = []

    def last(self, parity: int) -> tuple[int, ...]:
        """Events that completed the most recent phase with this parity; empty before the first such
        phase.
        """
        phase = len(self.ended) - 1
        phase -= (phase ^ parity) & 1
        return self.ended[phase] if phase >= 0 else ()


class WarpEvents:
    """Records the events of one warp.

    executed: returns the number of warp instructions executed so far, the current one included
    """

    def __init__(
        self, recorder: Recorder, cta: tuple[int, ...], warp: int, executed: Callable[[], int]
    ) -> None:
        self.recorder, self._executed = recorder, executed
        self._cta, self._warp = recorder.linear(cta), warp
        self.last = -1
        """Its event that is being executed, or was last."""
        self._counted = 0
        self._missed = NO_MISS
        """Line of the wait that failed last, and the instructions before it failed first."""
        self._refused = False
        """Whether the answer of the running wait is no, though a phase is over."""
        self._found: tuple[int, list[int]] | None = None
        """Address of the mbarrier, and the events, that ended the wait that succeeds now."""
        self._pipe: list[int] = []
        """Operations of the tensor core since the last commit, or, after it, those before it."""
        self._committed = False
        self._loads: dict[str, list[int]] = {"ld": [], "st": []}
        self._groups: dict[str, list[list[int]]] = {"cp.async": [[]], "bulk": [[]], "wgmma": [[]]}
        """Copies, or wgmma, by group, the open one last; those waited for are dropped."""

    # --- instructions ----------------------------------------------------------------------------

    def begin(self, op: str, line: int, details: Mapping[str, int | str] = NOTHING) -> None:
        """Records the event of an instruction that starts; the plain instructions since the last
        event become an event of their own.
        """
        self._missed = NO_MISS
        executed = self._executed()
        self._add(op, line, executed - 1, executed, details)

    def exit(self) -> None:
        """Records the end of a warp whose last instruction was not a plain one."""
        drafts = self.recorder.drafts
        self.begin("exit", drafts[self.last].line if self.last >= 0 else 0)

    def _add(
        self,
        op: str,
        line: int,
        before: int,
        executed: int,
        details: Mapping[str, int | str] = NOTHING,
    ) -> None:
        drafts = self.recorder.drafts
        plain = before - self._counted
        self._counted = executed
        if plain > 0:
            alu = _Draft(self._cta, self._warp, "alu", line)
            alu.detail["count"] = plain
            drafts.append(alu)
        elif op == "sfu" and self.last >= 0 and drafts[self.last].op == op:
            drafts[self.last].detail["count"] = int(drafts[self.last].detail["count"]) + 1
            return
        self.last = self.recorder.current = len(drafts)
        drafts.append(draft := _Draft(self._cta, self._warp, op, line))
        if details:
            draft.detail.update(details)
        if op == "sfu":
            draft.detail["count"] = 1

    def note(self, **detail: int | str) -> None:
        """Adds details to the event of the current instruction; the bytes of several copies are
        added up.
        """
        known = self.recorder.drafts[self.last].detail
        if "bytes" in detail and "bytes" in known:
            detail["bytes"] = int(detail["bytes"]) + int(known["bytes"])
        known.update(detail)

    def wait_for(self, events: Iterable[int]) -> None:
        """Records that the current instruction waits for these events."""
        self.recorder.drafts[self.last].after += events

    # --- mbarriers -------------------------------------------------------------------------------

    def mbarrier(
        self, window: int, address: int, count: int, site: object, tma: Component
    ) -> Mbarrier:
        """Creates an mbarrier that records its events."""
        return RecordedMbarrier(self.recorder, window, address, count, site, tma)

    def ended(self, barrier: Mbarrier, parity: int) -> None:
        """Records that a wait on this mbarrier finds the phase of this parity complete."""
        if isinstance(barrier, RecordedMbarrier):
            place, events = self._found or (barrier.place, [])
            self._found = place, [*events, *barrier.last(parity)]

    def refused(self) -> None:
        """Records that a test of a phase returns false although the phase is complete."""
        self._refused = True

    def waited(self, op: str, line: int, *, over: bool) -> None:
        """Records a wait. Tests that fail, and the instructions of the loop that repeats them, are
        not recorded as events.
        """
        executed, found = self._executed(), self._found
        over, self._refused = over and not self._refused, False
        before, self._found = executed - 1, None
        if self._missed[0] == line:
            before = self._missed[1]
        if not over:
            self._missed = line, before
            return
        self._missed = NO_MISS
        self._add(op, line, before, executed)
        if found is not None:
            self.note(barrier=found[0])
            self.wait_for(found[1])

    # --- asynchronous operations -----------------------------------------------------------------

    def issued(self) -> None:
        """Records that the current instruction is an operation of the tensor core."""
        if self._committed:
            self._pipe, self._committed = [], False
        self._pipe.append(self.last)

    def commit(self) -> None:
        """Records that the current instruction is a commit: it waits for the tensor-core operations
        before it.
        """
        self.wait_for(self._pipe)
        self._committed = True

    def access(self, which: str) -> None:
        """Records that the current instruction is a tcgen05.ld or tcgen05.st."""
        self._loads[which].append(self.last)

    def wait_tmem(self, which: str) -> None:
        """Records that the current instruction is a tcgen05.wait."""
        self.wait_for(self._loads[which])
        self._loads[which] = []

    def copy(self, which: str) -> None:
        """Adds the current instruction to the open group of "cp.async", "bulk" or "wgmma"."""
        self._groups[which][-1].append(self.last)

    def copies(self, which: str) -> list[int]:
        """Events of the copies that no instruction has waited for yet."""
        return [event for group in self._groups[which] for event in group]

    def close(self, which: str) -> None:
        """Records a commit_group, which closes the open group."""
        self._groups[which].append([])

    def wait_groups(self, which: str, pending: int | None) -> None:
        """Records that the current instruction waits for all groups except the last `pending`; if
        `pending` is None, it waits for all copies.
        """
        groups = self._groups[which]
        if pending is None:
            self.wait_for(self.copies(which))
            self._groups[which] = [[]]
            return
        done = max(0, len(groups) - 1 - pending)
        self.wait_for(event for group in groups[:done] for event in group)
        del groups[:done]
