"""How long a convolution takes on warpgroups: cycles of the SM that has most tiles.

The constants are those with which the fastest of 180 tiles and splits of ResNet-50's convolutions
are found, whose times an H200 gave (docs/explanation/conv-sm90a.md); those of slots, of 60 more.
"""

from __future__ import annotations

from tcir.dialect.limits import WGMMA_M
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.emit.limits import ceil_div
from tcir.passes.kernels.product import Tile

WIDE = 128
"""Bytes of a row of a tile in a full step."""
PIXEL, FILTER = 3.26, 1.66
"""Cycles for a row of `WIDE` bytes that TMA brings in im2col mode, and in tiled mode."""
STEP, STEP_ALONE = 366, 325
"""The least cycles of a step: from a full barrier to the next; of one warpgroup, whose groups
overlap."""
TILE, STORED = 1676, {3 * WGMMA_M: 14.3, 2 * WGMMA_M: 13, WGMMA_M: 12.9}
"""Cycles that a tile takes beside its steps; elements of it that are stored in one, by its rows."""
LATENCY, WAIT = 700, 95
"""Cycles from a free slot to the first row of its load; that the tensor core idles at the end of a
step, which waits for its products."""
SUMMING, SUMMED_BYTES = 3000, 1300
"""Cycles that the launch which sums up parts takes; bytes of parts that it reads in one."""


BESIDE, HANDED = 0.96, 247
"""For two CTAs on an SM: duration of their loads relative to one CTA's; cycles of two tiles in
which neither multiplies."""
FOLLOWING, STORED_BESIDE = (
    {3 * WGMMA_M: 2391, 2 * WGMMA_M: 376, WGMMA_M: 659},
    {3 * WGMMA_M: 13.5, 2 * WGMMA_M: 8.2, WGMMA_M: 11.8},
)
"""For two CTAs on an SM, by rows: cycles of a tile besides its steps; elements stored in one."""
FETCHED, UNFETCHED = 96 * 128, 1233
"""Elements of a tile of which a thread of two CTAs has registers for a bias (fetch-ahead); cycles
that a larger one takes more."""


def cycles(shape: ConvShape, tile: Tile, sms: int) -> float:
    """Cycles of the sums of `shape` (as `gathered`) in tiles like this, and of adding up their
    parts.

    The loads of a CTA's next tile continue while one is multiplied and stored.
    """
    pixels, parts = shape.n * shape.p * shape.q, shape.parts
    rounds = ceil_div(parts * tile.count(pixels, shape.k), sms * tile.per_sm)
    share = shape.kc * shape.element_bytes / WIDE
    steps = shape.steps // parts
    filters = shape.filter_bytes(tile.columns, shape.kc) / WIDE / share
    loading = share * (PIXEL * tile.rows + FILTER * filters)
    multiplying = share * 2 * tile.columns * tile.rows / WGMMA_M
    total = of_rounds(rounds, tile, steps, loading, multiplying)
    if parts > 1:
        total += SUMMING + 4 * parts * pixels * shape.k / SUMMED_BYTES
    return total


def of_rounds(rounds: int, tile: Tile, steps: int, loading: float, multiplying: float) -> float:
    """Cycles of an SM whose CTAs have `rounds` tiles, of `steps` that take this to load and to
    multiply.

    While one of two CTAs stores a tile, or waits, the other multiplies.
    """
    elements = tile.rows * tile.columns
    if tile.per_sm > 1:
        storing = elements / STORED_BESIDE[tile.rows]
        both = tile.per_sm * steps * max(BESIDE * loading, multiplying) + HANDED
        following = FOLLOWING[tile.rows] + (UNFETCHED if elements > FETCHED else 0)
        own = steps * max(multiplying, STEP) + following + tile.per_sm * storing
        return rounds * max(both, own) + storing
    storing = elements / STORED[tile.rows]
    least = STEP_ALONE if tile.rows == WGMMA_M else STEP
    used = steps * max(multiplying, least) + TILE + storing
    return rounds * max(steps * max(loading, multiplying), used) + storing
