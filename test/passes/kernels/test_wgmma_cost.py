"""Widths that the cost model of warpgroups chooses, as the event-driven model finds them."""

from __future__ import annotations

import pytest

from tcir.passes.kernels.cores.wgmma import M_TILE, N_TILES
from tcir.passes.kernels.cores.wgmma_cost import matrix_cycles
from tcir.passes.kernels.product import Tile

SMS = 132


@pytest.mark.parametrize(
    ("m", "n", "k", "columns"),
    [
        (1024, 1024, 1024, 64),
        (2048, 2048, 2048, 256),  # events: 0.7 % above 128
        (4096, 4096, 4096, 256),
        (2048, 2304, 512, 160),  # events: 5.5 % above 96, 13 % below 192
        (2048, 2304, 768, 160),  # events: 2.5 % above 96
        (1024, 2304, 768, 160),  # events: 12 % below 96, an H200: 5 % below it
        (1024, 14336, 4096, 224),  # an H200: 7 % below 256, 2 % below 192
        (256, 14336, 4096, 224),  # an H200: 5 % below 256
        (1000, 11008, 768, 256),  # events: 44367 cycles, of 96 columns 47808
    ],
)
def test_the_fastest_width(m: int, n: int, k: int, columns: int) -> None:
    def cycles(width: int) -> float:
        tile = Tile(M_TILE, width)
        return matrix_cycles(tile, -(-2 * k // 128), tile.count(m, n), SMS)

    assert min(N_TILES, key=cycles) == columns
