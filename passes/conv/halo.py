"""What happens to the lanes of a quarter that hold no new pixel after a shift."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTERS
from tcir.passes.build.emit import i64

HALOS = ("mask", "refresh")
HALO_LOADS = ("boxes", "w128")
SHIFTS = ("ashift", "shift")
QUARTERS_OF_A_SHIFT = ("one", "all")


@dataclass(frozen=True)
class HaloRows:
    """A shared tile with what lane 31 of every quarter needs: after shift k (from 0 on), in rows
    ``first + step * k`` and the three behind it."""

    tile: ir.Value
    first: int
    step: int


def multiply_shifted(
    taps: Sequence[int],
    slices: int,
    slab: ir.Value,
    halo: HaloRows,
    product: Callable[[int, int, bool], None],
    shift: str,
    quarters: str,
) -> None:
    """The mma of the taps of one class, with lane 31 of every quarter refreshed after each shift.

    ``product(s, j, ashift)`` is the mma of tap s and K slice j. shift: ``ashift``, the mma's own
    (a refresh then has to wait for it: place-barriers), or ``shift``, the stand-alone instruction,
    which the ISA keeps before the refresh. quarters: how far the latter reaches.
    """
    for step, s in enumerate(taps):
        last = s == taps[-1]
        for j in range(slices):
            product(s, j, not last and shift == "ashift")
            if not last and shift == "shift":
                for quarter in range(QUARTERS if quarters == "one" else 1):
                    tc.ShiftOp(slab, i64(j), i64(quarter))
        if not last:
            for j in range(slices):
                tc.RefreshOp(halo.tile, slab, i64(j), i64(halo.first + halo.step * step))
