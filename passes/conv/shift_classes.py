"""Tap classes: the taps of a filter row that can share one A tile in tensor memory by means of
``.ashift``."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tcir.dialect.limits import QUARTER_LANES
from tcir.passes.conv.shapes import ConvShape


@dataclass(frozen=True)
class ShiftClasses:
    """The taps of a filter row, in classes whose consecutive taps are exactly one lane apart.

    ``.ashift`` moves every lane's pixel to the lane below it. Let ``sw`` be the stride and ``dw``
    the dilation along the width, and g their greatest common divisor. The pixels of two taps differ
    by whole lanes if the taps are a multiple of ``sw / g`` taps apart. So tap s is in class ``s mod
    (sw / g)``, and a class shares one A tile of 128 lanes.

    lane_step:   input columns from one lane to the next (t = sw * dw / g)
    column_step: output columns from one lane to the next (dq = dw / g)
    refreshed:   whether the last lane of a sub-partition gets a new pixel after every shift
    taps:        for every class that is not empty, its taps in the order they are used
    """

    lane_step: int
    column_step: int
    taps: tuple[tuple[int, ...], ...]
    refreshed: bool = False

    @staticmethod
    def of(shape: ConvShape, refreshed: bool = False) -> ShiftClasses:
        """Divides the taps of a convolution into classes."""
        stride, dilation = shape.strides[1], shape.dilations[1]
        common = gcd(stride, dilation)
        count = stride // common
        taps = tuple(tuple(range(c, shape.s, count)) for c in range(min(count, shape.s)))
        return ShiftClasses(stride * dilation // common, dilation // common, taps, refreshed)

    @property
    def halo(self) -> int:
        """J: number of lanes of a sub-partition that are stale after the last shift."""
        return max(len(taps) for taps in self.taps) - 1

    @property
    def valid(self) -> int:
        """V: number of lanes of a sub-partition whose sums are outputs. It is all lanes if they are
        refreshed, else only the lanes that never become stale."""
        return QUARTER_LANES if self.refreshed else QUARTER_LANES - self.halo
