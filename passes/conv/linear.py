"""The tiling ``linear`` of a shift-reuse convolution: lanes run over the flattened input pixels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTERS
from tcir.passes.conv.tiling import Boxes, Load, OutputTiling
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, i64, make_tensor_map, tma_load
from tcir.passes.emit.diagnostics import SMALLEST_CONV, match_failure
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import LaneValue, lane_index, spread
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.tile_kernel import clear_accumulator, loop


@dataclass(frozen=True)
class LinearTiling(OutputTiling):
    """A lane has an anchor, one of the N * H * W input pixels: lane i of unit (a, block) has ``f =
    a + t * (block * V + i)``.

    It computes the output (n, p, q) with ``f = (n * H + p * sh) * W + q * sw``, if there is one,
    and holds, for filter row r and class c, the pixel ``f + (r * dh - pad_top) * W + c * dw -
    pad_left``. That position may belong to another row or image, so at tap (r, s) the lane is
    enabled only if its row and its column are both inside the image. Sub-partitions start V anchors
    apart; their boxes overlap by J.
    """

    masked: ClassVar[bool] = True

    @property
    def pixels(self) -> int:
        """Number of pixels of all images."""
        return self.shape.n * self.shape.h * self.shape.w

    @property
    def blocks(self) -> int:
        """Number of units for each a."""
        return ceil_div(ceil_div(self.pixels, self.classes.lane_step), self.classes.valid)

    @property
    def count(self) -> int:
        """Number of units of the whole convolution."""
        return self.classes.lane_step * self.blocks

    def check(self, op: ir.OpView) -> None:
        """Rejects convolutions with an output that has no anchor, or with a box that TMA does not
        support."""
        shape = self.shape
        for name, outputs, stride, size in (
            ("column", shape.q, shape.strides[1], shape.w),
            ("row", shape.p, shape.strides[0], shape.h),
        ):
            if (outputs - 1) * stride >= size:
                raise match_failure(
                    op,
                    "tiling=linear identifies each output by the input pixel at its window's "
                    f"corner, so every output {name} needs an input {name}; got {outputs} of them "
                    f"at stride {stride} over {size}, the last of which is outside the input "
                    "(padding makes the output larger than the input); take tiling=rows or "
                    "tiling=packed",
                    SMALLEST_CONV,
                )
        self.check_box(op, "linear", "pixels")

    def first_anchor(self, unit: Index) -> Index:
        """Anchor of lane 0 of a unit; it is past the end for units after the last one."""
        block, a = index.delinearize(unit, [self.blocks, self.classes.lane_step])
        return index.add(a, index.mul(block, self.classes.lane_step * self.classes.valid))

    def pixel_map(self, x: ir.Value, a_type: tc.SmemType, boxes: Boxes) -> ir.Value:
        """Builds the tensor map of the input."""
        shape, step = self.shape, self.classes.lane_step
        return make_tensor_map(
            x,
            TmaBox([a_type.shape[1], boxes.pixels * step], steps=[1, step]),
            dims=[shape.channels, self.pixels],
            swizzle=a_type.swizzle,
        )

    def loader(
        self, tensor_map: ir.Value, a_type: tc.SmemType, first_unit: Index, boxes: Boxes
    ) -> Load:
        """Returns a function that loads the tile of a filter row, a tap class and a block of
        channels."""
        shape, step = self.shape, self.classes.lane_step
        (dh, dw) = shape.dilations
        before = shape.pad_top * shape.w + shape.pad_left
        places = [
            index.sub(self.first_anchor(index.add(first_unit, quarter)), before)
            for quarter in range(QUARTERS)
        ]

        def load(tile: ir.Value, r: Index, c: int, c0: Index) -> None:
            row = index.mul(r, dh * shape.w)
            for lane in boxes.lanes:
                for quarter, first in enumerate(places):
                    pixel = index.add(index.add(first, row), c * dw + lane * step)
                    coords, to = index.values([c0, pixel]), boxes.row(lane, quarter)
                    tma_load(tensor_map, coords, tile, to, boxes.pixels * a_type.span)

        return load

    def _anchors(
        self, first_unit: Index, quarter: ir.Value
    ) -> tuple[LaneValue, LaneValue, LaneValue]:
        """Image, row and column of the anchor of each lane."""
        first = self.first_anchor(index.add(first_unit, quarter))
        anchor = lane_index() * self.classes.lane_step + first
        row = anchor // self.shape.w
        return row // self.shape.h, row % self.shape.h, anchor % self.shape.w

    def accumulators(
        self, sums: Sequence[ir.Value], first_unit: Index
    ) -> Callable[[ir.Value, Index, int], ir.Value]:
        """Zeroes the accumulators and builds the mask table; returns a function that masks an
        accumulator for tap (r, s)."""
        shape = self.shape
        (dh, dw) = shape.dilations
        masks = tc.LaneMasksOp(i64(shape.r * shape.s)).masks
        with loop(QUARTERS) as quarter:
            for d in sums:
                clear_accumulator(d, quarter)
            _, row, column = self._anchors(first_unit, quarter)
            with loop(shape.r * shape.s) as tap:
                r, s = index.div(tap, shape.s), index.rem(tap, shape.s)
                h = row + index.sub(index.mul(r, dh), shape.pad_top)
                w = column + index.sub(index.mul(s, dw), shape.pad_left)
                on = h.below(shape.h) & w.below(shape.w)
                tc.WriteLaneMaskOp(masks, tap, quarter, on.value)

        def at(d: ir.Value, r: Index, s: int) -> ir.Value:
            entry = index.value(index.add(index.mul(r, shape.s), s))
            return tc.EnableLanesOp(d, masks, entry, d.type).tile

        return at

    def places(self, first_unit: Index, quarter: ir.Value) -> list[LaneValue]:
        """Anchors of the lanes. A lane stores a result if its anchor has an output and its pixels
        are not stale."""
        (sh, sw) = self.shape.strides
        n, row, column = self._anchors(first_unit, quarter)
        stored = lane_index().below(self.classes.valid)
        if sh > 1:
            stored = stored & (row % sh).equals(0)
        if sw > 1:
            stored = stored & (column % sw).equals(0)
        return [n, (row // sh).where(stored, spread(self.shape.p)), column // sw]
