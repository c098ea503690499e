"""Records the instructions that the leader of a group executes, and tracks which values may differ
in other CTAs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.lanes import FULL, LANE_MASK
from tcir.interp.ptx.lockstep.group import Operand
from tcir.interp.ptx.lockstep.lanes_of import Active
from tcir.interp.ptx.lockstep.memory_steps import SharedFill
from tcir.interp.ptx.lockstep.steps import Computing, OnMemories, SameLanes, SameValue, Step
from tcir.interp.ptx.lockstep.stream import Stream
from tcir.interp.ptx.lockstep.structure import STRUCTURAL
from tcir.interp.ptx.op import BRANCH, EXIT, INDEXED, Op
from tcir.interp.ptx.registers import PREDICATE, U32
from tcir.interp.ptx.syntax import Site
from tcir.interp.ptx.warp import Warp
from tcir.machine import Cta
from tcir.machine.memory.effects import Effect
from tcir.machine.memory.memories import Buffer
from tcir.machine.order.distinct import distinct

VARYING = ("%ctaid", "%clusterid")
"""Special registers that differ between the CTAs of a launch without clusters."""


LONGEST = 1 << 17
"""Most steps of a trace; each takes up to a kilobyte."""


class NoReplay(Exception):
    """Raised for an instruction that lockstep cannot replay: it has no rule, or its rule does not
    cover this form.
    """


@dataclass
class TracedWarp:
    """A warp of the leader. varying: the slots whose values may differ between the CTAs

    last_load: location of the warp's last load, and whether that load is a step of the trace.
    """

    warp: Warp
    varying: set[int] = field(default_factory=set)
    last_load: tuple[Site | None, bool] = (None, False)
    split: bool = False
    """Whether some lanes of the warp ended before others."""


Rule = Callable[["TraceRecorder", TracedWarp, Op, Active], None]


def no_note() -> None:
    """Ignores the instructions of a warp."""


@dataclass(frozen=True)
class Uniform:
    """Observes compiled loops whose registers and memory do not vary between CTAs; only the loads
    of such loops are recorded.
    """

    recorder: TraceRecorder
    traced: TracedWarp

    def avoided(self) -> set[int]:
        """Slots that vary between CTAs, which a compiled loop therefore must not touch."""
        return self.traced.varying

    def loaded(self, buffer: Buffer, site: Site) -> None:
        """Records loads from a buffer. site: location of the last of these loads"""
        buffers = self.recorder.cta.machine.memory.buffers
        self.recorder.reads.add(next(n for n, one in enumerate(buffers) if one is buffer))
        self.traced.last_load = site, False


class TraceRecorder:
    """Records the warps of a CTA. steps: the trace. why: reason why there is no trace

    shared: for each word of shared memory, whether it may differ between the CTAs.
    """

    def __init__(self, cta: Cta, rules: dict[type, Rule]) -> None:
        self.cta, self.rules = cta, rules
        self.steps: list[Step] = []
        self.why = ""
        self.warps: list[TracedWarp] = []
        self.shared = np.zeros(cta.smem.size // 4 + 1, bool)
        self.reads: set[int] = set()
        """Positions of the global buffers that are read alike in all CTAs."""

    def follow(self, interpreter: WarpInterpreter, stream: Stream | None) -> None:
        """Records one warp from its first instruction on. stream: digest of its instructions, if
        wanted
        """
        if self.why:
            return
        traced = TracedWarp(interpreter.warp)
        slots = interpreter.program.storage.slots
        traced.varying = {s for s, name in slots.specials.items() if name.startswith(VARYING)}
        self.warps.append(traced)
        note = no_note if stream is None else stream.of(interpreter)

        def fetched() -> None:
            if self.why:
                interpreter.untrace()
                return
            note()
            self._fetched(traced, interpreter)

        watcher = Uniform(self, traced) if stream is None else None
        interpreter.trace(fetched, watcher, later=True)

    def effect(self, effect: Effect | None) -> None:
        """Records the effects of a tensor-core operation."""
        if effect is None:
            self.why = self.why or "an operation of the tensor core without an effect on arrays"
        else:
            effect.varies(self.shared)
            if self.steps and isinstance(last := self.steps[-1], OnMemories):
                both = last.effect.then(effect)
                if both is not None:
                    self.steps[-1] = OnMemories(both)
                    return
            self.steps.append(OnMemories(effect))

    # --- one instruction -------------------------------------------------------------------------

    def _fetched(self, traced: TracedWarp, interpreter: WarpInterpreter) -> None:
        op = interpreter.next_op()
        try:
            self._record(traced, op, interpreter.divergence.mask, interpreter.active(op))
            if len(self.steps) > LONGEST:
                raise NoReplay(f"a trace of more than {LONGEST} steps")
        except NoReplay as reason:
            self.why = f"{op.site}: {reason}"

    def _record(self, traced: TracedWarp, op: Op, mask: int, leader: int) -> None:
        warp = traced.warp
        if op.guard >= 0 and warp.undef[op.guard] & mask:
            raise NoReplay("an undefined guard")
        if op.aligned and leader and leader != warp.live:
            return  # not executed until the others have come
        guard = op.guard if op.guard in traced.varying else -1
        active = Active(warp.index, mask, leader, leader == warp.live, guard, op.negate)
        if op.compute is not None:
            self._compute(traced, op, active)
            return
        rule = self.rules.get(type(op.form))
        if guard >= 0 and (rule is None or not getattr(rule, "masked", False)):
            self.steps.append(SameLanes(active))
            active = Active(warp.index, mask, leader, active.whole)
        if op.kind == EXIT and leader and not active.whole:
            traced.split = True
        if not leader and active.guard < 0 or op.kind in (BRANCH, EXIT):
            return
        if rule is not None:
            rule(self, traced, op, active)
        elif op.name in STRUCTURAL or op.kind == INDEXED:
            self.same(traced, op, op.reads, leader)
            self.uniform(traced, op.writes, active)
        else:
            raise NoReplay(f"no rule for {op.name}")

    def _compute(self, traced: TracedWarp, op: Op, active: Active) -> None:
        compute, warp = op.compute, traced.warp
        assert compute is not None
        varying = traced.varying
        sources = [slot for slot, _ in compute.sources]
        results = [slot for slot, _ in compute.results]
        if compute.across and self._waits(traced, op, active):
            return
        lost = {slot for slot in sources if warp.undef[slot] & active.leader}
        moved = {*sources[: compute.moved]} - warp.pending.keys()
        selects = not varying.isdisjoint(sources[compute.moved :])
        if lost and (not lost <= moved or selects or active.guard >= 0):
            raise NoReplay("an undefined operand")
        if active.guard < 0 and varying.isdisjoint(sources):
            if not active.leader or varying.isdisjoint(results):
                return
            if active.whole:
                varying.difference_update(results)
                return
        active = self.masked(traced, active, sources, results)
        operands = tuple(self.operand(traced, slot, view) for slot, view in compute.sources)
        old = tuple(self.old(traced, slot, view, active) for slot, view in compute.results)
        self.steps.append(Computing(active, compute, operands, old, op.spelling))
        varying.update(results)

    def _waits(self, traced: TracedWarp, op: Op, active: Active) -> bool:
        """Whether an exchange of values waits for further lanes. Raises NoReplay unless all 32
        lanes take part in it."""
        warp, members = traced.warp, op.members
        if members >= 0:
            if members in traced.varying or warp.undef[members]:
                raise NoReplay("a member mask that varies")
            if (warp.v[U32][members] != FULL).any():
                raise NoReplay("an exchange of some lanes")
        if active.guard >= 0 or warp.live != FULL or (members < 0 and active.leader != FULL):
            raise NoReplay("an exchange of some lanes")
        return active.leader != FULL

    # --- for the rules ---------------------------------------------------------------------------

    def masked(
        self, traced: TracedWarp, active: Active, sources: list[int], results: list[int]
    ) -> Active:
        """Adds to an instruction's lanes those in which these registers are undefined. They matter
        if the guard varies between CTAs.
        """
        if active.guard < 0:
            return active
        undef = traced.warp.undef
        unread = unwritten = 0
        for slot in sources:
            unread |= undef[slot]
        for slot in results:
            unwritten |= undef[slot]
        return Active(
            active.warp, active.mask, active.leader, active.whole, active.guard, active.negate,
            unread, unwritten,
        )  # fmt: skip

    def operand(self, traced: TracedWarp, slot: int, view: int) -> Operand:
        """Returns the operand of a step that stands for a register's current value: the slot if the
        value varies, otherwise the value.
        """
        if slot in traced.varying:
            return slot
        if view == PREDICATE:
            return LANE_MASK[traced.warp.p[slot] & 0xFFFFFFFF]
        return traced.warp.v[view][slot].copy()

    def old(self, traced: TracedWarp, slot: int, view: int, active: Active) -> Operand | None:
        """Operand for the old value of a register, which lanes that do not write it keep; None if
        all lanes write it.
        """
        return None if active.everywhere else self.operand(traced, slot, view)

    def same(self, traced: TracedWarp, op: Op, slots: tuple[int, ...], lanes: int) -> None:
        """Adds steps that require these registers to have the leader's values in every CTA."""
        for slot in slots:
            if traced.warp.undef[slot] & lanes:
                raise NoReplay("an undefined operand")
            if slot in traced.varying:
                self.steps.append(SameValue(traced.warp.index, slot, lanes))

    def written(self, where: np.ndarray, varying: bool) -> None:
        """Records whether these bytes of shared memory vary between CTAs from now on."""
        self._inside(where)
        self.shared[where // 4] = varying

    def _inside(self, where: np.ndarray) -> None:
        smem = self.cta.smem
        if where.size and (where.min() < smem.start or where.max() >= smem.size):
            raise NoReplay("an address outside the shared memory of the CTA")

    def readable(self, where: np.ndarray, always: bool = False) -> bool:
        """Whether any of these bytes of shared memory vary between CTAs. All of them must be
        defined. The bytes that do not vary are added to the trace, because not every one of them
        was written by a step.

        always: whether the bytes are also added if none of them varies
        """
        self._inside(where)
        smem = self.cta.smem
        if not smem.defined[where].all():
            raise NoReplay("undefined bytes of shared memory")
        varying = self.shared[where // 4]
        if (always or varying.any()) and not varying.all():
            known = distinct(where[~varying])
            self.steps.append(SharedFill(known, smem.data[known].copy()))
        return bool(varying.any())

    def uniform(self, traced: TracedWarp, slots: tuple[int, ...], active: Active) -> None:
        """Records that these registers now hold the same values in every CTA."""
        if active.whole:
            traced.varying.difference_update(slots)
        elif not traced.varying.isdisjoint(slots):
            raise NoReplay("a uniform value in some lanes of a varying register")
