"""Runs a launch in several processes, or gives the reason why one process must run all of it."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcir.interp.ptx.jobs.footprint import (
    Footprint,
    apart,
    follow_stores,
    footprints,
    perform,
    unrecorded,
)
from tcir.interp.ptx.jobs.part import Block, TogetherError, blocks
from tcir.interp.ptx.jobs.sampling import why_whole
from tcir.interp.ptx.jobs.workers import Tell, in_workers
from tcir.interp.ptx.launch import PRINTED, LaunchState
from tcir.interp.ptx.lockstep.abandoned import LockstepDivergence
from tcir.interp.ptx.lockstep.counts import Counts
from tcir.interp.ptx.lockstep.launch import Lockstep
from tcir.interp.ptx.lockstep.leaders import eligible
from tcir.interp.ptx.program import DecodedEntry
from tcir.machine import Machine
from tcir.storage import outermost

FEWEST = 4
"""Fewest clusters of a grid that is divided."""
IN_LOCKSTEP = 128
"""Most CTAs in lockstep that one process executes as fast as two: each worker has leaders of its
own, and a step takes about the same time for any number of CTAs."""
PAUSE = 0.05
"""Seconds between two progress reports of a worker."""


@dataclass(frozen=True)
class BlockReport:
    """Result that a worker sends about its block of clusters.

    touched:   accesses to global memory, by buffer
    counts:    counters of the machine
    printed:   printed text, by cluster
    group:     `cta_group` of its tcgen05 instructions
    followers: number of CTAs that were executed in lockstep
    """

    touched: dict[int, Footprint]
    counts: Counts
    printed: dict[int, str]
    group: tuple[int, object] | None
    followers: int


def why_together(program: DecodedEntry, launch: LaunchState, mine: Sequence[int]) -> str:
    """Reason why this launch cannot be divided into blocks; empty if it can."""
    machine = launch.machine
    options = machine.options
    control = (op for op in program.code if op.name.startswith("clusterlaunchcontrol"))
    reasons = {
        "a grid of few CTAs": len(mine) < FEWEST,
        "CTAs run side by side": machine.side_by_side != 1,
        "a programmatic launch after others that still write parts of buffers": (
            machine.programmatic and machine.memory.partly_unfinished
        ),
        "launch control": any(control),
        "completion orders share what the first one leaves": options.repeats is not None,
        "no fork on this system": not hasattr(os, "fork"),
        f"at most {IN_LOCKSTEP} CTAs in lockstep": (
            len(mine) <= IN_LOCKSTEP and eligible(launch.machine)
        ),
    }
    why = next((why for why, holds in reasons.items() if holds), "")
    # Only with hazards on are strong accesses found where they are executed.
    return why or ("" if machine.checking else why_whole(program, machine))


def run_in_blocks(
    launch: LaunchState, mine: Sequence[int], execute: Callable[[Block], Lockstep | None]
) -> list[BlockReport]:
    """Executes the clusters of the grid by ``execute(block)`` in worker processes, and performs
    their writes in this process.

    Raises `TogetherError`, before any write is performed, if one process has to run the launch.
    """
    machine = launch.machine
    progress = machine.progress

    def block(mine: Sequence[int]) -> Callable[[Tell], BlockReport]:
        def work(tell: Tell) -> BlockReport:
            warnings.simplefilter("error", LockstepDivergence)  # one process will say so
            _own_memory(machine)
            if not machine.checking:
                follow_stores(machine.memory)
            known = list(machine.memory.buffers)
            machine.progress = None if progress is None else _now_and_then(tell)
            own = Block(launch, mine)
            lockstep = execute(own)
            tell(len(mine) * math.prod(machine.cluster))
            if machine.memory.buffers != known or launch.clocked:
                raise TogetherError("what one process has to order: clocks, or a grid's barrier")
            ledger = None if lockstep is None else lockstep.ledger
            memory = machine.memory
            return BlockReport(
                footprints(memory, ledger) if machine.checking else unrecorded(memory),
                Counts.of(launch),
                own.printed,
                machine.cta_group,
                0 if lockstep is None else lockstep.followers,
            )

        return work

    works = [block(mine) for mine in blocks(mine, machine.options.jobs)]
    done = in_workers(works, lambda n: None if progress is None else progress(n, _ctas(machine)))
    _check(launch, done)
    perform(machine.memory, [each.touched for each in done])
    printed: dict[int, str] = {}
    for each in done:
        each.counts.add_to(launch)
        printed |= each.printed
    for cluster in sorted(printed):
        launch.print(printed[cluster])
    return done


def _check(launch: LaunchState, done: list[BlockReport]) -> None:
    """Raises `TogetherError` unless the blocks together did the same as one process would have."""
    memory = launch.machine.memory
    if not apart(memory, [each.touched for each in done]):
        raise TogetherError("CTAs that touch what others write")
    if sum(each.counts.instructions for each in done) > launch.max_instructions:
        raise TogetherError("the instruction budget")
    if len({each.group and each.group[0] for each in done} - {None}) > 1:
        raise TogetherError("CTAs of different groups of tcgen05")
    if sum(len(text) for each in done for text in each.printed.values()) >= PRINTED:
        raise TogetherError("more output than is kept")


def _own_memory(machine: Machine) -> None:
    """Gives a worker copies of arrays that it may share with its parent (mapped files)."""
    for buffer in machine.memory.buffers:
        owner = outermost(buffer.data)
        if not owner.flags.owndata and not isinstance(owner.base, bytes):
            buffer.data = buffer.data.copy()


def _now_and_then(tell: Tell) -> Callable[[int, int], None]:
    """The machine's progress, which has news with every CTA, told with pauses."""
    last = time.monotonic()

    def progress(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PAUSE:
            tell(done)
            last = time.monotonic()

    return progress


def _ctas(machine: Machine) -> int:
    x, y, z = machine.grid
    return x * y * z
