"""The kernel calls to which a trace is lowered, before memory is assigned to their operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.kernels.derived import DerivedKernel

Array = np.ndarray

ROW, POOL, SHARED, LEFT, PLACES, DATA, COUNTED, SPECIAL, GIVEN = range(9)
"""Where an operand is: a row of 32 lanes; a constant; shared memory; the flags of the CTAs that
have left; places of an access to global memory; what one stores; a counter; a special register; an
address."""


class EmittedOperand(NamedTuple):
    """Operand of a kernel call.

    kind:   number of the memory that contains it
    at:     number of a row of that memory, or an offset
    stride: bytes from the operand of one CTA to that of the next; 0: all CTAs share the operand
    """

    kind: int
    at: int
    stride: int


NOTHING = EmittedOperand(GIVEN, 0, 0)


class Called(NamedTuple):
    """A call of a kernel with operands d, a, b, c. lead: the kernel that is called instead for the
    leader
    """

    kernel: str | DerivedKernel
    d: EmittedOperand
    a: EmittedOperand
    b: EmittedOperand
    c: EmittedOperand
    imm: int
    lead: str | DerivedKernel


@dataclass(frozen=True)
class Aside:
    """A function that numpy executes before the step number `step`. sources, results: its operands,
    each with the dtype of a lane
    """

    step: int
    fn: Callable[..., Array | tuple[Array, ...]]
    sources: tuple[tuple[EmittedOperand, np.dtype], ...]
    results: tuple[tuple[EmittedOperand, np.dtype], ...]


@dataclass
class Emitted:
    """The kernel calls of a trace, in order. rows: for each row, the bytes per lane. pool: the
    constants
    """

    called: list[Called] = field(default_factory=list)
    asides: list[Aside] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    pool: bytearray = field(default_factory=bytearray)
    _constants: dict[bytes, int] = field(default_factory=dict)
    _used: list[list[int]] = field(default_factory=list)
    """Rows, by step."""

    def row(self, size: int) -> EmittedOperand:
        """Adds a row with lanes of `size` bytes."""
        self.rows.append(size)
        return EmittedOperand(ROW, len(self.rows) - 1, 32 * size)

    def constant(self, values: Array) -> EmittedOperand:
        """Adds a constant, which all CTAs share."""
        content = np.ascontiguousarray(values).tobytes()
        if content not in self._constants:
            self._constants[content] = self.kept(len(content)).at
            at = self._constants[content]
            self.pool[at : at + len(content)] = content
        return EmittedOperand(POOL, self._constants[content], 0)

    def kept(self, nbytes: int) -> EmittedOperand:
        """Reserves bytes of the pool that the leader writes and the followers read."""
        at = len(self.pool)
        self.pool += bytes(-(-nbytes // 64) * 64)
        return EmittedOperand(POOL, at, 0)

    def call(
        self,
        kernel: str | DerivedKernel,
        d: EmittedOperand = NOTHING,
        a: EmittedOperand = NOTHING,
        b: EmittedOperand = NOTHING,
        c: EmittedOperand = NOTHING,
        imm: int = 0,
        lead: str = "",
    ) -> None:
        """Adds a call of a kernel."""
        self.called.append(Called(kernel, d, a, b, c, imm, lead or kernel))
        self._used.append([one.at for one in (d, a, b, c) if one.kind == ROW])

    def aside(
        self,
        fn: Callable[..., Array | tuple[Array, ...]],
        sources: Sequence[tuple[EmittedOperand, np.dtype]],
        results: Sequence[tuple[EmittedOperand, np.dtype]],
    ) -> None:
        """Adds a function that numpy executes on arrays of whole warps."""
        self.asides.append(Aside(len(self.called), fn, tuple(sources), tuple(results)))
        self._used.append([one.at for one, _ in (*sources, *results) if one.kind == ROW])

    def offsets(self, reuse: bool) -> tuple[NDArray[np.int64], int]:
        """Offset of each row and of the end of the rows, and the bytes of all rows. reuse: whether
        a row may use the memory of a row that is no longer read
        """
        found = np.zeros(len(self.rows) + 1, np.int64)
        if not reuse:
            np.cumsum([32 * size for size in self.rows], out=found[1:])
            return found, int(found[-1])
        last = {row: event for event, rows in enumerate(self._used) for row in rows}
        free: dict[int, list[int]] = {size: [] for size in self.rows}
        total, known = 0, set()
        for event, rows in enumerate(self._used):
            for row in rows:
                if row not in known:
                    known.add(row)
                    size = self.rows[row]
                    if free[size]:
                        found[row] = free[size].pop()
                    else:
                        found[row], total = total, total + 32 * size
            for row in {*rows}:
                if last[row] == event:
                    free[self.rows[row]].append(int(found[row]))
        return found, total
