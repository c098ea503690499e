"""The schedules of a convolution on warpgroups (wgmma), with their modelled times."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.dialect import tc
from tcir.passes.conv.im2col import check_im2col, check_parts, gathered
from tcir.passes.conv.offset_walk import fastest_walk
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.wgmma import check_product, cycles, fastest_tile
from tcir.passes.emit.limits import ceil_div
from tcir.passes.kernels.cores.wgmma import N_TILES
from tcir.passes.kernels.product import Tile
from tcir.target import TARGETS

IMPLICIT, OFFSET = "conv-implicit-gemm", "conv-smem-offset"


@dataclass(frozen=True)
class WarpgroupCandidate:
    """A schedule with its fastest tile.

    rows, columns: size of a tile
    tiles: number of tiles of the output
    sms: number of SMs
    tile_of: the taps that use the same tile of A
    loaded: bytes that TMA loads to shared memory
    cycles: modelled cycles of the SM with the most tiles
    """

    schedule: str
    rows: int
    columns: int
    tiles: int
    sms: int
    tile_of: str
    loaded: int
    cycles: int

    @property
    def rounds(self) -> int:
        """Number of tiles that the busiest SM computes."""
        return ceil_div(self.tiles, self.sms)


def ranked(op: tc.Conv2dOp, option: int, target: str) -> list[WarpgroupCandidate]:
    """The schedules of an op, fastest first. option: the option n-tile of the pass; 0 chooses.
    Raises a match failure for types that wgmma cannot multiply, or taps that im2col loads cannot
    gather."""
    stored = ConvShape.of(op)
    shape = gathered(stored)
    check_im2col(op, shape)
    check_parts(op, shape)
    option = check_product(op, shape, option)
    widths, sms = [option] if option else list(N_TILES), TARGETS[target].sms
    if stored.rows_are_windows or shape.k_part is not None:
        return [_implicit_gemm(shape, fastest_tile(shape, widths, sms), sms)]
    return candidates(shape, widths, sms)


def candidates(shape: ConvShape, widths: list[int], sms: int) -> list[WarpgroupCandidate]:
    """Schedules with tiles of these widths, the simpler schedule first. A filter of one tap has
    only one candidate per width, because both schedules would give the same program."""
    found = [_implicit_gemm(shape, fastest_tile(shape, widths, sms), sms)]
    walk = fastest_walk(shape, widths, sms)
    if walk is not None and shape.r * shape.s > 1:
        m, n = walk.tiles
        found.append(
            WarpgroupCandidate(
                OFFSET, walk.rows, walk.columns, m * n, sms, "filter" if walk.whole else "row",
                m * n * walk.steps * walk.loaded, round(walk.cycles(sms)),
            )
        )  # fmt: skip
    return sorted(found, key=lambda each: each.cycles)


def _implicit_gemm(shape: ConvShape, tile: Tile, sms: int) -> WarpgroupCandidate:
    pixels, steps = shape.n * shape.p * shape.q, shape.steps // shape.parts
    tiles = shape.parts * tile.count(pixels, shape.k)
    pixel = shape.kc * shape.element_bytes
    loaded = tile.rows * pixel + shape.filter_bytes(tile.columns, shape.kc)
    return WarpgroupCandidate(
        IMPLICIT, tile.rows, tile.columns, tiles, sms, "tap", tiles * steps * loaded,
        round(cycles(shape, tile, sms)),
    )  # fmt: skip


def table(found: list[WarpgroupCandidate]) -> str:
    """The candidates as text, one per line, with modelled cycles."""
    head = (
        f"{'schedule':<20}{'tile':>9}{'A of a':>8}{'tiles':>7}{'rounds':>8}{'MB to smem':>12}"
        f"{'cycles':>9}"
    )
    rows = [
        f"{each.schedule:<20}{f'{each.rows}x{each.columns}':>9}{each.tile_of:>8}{each.tiles:>7}"
        f"{each.rounds:>8}{each.loaded / 1e6:>12.2f}{each.cycles:>9}"
        for each in found
    ]
    return "\n".join([head, *rows])
