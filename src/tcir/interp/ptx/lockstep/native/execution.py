"""Replays a trace by compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.kernels.derived import DerivedKernel, link
from tcir.interp.ptx.lockstep.abandoned import LockstepDivergence
from tcir.interp.ptx.lockstep.group import LockstepGroup
from tcir.interp.ptx.lockstep.ledger import ENGINE, LedgerLoad, LedgerStore
from tcir.interp.ptx.lockstep.memory_steps import GlobalLoad
from tcir.interp.ptx.lockstep.native.emitted import (
    COUNTED,
    DATA,
    GIVEN,
    LEFT,
    PLACES,
    POOL,
    ROW,
    SHARED,
    SPECIAL,
    Aside,
    EmittedOperand,
)
from tcir.interp.ptx.lockstep.native.kernels import WIDTH
from tcir.interp.ptx.lockstep.native.library import address, runner
from tcir.interp.ptx.lockstep.native.lowering import GlobalAccess, NativeLowering, NotNative
from tcir.interp.ptx.lockstep.native.movement import POLLS
from tcir.interp.ptx.lockstep.steps import Step
from tcir.machine.memory.memories import Buffer

Index = NDArray[np.int64]

PLACING = {"places_i32", "places_i64"}
"""Kernels whose immediate is a place in the constants."""
CLOSE = 1 << 17
"""Bytes of registers that stay in the cache; limits the CTAs executed at a time."""
MOST = 64


class StepTable:
    """The steps of a leader, or those of followers, in the form that `run` reads, but without the
    addresses of the memories.
    """

    def __init__(self, lowered: NativeLowering, lead: bool) -> None:
        out = lowered.out
        self.rows, self.bytes = out.offsets(reuse=not lead)
        operands = [one for called in out.called for one in called[1:5]]
        self.kind, at, self.stride = (
            np.array([one[n] for one in operands], np.int64).reshape(-1, 4) for n in range(3)
        )
        self.at = np.where(self.kind == ROW, self.rows[np.where(self.kind == ROW, at, -1)], at)
        self.at = np.where(self.kind == PLACES, 256 * at, self.at)
        self.at = np.where(np.isin(self.kind, (COUNTED, SPECIAL)), self.stride * at, self.at)
        self.code = np.zeros((len(out.called), WIDTH), np.int64)
        names = [called.lead if lead else called.kernel for called in out.called]
        link(dict.fromkeys(name for name in names if isinstance(name, DerivedKernel)))
        self.code[:, 0] = [
            name.address if isinstance(name, DerivedKernel) else address(name) for name in names
        ]
        self.code[:, 13] = [called.imm for called in out.called]
        self.pooled = np.array([name in PLACING for name in names], bool)

    def at_places(self, bases: Index, each: Index, moves: NDArray[np.bool_]) -> Index:
        """Returns the table with the addresses of the memories filled in.

        bases: for each kind of memory, its address
        each:  for each kind of memory, the factor by which a place's offset is multiplied
        moves: for each kind of memory, whether the address advances from CTA to CTA
        """
        code = self.code.copy()
        code[:, 1:13:3] = bases[self.kind] + self.at * each[self.kind]
        code[:, 2:13:3] = self.stride
        code[:, 3:13:3] = np.where(moves[self.kind], self.stride, 0)
        code[self.pooled, 13] += bases[POOL]
        return code


@dataclass
class CtaMemories:
    """Memories of `count` CTAs, in the layout that the kernels expect."""

    count: int
    shared: NDArray[np.uint8]
    left: NDArray[np.uint8]
    places: Index
    data: NDArray[np.uint8]
    counted: Index
    special: NDArray[np.uint32]


class Native:
    """The trace of a leader, lowered to compiled kernels."""

    def __init__(
        self, steps: Sequence[Step], specials: dict[int, int], shared: int, buffers: list[Buffer]
    ) -> None:
        """Or `NotNative`; see `NativeLowering`."""
        self.lowered = lowered = NativeLowering(specials, shared, buffers)
        lowered.lower(steps)
        self.pool = np.frombuffer(bytes(lowered.out.pool) or bytes(64), np.uint8).copy()
        self.leader, self.followers = StepTable(lowered, lead=True), StepTable(lowered, lead=False)

    def run(self, group: LockstepGroup, special: NDArray[np.uint32]) -> bool:
        """Executes the steps in a fresh group of CTAs; returns False if numpy must execute them
        instead. special: values of the special registers, by number of the register and by CTA
        """
        lowered, count = self.lowered, group.count
        memories = CtaMemories(
            count,
            group.smem,
            np.zeros(count, np.uint8),
            np.empty((len(lowered.touches), 32 * count), np.int64),
            np.empty(lowered.stored * count, np.uint8),
            np.zeros((len(lowered.counters), count), np.int64),
            special,
        )
        registers = self._execute(self.leader, memories, 0, 1)
        if memories.left[0] == POLLS:
            return False
        if memories.left[0]:
            raise LockstepDivergence("the leader leaves its own group")
        if count > 1:
            self._execute(self.followers, memories, 1, count)
        group.leave(memories.left != 0)
        for (warp, slot), operand in lowered.registers.items():
            start = int(self.leader.rows[operand.at])
            row = registers[start : start + operand.stride]
            group.registers[warp][slot] = row.view(f"u{operand.stride // 32}")
        for name, number in lowered.counters.items():
            group.count_beyond(name, memories.counted[number])
        for number, touch in enumerate(lowered.touches):
            group.accesses.append(self._access(group, touch, memories, number))
        return True

    def _execute(self, table: StepTable, memories: CtaMemories, first: int, last: int) -> NDArray:
        """The CTAs from `first` to the one before `last`; returns the registers."""
        asides = self.lowered.out.asides
        apart = bool(asides)
        together = last - first
        if not apart:
            together = max(1, min(together, MOST, CLOSE // max(1, table.bytes)))
        registers = np.empty(max(64, table.bytes * together), np.uint8)
        bases, each = np.zeros(GIVEN + 1, np.int64), np.ones(GIVEN + 1, np.int64)
        moves = np.ones(GIVEN + 1, bool)
        for kind, array in (
            (ROW, registers), (POOL, self.pool), (SHARED, memories.shared), (LEFT, memories.left),
            (PLACES, memories.places), (DATA, memories.data), (COUNTED, memories.counted),
            (SPECIAL, memories.special),
        ):  # fmt: skip
            bases[kind] = array.ctypes.data
        each[[PLACES, DATA, COUNTED, SPECIAL]] = memories.count
        each[ROW], moves[ROW] = together, apart
        code = table.at_places(bases, each, moves)
        if apart:  # rows begin with the first of these CTAs
            code[:, 1:13:3] -= np.where(table.kind == ROW, first * table.stride, 0)
        start, run = 0, runner()
        for aside in (*asides, None):
            end = len(code) if aside is None else aside.step
            if start < end:
                part = code[start:end]
                run(part.ctypes.data, end - start, first, last, together)
            if aside is not None:
                self._aside(aside, table, registers, together)
            start = end
        return registers

    def _aside(self, aside: Aside, table: StepTable, registers: NDArray, width: int) -> None:
        def row(operand: EmittedOperand) -> NDArray:
            if operand.kind == POOL:
                return self.pool[operand.at :]
            start = int(table.rows[operand.at]) * width
            return registers[start : start + operand.stride * width]

        values = []
        for operand, kind in aside.sources:
            if operand.kind == POOL:
                values.append(np.tile(row(operand)[: 32 * kind.itemsize].view(kind), width))
            else:
                values.append(row(operand).view(kind))
        found = aside.fn(*values)
        results = found if isinstance(found, tuple) else (found,)
        for (operand, kind), result in zip(aside.results, results, strict=True):
            row(operand).view(kind)[:] = result

    def _access(
        self, group: LockstepGroup, touch: GlobalAccess, memories: CtaMemories, n: int
    ) -> LedgerLoad | LedgerStore:
        step, at = touch.step, memories.places[n]
        row, thread = group.everyone(step.active.warp)
        chosen: slice | Index = slice(None)
        if not touch.whole:
            chosen = np.flatnonzero(at >= 0)
            at, row, thread = at[chosen], row[chosen], thread[chosen]
        if isinstance(step, GlobalLoad):
            if step.load.constant:  # nobody may write it, not even the same thread
                thread = np.full(len(row), ENGINE)
            return LedgerLoad(step.buffer, at, step.load.nbytes, row, thread)
        size = 32 * step.store.nbytes
        data = memories.data[touch.data * group.count :][: size * group.count]
        data = data.reshape(-1, step.store.nbytes)[chosen]
        return LedgerStore(step.buffer, at, data, row, thread, step.access)


__all__ = ["Native", "NotNative"]
