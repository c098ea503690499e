"""Instructions of a program in the form that compiled code reads: one row of numbers each."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.isa.memory import Load
from tcir.interp.ptx.kernels.derived import DerivedKernel, link
from tcir.interp.ptx.loops import execution as on
from tcir.interp.ptx.op import BRANCH, PLAIN, Op
from tcir.interp.ptx.registers import VIEW_DTYPES, WarpStorage
from tcir.interp.ptx.syntax import Site
from tcir.threads import cached_property

PARTS = 8
"""Number of variants of a program, for different slots, that are cached."""


@dataclass(frozen=True)
class LoopCode:
    """Instructions in the form that compiled code reads. rows: int64 [instructions, `WIDTH`]; the
    operation is `NONE` for instructions that are not executed here, and `COMPUTE` for those in
    `kernels`, for which `code` has the kernel's address.

    heads: first instructions of loops that are executed here entirely. predicates: their slots, in
    the order in which `rows` numbers them. sites: locations of the instructions; places: first
    instruction at each.
    """

    rows: NDArray[np.int64]
    kernels: dict[int, DerivedKernel]
    heads: frozenset[int]
    predicates: tuple[int, ...]
    sites: tuple[Site, ...]
    places: dict[Site, int]
    _parts: dict[frozenset[int], NDArray[np.int64]] = field(default_factory=dict)

    @cached_property
    def code(self) -> NDArray[np.int64]:
        """`rows` with the addresses of kernels."""
        link(self.kernels.values())
        found = self.rows.copy()
        for at, kernel in self.kernels.items():
            found[at, on.OP] = kernel.address
        return found

    def without(self, slots: Set[int]) -> NDArray[np.int64]:
        """`code` without the instructions that read or write these slots."""
        key = frozenset(slots)
        found = self._parts.get(key)
        if found is None:
            if len(self._parts) >= PARTS:
                self._parts.clear()
            found = self._parts[key] = self.code.copy()
            avoided = np.array(sorted(slots))
            touches = (found[:, on.GUARD] >= 0) & np.isin(found[:, on.GUARD_SLOT], avoided)
            for at in range(on.OPERANDS, on.WIDTH, 3):
                touches |= (found[:, at] != 0) & np.isin(found[:, at + 2], avoided)
            found[touches, on.OP] = on.NONE
        return found


def loop_code(ops: list[Op], storage: WarpStorage) -> LoopCode | None:
    """Code of the program's loops; None if it has none that qualifies."""
    encoder = _Encoder(storage)
    loops = [
        range(op.target, end + 1)
        for end, op in enumerate(ops)
        if op.kind == BRANCH and 0 <= op.target <= end
    ]
    known = cache(lambda at: encoder.encodable(ops[at]))  # an answer may need kernels: not for all
    heads = frozenset(loop[0] for loop in loops if all(map(known, loop)))
    if not heads:
        return None
    rows = np.full((len(ops), on.WIDTH), on.NONE, np.int64)
    kernels: dict[int, DerivedKernel] = {}
    for at, op in enumerate(ops):
        if known(at):
            rows[at] = encoder.row(op)
            if op.compute is not None and op.compute.kernels is not None:
                kernels[at] = op.compute.kernels[0]
    sites = tuple(op.site for op in ops)
    places: dict[Site, int] = {}
    rows[:, on.SITE] = [places.setdefault(site, at) for at, site in enumerate(sites)]
    return LoopCode(rows, kernels, heads, tuple(encoder.predicates), sites, places)


class _Encoder:
    def __init__(self, storage: WarpStorage) -> None:
        self.sizes = storage.slots.sizes
        self.rows = {slot: row for bank in storage.banks for slot, row in bank.rows.items()}
        self.predicates: dict[int, int] = {}

    def encodable(self, op: Op) -> bool:
        """Whether compiled code can execute the instruction, apart from conditions on its operands'
        values."""
        if op.kind == BRANCH:
            return op.target >= 0
        if op.kind != PLAIN or op.aligned:
            return False
        if isinstance(op.form, Load):
            return self._plain(op.form)
        compute = op.compute
        return (
            compute is not None
            and len(compute.results) == 1
            and compute.divisor < 0
            and all(self.sizes[slot] <= 8 for slot, _ in compute.sources)
            and compute.kernels is not None
        )

    def _plain(self, load: Load) -> bool:
        """One word of global memory, to a register of its size."""
        if len(load.moves) != 1 or load.place.size not in (4, 8):
            return False
        _, slot, view = load.moves[0]
        width = {load.nbytes, load.dtype.itemsize, VIEW_DTYPES[view].itemsize, self.sizes[slot]}
        return (
            load.plain
            and not load.constant
            and load.place.space == "global"
            and width in ({4}, {8})
        )

    def row(self, op: Op) -> list[int]:
        """Encodes an instruction that is `encodable`."""
        row = [0] * on.WIDTH
        row[on.GUARD] = -1
        if op.guard >= 0:
            row[on.GUARD], row[on.NEGATE] = self._predicate(op.guard), op.negate
            row[on.GUARD_SLOT] = op.guard
        if op.kind == BRANCH:
            row[on.OP], row[on.TARGET] = on.BRANCH, op.target
        elif isinstance(op.form, Load):
            load = op.form
            row[on.OP], row[on.NBYTES] = on.LOAD, load.nbytes
            row[on.OFFSET] = load.place.offset
            self._operand(row, 0, load.moves[0][1])
            self._operand(row, 1, load.place.slot)
        elif op.compute is not None:
            compute = op.compute
            row[on.OP], row[on.PRODUCTS] = on.COMPUTE, compute.products
            row[on.FLIPS] = sum(1 << n for n in compute.flips)
            for n, (slot, _) in enumerate((*compute.results, *compute.sources)):
                self._operand(row, n, slot)
        return row

    def _operand(self, row: list[int], n: int, slot: int) -> None:
        """n: 0 for the result, then the sources."""
        size = self.sizes[slot]
        at = on.OPERANDS + 3 * n
        row[at : at + 3] = size or on.BOOL, self.rows[slot] if size else self._predicate(slot), slot

    def _predicate(self, slot: int) -> int:
        return self.predicates.setdefault(slot, len(self.predicates))
