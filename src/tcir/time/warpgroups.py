"""Cost of warpgroup tiles on an H200: the constants by which kernels for sm_90a choose their tiles.

Unlike the other constants of `tcir.time`, these were fitted to the times of 240 kernels of
ResNet-50's convolutions (docs/explanation/conv-sm90a.md), except for matrix products, whose loads
and stores were measured. The event-driven model does not use these constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Alone:
    """Cost of a CTA that has an SM to itself.

    step: the least cycles from one full barrier to the next; tile: cycles of a tile in addition to
        its steps; stored: number of elements that are stored per cycle
    """

    step: int
    tile: int
    stored: float


@dataclass(frozen=True)
class Beside:
    """Cost of one of two CTAs that share an SM; one CTA multiplies while the other stores or waits.

    tile: cycles of a tile in addition to its steps; stored: number of elements that are stored per
        cycle
    """

    tile: int
    stored: float


ALONE: Mapping[int, Alone] = {
    192: Alone(366, 1676, 14.3),
    128: Alone(366, 1676, 13),
    64: Alone(325, 1676, 12.9),
}
"""Costs by the rows of a tile. With 64 rows a CTA has one warpgroup, whose groups of wgmma
overlap."""
OF_MATRICES = replace(ALONE[128], stored=23)
"""Costs of a matrix product, which stores 16-bit results during the next tile's steps."""
BESIDE: Mapping[int, Beside] = {
    192: Beside(2391, 13.5),
    128: Beside(376, 8.2),
    64: Beside(659, 11.8),
}
"""Costs of each of two CTAs on an SM, by the rows of a tile."""
ROW_BYTES = 128
"""Bytes of a row of a tile in a full step."""
ROW, PIXEL, FILTER = 128 / 48, 3.26, 1.66
"""Cycles for TMA to load a row of `ROW_BYTES`: of a matrix, in im2col mode, and of a filter, which
all CTAs load at about the same time."""
LATENCY, WAIT = 700, 95
"""Cycles from a free slot to the first row of its load; cycles that the tensor core idles at the
end of a step, which waits for its products."""
SUMMING, SUMMED_BYTES = 3000, 1300
"""Cycles of the launch that adds the parts of K; bytes of the parts that it reads per cycle."""
FROM_MEMORY = 2050
"""Bytes of operands that all SMs load from memory in a cycle: an H200 streams the weights of layers
of 64 rows at 3.5 TB/s."""
SHARED_LOADS, HANDED = 0.96, 247
"""For two CTAs on an SM: duration of their loads relative to one CTA's; cycles of two tiles in
which neither multiplies."""
FETCHED, UNFETCHED = 96 * 128, 1233
"""Largest tile, in elements, whose bias fits the registers of two CTAs on an SM (fetch-ahead);
additional cycles of a larger one."""
