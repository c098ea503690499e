"""Executes a launch under a seed, after the same launch was executed in issue order.

As in `tcir.interp.ptx.lockstep.repeat`, some CTAs of each class (CTAs that issue the same
operations) run under the seed, with every check; the stores of the other CTAs are taken from the
launch in issue order.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace

import numpy as np

from tcir.interp.ptx.lockstep.abandoned import Abandoned
from tcir.interp.ptx.lockstep.repeat import SAMPLE
from tcir.interp.tile.kernel import TileProgram
from tcir.interp.tile.lockstep.counts import Counts
from tcir.interp.tile.lockstep.follower import FollowerCta
from tcir.interp.tile.lockstep.trace import Trace
from tcir.machine import Cta, Machine
from tcir.machine.memory.protocols import Triple


@dataclass
class Alike:
    """A class of CTAs that issue the same operations. streams: see `Trace`. counts: counters of the
    class's leader
    """

    streams: list[list[tuple[str, str, object]]]
    counts: Counts
    members: list[FollowerCta]


def launch_key(machine: Machine, text: str) -> bytes:
    """Returns a hash of everything that a launch depends on except the order of execution. text:
    the text of the kernel
    """
    options = replace(machine.options, order_seed=None, products=None, repeats=None)
    found = hashlib.sha256(f"{text}\0{options}\0".encode())
    for buffer in machine.memory.buffers:
        found.update(f"{buffer.base} {buffer.result} {buffer.defined is None};".encode())
        found.update(np.ascontiguousarray(buffer.data).data)
    return found.digest()


class Repetition:
    """Runs some CTAs of each class and takes the stores of the others from the earlier launch; see
    `tcir.machine.engine.machine.Followers`.
    """

    committed = True
    """True, so that an error is reported as in a run of every CTA."""

    def __init__(self, machine: Machine, program: TileProgram, classes: list[Alike]) -> None:
        self.machine, self.program = machine, program
        self.followers = 0
        self._trace: Trace | None = None
        self._before = Counts.of(machine)
        draw = random.Random(f"{machine.options.order_seed}/representatives")
        self._running: dict[Triple, tuple[Alike, FollowerCta]] = {}
        self._others: dict[int, list[FollowerCta]] = {}
        for each in classes:
            chosen = draw.sample(each.members, 1 + (len(each.members) - 1) // SAMPLE)
            self._running |= {cta.index: (each, cta) for cta in chosen}
            self._others[id(each)] = [c for c in each.members if c.index not in self._running]

    def executed(self, index: tuple[int, ...]) -> bool:
        """Whether the stores of a CTA were taken from the earlier launch, so that the machine need
        not run it.
        """
        return index not in self._running

    def begin(self, cta: Cta) -> Trace:
        """Called before a CTA starts; returns the trace that records it."""
        self._trace, self._before = Trace(cta), Counts.of(self.machine)
        return self._trace

    def ended(self, cta: Cta) -> int:
        """Called when a CTA has ended: the other CTAs of its class then commit their stores."""
        trace, (each, known) = self._trace, self._running.pop(cta.index)
        if self.machine.findings:
            raise Abandoned("findings", alone=True)
        assert trace is not None
        own = Counts.of(self.machine) - self._before
        same = (
            not trace.why
            and own == each.counts.with_own(known.counters)
            and trace.streams == each.streams
            and known.performed(self.machine)
        )
        if not same:
            raise Abandoned("a CTA that does something else under this seed")
        others = self._others.pop(id(each), [])
        for other in others:
            other.perform(self.machine, each.counts)
            self.program.turns.count += other.turns
        self.followers += len(others)
        return len(others)

    def finish(self) -> None:
        """Called when all CTAs have ended."""
        if self.machine.findings:
            raise Abandoned("findings", alone=True)
        if self._running:
            raise Abandoned("a CTA that waits for another one")
