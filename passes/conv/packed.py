"""The tiling ``packed`` of a shift-reuse convolution: lanes run over one output row after
another."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTERS, TMA_CORNER, TMA_ELEMENT_STRIDE, TMA_OFFSET
from tcir.passes.conv.tiling import Boxes, Load, OutputTiling
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, make_tensor_map, tma_load
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import LaneValue, lane_index, spread
from tcir.passes.emit.limits import ceil_div

RANK = 4
"""Rank of the tensor map of an NHWC tensor."""


@dataclass(frozen=True)
class PackedTiling(OutputTiling):
    """For each residue b of the output column, lanes run over (n, p, x) with x up to ``ceil(Q / dq)
    + J``; units start V lanes apart.

    Lane (n, p, x) computes the output ``q = b + dq * x``; for filter row r and class c it holds the
    pixel of row ``p * sh - pad_top + r * dh`` and column ``(b * sw - pad_left + c * dw) + t * x``.
    The last J lanes of a row compute no output; their pixels are shifted into the lanes before
    them. TMA traverses these positions in im2col mode with traversal stride t; b, c and r are
    offsets.
    """

    @property
    def blocks(self) -> int:
        """Number of units for each value of b."""
        return ceil_div(self.shape.n * self.shape.p * self.pitch, self.classes.valid)

    @property
    def count(self) -> int:
        """Number of units of the whole convolution."""
        return self.classes.column_step * self.blocks

    @property
    def corners(self) -> list[int]:
        """``[lower w, lower h, upper w, upper h]``: corners of the box of positions if all offsets
        are 0."""
        shape = self.shape
        right = self.classes.lane_step * (self.pitch - 1) - shape.pad_left
        bottom = shape.strides[0] * (shape.p - 1) - shape.pad_top
        return [-shape.pad_left, -shape.pad_top, right - shape.w + 1, bottom - shape.h + 1]

    def check(self, op: ir.OpView) -> None:
        """Rejects convolutions that im2col mode cannot load."""
        shape, step = self.shape, self.classes.lane_step
        (sh, sw), (dh, dw) = shape.strides, shape.dilations
        furthest = (self.classes.column_step - 1) * sw + (len(self.classes.taps) - 1) * dw
        way_out = "take tiling=rows, or pipeline conv-implicit-gemm"
        for what, legal, values in (
            ("traversal strides of the im2col walk", TMA_ELEMENT_STRIDE, [step, sh]),
            ("corners of the im2col box", TMA_CORNER[RANK], self.corners),
            ("im2col offsets", TMA_OFFSET[RANK], [furthest, (shape.r - 1) * dh]),
        ):
            if any(value not in legal for value in values):
                raise match_failure(
                    op,
                    f"the {what} must be {legal} with tiling=packed, got {values}, which follow "
                    f"from strides {[sh, sw]}, dilations {[dh, dw]}, padding and sizes "
                    f"({legal.source}); {way_out}",
                    SMALLEST_CONV,
                )

    def decode(self, unit: Index) -> tuple[Index, Index]:
        """``(b, first lane)`` of a unit. The first lane is counted over (n, p, x), and may be past
        the end."""
        block, b = index.delinearize(unit, [self.blocks, self.classes.column_step])
        return b, index.mul(block, self.classes.valid)

    def pixel_map(self, x: ir.Value, a_type: tc.SmemType, boxes: Boxes) -> ir.Value:
        """Builds the tensor map of the input."""
        shape, steps = self.shape, [1, self.classes.lane_step, self.shape.strides[0], 1]
        return make_tensor_map(
            x,
            TmaBox([a_type.shape[1], boxes.pixels], steps, "im2col", self.corners),
            dims=[shape.channels, shape.w, shape.h, shape.n],
            swizzle=a_type.swizzle,
        )

    def loader(
        self, tensor_map: ir.Value, a_type: tc.SmemType, first_unit: Index, boxes: Boxes
    ) -> Load:
        """Returns a function that loads the tile of a filter row, a tap class and a block of
        channels."""
        shape, step = self.shape, self.classes.lane_step
        (sh, sw), (dh, dw) = shape.strides, shape.dilations
        places = []
        for lane in boxes.lanes:
            for quarter in range(QUARTERS):
                b, first = self.decode(index.add(first_unit, quarter))
                position = index.add(first, lane)
                n, p, column = index.delinearize(position, [shape.n, shape.p, self.pitch])
                w = index.sub(index.mul(column, step), shape.pad_left)
                h = index.sub(index.mul(p, sh), shape.pad_top)
                places.append((boxes.row(lane, quarter), w, h, n, index.mul(b, sw)))

        def load(tile: ir.Value, r: Index, c: int, c0: Index) -> None:
            for row, w, h, n, shift in places:
                coords = index.values([c0, w, h, n])
                offsets = index.values([index.add(shift, c * dw), index.mul(r, dh)])
                tma_load(tensor_map, coords, tile, row, boxes.pixels * a_type.span, offsets)

        return load

    def places(self, first_unit: Index, quarter: ir.Value) -> list[LaneValue]:
        """Positions of the lanes on the walk. A lane stores a result if its position is an output
        and its pixels are not stale."""
        b, first = self.decode(index.add(first_unit, quarter))
        lane = lane_index()
        position = lane + first
        row = position // self.pitch
        column = (position % self.pitch) * self.classes.column_step + b
        fresh = lane.below(self.classes.valid)
        outside = spread(self.shape.q)
        return [row // self.shape.p, row % self.shape.p, column.where(fresh, outside)]
