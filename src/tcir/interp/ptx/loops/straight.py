"""Straight lines: sequences of instructions that only compute, each executed by one call of
compiled code.

A straight line is encoded once `WORTH` of its instructions have been executed. Until then, and
whenever a register that it needs is undefined or in flight, the interpreter executes its
instructions one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.kernels.derived import SELECT, DerivedKernel, link
from tcir.interp.ptx.loops import execution as on
from tcir.interp.ptx.loops.encoder import Encoder
from tcir.interp.ptx.op import Op
from tcir.interp.ptx.registers import Rows, WarpStorage, unsigned_view
from tcir.interp.ptx.syntax import Site
from tcir.interp.ptx.warp import Warp

COMPILED = True
"""Whether straight lines are executed by compiled code."""
WORTH = 64
"""Instructions that the interpreter executes in the time in which it encodes a line and links its
kernels."""
LEAST = 4
"""Instructions that are worth a call."""
_NONE = np.zeros(1, np.int64)


def banks_of(warp: Warp) -> NDArray[np.int64]:
    """For each size of registers (in bytes), the address of the registers, and the address of the
    kernel that selects lanes: int64 [2, 9].
    """
    banks = np.zeros((2, 9), np.int64)
    for size, kernel in SELECT.items():
        block = cast(Rows, warp.v[unsigned_view(size)]).block
        banks[:, size] = block.ctypes.data, kernel.address
    return banks


@dataclass(frozen=True)
class Candidate:
    """A straight line, up to the instruction `end`, that is not encoded yet. left: number of its
    instructions that will be executed before it is encoded
    """

    end: int
    left: int


@dataclass(frozen=True)
class StraightLine:
    """A straight line, up to the instruction `end`, in the form that compiled code reads.

    code:       see `tcir.interp.ptx.loops.execution`
    needed:     slots that must be defined before the line
    results:    slots that are defined after the line
    predicates: slots of predicates, in the order in which `code` numbers them
    touched:    registers of wgmma, each with the last instruction that touches it
    settled:    whether each register keeps every value that is read or written in the line until
                its end, so that an observer can still see the values afterwards
    """

    end: int
    code: NDArray[np.int64]
    needed: tuple[int, ...]
    results: tuple[int, ...]
    predicates: tuple[int, ...]
    touched: dict[int, Site]
    settled: bool

    def execute(self, warp: Warp, mask: int, banks: NDArray[np.int64]) -> bool:
        """Executes all instructions of the line. Returns False, with nothing changed, if an operand
        is undefined or in flight. banks: `banks_of(warp)`
        """
        undef, p = warp.undef, warp.p
        for slot in self.needed:
            if undef[slot] & mask:
                return False
        if self.touched and not warp.wgmma.in_flight.keys().isdisjoint(self.touched):
            return False
        names = self.predicates
        preds = np.array([p[slot] for slot in names], np.int64) if names else _NONE
        products = on.execute_line(self.code, mask, banks, preds)
        for slot, lanes in zip(names, preds.tolist(), strict=False):
            p[slot] = lanes
        for slot in self.results:
            undef[slot] &= ~mask
        warp.wgmma.touch_each(self.touched)
        warp.agent.machine.counters.simt_products += products
        return True


class StraightLines:
    """The straight lines of a program. at: the lines, by their first instruction"""

    def __init__(self, code: Sequence[Op], ends: Sequence[int], storage: WarpStorage) -> None:
        """ends: the end of the plain instructions from each one on"""
        self._code, self._storage = code, storage
        self._targets = {target for op in code for target in (op.target, *op.targets)}
        slots = storage.slots
        self._defined = slots.constants.keys() | slots.specials.keys()

        def eligible(at: int) -> bool:
            op = code[at]
            alone = op.guard < 0 or not op.touches
            return ends[at] > at and op.compute is not None and op.run is op.own and alone

        self.at: dict[int, Candidate | StraightLine] = {
            line.start: Candidate(line.stop, WORTH)
            for line in self._lines(range(len(code)), eligible)
        }

    def ready(self, start: int) -> StraightLine | None:
        """Returns the straight line that begins at an instruction, if it is encoded. Several
        threads may call this concurrently.
        """
        line = self.at.get(start)
        if line is None or isinstance(line, StraightLine):
            return line
        if line.left > 0:
            self.at[start] = Candidate(line.end, line.left - (line.end - start))
            return None
        encoder = Encoder(self._storage)
        parts = self._lines(range(start, line.end), lambda at: encoder.computes(self._code[at]))
        encoded = {part.start: self._encoded(part) for part in parts}
        self.at.update(encoded)
        if start not in encoded:
            self.at.pop(start, None)
        return encoded.get(start)

    def _lines(self, within: range, plain: Callable[[int], bool]) -> Iterator[range]:
        """Longest lines of `plain` instructions that are worth a call."""
        start = within.start
        for at in within:
            if (inside := plain(at)) and at not in self._targets:
                continue
            if at - start >= LEAST:
                yield range(start, at)
            start = at if inside else at + 1
        if within.stop - start >= LEAST:
            yield range(start, within.stop)

    def _encoded(self, line: range) -> StraightLine:
        encoder = Encoder(self._storage)
        rows: list[list[int]] = []
        kernels: list[DerivedKernel] = []
        needed: dict[int, None] = {}
        written: dict[int, None] = {}
        read: set[int] = set()
        touched: dict[int, Site] = {}
        settled = True
        for op in (self._code[at] for at in line):
            of_op, their = encoder.computing(op)
            rows += of_op
            kernels += their
            assert op.compute is not None
            sources = [slot for slot, _ in op.compute.sources]
            results = [slot for slot, _ in op.compute.results]
            if op.guard >= 0:  # other lanes keep the old value
                sources += [op.guard, *results]
            read.update(sources)
            needed |= dict.fromkeys(s for s in sources if s not in written)
            settled &= (
                op.guard < 0 and read.isdisjoint(results) and written.keys().isdisjoint(results)
            )
            written |= dict.fromkeys(results)
            touched |= dict.fromkeys(op.touches, op.site)
        link(kernels)
        code = np.array(rows, np.int64)
        code[:, on.OP] = [kernel.address for kernel in kernels]
        needs = tuple(slot for slot in needed if slot not in self._defined)
        return StraightLine(
            line.stop, code, needs, tuple(written), tuple(encoder.predicates), touched, settled
        )
