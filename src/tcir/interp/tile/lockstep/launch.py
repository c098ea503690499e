"""A launch in lockstep: leaders, and the CTAs that follow them."""

from __future__ import annotations

from typing import cast

import numpy as np

from tcir.interp.ptx.lockstep.abandoned import Abandoned, LockstepDivergence, warn
from tcir.interp.ptx.lockstep.launch import KEPT
from tcir.interp.ptx.lockstep.leaders import Leaders
from tcir.interp.ptx.lockstep.ledger import Ledger
from tcir.interp.tile.kernel import TileProgram
from tcir.interp.tile.lockstep.counts import Counts
from tcir.interp.tile.lockstep.follower import (
    FollowerAgent,
    FollowerCta,
    FollowerLeft,
    FollowerMemories,
    take_turns,
)
from tcir.interp.tile.lockstep.repeat import Alike
from tcir.interp.tile.lockstep.trace import Trace
from tcir.machine import Agent, Cta, Machine, MachineError
from tcir.machine.memory.protocols import Triple

PATIENCE = 16
"""Number of consecutive CTAs that leave, after which a leader gets no more followers."""


class Lockstep(Leaders[Trace]):
    """Runs leaders on the machine and replays their operations in followers; see
    `tcir.machine.engine.machine.Followers`.
    """

    def __init__(self, machine: Machine, program: TileProgram) -> None:
        super().__init__(machine)
        self.program = program
        self._ledger: Ledger | None = None
        self._before = Counts.of(machine)
        self._room = KEPT
        self._classes: list[Alike] = []

    # --- the leader ------------------------------------------------------------------------------

    def begin(self, cta: Cta) -> Trace | None:
        """Called before a CTA starts; returns the trace that records the CTA, or None if it is not
        recorded.
        """
        self.finish()
        if self.why:
            return None
        self._recording = Trace(cta)
        self._before = Counts.of(self.machine)
        self.machine.effects = self._recording.effect
        return self._recording

    def finish(self) -> None:
        """Called when all CTAs have ended."""
        super().finish()
        if self.committed and self.machine.findings:
            raise Abandoned("findings", alone=True)

    def ended(self, cta: Cta) -> int:
        """Called when a CTA has ended: executes the CTAs that do the same as it, and returns their
        number.
        """
        trace = self._recorded(cta)
        if trace is None:
            return 0
        undefined = any(buffer.stored_undefined() for buffer in self.machine.memory.buffers)
        if trace.why or self.machine.findings or undefined:
            self._stop(trace.why or "findings")
            return 0
        try:
            return self._follow(trace)
        except LockstepDivergence as mistake:
            self._stop(warn(mistake))
            return 0

    # --- the others ------------------------------------------------------------------------------

    def _follow(self, trace: Trace) -> int:
        counts = Counts.of(self.machine) - self._before
        memories = FollowerMemories(trace.cta.smem.size)
        again = self._replay(trace, trace.cta.index, memories)
        if again is None or not again.performed(self.machine):
            raise LockstepDivergence(f"CTA {trace.cta.index} does something else in its own replay")
        self._ledger = self._ledger or Ledger(self.machine.memory)
        if not self._note(again):
            return 0
        alike = Alike(trace.streams, counts, [again])
        self._classes.append(alike)
        found = left = 0
        for number in range(self.total):
            if self._done[number]:
                continue
            if left == PATIENCE:
                break
            follower = self._replay(trace, self._index(number), memories)
            if follower is None:
                left += 1
                continue
            if not self._note(follower):
                return found
            self.committed = True
            follower.perform(self.machine, counts)
            alike.members.append(follower)
            self._room -= follower.nbytes
            self._done[number] = True
            found, left = found + 1, 0
            self.followers += 1
        if not self.committed:
            self._stop("no CTA does the same as the leader")
        return found

    def _replay(
        self, trace: Trace, index: Triple, memories: FollowerMemories
    ) -> FollowerCta | None:
        """Replays a trace in the CTA `index`; returns the CTA when it has ended, None if it
        left."""
        program, turns = self.program, self.program.turns.count
        cta = FollowerCta(index, self.machine, memories)
        run = program.run(cast("Cta", cta))
        agents = [
            FollowerAgent(cta, number, warp, trace.calls[number])
            for number, (_, warp, _) in enumerate(program.agents)
        ]
        try:
            take_turns(trace, agents, [program.body(run, cast("Agent", a), a.warp) for a in agents])
        except (FollowerLeft, MachineError):
            program.turns.count = turns
            return None
        cta.turns = program.turns.count - turns
        if index == trace.cta.index:
            program.turns.count = turns
        return cta

    def _note(self, cta: FollowerCta) -> bool:
        """Enters a CTA's accesses in the ledger; False, and the end of lockstep, if they conflict
        with another CTA's."""
        assert self._ledger is not None
        number = np.array([1 + self._number(cta.index)])
        alone = self._ledger.note(cta.accesses, cta.reads, number)
        if not alone:
            self._stop("CTAs that touch what others write")
        return alone

    def classes(self) -> list[Alike]:
        """Returns the classes of CTAs that behave alike; empty if they are unknown or need too much
        memory.
        """
        return self._classes if not self.why and self._room >= 0 else []
