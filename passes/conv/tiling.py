"""Common code of the tilings of a shift-reuse convolution, whose units each occupy one
sub-partition of 32 lanes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES, QUARTERS, SWIZZLE_ATOM_ROWS, TMA_BOX
from tcir.passes.conv.shapes import ConvShape
from tcir.passes.conv.shift_classes import ShiftClasses
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import LaneValue
from tcir.passes.emit.limits import ceil_div

Load = Callable[[ir.Value, Index, int, Index], None]
"""``load(tile, r, c, c0)``: loads the A tile of filter row r, class c, channels from c0."""


@dataclass(frozen=True)
class Boxes:
    """The pixels of a unit that one tile holds: for each element of `lanes`, a TMA box of `pixels`
    pixels that begins at this lane.

    Lanes past 31 are the halo: the pixels that lane 31 needs after the first, second, … shift. In a
    halo tile, rows 8 * k to 8 * k + 3 hold the pixels of the four sub-partitions for shift k, where
    one ``tcgen05.cp.4x256b`` reads them.
    """

    pixels: int
    lanes: Sequence[int]

    @staticmethod
    def a_tile() -> Boxes:
        """The boxes of an A tile: the 32 pixels of each sub-partition."""
        return Boxes(QUARTER_LANES, (0,))

    @staticmethod
    def halo(count: int) -> Boxes:
        """The boxes of a halo: the `count` pixels after the 32 pixels of each sub-partition."""
        return Boxes(1, range(QUARTER_LANES, QUARTER_LANES + count))

    def row(self, lane: int, quarter: int) -> int:
        """First row in the tile of the box that begins at `lane` of sub-partition `quarter`."""
        if lane < QUARTER_LANES:
            return QUARTER_LANES * quarter
        return SWIZZLE_ATOM_ROWS * (lane - QUARTER_LANES) + quarter


@dataclass(frozen=True)
class OutputTiling(ABC):
    """How outputs are mapped to lanes, in units of one sub-partition each, four units per CTA.

    masked: whether lanes may hold pixels that do not belong to their output. The mma of a tap must
        then mask these lanes: D is zeroed first, and every mma adds to it
    """

    masked: ClassVar[bool] = False
    shape: ConvShape
    classes: ShiftClasses

    @property
    @abstractmethod
    def count(self) -> int:
        """Number of units of the whole convolution."""

    @property
    def pitch(self) -> int:
        """Number of lanes from one output row to the next, in tilings whose output rows follow one
        another."""
        return ceil_div(self.shape.q, self.classes.column_step) + self.classes.halo

    @property
    def ctas(self) -> int:
        """Number of CTAs that compute all units."""
        return ceil_div(self.count, QUARTERS)

    @abstractmethod
    def check(self, op: ir.OpView) -> None:
        """Rejects `op` if this tiling cannot compute it."""

    def check_box(self, op: ir.OpView, tiling: str, what: str) -> None:
        """Rejects lanes whose pixels exceed every TMA box.

        what: unit of the box width, for the error message
        """
        box, apart = QUARTER_LANES * self.classes.lane_step, self.classes.lane_step
        if box not in TMA_BOX:
            stride, dilation = self.shape.strides[1], self.shape.dilations[1]
            raise match_failure(
                op,
                f"lanes must be at most 8 input columns apart with tiling={tiling}, got {apart}, "
                f"the least common multiple of stride {stride} and dilation {dilation} along the "
                f"width: 32 lanes would need a box of {box} {what}, and TMA boxes are {TMA_BOX} "
                f"({TMA_BOX.source}); use pipeline conv-implicit-gemm",
                SMALLEST_CONV,
            )

    @abstractmethod
    def pixel_map(self, x: ir.Value, a_type: tc.SmemType, boxes: Boxes) -> ir.Value:
        """Builds the tensor map from which `boxes` of the input are loaded."""

    @abstractmethod
    def loader(
        self, tensor_map: ir.Value, a_type: tc.SmemType, first_unit: Index, boxes: Boxes
    ) -> Load:
        """Returns a function that loads `boxes` of the units from number `first_unit` on."""

    @abstractmethod
    def places(self, first_unit: Index, quarter: ir.Value) -> list[LaneValue]:
        """Output indices, without the channel, of the lanes of a sub-partition. A lane that stores
        nothing has an index outside the output."""
