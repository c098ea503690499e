"""Tiles of ``conv-smem-offset`` for warpgroups: positions on an im2col walk over the images."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tcir.dialect.limits import (
    MMA_K_BYTES,
    SMEM_BYTES,
    SMEM_TILE_ALIGNMENT,
    SWIZZLE_ATOM_ROWS,
    TMA_CORNER,
    TMA_ELEMENT_STRIDE,
    TMA_OFFSET,
    TMA_PIXELS,
    WGMMA_M,
)
from tcir.passes.conv.im2col import RANK
from tcir.passes.conv.offset_plan import FilterAxis, TapRows
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.emit.limits import BARRIER_BYTES, OVERLAPPED_SLOTS, ceil_div, round_up
from tcir.passes.kernels.cores.wgmma import MAPS, is_promoted
from tcir.passes.kernels.cores.wgmma_cost import of_rounds
from tcir.passes.kernels.product import Tile
from tcir.threads import cached_property
from tcir.time.warpgroups import FILTER, LATENCY, PIXEL, WAIT

MOST_STAGES = 8
"""The largest number of slots that `multi-buffer` makes."""
SHARED_BYTES = 128
"""Bytes of shared memory that an SM's tensor cores read in a cycle."""


@dataclass(frozen=True)
class OffsetWalk(TapRows):
    """A tile of `rows` positions on a walk over all images and of `columns` output channels. Lines
    of the walk have a multiple of `line_step` positions.

    Position ``(n * height + y) * width + x`` belongs to output (n, y, x), if there is one. In the
    tile of a tap class the position holds the pixel in image row ``y * stride - pad + class`` and
    in image column ``x * stride - pad + class``. A tap with the offsets (down, right) reads the
    position that is ``down * width + right`` positions later. Between two rows of outputs there are
    enough positions to keep a tap from reading pixels of the next row: at most as many as the
    largest offset of a tap, and fewer where the padding of one row is followed by the padding of
    the next.
    """

    rows: int
    columns: int
    line_step: int = 1

    @cached_property
    def image(self) -> tuple[int, int]:
        """Numbers of positions along the height and the width of an image."""
        shape, (down, right) = self.shape, self.axes
        height = _positions(down, shape.p, shape.pad_top, shape.h) if self.whole else shape.p
        width = _positions(right, shape.q, shape.pad_left, shape.w)
        return height, round_up(width, self.line_step)

    @cached_property
    def count(self) -> int:
        """Number of positions up to the last output."""
        (height, width), shape = self.image, self.shape
        return ((shape.n - 1) * height + shape.p - 1) * width + shape.q

    @property
    def corners(self) -> list[int]:
        """``[lower w, lower h, upper w, upper h]``: corners of the box of positions of tap class
        0."""
        shape, (height, width), (sh, sw) = self.shape, self.image, self.shape.strides
        right, bottom = (width - 1) * sw - shape.pad_left, (height - 1) * sh - shape.pad_top
        return [-shape.pad_left, -shape.pad_top, right - shape.w + 1, bottom - shape.h + 1]

    @property
    def pitch(self) -> int:
        """Number of positions from a row of pixels to the next row."""
        return self.image[1]

    @cached_property
    def positions(self) -> int:
        """Number of positions in a tile of A: one per output, and the later positions that a tap
        reaches."""
        return self.rows + max(self.place(*tap)[1] for tap in self.taps)

    @property
    def tile_rows(self) -> int:
        """Rows of a tile of A, rounded up to whole patterns of the swizzle."""
        return round_up(self.positions, SWIZZLE_ATOM_ROWS)

    @property
    def tiles(self) -> tuple[int, int]:
        """Numbers of tiles along the walk and along the output channels."""
        return ceil_div(self.count, self.rows), ceil_div(self.shape.k, self.columns)

    @property
    def loaded(self) -> int:
        """Bytes that TMA loads in a step."""
        pixel = self.shape.kc * self.shape.element_bytes
        filters = len(self.taps) * self.shape.filter_bytes(self.columns, self.shape.kc)
        return len(self.classes) * self.positions * pixel + filters

    @property
    def stage_bytes(self) -> int:
        """Bytes of shared memory for a step of the main loop."""
        pixel = self.shape.kc * self.shape.element_bytes
        a = round_up(self.tile_rows * pixel, SMEM_TILE_ALIGNMENT)
        b = round_up(self.shape.filter_bytes(self.columns, self.shape.kc), SMEM_TILE_ALIGNMENT)
        return len(self.classes) * a + len(self.taps) * b

    @property
    def stages(self) -> int:
        """Number of slots of the ring; 0 if shared memory cannot hold one step."""
        return min(MOST_STAGES, (SMEM_BYTES - BARRIER_BYTES) // self.stage_bytes)

    @property
    def legal(self) -> bool:
        """Whether TMA can traverse the walk, and shared memory can hold a step."""
        furthest = [max(self.axes[1].classes), max(self.axes[0].classes)]
        if not self.whole:
            furthest[1] = (self.shape.r - 1) * self.shape.dilations[0]
        return (
            all(each in TMA_CORNER[RANK] for each in self.corners)
            and all(each in TMA_ELEMENT_STRIDE for each in self.shape.strides)
            and all(each in TMA_OFFSET[RANK] for each in furthest)
            and self.positions in TMA_PIXELS
            and self.stages > 0
            and not is_promoted(self.shape.element)
        )

    def cycles(self, sms: int) -> float:
        """Modelled cycles of the SM with the most tiles. A step takes as long as the slowest of
        three: the time of its products; the time of its loads, in rows of at most 128 bytes; and
        the round trip of a slot (load, latency and products) divided by the number of slots."""
        shape, taps, m = self.shape, len(self.taps), WGMMA_M
        rows = taps * shape.filter_tile(self.columns, shape.kc).rows
        loading = PIXEL * len(self.classes) * self.positions + FILTER * rows
        slices = taps * shape.kc * shape.element_bytes // MMA_K_BYTES
        reading = (m + self.columns) * MMA_K_BYTES / SHARED_BYTES
        multiplying = slices * self.rows // m * max(self.columns / 2, reading)
        if self.rows > m or min(self.stages, self.steps) < OVERLAPPED_SLOTS:
            multiplying += WAIT  # else the next group is under way
        rounds = ceil_div(shape.parts * prod(self.tiles), sms)
        if rounds * self.steps > 1:
            turn = LATENCY + loading + multiplying
            loading = max(loading, turn / min(self.stages, rounds * self.steps))
        return of_rounds(rounds, Tile(self.rows, self.columns), self.steps, loading, multiplying)


def fastest_walk(
    shape: ConvShape, widths: Iterable[int], sms: int, line_step: int = 1
) -> OffsetWalk | None:
    """The fastest tile with one of the output-channel counts `widths`; None if none is legal. If
    the sums are in parts, each part consists of whole filter rows, and each filter row has a tile
    of its own."""
    every = (
        OffsetWalk(shape, whole, rows, columns, line_step)
        for columns in widths
        for rows in MAPS
        for whole in ((False,) if shape.k_part else (True, False))
    )
    legal = (walk for walk in every if walk.legal)
    return min(legal, key=lambda walk: walk.cycles(sms), default=None)


def _positions(axis: FilterAxis, outputs: int, before: int, pixels: int) -> int:
    """The fewest positions of a line of `outputs`, for which no tap reads a pixel of the next line.

    before: zeros before the line's `pixels`
    """
    reads = {
        (first + offset, kind)
        for kind, offset in map(axis.place, range(axis.taps))
        for first in range(max(0, outputs - 1 - axis.reach), outputs)
    }

    def padding(position: int, kind: int) -> bool:
        return not 0 <= position * axis.stride - before + kind < pixels

    fits = (
        length
        for length in range(outputs, outputs + axis.reach)
        if all(
            padding(at, kind) and padding(at - length, kind) for at, kind in reads if at >= length
        )
    )
    return next(fits, outputs + axis.reach)
