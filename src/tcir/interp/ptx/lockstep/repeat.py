"""Executes a launch under a seed, after the same launch was executed in the order of issue.

CTAs in lockstep form classes: a leader and the CTAs that behaved like it. If the leader has no
hazard, no result of the class depends on the order of execution. So under a seed only some CTAs of
each class run on the machine, with every check and each in its own order. If their instructions and
stores equal those of the launch in the order of issue, the stores of the other CTAs of the class
are taken from that launch.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.interpreter import WarpInterpreter
from tcir.interp.ptx.launch import LaunchState, Triple
from tcir.interp.ptx.lockstep.abandoned import Abandoned
from tcir.interp.ptx.lockstep.counts import Counts
from tcir.interp.ptx.lockstep.ledger import LedgerStore, perform, performed
from tcir.interp.ptx.lockstep.stream import Stream, polling
from tcir.interp.ptx.op import Blocking
from tcir.interp.ptx.program import DecodedEntry
from tcir.machine import Cta

SAMPLE = 16
"""Number of CTAs of a class for each one that runs."""


@dataclass
class ClassPart:
    """Part of a class of CTAs, and the stores of these CTAs.

    rows: mask of the CTAs that belong to the class; extra: as in `LockstepGroup`
    """

    ctas: Sequence[Triple]
    rows: NDArray[np.bool_]
    writes: list[LedgerStore]
    extra: dict[str, NDArray[np.int64]]


@dataclass
class Alike:
    """A class of CTAs with the same behaviour. counts: counters of the class's leader. stream:
    digest of the leader's instructions (`Stream`)
    """

    stream: tuple[tuple[int, ...], ...]
    counts: Counts
    parts: list[ClassPart] = field(default_factory=list)

    @property
    def members(self) -> list[tuple[ClassPart, int]]:
        return [(part, int(n)) for part in self.parts for n in np.flatnonzero(part.rows)]


Classes = list[Alike]


def launch_key(launch: LaunchState, text: str) -> bytes:
    """Hash of everything that a launch depends on, except the order of execution. text: text of the
    program, and its entry
    """
    machine = launch.machine
    options = replace(machine.options, order_seed=None, products=None, repeats=None, events=None)
    found = hashlib.sha256(f"{text}\0{launch.sizes}\0{options}\0".encode())
    found.update(launch.params.tobytes())
    for buffer in machine.memory.buffers:
        found.update(f"{buffer.base} {buffer.result} {buffer.defined is None};".encode())
        found.update(np.ascontiguousarray(buffer.data).data)
        if buffer.defined is not None and buffer.defined.any():
            found.update(buffer.defined.data)
    return found.digest()


class Repetition:
    """Runs some CTAs of each class and takes the stores of the others from the earlier launch; see
    `tcir.machine.engine.machine.Followers`.
    """

    def __init__(self, program: DecodedEntry, launch: LaunchState, classes: Classes) -> None:
        self.launch, self.machine = launch, launch.machine
        self.committed = True
        """An error is reported as in a run of every CTA."""
        self.followers = 0
        """CTAs that did not run."""
        draw = random.Random(f"{self.machine.options.order_seed}/representatives")
        self._running: dict[Triple, tuple[Alike, ClassPart, int]] = {}
        self._others: dict[int, list[tuple[ClassPart, NDArray[np.bool_]]]] = {}
        for alike in classes:
            members = alike.members
            chosen = draw.sample(members, 1 + (len(members) - 1) // SAMPLE)
            for part, row in chosen:
                self._running[part.ctas[row]] = alike, part, row
            self._others[id(alike)] = [
                (part, part.rows & ~np.isin(np.arange(len(part.rows)), rows))
                for part in alike.parts
                for rows in [[n for p, n in chosen if p is part]]
            ]
        self._polling = polling(program) or frozenset()
        self._stream = Stream(self._polling)
        self._before = Counts.of(launch)

    def executed(self, index: tuple[int, ...]) -> bool:
        """Whether a CTA need not run on the machine."""
        return index not in self._running

    def begin(self, cta: Cta) -> None:
        """Called before a CTA starts."""
        self._stream, self._before = Stream(self._polling), Counts.of(self.launch)

    def follow(self, interpreter: WarpInterpreter) -> Blocking:
        """Runs a warp."""
        interpreter.trace(self._stream.of(interpreter), later=True)
        return interpreter.run()

    def ended(self, cta: Cta) -> int:
        """Called when a CTA has ended: commits the stores of the other CTAs of its class."""
        alike, part, row = self._running.pop(cta.index)
        if self.machine.findings:
            raise Abandoned("findings", alone=True)
        spent = Counts.of(self.launch) - self._before
        buffers = self.machine.memory.buffers
        same = (
            self._stream.digest() == alike.stream
            and spent.by_name == alike.counts.beyond(part.extra, row).by_name
            and all(performed(buffers[w.buffer], w, w.row == row) for w in part.writes)
        )
        if not same:
            raise Abandoned("a CTA that does something else under this seed")
        count = 0
        for other, rows in self._others.pop(id(alike), ()):
            for one in other.writes:
                perform(buffers[one.buffer], one, rows, other.ctas)
            own = replace(alike.counts, instructions=spent.instructions)
            own.of_each(other.extra, rows).add_to(self.launch)
            count += int(rows.sum())
        self.followers += count
        return count

    def finish(self) -> None:
        """Called when all CTAs have ended."""
        if self.machine.findings:
            raise Abandoned("findings", alone=True)
        if self._running:
            raise Abandoned("a CTA that waits for another one")
