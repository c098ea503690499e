"""The modelled time of tiles computed by warpgroups: cycles of the SM that computes the most tiles.

The constants are those of `tcir.time.warpgroups`; docs/explanation/conv-sm90a.md describes the
model.
"""

from __future__ import annotations

from tcir.dialect.limits import WGMMA_M
from tcir.passes.emit.limits import ceil_div
from tcir.passes.kernels.product import Tile
from tcir.time.warpgroups import (
    ALONE,
    BESIDE,
    FETCHED,
    HANDED,
    OF_MATRICES,
    ROW,
    SHARED_LOADS,
    UNFETCHED,
    Alone,
)


def matrix_cycles(tile: Tile, steps: float, count: int, sms: int) -> float:
    """Modelled cycles of a matrix product in `count` tiles, each with `steps` steps of 128 bytes of
    K."""
    loading = ROW * (tile.rows + tile.columns)
    rounds = ceil_div(count, sms * tile.per_sm)
    return of_rounds(rounds, tile, steps, loading, multiplying(tile), OF_MATRICES)


def multiplying(tile: Tile) -> float:
    """Cycles to multiply 128 bytes of K: two for each column and each 64 rows."""
    return 2 * tile.columns * tile.rows / WGMMA_M


def of_rounds(
    rounds: int,
    tile: Tile,
    steps: float,
    loading: float,
    products: float,
    alone: Alone | None = None,
) -> float:
    """Modelled cycles of an SM whose CTAs compute `rounds` tiles in `steps` steps each. A step
    takes `loading` cycles to load and `products` cycles to multiply. alone: the overhead of a CTA
    that has an SM to itself, if it differs from the overhead for its number of rows

    A CTA's next tile is loaded while the current tile is multiplied and stored. If two CTAs are on
    the SM, one multiplies while the other stores a tile or waits.
    """
    elements, alone = tile.rows * tile.columns, alone or ALONE[tile.rows]
    if tile.per_sm > 1:
        beside = BESIDE[tile.rows]
        storing = elements / beside.stored
        both = tile.per_sm * steps * max(SHARED_LOADS * loading, products) + HANDED
        following = beside.tile + (UNFETCHED if elements > FETCHED else 0)
        own = steps * max(products, ALONE[2 * WGMMA_M].step) + following + tile.per_sm * storing
        return rounds * max(both, own) + storing
    storing = elements / alone.stored
    used = steps * max(products, alone.step) + alone.tile + storing
    return rounds * max(steps * max(loading, products), used) + storing
