"""The tiling ``rows`` of a shift-reuse convolution: each sub-partition holds pixels of one output
row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTERS
from tcir.passes.conv.tiling import Boxes, Load, OutputTiling
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, make_tensor_map, tma_load
from tcir.passes.emit.index import Index
from tcir.passes.emit.lanes import LaneValue, lane_index, spread
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.tile_kernel import Source, store_tile
from tcir.passes.kernels.product import Store, Stored, TilePlace
from tcir.passes.kernels.stores.epilogue_tile import TileStores
from tcir.passmanager.remarks import remark


@dataclass(frozen=True)
class RowsTiling(OutputTiling):
    """A unit consists of ``valid`` outputs of one row, ``column_step`` columns apart, on one
    sub-partition.

    Unit (n, p, b, block) computes the outputs ``q = b + dq * (block * V + i)``, i < V. For filter
    row r and class c, its lane i holds the pixel of row ``p * sh - pad_top + r * dh`` and column
    ``(b + dq * block * V) * sw - pad_left + c * dw + t * i``; TMA's element stride is t, and pixels
    outside the image are zero. A CTA computes four units.
    """

    @property
    def columns(self) -> int:
        """Largest number of outputs of a row that have the same b."""
        return ceil_div(self.shape.q, self.classes.column_step)

    @property
    def blocks(self) -> int:
        """Number of units that cover the outputs of a row with the same b."""
        return ceil_div(self.columns, self.classes.valid)

    @property
    def count(self) -> int:
        """Number of units of the whole convolution."""
        return self.shape.n * self.shape.p * self.classes.column_step * self.blocks

    def check(self, op: ir.OpView) -> None:
        """Rejects tilings whose rows are longer than a TMA box."""
        self.check_box(op, "rows", "columns")

    def decode(self, unit: Index) -> tuple[Index, Index, Index]:
        """``(n, p, first q)`` of a unit. For units after the last one, n is past the end."""
        step = self.classes.column_step
        n, p, b, block = index.delinearize(unit, [self.shape.n, self.shape.p, step, self.blocks])
        return n, p, index.add(b, index.mul(block, step * self.classes.valid))

    def pixel_map(self, x: ir.Value, a_type: tc.SmemType, boxes: Boxes) -> ir.Value:
        """Builds the tensor map of the input."""
        shape, step = self.shape, self.classes.lane_step
        return make_tensor_map(
            x,
            TmaBox([a_type.shape[1], boxes.pixels * step, 1, 1], steps=[1, step, 1, 1]),
            dims=[shape.channels, shape.w, shape.h, shape.n],
            swizzle=a_type.swizzle,
        )

    def loader(
        self, tensor_map: ir.Value, a_type: tc.SmemType, first_unit: Index, boxes: Boxes
    ) -> Load:
        """Returns a function that loads the tile of a filter row, a tap class and a block of
        channels."""
        shape, step = self.shape, self.classes.lane_step
        places = []
        for quarter in range(QUARTERS):
            n, p, q = self.decode(index.add(first_unit, quarter))
            w = index.sub(index.mul(q, shape.strides[1]), shape.pad_left)
            h = index.sub(index.mul(p, shape.strides[0]), shape.pad_top)
            places.append((w, h, n))

        def load(tile: ir.Value, r: Index, c: int, c0: Index) -> None:
            dh, dw = shape.dilations
            for lane in boxes.lanes:
                for quarter, (w, h, n) in enumerate(places):
                    column = index.add(w, c * dw + lane * step)
                    coords = index.values([c0, column, index.add(h, index.mul(r, dh)), n])
                    row = boxes.row(lane, quarter)
                    tma_load(tensor_map, coords, tile, row, boxes.pixels * a_type.span)

        return load

    def places(self, first_unit: Index, quarter: ir.Value) -> list[LaneValue]:
        """Output positions of the lanes. A lane stores a result if its pixels are not stale."""
        n, p, q = self.decode(index.add(first_unit, quarter))
        lane, step = lane_index(), self.classes.column_step
        at = (lane * step + q).where(lane.below(self.classes.valid), self.shape.q)
        return [spread(n), spread(p), at]

    def store(
        self, source: Source, results: TileStores, arguments: list[ir.Value], _: object
    ) -> Store:
        """Returns how a kernel with these `arguments` stores its results: by rows of neighbouring
        outputs."""
        out = arguments[-1]
        remark(source.op, str(results))

        def store(place: TilePlace) -> Stored:
            along = out.type.rank - 2, None
            epilogue = source.epilogue(arguments, along[0])
            first_unit = index.mul(place.row_tile, QUARTERS)

            def stored(d: ir.Value, place: TilePlace) -> None:
                def rows(quarter: ir.Value) -> Callable[[ir.Value], list[Index]]:
                    unit = [*place.outer, *self.decode(index.add(first_unit, quarter))]
                    return lambda n: [*unit, source.column(index.add(place.column, n))]

                store_tile(
                    d,
                    out,
                    rows=self.classes.valid,
                    along=along,
                    indices=rows,
                    epilogue=epilogue,
                    columns=results.tile.columns,
                )

            return stored

        return store
