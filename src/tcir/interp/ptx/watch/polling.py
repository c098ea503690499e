"""Evaluates the condition of a loop that polls a word, for any value and not only for the loaded
one.

Overwriting a polled word is harmful only if the polling threads wait for the old value and would
not accept the new one. A counter that grows past the awaited value is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcir.interp.ptx.isa.memory import Load
from tcir.interp.ptx.op import BRANCH, Compute, Op
from tcir.interp.ptx.registers import PREDICATE, VIEW_DTYPES
from tcir.interp.ptx.warp import Warp
from tcir.machine.order.strong import Awaited

Registers = dict[tuple[int, int], np.ndarray]
"""Values by slot and view: of all lanes, or of one."""


@dataclass(frozen=True)
class Polling:
    """A loop that consists of one load and tests of its result.

    tests: the instructions after the load, up to the loop's end
    form:  form of the load
    begin: first instruction of the loop
    needs: registers that the tests only read
    """

    tests: tuple[Op, ...]
    form: Load
    begin: int
    needs: tuple[tuple[int, int], ...]

    @staticmethod
    def of(code: Sequence[Op], loop: range, load: int) -> Polling | None:
        """Recognises a polling loop. Returns None if the thread also uses the loaded value after
        the loop.
        """
        form = code[load].form
        if not isinstance(form, Load) or _used_behind(code, loop):
            return None
        tests = tuple(code[load + 1 : loop[-1] + 1])
        needs = [s for op in tests if op.compute is not None for s in op.compute.sources]
        needs += [(op.guard, PREDICATE) for op in tests if op.guard >= 0]
        return Polling(tests, form, loop[0], tuple(dict.fromkeys(needs)))

    def awaited(self, w: Warp) -> Awaited:
        """Returns the condition for which the lanes of a warp wait now."""
        lanes = np.arange(32)
        before = {
            (slot, view): (w.p[slot] >> lanes & 1).astype(bool)
            if view == PREDICATE
            else w.v[view][slot].copy()
            for slot, view in self.needs
        }

        def leaves(lane: int, found: bytes) -> bool:
            own = {key: values[lane : lane + 1].copy() for key, values in before.items()}
            return self._leaves(own, np.frombuffer(found, self.form.dtype))

        return leaves

    def _leaves(self, own: Registers, elements: np.ndarray) -> bool:
        for position, slot, view in self.form.moves:
            write(own, slot, view, elements[position : position + 1].astype(VIEW_DTYPES[view]))
        for op in self.tests:
            if op.kind == BRANCH:
                if op.guard < 0 or bool(own[op.guard, PREDICATE][0]) != op.negate:
                    return op.target != self.begin
            elif op.compute is not None:
                compute(own, op.compute)
        return True


def compute(own: Registers, what: Compute) -> None:
    """Executes an instruction that only computes, on the registers of one lane."""
    values = [own[source] for source in what.sources]
    for n in what.flips:
        values[n] = ~values[n]
    found = what.fn(*values)
    results = found if isinstance(found, tuple) else (found,)
    for (slot, view), result in zip(what.results, results, strict=True):
        write(own, slot, view, result)


def write(own: Registers, slot: int, view: int, values: np.ndarray) -> None:
    """Writes the value to every stored view of the slot."""
    for known, other in own:
        if known == slot:
            own[known, other] = values if other == view else values.view(VIEW_DTYPES[other])
    own[slot, view] = values


def _used_behind(code: Sequence[Op], loop: range) -> bool:
    """Whether an instruction after the loop reads a register that the loop writes."""
    ends = {t for at in loop for t in (code[at].target, *code[at].targets) if t >= 0} - set(loop)
    written = {slot for at in loop for slot in code[at].writes}
    return any(_read_from(code, {*ends, loop[-1] + 1}, slot) for slot in written)


def _read_from(code: Sequence[Op], starts: set[int], slot: int) -> bool:
    """Whether a slot is read on some way from there before it is written."""
    seen, work = set[int](), list(starts)
    while work:
        at = work.pop()
        if at in seen or at >= len(code):
            continue
        seen.add(at)
        op = code[at]
        if slot == op.guard or slot in op.reads:
            return True
        if slot in op.writes and op.guard < 0:
            continue
        work.extend(op.following(at))
    return False
