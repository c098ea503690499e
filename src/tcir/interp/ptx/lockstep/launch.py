"""A launch in lockstep: leaders, groups, and what they leave behind."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.launch import LaunchState, Triple
from tcir.interp.ptx.lockstep.group import Group
from tcir.interp.ptx.lockstep.ledger import Ledger, perform, performed
from tcir.interp.ptx.lockstep.recorder import Recorder, Traced
from tcir.interp.ptx.lockstep.rules import RULES
from tcir.interp.ptx.op import Blocking
from tcir.interp.ptx.program import Program
from tcir.interp.ptx.registers import unsigned_view
from tcir.machine import Cta

RAISE = False
"""Whether a mistake in a rule is raised, for tests."""
LEAST = 4
"""CTAs of a launch that is worth it."""
MOST = 32
"""Followers of a group: its memory is about a megabyte each."""


class Abandoned(Exception):
    """The launch has to run again without lockstep."""


class Divergence(Exception):
    """The leader's row of a group is not what the leader did: a mistake in a rule."""


def eligible(launch: LaunchState) -> bool:
    """Whether the machine's schedule of a CTA depends on the CTA alone, and there are enough."""
    machine = launch.machine
    return (
        machine.options.order_seed is None
        and machine.cluster == (1, 1, 1)
        and machine.ctas_per_sm == 1
        and not machine.programmatic
        and int(np.prod(machine.grid)) >= LEAST
    )


class Lockstep:
    """Follows the CTAs that the machine runs, and executes others with them."""

    def __init__(self, program: Program, launch: LaunchState) -> None:
        self.program, self.launch, self.machine = program, launch, launch.machine
        self.ledger = Ledger(launch.machine.memory)
        self.done: set[Triple] = set()
        self.committed = False
        """Whether a group has written to global memory."""
        self.active = True
        self.followers = 0
        """CTAs that were executed together with a leader."""
        self.why = ""
        """Why the last leader had no group."""
        self._recorder: Recorder | None = None
        self._before: tuple[Counter[str], Counter[int], int, int] | None = None

    # --- the leader ------------------------------------------------------------------------------

    def begin(self, cta: Cta) -> None:
        """Called before a CTA starts."""
        if self._recorder is not None:
            self._stop("a CTA that waits for another one")
        if self.active:
            self._recorder = Recorder(cta, RULES)
            self._before = self._counts()
            self.machine.effects = self._recorder.effect

    def follow(self, interpreter: WarpInterpreter) -> Blocking:
        """Runs a warp."""
        if self._recorder is not None:
            self._recorder.follow(interpreter)
        return interpreter.run()

    def ended(self, cta: Cta) -> Iterable[Triple]:
        """Called when a CTA has ended: those that have been executed with it."""
        recorder, self._recorder, self.machine.effects = self._recorder, None, None
        if recorder is None or recorder.cta is not cta:
            return ()
        assert self._before is not None
        self.done.add(cta.index)
        if recorder.why or self.machine.findings:
            self._stop(recorder.why or "findings")
            return ()
        return self._follow_up(recorder)

    def _counts(self) -> tuple[Counter[str], Counter[int], int, int]:
        counters = self.machine.counters
        plain = {k: v for k, v in vars(counters).items() if k != "global_to_shared_by_tensor"}
        tensors = Counter(counters.global_to_shared_by_tensor)
        return Counter(plain), tensors, self.launch.instructions, 0

    def _stop(self, why: str) -> None:
        """No lockstep from here on; what groups have done before may not have been right then."""
        self.why, self.active, self._recorder, self.machine.effects = why, False, None, None
        if self.committed:
            raise Abandoned(why)

    # --- the others ------------------------------------------------------------------------------

    def _left(self) -> Iterator[Triple]:
        """CTAs that have not been executed, in the order of the grid."""
        for z, y, x in itertools.product(*map(range, reversed(self.machine.grid))):
            if (x, y, z) not in self.done:
                yield x, y, z

    def _follow_up(self, recorder: Recorder) -> list[Triple]:
        leader = recorder.cta.index
        found: list[Triple] = []
        assert self._before is not None
        now, tensors, instructions, _ = self._counts()
        before, tensors_before, instructions_before, _ = self._before
        own = {k: now[k] - before[k] for k in now}
        spent = instructions - instructions_before
        left = math.prod(self.machine.grid) - len(self.done)
        if left < LEAST - 1 and not self.committed:
            self._stop("too few CTAs are left")
            return []
        if self.launch.instructions + spent * left > self.launch.max_instructions:
            self._stop("the instruction budget")
            return []
        waiting = self._left()
        first = True
        while (chunk := list(itertools.islice(waiting, MOST))) or first:
            try:
                group = self._replay(recorder, [leader, *chunk])
                if group.alive[1:].any() or self.committed:
                    _compare(group, recorder)
            except Exception as mistake:  # in a rule: it costs time, no result
                if RAISE:
                    raise
                self._stop(f"{type(mistake).__name__}: {mistake}")
                return found
            stayed = [cta for cta, alive in zip(group.ctas, group.alive, strict=True) if alive][1:]
            if not stayed and not self.committed:
                self._stop("no CTA does the same as the leader")
                return found
            if not self._commit(group, first):
                self._stop("CTAs that touch what others write")
                return found
            first = False
            self.committed |= bool(stayed)
            found += stayed
            self.done.update(stayed)
            self.followers += len(stayed)
            self._count(group, own, tensors - tensors_before, spent)
            del group  # before the next one is made
        return found

    def _replay(self, recorder: Recorder, ctas: Sequence[Triple]) -> Group:
        group = Group(self.machine, ctas, len(recorder.warps), recorder.cta.smem.size)
        group.reads |= recorder.reads
        for traced in recorder.warps:
            self._special(group, traced)
        for step in recorder.steps:
            step.run(group)
            if group.left:
                if not group.alive[0]:
                    raise Divergence("the leader leaves its own group")
                if not self.committed and not group.alive[1:].any():
                    return group
                group.compress()
        return group

    def _special(self, group: Group, traced: Traced) -> None:
        """%ctaid and what else tells the CTAs apart."""
        slots = self.program.storage.slots
        for slot, name in slots.specials.items():
            base, _, axis = name.partition(".")
            if base in ("%ctaid", "%clusterid"):
                values = [0 if axis == "w" else cta["xyz".index(axis)] for cta in group.ctas]
                dtype = f"u{slots.sizes[slot]}"
                row = np.repeat(np.array(values), 32).astype(dtype)
                group.registers[traced.warp.index][slot] = row

    def _commit(self, group: Group, first: bool) -> bool:
        """Writes what the group has kept; False, and nothing is written: there is a conflict."""
        numbers = np.where(group.alive, self._numbers(group.ctas), 0)
        if not first:
            numbers[0] = 0
        if not self.ledger.note(group.accesses, group.reads, numbers):
            return False
        follows = group.alive.copy()
        follows[0] = False
        for one in group.writes:
            perform(self.machine.memory.buffers[one.buffer], one, follows, group.ctas)
        return True

    def _numbers(self, ctas: Sequence[Triple]) -> NDArray[np.int64]:
        """Of the CTAs in the grid, from 1."""
        x, y, _ = self.machine.grid
        return np.array([1 + i + x * (j + y * k) for i, j, k in ctas])

    def _count(
        self, group: Group, own: dict[str, int], tensors: Counter[int], instructions: int
    ) -> None:
        """What the followers count: as the leader, and what each does beyond it."""
        counters = self.machine.counters
        follows = group.alive.copy()
        follows[0] = False
        count = int(follows.sum())
        for name, amount in own.items():
            extra = int(group.extra[name][follows].sum()) if name in group.extra else 0
            setattr(counters, name, getattr(counters, name) + amount * count + extra)
        for address, amount in tensors.items():
            counters.global_to_shared_by_tensor[address] += amount * count
        self.launch.instructions += instructions * count


def _compare(group: Group, recorder: Recorder) -> None:
    """Divergence unless row 0 holds what the leader does."""
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
                    raise Divergence(f"{warp.names[slot]}, lane {lane} of warp {warp.index}")
    smem = recorder.cta.smem
    chosen = np.repeat(recorder.shared, 4)[: smem.size] & smem.defined
    if (group.smem[0, : smem.size][chosen] != smem.data[chosen]).any():
        raise Divergence("shared memory")
    for one in group.writes:
        buffer = group.machine.memory.buffers[one.buffer]
        if not performed(buffer, one, one.row == 0):
            raise Divergence(f"buffer {one.buffer}")


def warp_lane(traced: Traced, lane: int) -> bool:
    """Whether the warp has such a lane: the last one of a CTA may have fewer."""
    return 32 * traced.warp.index + lane < traced.warp.launch.sizes.threads
