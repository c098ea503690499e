"""Tiles of ``conv-smem-offset``: the pixels that one shared tile holds, and the row at which each
tap starts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from tcir.dialect.limits import SMEM_BYTES, SMEM_TILE_ALIGNMENT, TMA_BOX, TMEM_LANES
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.emit.limits import BARRIER_BYTES, ceil_div, round_up
from tcir.passes.emit.staged_store import RowBoxes
from tcir.threads import cached_property

CORE_COLUMN_BYTES = 16
"""Width of a core matrix: rows of a tile without a swizzle (PTX ISA 9.7.16.10.5)."""

STAGES = 2
"""Ring slots a plan should leave room for: loads then overlap the tensor core."""


@dataclass(frozen=True)
class FilterAxis:
    """The taps along one dimension of the filter (height or width), as (class, offset) pairs.

    For output o, tap t reads pixel ``o * stride - pad + t * dilation``. In the tile of class
    ``t * dilation mod stride``, loaded with that stride, this is pixel ``o + offset``.
    """

    stride: int
    dilation: int
    taps: int

    def place(self, tap: int) -> tuple[int, int]:
        """The ``(class, offset)`` pair of a tap."""
        offset, kind = divmod(tap * self.dilation, self.stride)
        return kind, offset

    @property
    def classes(self) -> list[int]:
        """The tap classes that are not empty."""
        return sorted({self.place(tap)[0] for tap in range(self.taps)})

    @property
    def reach(self) -> int:
        """The largest offset of a tap."""
        return max(self.place(tap)[1] for tap in range(self.taps))


@dataclass(frozen=True)
class TapRows(ABC):
    """The taps of a step of the main loop. All taps of a class read one shared tile, each from its
    own first row.

    whole: whether one tile serves all filter rows; otherwise a tile is loaded for each filter row
    """

    shape: ConvShape
    whole: bool

    @property
    @abstractmethod
    def pitch(self) -> int:
        """Number of tile rows from a row of pixels to the next row of pixels."""

    @cached_property
    def axes(self) -> tuple[FilterAxis, FilterAxis]:
        """The two axes of the filter: height and width."""
        (sh, sw), (dh, dw) = self.shape.strides, self.shape.dilations
        return FilterAxis(sh, dh, self.shape.r), FilterAxis(sw, dw, self.shape.s)

    @cached_property
    def classes(self) -> list[tuple[int, int]]:
        """``(row class, column class)`` of each tile of a step; the row class is 0 if `whole` is
        false."""
        rows = self.axes[0].classes if self.whole else [0]
        return [(row, column) for row in rows for column in self.axes[1].classes]

    @cached_property
    def taps(self) -> list[tuple[int, int]]:
        """The taps (r, s) of a step; r is 0 if the tile does not hold all filter rows."""
        rows = range(self.shape.r if self.whole else 1)
        return [(r, s) for r in rows for s in range(self.shape.s)]

    def place(self, r: int, s: int) -> tuple[tuple[int, int], int]:
        """Returns the tile that a tap reads, by the tap's classes, and the first row that it reads
        in it."""
        column, right = self.axes[1].place(s)
        row, down = self.axes[0].place(r) if self.whole else (0, 0)
        return (row, column), down * self.pitch + right

    @property
    def steps(self) -> int:
        """Number of iterations of the main loop for one part of the sums."""
        return (1 if self.whole else self.shape.r // self.shape.parts) * ceil_div(
            self.shape.c, self.shape.kc
        )


@dataclass(frozen=True)
class OffsetPlan(TapRows):
    """The outputs of a CTA: ``images x rows x columns``. Lanes run over these, with `pitch` lanes
    per row of outputs, a multiple of `row_step`. A tile that serves all filter rows holds `rows`
    rows plus the vertical reach of the taps."""

    images: int
    rows: int
    columns: int
    row_step: int = 1

    @cached_property
    def core_columns(self) -> int:
        """Core-matrix columns that one step multiplies."""
        return self.shape.kc * self.shape.element_bytes // CORE_COLUMN_BYTES

    @cached_property
    def pitch(self) -> int:
        """Pixels per row of the tile. It is chosen so that a core-matrix column ends at a multiple
        of 128 bytes."""
        pitch = round_up(self.columns + self.axes[1].reach, self.row_step)
        while pitch * self.tile_rows * self.images * self.core_columns % 8:
            pitch += self.row_step
        return pitch

    @property
    def tile_rows(self) -> int:
        """Rows of pixels in a tile."""
        return self.rows + (self.axes[0].reach if self.whole else 0)

    @cached_property
    def pixels(self) -> int:
        """Pixels of a tile, which is the number of rows of one core-matrix column."""
        return self.pitch * self.tile_rows * self.images

    @cached_property
    def tail(self) -> int:
        """Number of rows after the last core-matrix column that only lanes without an output read;
        they are zeros."""
        reach = self.axes[1].reach + (self.axes[0].reach * self.pitch if self.whole else 0)
        return max(0, reach + TMEM_LANES - self.pixels)

    @property
    def all_core_columns(self) -> int:
        """Number of core-matrix columns of the tile, including the rows of `tail`."""
        return self.core_columns + ceil_div(self.tail, self.pixels)

    @property
    def box(self) -> tuple[int, int]:
        """Width and height of the TMA box, in pixels of the input."""
        (sh, sw) = self.shape.strides
        return (self.pitch - 1) * sw + 1, (self.tile_rows - 1) * sh + 1

    @property
    def grid(self) -> tuple[int, int, int]:
        """Numbers of CTAs along images, rows and columns."""
        shape = self.shape
        return (
            ceil_div(shape.n, self.images),
            ceil_div(shape.p, self.rows),
            ceil_div(shape.q, self.columns),
        )

    @property
    def ctas(self) -> int:
        """Number of CTAs for one tile of output channels."""
        n, p, q = self.grid
        return n * p * q

    @property
    def activation_bytes(self) -> int:
        """Bytes that TMA loads for one CTA in one step."""
        rows = self.pixels * self.core_columns + self.tail
        return len(self.classes) * rows * CORE_COLUMN_BYTES

    def stage_bytes(self, n_tile: int) -> int:
        """Bytes of shared memory for one step."""
        tile = round_up(
            self.pixels * self.all_core_columns * CORE_COLUMN_BYTES, SMEM_TILE_ALIGNMENT
        )
        tap = round_up(self.shape.filter_bytes(n_tile, self.shape.kc), SMEM_TILE_ALIGNMENT)
        return len(self.classes) * tile + len(self.taps) * tap

    @property
    def stored(self) -> RowBoxes:
        """The lanes that have an output, as TMA stores them."""
        lines = range(self.images * self.rows)
        places = [(y * self.pitch, (0, 0, y % self.rows, y // self.rows)) for y in lines]
        return RowBoxes(self.columns, places)

    @property
    def legal(self) -> bool:
        """Whether the plan fits 128 lanes and a TMA box."""
        lanes = (self.images * self.rows - 1) * self.pitch + self.columns
        width, height = self.box
        fits = width in TMA_BOX and height in TMA_BOX and self.tail <= TMA_BOX.values[-1]
        return fits and lanes <= TMEM_LANES and not (self.whole and self.images > 1)


def best_plan(
    shape: ConvShape, n_tile: int, row_step: int = 1, staged: int = 0
) -> OffsetPlan | None:
    """The plan with the fewest CTAs, and among these the plan with the fewest loaded bytes, that
    leaves room for `STAGES` ring slots. If the sums are in parts, each part consists of whole
    filter rows, and each filter row has a tile of its own.

    n_tile: output channels of a CTA; row_step: number of lanes; each row of outputs begins at a
            multiple of it
    staged: bytes of shared memory for results
    If two slots do not fit, the plan has one slot; returns None if even one slot does not fit.
    """
    legal = (plan for plan in plans(shape, row_step) if not (plan.whole and shape.k_part))
    every = sorted(legal, key=lambda p: (p.ctas, p.ctas * p.steps * p.activation_bytes))
    rooms = [(SMEM_BYTES - BARRIER_BYTES - staged) // stages for stages in range(STAGES, 0, -1)]
    fits = (plan for room in rooms for plan in every if plan.stage_bytes(n_tile) <= room)
    return next(fits, None)


def plans(shape: ConvShape, row_step: int = 1) -> Iterator[OffsetPlan]:
    """All legal plans whose tiles divide columns, rows and images into equal parts."""
    for columns in _parts(shape.q):
        for rows in _parts(shape.p):
            for images in _parts(shape.n):
                for whole in (True, False):
                    plan = OffsetPlan(shape, whole, images, rows, columns, row_step)
                    if plan.legal:
                        yield plan


def _parts(extent: int) -> list[int]:
    """Sizes of at most the lanes that cut `extent` into equal parts, but for the last."""
    return [
        size
        for size in range(1, min(extent, TMEM_LANES) + 1)
        if ceil_div(extent, ceil_div(extent, size)) == size
    ]
