"""Executes a launch in lockstep: chooses leaders, runs their groups, and commits the results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.launch import LaunchState, Triple
from tcir.interp.ptx.lockstep import leaders
from tcir.interp.ptx.lockstep.abandoned import LockstepDivergence, warn
from tcir.interp.ptx.lockstep.counts import Counts
from tcir.interp.ptx.lockstep.group import LockstepGroup
from tcir.interp.ptx.lockstep.leaders import Leaders
from tcir.interp.ptx.lockstep.ledger import Ledger, perform, performed
from tcir.interp.ptx.lockstep.native.execution import Native, NotNative
from tcir.interp.ptx.lockstep.recorder import TracedWarp, TraceRecorder
from tcir.interp.ptx.lockstep.repeat import Alike, Classes, ClassPart
from tcir.interp.ptx.lockstep.rules import RULES
from tcir.interp.ptx.lockstep.stream import Stream, polling
from tcir.interp.ptx.op import Blocking
from tcir.interp.ptx.program import DecodedEntry
from tcir.interp.ptx.registers import unsigned_view
from tcir.machine import Cta

COMPILED = True
"""Whether traces are replayed by compiled kernels where these suffice."""
TOGETHER = 128
"""Followers of a leader's first group: in a step, numpy takes about the same time for 32 and for
128 CTAs, and the grids of networks have few more."""
WIDEST = 1024
"""Most followers of a later group."""
MEMORY = 1 << 26
"""Bytes that a group may take to have more followers than the first one."""
LEADERS_ALONE = 6
"""Most leaders that few CTAs follow, before every CTA is executed alone."""
LEAST_ALIKE = 8
"""One in so many CTAs of the first group must do the same as the leader."""
FEW = "few CTAs do the same as the leader"
KEPT = 1 << 26
"""Bytes of stores that are kept where the same launch may follow under other orders."""


class Lockstep(Leaders[TraceRecorder]):
    """Records the CTAs that the machine runs, and executes other CTAs in lockstep with them.

    See `tcir.machine.engine.machine.Followers`.
    """

    def __init__(self, program: DecodedEntry, launch: LaunchState) -> None:
        super().__init__(launch.machine)
        self.program, self.launch = program, launch
        self.ledger = Ledger(launch.machine.memory)
        self._parted = np.zeros(self.total, np.int32)
        """Place at which each CTA left a leader, by number; CTAs that left at one place may behave
        alike."""
        self._places: dict[tuple[int, int], int] = {}
        """Numbers of these places: a leader and a step of its trace."""
        known = polling(program)
        self._polling = known or frozenset()
        self._stream = Stream(self._polling)
        self._before = Counts.of(launch)
        self._native: Native | None = None
        self._alone = 0
        """Leaders that few CTAs followed."""
        self._classes: Classes = []
        self._room = -1 if known is None or self.machine.options.repeats is None else KEPT

    # --- the leader ------------------------------------------------------------------------------

    def begin(self, cta: Cta) -> None:
        """Called before the machine starts a CTA."""
        self.finish()
        if not self.why:
            self._recording, self._stream = TraceRecorder(cta, RULES), Stream(self._polling)
            self._before = Counts.of(self.launch)
            self.machine.effects = self._recording.effect

    def follow(self, interpreter: WarpInterpreter) -> Blocking:
        """Runs a warp of the recorded CTA."""
        if self._recording is not None:
            self._recording.follow(interpreter, None if self._room < 0 else self._stream)
        return interpreter.run()

    def ended(self, cta: Cta) -> int:
        """Called when a CTA has ended: executes the CTAs that do the same as it, and returns their
        number.
        """
        recorder = self._recorded(cta)
        if recorder is None:
            return 0
        if recorder.why or self.machine.findings:
            self._stop(recorder.why or "findings")
            return 0
        return self._follow_up(recorder)

    # --- the others ------------------------------------------------------------------------------

    def _candidates(self, leader: int) -> Iterator[Triple]:
        """CTAs that have not been executed, in the order of the grid, without those that do
        something else than the leader: of the two, one has left where the other one stayed."""
        alike = self._parted == self._parted[leader]
        waiting = alike & (np.frombuffer(self._done, np.uint8) == 0)
        yield from map(self._index, np.flatnonzero(waiting).tolist())

    def _follow_up(self, recorder: TraceRecorder) -> int:
        found = 0
        own = Counts.of(self.launch) - self._before
        left = self._done.count(0)
        if left < leaders.LEAST - 1 and not self.committed:
            self._stop("too few CTAs are left")
        elif self.launch.instructions + own.instructions * left > self.launch.max_instructions:
            self._stop("the instruction budget")
        if self.why:
            return 0
        leader = self._number(recorder.cta.index)
        waiting = self._candidates(leader)
        first, together = True, TOGETHER
        while (chunk := list(itertools.islice(waiting, together))) or first:
            try:
                if first:
                    self._native = self._compiled(recorder)
                group = self._replay(recorder, [recorder.cta.index, *chunk])
                why = self._why_not(group, recorder, len(chunk), first)
            except MemoryError:
                why = "no memory for a group"
            except Exception as mistake:  # in a rule
                why = warn(mistake)
            if why and (why is not FEW or self._alone == LEADERS_ALONE):
                self._stop(why)
                return found
            for step, cta in group.gone:
                place = self._places.setdefault((leader, step), 1 + len(self._places))
                self._parted[self._number(cta)] = place
            if why:  # at the edge of a picture, say: one that left is the next leader
                self._alone += 1
                self._room = -1
                self._classes.clear()
                return found
            follows = group.alive.copy()
            follows[0] = False
            for one in group.writes:
                perform(self.machine.memory.buffers[one.buffer], one, follows, group.ctas)
            stayed = [cta for cta, one in zip(group.ctas, follows, strict=True) if one]
            self.committed |= bool(stayed)
            for cta in stayed:
                self._done[self._number(cta)] = True
            if self.machine.recorder is not None:
                self.machine.recorder.follow(recorder.cta.index, stayed)
            found += len(stayed)
            self.followers += len(stayed)
            own.of_each(group.extra, follows).add_to(self.launch)
            self._keep(group, own, first)
            together = max(TOGETHER, min(WIDEST, MEMORY * group.count // max(1, group.size)))
            first = False
            del group  # before the next one is made
        return found

    def _compiled(self, recorder: TraceRecorder) -> Native | None:
        """The trace as compiled kernels; None: numpy replays it."""
        if not COMPILED:
            return None
        specials = {slot: number for number, slot in enumerate(self._telling())}
        smem = -(-recorder.cta.smem.size // 16) * 16
        try:
            return Native(recorder.steps, specials, smem, self.machine.memory.buffers)
        except NotNative:
            return None

    def _replay(self, recorder: TraceRecorder, ctas: Sequence[Triple]) -> LockstepGroup:
        telling = self._telling()
        values = np.array([[at(cta) for cta in ctas] for at in telling.values()], np.uint32)
        if self._native is not None:
            group = self._group(recorder, ctas)
            if self._native.run(group, values):
                return group
            self._native = None
        group = self._group(recorder, ctas)
        for traced in recorder.warps:
            for slot, row in zip(telling, values, strict=True):
                dtype = f"u{self.program.storage.slots.sizes[slot]}"
                group.registers[traced.warp.index][slot] = np.repeat(row, 32).astype(dtype)
        for group.step, step in enumerate(recorder.steps):
            step.run(group)
            if group.left:
                if not group.alive[0]:
                    raise LockstepDivergence("the leader leaves its own group")
                if self._few(group, len(ctas) - 1):
                    return group
                group.compress()
        return group

    def _group(self, recorder: TraceRecorder, ctas: Sequence[Triple]) -> LockstepGroup:
        group = LockstepGroup(self.machine, ctas, len(recorder.warps), recorder.cta.smem.size)
        group.reads |= recorder.reads
        return group

    def _telling(self) -> dict[int, Callable[[Triple], int]]:
        """Slots of %ctaid and of other special registers that differ between CTAs, and each one's
        value."""
        found: dict[int, Callable[[Triple], int]] = {}
        for slot, name in self.program.storage.slots.specials.items():
            base, _, axis = name.partition(".")
            if base in ("%ctaid", "%clusterid"):
                found[slot] = (lambda cta: 0) if axis == "w" else itemgetter("xyz".index(axis))
        return found

    def _few(self, group: LockstepGroup, asked: int) -> bool:
        """Whether it is not worth it: a leader and its group take the time of some CTAs.

        A group that has written to global memory binds the others: the ledger has to know them.
        """
        return not self.committed and LEAST_ALIKE * int(group.alive[1:].sum()) < max(asked, 1)

    def _why_not(
        self, group: LockstepGroup, recorder: TraceRecorder, asked: int, first: bool
    ) -> str:
        """Reason why the group must not commit its stores; "" if there is none."""
        if self._few(group, asked):
            return FEW
        numbers = np.where(group.alive, self._numbers(group.ctas), 0)
        if not first:
            numbers[0] = 0  # known from the first group of this leader
        if not self.ledger.note(group.accesses, group.reads, numbers):
            return "CTAs that touch what others write"
        _compare(group, recorder)
        return ""

    def _numbers(self, ctas: Sequence[Triple]) -> NDArray[np.int64]:
        """Numbers of the CTAs in the grid, from 1."""
        return np.array([1 + self._number(cta) for cta in ctas])

    def _keep(self, group: LockstepGroup, own: Counts, first: bool) -> None:
        """Records the stores of a group's CTAs. first: whether it is the leader's first group"""
        if self._room < 0:
            return
        if first:
            self._classes.append(Alike(self._stream.digest(), own))
        rows = group.alive.copy()
        rows[0] &= first
        self._classes[-1].parts.append(ClassPart(group.ctas, rows, group.writes, group.extra))
        self._room -= sum(one.size for one in group.writes)
        if self._room < 0:
            self._classes.clear()

    def classes(self) -> Classes | None:
        """All CTAs, grouped into classes of equal behaviour. None if the classes are not known, or
        if the behaviour may depend on the order.
        """
        if self.why or self._room < 0:
            return None
        return self._classes


def _compare(group: LockstepGroup, recorder: TraceRecorder) -> None:
    """Raises LockstepDivergence unless row 0 equals the leader's state."""
    for traced in (t for t in recorder.warps if not t.split):
        warp, registers = traced.warp, group.registers[traced.warp.index]
        for slot in traced.varying & registers.keys():
            row = registers[slot][:32]
            undefined = warp.undef[slot]
            if warp.sizes[slot]:
                real = warp.v[unsigned_view(warp.sizes[slot])][slot]
                same = row.view(real.dtype) == real
            else:
                same = row == np.array([warp.p[slot] >> n & 1 for n in range(32)], bool)
            for lane in np.flatnonzero(~same):
                if not undefined >> int(lane) & 1 and warp_lane(traced, int(lane)):
                    raise LockstepDivergence(
                        f"{warp.names[slot]}, lane {lane} of warp {warp.index}"
                    )
    smem = recorder.cta.smem
    chosen = np.repeat(recorder.shared, 4)[: smem.size] & smem.defined
    if (group.smem[0, : smem.size][chosen] != smem.data[chosen]).any():
        raise LockstepDivergence("shared memory")
    for one in group.writes:
        buffer = group.machine.memory.buffers[one.buffer]
        if not performed(buffer, one, one.row == 0):
            raise LockstepDivergence(f"buffer {one.buffer}")


def warp_lane(traced: TracedWarp, lane: int) -> bool:
    """Whether the warp has this lane; the last warp of a CTA may have fewer than 32 lanes."""
    return 32 * traced.warp.index + lane < traced.warp.launch.sizes.threads
