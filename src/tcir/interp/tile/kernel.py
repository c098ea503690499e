"""One CTA of a kernel: the state that its agents share, and the execution in program order for
kernels without ``tc.async``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from tcir.dialect.cta_pair import PAIR
from tcir.dialect.limits import TMEM_COLUMNS, WARP
from tcir.interp.tile.compiler import Blocking, Compiler, Frame, Step, blocking, meet
from tcir.interp.tile.places import Places
from tcir.interp.tile.values import MemRef, RegisterTile, Site
from tcir.interp.types import Array
from tcir.machine import Agent, Cta, ElementAddresses, MachineError, TmemAddr

if TYPE_CHECKING:
    from tcir.interp.tile.lockstep.trace import Trace

OWN = Site("the interpreter's own setup")


class LoopTurns:
    """Counts the iterations of all loops of a launch, which may be `most` in total."""

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0

    def spend(self, turns: int, site: Site) -> None:
        """Counts the iterations of a loop before the loop starts; MachineError if they exceed the
        budget.
        """
        self.count += turns
        if self.count > self.most:
            raise MachineError(
                "loop-budget",
                f"expected loops of at most {self.most} iterations in total, got {self.count} with "
                f"the {turns} of this loop; raise max_instructions if that is intended",
                site=site,
            )


class CtaRun:
    """State of one CTA, and the functions that the rules use."""

    def __init__(self, cta: Cta, places: Places, turns: LoopTurns, cta_group: int = 1) -> None:
        self.cta = cta
        self.cta_group = cta_group
        self.places = places
        self.turns = turns
        self._loads = 0
        self._own_column = 0

    # Errors and hazards ---------------------------------------------------------------------------

    def error(self, code: str, message: str, site: Site) -> MachineError:
        """Returns the error of an illegal use of the hardware, for the caller to raise."""
        return MachineError(code, message, site=site)

    def below(self, what: str, index: int, count: int, site: Site) -> int:
        """Returns an index; MachineError unless 0 <= index < count. what: noun with article for the
        error message
        """
        if not 0 <= index < count:
            code = f"bad-{what.split()[-1]}"
            raise self.error(code, f"expected {what} below {count}, got {index}", site)
        return index

    def consume(self, frame: Frame, tile: RegisterTile, site: Site) -> None:
        """Checks that a wait has covered a tensor-memory load before its registers are used."""
        load = tile.load
        if load is not None and not load.ready:
            load.ready = True  # reported once
            self.cta.report(
                "error",
                "registers-before-wait",
                load.site,
                site,
                "tc.tmem_wait ld between the load and the first use of its registers",
            )

    # Memory -------------------------------------------------------------------------------------

    def forget_shared(self, frame: Frame, start: int, size: int) -> None:
        """Makes the shared bytes of a new tile undefined."""
        self.cta.smem.poison(start - self.cta.window, size)

    def forget_tmem(self, frame: Frame, column: int, columns: int) -> None:
        """Makes the tensor-memory columns of a new tile undefined."""
        self.cta.tmem.poison(column, columns)

    def read_word(self, frame: Frame, address: int, site: Site) -> int:
        """Reads a 32-bit word of shared memory as this agent."""
        raw = frame.agent.memory.load("shared", np.array([address], np.int64), 4, site=site)
        return int(np.ascontiguousarray(raw).view(np.uint32)[0, 0])

    def own_origin(self, _: Frame) -> int:
        """First column of the tensor memory that the interpreter allocates itself, before memory is
        planned.
        """
        return self._own_column

    @contextmanager
    def as_warp(self, frame: Frame, quarter: int) -> Iterator[None]:
        """Lets an agent that is the whole CTA access a sub-partition of tensor memory as the warp
        that has access to it.
        """
        if not frame.whole:
            yield
            return
        agent, warp = frame.agent, frame.agent.warp
        agent.warp = quarter
        try:
            yield
        finally:
            agent.warp = warp

    def tmem_operand(self, address: int) -> TmemAddr:
        """Returns an operand A that is in tensor memory."""
        return TmemAddr(address)

    def element_operand(self, addresses: Array) -> ElementAddresses:
        """Returns an operand in shared memory, given by the addresses of its elements; each CTA of
        a pair applies the addresses to its own memory.
        """
        return ElementAddresses(addresses, -self.cta.window)

    # Loads in program order ---------------------------------------------------------------------

    def announce(self, frame: Frame, nbytes: int, site: Site) -> int:
        """Arms an mbarrier of the interpreter for a load that has no operand `signal`; returns the
        mbarrier's address.
        """
        bar = self.cta.shared + self.places.scratch
        frame.agent.mbarrier.arrive(bar, expect_tx=nbytes, site=site)
        return bar

    def complete_load(self, frame: Frame, nbytes: int, box: int, site: Site) -> None:
        """Completes a load for which `announce` armed an mbarrier; MachineError unless it moved
        `nbytes` bytes.
        """
        frame.agent.drain()
        parity, self._loads = self._loads % 2, self._loads + 1
        bar = self.cta.shared + self.places.scratch
        if not frame.agent.mbarrier.test(bar, parity, site=site):
            raise self.error(
                "wrong-byte-count", f"expected nbytes = {box}, the box's, got {nbytes}", site
            )

    # Running --------------------------------------------------------------------------------------

    def body(self, program: Step, frame: Frame) -> Blocking:
        """Runs the whole kernel as one agent."""
        agent, places = frame.agent, self.places
        scratch = self.cta.shared + places.scratch
        if places.scratch and frame.whole:
            agent.mbarrier.init(scratch, 1, site=OWN)
            agent.fence("mbarrier_init", site=OWN)  # other CTAs may multicast
        if places.own_allocation:
            if self.cta_group == PAIR:
                yield from meet(frame, OWN, relaxed=True)
            if frame.elected():
                yield from agent.tmem.alloc(scratch + 8, TMEM_COLUMNS, self.cta_group, site=OWN)
            if not frame.whole:
                yield from agent.barrier.sync(0, None, site=OWN)
            self._own_column = self.read_word(frame, scratch + 8, OWN)
        yield from blocking(program)(frame)
        if places.own_allocation:
            agent.drain()
            if not frame.whole:
                yield from agent.barrier.sync(0, None, site=OWN)
            if frame.elected():
                yield from self._free_own(frame)

    def _free_own(self, frame: Frame) -> Blocking:
        if self.cta_group == PAIR:
            yield from meet(frame, OWN)
            yield from frame.agent.tmem.pair_dealloc(self._own_column, TMEM_COLUMNS, site=OWN)
        else:
            frame.agent.tmem.dealloc(self._own_column, TMEM_COLUMNS, site=OWN)


@dataclass(frozen=True)
class TileProgram:
    """A compiled kernel, as its CTAs run it. warps: number of warps of a CTA. roles: whether each
    warp is an agent
    """

    compiler: Compiler
    step: Step
    arguments: list[MemRef]
    warps: int
    roles: bool
    turns: LoopTurns

    @property
    def agents(self) -> list[tuple[str, int, int]]:
        """Name, warp and threads of each agent of a CTA. There is one agent for the whole CTA, or
        one per warp.
        """
        if not self.roles:
            return [("the CTA", 0, WARP * self.warps)]
        return [(f"warp {w}", w, WARP) for w in range(self.warps)]

    def run(self, cta: Cta) -> CtaRun:
        """Returns the state that the agents of one CTA share."""
        return CtaRun(cta, self.compiler.places, self.turns, self.compiler.cta_group)

    def body(self, run: CtaRun, agent: Agent, warp: int) -> Blocking:
        """Runs the kernel as one agent."""
        values: list[object] = [None] * self.compiler.slots
        values[: len(self.arguments)] = self.arguments
        frame = Frame(values, agent, run.cta, run, not self.roles, warp)
        return run.body(self.step, frame)


def start_cta(cta: Cta, program: TileProgram, trace: Trace | None = None) -> list[Agent]:
    """Returns the agents of one CTA. trace: if given, records the operations that they issue"""
    run = program.run(cta)

    def agent(name: str, warp: int, threads: int) -> Agent:
        def body(agent: Agent) -> Blocking:
            if trace is None:
                return program.body(run, agent, warp)
            number, recorded = trace.agent(agent)
            return trace.follow(number, program.body(run, cast("Agent", recorded), warp))

        return cta.agent(name, warp=warp, threads=threads, body=body)

    return [agent(*each) for each in program.agents]
