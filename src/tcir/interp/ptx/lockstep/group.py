"""The CTAs that replay a trace in lockstep: their registers, their memories, and which of them
remain in the group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.lanes import LANE_MASK
from tcir.interp.ptx.lockstep.ledger import LedgerLoad, LedgerStore
from tcir.interp.ptx.registers import PREDICATE, VIEW_DTYPES, dtype_of
from tcir.machine import Machine
from tcir.machine.memory.heap import POISON
from tcir.machine.memory.protocols import Triple
from tcir.machine.memory.tensor_memory import COLUMNS, LANES, POISON_WORD

Row = np.ndarray
"""A register of all CTAs: [CTAs * 32], the lanes of the first CTA first."""
Operand = int | np.ndarray
"""The slot of a varying register, or the 32 values of a uniform one."""


class LockstepGroup:
    """State of a group of CTAs. Row 0 replays the leader, to compare the replay with the leader's
    run on the machine.

    ctas:      index of each CTA
    alive:     mask of the CTAs that have behaved like the leader so far
    step:      number of the current step of the trace
    gone:      CTAs that have left, each with the step at which it left
    registers: the varying registers, by warp and slot
    accesses:  accesses to global memory, in order of time
    extra:     difference of each CTA's count to the leader's, by counter
    """

    def __init__(self, machine: Machine, ctas: Sequence[Triple], warps: int, smem: int) -> None:
        self.machine, self.ctas, self.count = machine, list(ctas), len(ctas)
        self.alive = np.ones(self.count, bool)
        self.registers: list[dict[int, Row]] = [{} for _ in range(warps)]
        self.smem = np.full((self.count, -(-smem // 16) * 16), POISON, np.uint8)
        self._tmem: NDArray[np.uint32] | None = None
        self.accesses: list[LedgerLoad | LedgerStore] = []
        self.reads: set[int] = set()
        """Positions of the global buffers that were read otherwise."""
        self.extra: dict[str, NDArray[np.int64]] = {}
        self.last_loads: dict[int, tuple[Row, Row]] = {}
        """Addresses and bytes of the last varying load, by warp."""
        self.step = 0
        self.gone: list[tuple[int, Triple]] = []
        self.left = False
        """Whether any has left since `compress`."""
        self._everyone: dict[int, tuple[Row, Row]] = {}

    @property
    def size(self) -> int:
        """Bytes of memory used by the group. Arrays that several accesses share (`everyone`) count
        once.
        """
        arrays: list[np.ndarray] = [self.smem]
        if self._tmem is not None:
            arrays.append(self._tmem)
        for registers in self.registers:
            arrays += registers.values()
        for one in self.accesses:
            arrays += [one.at, one.row, one.thread]
            if isinstance(one, LedgerStore):
                arrays.append(one.data)
        return sum({id(array): array.nbytes for array in arrays}.values())

    def everyone(self, warp: int) -> tuple[Row, Row]:
        """Row (CTA) and thread number of each lane of a warp in all CTAs, as arrays that many
        accesses share.
        """
        if warp not in self._everyone:
            thread = np.tile(32 * warp + np.arange(32), self.count)
            self._everyone[warp] = np.repeat(np.arange(self.count), 32), thread
        return self._everyone[warp]

    def leave(self, rows: NDArray[np.bool_] | np.bool_) -> None:
        """Removes CTAs that differ from the leader, or that must run on the machine to be
        checked.
        """
        if np.any(rows):
            leaving = np.flatnonzero(self.alive & rows)
            self.gone += [(self.step, self.ctas[n]) for n in leaving]
            self.alive &= ~rows
            self.left = True

    def compress(self) -> None:
        """Drops the rows of CTAs that have left, once there are many such rows."""
        self.left = False
        kept = np.flatnonzero(self.alive)
        if len(kept) > 0.75 * self.count:
            return
        place = np.cumsum(self.alive) - 1
        self.ctas = [self.ctas[n] for n in kept]
        for registers in self.registers:
            for slot, row in registers.items():
                registers[slot] = row.reshape(self.count, 32)[kept].reshape(-1)
        self.smem = self.smem[kept]
        if self._tmem is not None:
            self._tmem = self._tmem[kept]
        for n, one in enumerate(self.accesses):
            stays = self.alive[one.row]
            at, row, thread = one.at[stays], place[one.row[stays]], one.thread[stays]
            if isinstance(one, LedgerStore):
                data = one.data[stays]
                self.accesses[n] = LedgerStore(one.buffer, at, data, row, thread, one.access)
            else:
                self.accesses[n] = LedgerLoad(one.buffer, at, one.nbytes, row, thread)
        self.extra = {name: amounts[kept] for name, amounts in self.extra.items()}
        self.last_loads = {w: (at[kept], data[kept]) for w, (at, data) in self.last_loads.items()}
        self.alive, self.count = np.ones(len(kept), bool), len(kept)
        self._everyone = {}

    @property
    def tmem(self) -> NDArray[np.uint32]:
        """Tensor memory, [CTAs, lanes, columns]; it is created on first use, since many kernels use
        none.
        """
        if self._tmem is None:
            self._tmem = np.full((self.count, LANES, COLUMNS), POISON_WORD, np.uint32)
        return self._tmem

    @property
    def writes(self) -> list[LedgerStore]:
        """The group's accesses to global memory that write."""
        return [one for one in self.accesses if isinstance(one, LedgerStore)]

    def count_beyond(self, counter: str, amounts: NDArray[np.int64]) -> None:
        """Adds to `extra` how much the count of each CTA differs from the leader's. amounts:
        [CTAs]
        """
        beyond = amounts - amounts[0]
        if beyond.any():
            self.extra[counter] = self.extra.get(counter, 0) + beyond

    # --- registers -------------------------------------------------------------------------------

    def value(self, warp: int, operand: Operand, view: int) -> Row:
        """Values of an operand in all CTAs, in the type of a view."""
        if isinstance(operand, int):
            row = self.registers[warp][operand]
            return row if view == PREDICATE else row.view(VIEW_DTYPES[view])
        return np.tile(operand, self.count)

    def by_cta(self, warp: int, operand: Operand, view: int) -> Row:
        """Values of an operand as in `value`, with the shape [CTAs, 32]."""
        return self.value(warp, operand, view).reshape(self.count, -1)

    def lanes(self, mask: int) -> NDArray[np.bool_]:
        """A lane mask repeated for all CTAs: bool [CTAs * 32]."""
        return np.tile(LANE_MASK[mask], self.count)

    def assign(
        self,
        warp: int,
        slot: int,
        view: int,
        result: np.ndarray,
        where: Row | None,
        old: Operand | None,
    ) -> None:
        """Writes a register in all CTAs. where: the lanes that write (None: all lanes). old: values
        that the other lanes keep
        """
        new = np.ascontiguousarray(result, dtype_of(view))
        if new.shape != (32 * self.count,):
            raise ValueError(f"expected {32 * self.count} lanes, got an array {new.shape}")
        if where is not None and old is not None:
            new = np.where(where, new, self.value(warp, old, view))
        self.registers[warp][slot] = new
