"""The halo: lanes of a sub-partition that hold no new pixel after a shift."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTERS
from tcir.passes.emit.builders import i64

HALOS = ("mask", "refresh")
HALO_LOADS = ("boxes", "w128")
SHIFTS = ("ashift", "shift")
QUARTERS_OF_A_SHIFT = ("one", "all")


@dataclass(frozen=True)
class HaloRows:
    """A shared tile with the pixels for the last lane of each sub-partition. Shift k (counted from
    0) needs the four rows from ``first + step * k`` on."""

    tile: ir.Value
    first: int
    step: int


def multiply_shifted(
    taps: Sequence[int],
    slices: int,
    a: ir.Value,
    halo: HaloRows,
    product: Callable[[int, int, bool], None],
    shift: str,
    quarters: str,
) -> None:
    """Emits the mmas of the taps of one class. Each shift is followed by a refresh of lanes 31, 63,
    95 and 127.

    ``product(s, j, ashift)`` emits the mma of tap s and K slice j.
    shift: ``ashift``, where the mma itself shifts (a refresh must then wait for the mma, see
        place-barriers), or ``shift``, the stand-alone instruction, which the ISA orders before the
        refresh
    quarters: the sub-partitions that one stand-alone shift moves, ``one`` or ``all``
    """
    for step, s in enumerate(taps):
        last = s == taps[-1]
        for j in range(slices):
            product(s, j, not last and shift == "ashift")
            if not last and shift == "shift":
                for quarter in range(QUARTERS if quarters == "one" else 1):
                    tc.ShiftOp(a, i64(j), i64(quarter))
        if not last:
            for j in range(slices):
                tc.RefreshOp(halo.tile, a, i64(j), i64(halo.first + halo.step * step))
