"""What tiles of warpgroups cost on an H200: the constants that choose a kernel's tiles on sm_90a.

Unlike the other constants of `tcir.time` they were fitted, to the times of 240 kernels of
ResNet-50's convolutions, of which they find the fastest (docs/explanation/conv-sm90a.md); those of
products of matrices are their loads and stores. The event-driven model has none of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Alone:
    """A CTA with an SM to itself.

    step: the least cycles from a full barrier to the next; tile: cycles of a tile besides its steps
    stored: elements that are stored in a cycle
    """

    step: int
    tile: int
    stored: float


@dataclass(frozen=True)
class Beside:
    """One of two CTAs on an SM, of which one multiplies while the other stores or waits.

    tile: cycles of a tile besides its steps; stored: elements that are stored in a cycle
    """

    tile: int
    stored: float


ALONE: Mapping[int, Alone] = {
    192: Alone(366, 1676, 14.3),
    128: Alone(366, 1676, 13),
    64: Alone(325, 1676, 12.9),
}
"""By the rows of a tile: those of one warpgroup are 64, whose groups overlap."""
OF_MATRICES = replace(ALONE[128], stored=23)
"""Of a product of matrices, which stores 16-bit results during the next tile's steps."""
BESIDE: Mapping[int, Beside] = {
    192: Beside(2391, 13.5),
    128: Beside(376, 8.2),
    64: Beside(659, 11.8),
}
"""By the rows of a tile."""
ROW_BYTES = 128
"""Bytes of a row of a tile in a full step."""
ROW, PIXEL, FILTER = 128 / 48, 3.26, 1.66
"""Cycles for a row of `ROW_BYTES` that TMA brings: of a matrix, in im2col mode, and of a filter,
which all CTAs load at about the same time."""
LATENCY, WAIT = 700, 95
"""Cycles from a free slot to the first row of its load; cycles that the tensor core idles at the
end of a step, which waits for its products."""
SUMMING, SUMMED_BYTES = 3000, 1300
"""Cycles of the launch that sums up parts; bytes of parts that it reads in a cycle."""
SHARED_LOADS, HANDED = 0.96, 247
"""For two CTAs on an SM: duration of their loads relative to one CTA's; cycles of two tiles in
which neither multiplies."""
FETCHED, UNFETCHED = 96 * 128, 1233
"""Elements of a tile of which a thread of two CTAs has registers for a bias (fetch-ahead); cycles
that a larger one takes more."""
