"""Encodes the instructions of a program for compiled code, as one row of numbers per
instruction.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tcir.interp.ptx.kernels.derived import DerivedKernel, link
from tcir.interp.ptx.loops import execution as on
from tcir.interp.ptx.loops.encoder import Encoder
from tcir.interp.ptx.op import BRANCH, Op
from tcir.interp.ptx.registers import WarpStorage
from tcir.interp.ptx.syntax import Site
from tcir.threads import cached_property

PARTS = 8
"""Number of variants of a program, for different slots, that are cached."""


@dataclass(frozen=True)
class LoopCode:
    """Instructions in the form that compiled code reads.

    rows:       int64 [instructions, `WIDTH`]. The operation is `NONE` for instructions that
                compiled code does not execute, and `COMPUTE` for the instructions in `kernels`, for
                which `code` contains the address of their kernel.
    heads:      first instructions of loops that compiled code can execute entirely
    predicates: slots of predicates, in the order in which `rows` numbers them
    sites:      locations of the instructions
    places:     first instruction at each location
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
        """`rows` with the addresses of the kernels filled in."""
        link(self.kernels.values())
        found = self.rows.copy()
        for at, kernel in self.kernels.items():
            found[at, on.OP] = kernel.address
        return found

    def without(self, slots: Set[int]) -> NDArray[np.int64]:
        """`code` with the operation `NONE` for all instructions that read or write these slots."""
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
    """Encodes the loops of a program; None if no loop qualifies."""
    encoder = Encoder(storage)
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
