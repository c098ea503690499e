"""Compiles a kernel to Python closures, once per execution; ops are looked up only during
compilation.

A *step* is a function of a `Frame`. If it may block, it is a generator function, and the machine's
scheduler runs other agents while it waits. Values are kept in a list, with one slot per MLIR value.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from tcir._mlir import ir
from tcir.dialect.cta_pair import LEADER, PAIR, cta_group_of, kernel_cta_group
from tcir.dialect.limits import WARP
from tcir.dialect.multicast import cluster_ctas, masks_of
from tcir.dialect.warp_map import CONSUMER, warp_map_of
from tcir.errors import IncompleteError
from tcir.interp.rules import Rules, site_of
from tcir.interp.tile.values import PendingLoad, Site, Writers
from tcir.machine.memory.memories import RANK_SHIFT

if TYPE_CHECKING:
    from tcir.interp.tile.kernel import CtaRun
    from tcir.interp.tile.places import Places
    from tcir.machine import Agent, Cta

Blocking: TypeAlias = Generator[object, object, None]
"""The generator of a step that may block; the scheduler resumes it."""
Step = Callable[["Frame"], Blocking | None]

execute: Rules[Callable[[Compiler, Any], Step]] = Rules("tile")
"""The rules of this level, a decorator: ``@execute(tc.MmaOp)``, ``(compiler, op) -> step``."""


@dataclass
class Frame:
    """The state of one agent (the whole CTA, or one warp) of one CTA."""

    values: list[Any]
    agent: Agent
    cta: Cta
    cta_run: CtaRun
    whole: bool
    """Whether one agent is the whole CTA (no roles yet); else one agent per warp."""
    warp: int
    in_role: bool = False
    threads: int = WARP
    """Threads that execute: 1 in a role of one thread, else those of the warp."""
    loads: list[PendingLoad] = field(default_factory=list)

    def elected(self, warp: int = 0) -> bool:
        """Whether this agent executes an op that only the warp number `warp` executes for the
        CTA.
        """
        return self.whole or self.in_role or self.warp == warp


class Compiler:
    """Compiles one `func.func` with ``tc.kernel``."""

    def __init__(self, function: ir.Operation, places: Places, writers: Writers) -> None:
        self.places = places
        self.writers = writers
        self.attributes = function.attributes
        self.sequential = "tc.async" not in self.attributes
        """Without ``tc.async`` every op takes effect before the next one starts."""
        roles = warp_map_of(function)
        self.warps_of_quarter = roles.warps_of_quarter
        """Warps of one role that access the same sub-partition of tensor memory."""
        self.consumers = len(roles[CONSUMER].warps) if CONSUMER in roles.kinds else 0
        """Warps of the role that multiplies by wgmma."""
        self.allocation_warp = 0
        """The warp of the kernel's `tc.tmem_alloc`, which also frees."""
        self.cta_group = kernel_cta_group(function)
        """CTAs that a tcgen05 op acts on: 1, or 2 in a kernel of pairs."""
        self.cluster_ctas = cluster_ctas(function)
        """CTAs of a cluster."""
        self._slots: dict[ir.Value, int] = {}

    def masks(self, op: ir.OpView) -> list[int]:
        """Returns the mask of CTAs that an op reaches, for each rank of the executing CTA."""
        try:
            return masks_of(op, self.cluster_ctas)
        except ValueError as error:
            raise IncompleteError(f"{site_of(op.operation)}: {error}") from None

    @property
    def slots(self) -> int:
        """Number of value slots."""
        return len(self._slots)

    def slot(self, value: ir.Value) -> int:
        """The slot of an MLIR value."""
        return self._slots.setdefault(value, len(self._slots))

    def slots_of(self, values: Iterable[ir.Value]) -> list[int]:
        """The slots of MLIR values."""
        return [self.slot(value) for value in values]

    def operands(self, op: ir.OpView) -> list[int]:
        """The slots of an op's operands."""
        return self.slots_of(op.operation.operands)

    def result(self, op: ir.OpView) -> int:
        """The slot of an op's only result."""
        return self.slot(op.operation.results[0])

    def site(self, op: ir.OpView) -> Site:
        """Name and location of the op, as the machine's findings show it."""
        return Site(site_of(op.operation))

    def step(self, view: ir.OpView) -> Step:
        """Returns the step of one op; IncompleteError, with the op's location, if there is no
        rule.
        """
        op = view.operation
        if op.name not in execute:
            raise IncompleteError(f"{site_of(op)}: no rule at tile level")
        step = execute[op.name](self, view)
        return of_leader(step) if LEADER in op.attributes else step

    def assigns(self, op: ir.OpView, compute: Callable[[Frame], Any]) -> Step:
        """Returns a step that sets the op's only result to the return value of `compute`."""
        result = self.result(op)

        def step(frame: Frame) -> None:
            frame.values[result] = compute(frame)

        return step

    def issues(self, op: ir.OpView, issue: Callable[[Frame], None]) -> Step:
        """Returns a step that issues an op to the tensor core, once for a CTA or for a pair of
        CTAs. In a sequential program the op is complete after the step.
        """
        sequential = self.sequential

        def step(frame: Frame) -> None:
            if frame.elected():
                issue(frame)
                if sequential:
                    frame.agent.drain()

        return of_pair(step, self.site(op)) if sequential and cta_group_of(op) == PAIR else step

    def block(self, block: ir.Block) -> Step:
        """Returns the steps of a block; a terminator that only yields is left out."""
        return sequence([self.step(view) for view in block.operations])


def may_block(step: Step) -> TypeGuard[Callable[[Frame], Blocking]]:
    """Whether a step is a generator function."""
    return inspect.isgeneratorfunction(step)


def blocking(step: Step) -> Callable[[Frame], Blocking]:
    """Returns the step as a generator function; a step that does not block is wrapped."""
    if may_block(step):
        return step

    def at_once(frame: Frame) -> Blocking:
        step(frame)
        yield from ()

    return at_once


def nothing(frame: Frame) -> None:
    """The step of an op without an effect at this level."""


def is_leader(frame: Frame) -> bool:
    """Whether the CTA has an even rank in its cluster, which makes it the leader of its CTA
    pair.
    """
    return frame.cta.rank_in_cluster % PAIR == 0


def in_leader(address: int) -> int:
    """Maps a shared address to the same offset in the leader of the CTA pair."""
    return address & ~(1 << RANK_SHIFT)


def in_cta(address: int, rank: int) -> int:
    """Maps a shared address to the same offset in the CTA with the given rank."""
    return address & ((1 << RANK_SHIFT) - 1) | rank << RANK_SHIFT


def of_leader(step: Step) -> Step:
    """Returns a step that runs `step` only in the leader of a CTA pair."""
    if may_block(step):

        def waiting(frame: Frame) -> Blocking:
            if is_leader(frame):
                yield from step(frame)

        return waiting

    def straight(frame: Frame) -> None:
        if is_leader(frame):
            step(frame)

    return straight


def meet(frame: Frame, site: Site, *, relaxed: bool = False) -> Blocking:
    """Arrives at the cluster barrier and waits until all agents of the cluster have arrived."""
    frame.agent.cluster_barrier.arrive(relaxed=relaxed, site=site)
    yield from frame.agent.cluster_barrier.wait(site=site)


def of_pair(step: Step, site: Site) -> Step:
    """Returns a step that runs `step` of a sequential program once for a CTA pair.

    Both CTAs reach the step, and the leader executes it. The step observes the earlier accesses of
    both CTAs, and both CTAs then observe its accesses.
    """

    def together(frame: Frame) -> Blocking:
        frame.agent.fence("tcgen05.before", site=site)
        yield from meet(frame, site)
        frame.agent.fence("tcgen05.after", site=site)
        if is_leader(frame):
            step(frame)
        yield from meet(frame, site)
        frame.agent.drain()

    return together


def sequence(steps: Sequence[Step]) -> Step:
    """Returns one step that runs `steps` in order."""
    if not any(may_block(s) for s in steps):

        def straight(frame: Frame) -> None:
            for step in steps:
                step(frame)

        return straight
    marked = [(step, step if may_block(step) else None) for step in steps]

    def waiting(frame: Frame) -> Blocking:
        for step, blocks in marked:
            if blocks is not None:
                yield from blocks(frame)
            else:
                step(frame)

    return waiting
