"""Tap classes: the taps of a filter row that share one A tile in tensor memory by ``.ashift``."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tcir.dialect.limits import QUARTER_LANES
from tcir.passes.conv.shapes import ConvShape


@dataclass(frozen=True)
class ShiftClasses:
    """The taps of a filter row, in classes whose consecutive taps are exactly one lane apart.

    ``.ashift`` moves every lane's pixel to the lane below it. With stride ``sw`` and dilation
    ``dw`` along the width, g their greatest common divisor, two taps see pixels that differ by
    whole lanes when they are a multiple of ``sw / g`` taps apart: so tap s is in class
    ``s mod (sw / g)``, and a class shares one A tile of 128 lanes.

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
        """The classes of a convolution."""
        stride, dilation = shape.strides[1], shape.dilations[1]
        common = gcd(stride, dilation)
        count = stride // common
        taps = tuple(tuple(range(c, shape.s, count)) for c in range(min(count, shape.s)))
        return ShiftClasses(stride * dilation // common, dilation // common, taps, refreshed)

    @property
    def halo(self) -> int:
        """J: stale lanes of a sub-partition after the last shift."""
        return max(len(taps) for taps in self.taps) - 1

    @property
    def valid(self) -> int:
        """V: number of lanes of a sub-partition whose sums are outputs: all lanes, or only lanes
        that never become stale."""
        return QUARTER_LANES if self.refreshed else QUARTER_LANES - self.halo
