"""Determines what a thread would do if a load found another value, by a replay of the instructions
after the load that only compute.

The value of a loaded word may decide whether the thread stores to the word. In the order of this
run the load may find a value for which the thread does not store, or the stores of other threads.
In another order of execution the load would find the value before those stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.isa.memory import Load, Store
from tcir.interp.ptx.op import BRANCH, PLAIN, Op
from tcir.interp.ptx.registers import PREDICATE, U32, U64, VIEW_DTYPES
from tcir.interp.ptx.warp import Warp
from tcir.interp.ptx.watch.polling import compute, write
from tcir.machine.order.strong import Put

_STEPS = 64
_NO_VALUES = ("fence", "membar", "nanosleep")


@dataclass(frozen=True)
class Following:
    """The instructions that follow a load, up to the first instruction that does more than
    compute.
    """

    code: Sequence[Op]
    load: int

    def store(self, w: Warp, lane: int, found: bytes) -> Put | None:
        """Returns the strong store that a lane would reach if the load that it executes next found
        these bytes; None if it would reach none.
        """
        form = self.code[self.load].form
        assert isinstance(form, Load)
        own = _Lane(w, lane)
        elements = np.frombuffer(found, form.dtype)
        for position, slot, view in form.moves:
            write(own, slot, view, elements[position : position + 1].astype(VIEW_DTYPES[view]))
        at = self.load + 1
        for _ in range(_STEPS):
            if at >= len(self.code):
                return None
            op = self.code[at]
            skipped = op.guard >= 0 and bool(own[op.guard, PREDICATE][0]) == op.negate
            at += 1
            if skipped:
                continue
            if op.kind == BRANCH:
                at = op.target
            elif isinstance(op.form, Store) and not op.form.plain and len(op.form.sources) == 1:
                return own.put(at - 1, op.form)
            elif op.compute is not None and not op.compute.across:
                compute(own, op.compute)
            elif op.kind != PLAIN or not op.name.startswith(_NO_VALUES):
                return None
        return None


class _Lane(dict[tuple[int, int], np.ndarray]):
    """Registers of a lane, by slot and view: the warp's, until they are written here."""

    def __init__(self, warp: Warp, lane: int) -> None:
        super().__init__()
        self._warp, self._lane = warp, lane

    def __missing__(self, key: tuple[int, int]) -> np.ndarray:
        slot, view = key
        known = next((v for (s, _), v in self.items() if s == slot), None)
        if known is not None:
            return known.view(VIEW_DTYPES[view])
        if view == PREDICATE:
            return np.array([self._warp.p[slot] >> self._lane & 1], bool)
        return self._warp.v[view][slot][self._lane : self._lane + 1]

    def put(self, at: int, form: Store) -> Put:
        """Address and value of a store."""
        place, ((slot, view),) = form.place, form.sources
        (address,) = place.effective(self[place.slot, U64 if place.size == 8 else U32]).tolist()
        value = self[slot, view].astype(form.dtype).tobytes()
        return Put(at, address, value)
