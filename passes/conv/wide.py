"""The tiling ``packed`` if one load brings A tile and halo: lanes run over (n, x) of one output
row."""

from __future__ import annotations

from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import (
    QUARTER_LANES,
    QUARTERS,
    TMA_ELEMENT_STRIDE,
    TMA_WIDE_PIXELS,
    TMEM_LANES,
)
from tcir.passes.conv.tiling import Boxes, Load, OutputTiling
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, make_tensor_map, tma_load
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import LaneValue, lane_index, spread
from tcir.passes.emit.limits import ceil_div


@dataclass(frozen=True)
class WideTiling(OutputTiling):
    """The 128 lanes of a CTA run over (n, x) for one b and p, x up to ``ceil(Q / dq) + J``.

    Lane (n, x) computes the output ``q = b + dq * x`` of row p; for filter row r and class c it
    holds the pixel of row ``p * sh - pad_top + r * dh`` and column ``(b * sw - pad_left + c * dw) +
    t * x``. TMA's mode im2col::w::128 traverses these positions: one input row of all images. With
    the 128 positions it also loads the J pixels after every 32 positions, which lane 31 of each
    sub-partition will need after the shifts. No output reads a pixel past the last J lanes of its
    own row, so it does not matter what TMA loads there.
    """

    @property
    def blocks(self) -> int:
        """Number of CTAs for each b and p."""
        return ceil_div(self.shape.n * self.pitch, TMEM_LANES)

    @property
    def count(self) -> int:
        """Number of units of the whole convolution; a CTA computes four."""
        return QUARTERS * self.classes.column_step * self.shape.p * self.blocks

    @property
    def rows(self) -> int:
        """Number of rows of a tile: 128 for the pixels, then J for each sub-partition."""
        return TMEM_LANES + QUARTERS * self.classes.halo

    @property
    def corners(self) -> list[int]:
        """``[lower w, upper w]``: corners of the traversal if all offsets are 0."""
        left = self.shape.pad_left
        right = self.classes.lane_step * (self.pitch - 1) - left
        return [-left, right - self.shape.w + 1]

    def check(self, op: ir.OpView) -> None:
        """Rejects strides that the TMA traversal cannot express. If it can express the stride, the
        offsets also fit."""
        step, legal = self.classes.lane_step, TMA_ELEMENT_STRIDE
        if step not in legal:
            raise match_failure(
                op,
                f"lanes must be {legal} input columns apart with halo-load=w128, got {step}, the "
                f"least common multiple of stride {self.shape.strides[1]} and dilation "
                f"{self.shape.dilations[1]} along the width (it becomes the traversal stride, "
                f"which is {legal}, {legal.source}); use pipeline conv-implicit-gemm",
                SMALLEST_CONV,
            )

    def decode(self, first_unit: Index) -> tuple[Index, Index, Index]:
        """``(b, p, first position)`` of the CTA whose first unit is `first_unit`."""
        sizes = [self.classes.column_step, self.shape.p, self.blocks]
        b, p, block = index.delinearize(index.div(first_unit, QUARTERS), sizes)
        return b, p, index.mul(block, TMEM_LANES)

    def pixel_map(self, x: ir.Value, a_type: tc.SmemType, boxes: Boxes) -> ir.Value:
        """Builds the tensor map of the input."""
        del boxes  # one load brings all
        shape, step = self.shape, self.classes.lane_step
        return make_tensor_map(
            x,
            TmaBox(
                [a_type.shape[1], TMA_WIDE_PIXELS], [1, step, 1, 1], "im2col_w128", self.corners
            ),
            dims=[shape.channels, shape.w, shape.h, shape.n],
            swizzle=a_type.swizzle,
        )

    def loader(
        self, tensor_map: ir.Value, a_type: tc.SmemType, first_unit: Index, boxes: Boxes
    ) -> Load:
        """Returns a function that loads the tile of a filter row, a tap class and a block of
        channels."""
        del boxes
        shape, step, halo = self.shape, self.classes.lane_step, self.classes.halo
        (sh, sw), (dh, dw) = shape.strides, shape.dilations
        b, p, first = self.decode(first_unit)
        n, column = index.delinearize(first, [shape.n, self.pitch])
        w = index.sub(index.mul(column, step), shape.pad_left)
        h = index.sub(index.mul(p, sh), shape.pad_top)

        def load(tile: ir.Value, r: Index, c: int, c0: Index) -> None:
            coords = index.values([c0, w, index.add(h, index.mul(r, dh)), n])
            offset = index.values([index.add(index.mul(b, sw), c * dw)])
            tma_load(tensor_map, coords, tile, 0, self.rows * a_type.span, offset, halo=halo)

        return load

    def places(self, first_unit: Index, quarter: ir.Value) -> list[LaneValue]:
        """Positions of the lanes on the walk. A lane stores a result if its position belongs to an
        output."""
        b, p, first = self.decode(first_unit)
        position = lane_index() + index.add(first, index.mul(quarter, QUARTER_LANES))
        column = (position % self.pitch) * self.classes.column_step + b
        return [position // self.pitch, spread(p), column]
