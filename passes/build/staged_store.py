"""Results stored by TMA: register tiles go to swizzled shared memory, and from there as boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcir._mlir import ir, scf
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES, QUARTERS, TMA_STRIDE
from tcir.passes.build import index
from tcir.passes.build.diagnostics import match_failure
from tcir.passes.build.emit import Box, i64, make_tensor_map
from tcir.passes.build.epilogue import Epilogue
from tcir.passes.build.index import Index
from tcir.passes.build.kernel_ops import iteration
from tcir.passes.build.staged_load import StagedLoads, StagedMatrix, widest_swizzle
from tcir.passes.build.tile_kernel import STORE_COLUMNS, Places, load_registers, loop


@dataclass(frozen=True)
class StagedStore:
    """The way of a tile's results to a row-major output.

    map: of the output, in boxes of 32 rows and one swizzle span of columns
    ring: tiles of that size, as many in a row for each of the four warps of a warpgroup, which
          writes one while TMA reads the others
    loads: of the matrices that the epilogue reads
    """

    map: ir.Value
    ring: ir.Value
    loads: StagedLoads

    @staticmethod
    def create(
        op: ir.OpView,
        out: ir.Value,
        n_tile: int,
        stages: int,
        read: Mapping[tc.ElementOp, ir.Value],
    ) -> StagedStore:
        """Builds the tensor maps and the tiles, for the result `out` of a product `op`.

        stages: tiles of a warp; read: matrices that the epilogue reads by TMA
        """
        shape, element = list(out.type.shape), out.type.element_type
        bytes_ = tc.element_bytes(element)
        if (pitch := shape[-1] * bytes_) not in TMA_STRIDE:
            raise match_failure(
                op,
                f"expected rows of the output of {TMA_STRIDE} bytes with store=tma, got "
                f"{shape[-1]} x {bytes_} = {pitch} (strides of a tensor map, {TMA_STRIDE.source}); "
                "take store=direct, or pad N",
            )
        swizzle = widest_swizzle(n_tile * bytes_)
        columns = tc.SWIZZLE_BYTES[swizzle] // bytes_
        box = [columns, QUARTER_LANES, *[1] * (len(shape) - 2)]
        made = make_tensor_map(out, Box(box), dims=shape[::-1], swizzle=swizzle)
        kind = tc.SmemType.build([QUARTER_LANES, columns], element, "K", swizzle)
        ring = tc.SmemTileOp(tc.RingType.build(QUARTERS * stages, kind)).tile
        matrices = {
            each: StagedMatrix.create(each, memref, columns) for each, memref in read.items()
        }
        return StagedStore(made, ring, StagedLoads(matrices))

    def store(
        self,
        d: ir.Value,
        indices: Places,
        epilogue: Epilogue,
    ) -> None:
        """Stores `epilogue` of D, a span of columns at a time; `indices` as in `store_tile`.

        TMA leaves out what is outside the output.
        """
        kind, stages = self.ring.type.of, self.ring.type.count // QUARTERS
        columns = kind.shape[1]
        spans = d.type.shape[1] // columns
        done = index.mul(_tiles_before(), spans)
        with loop(spans) as span:
            first = index.value(index.mul(span, columns))
            number = index.add(done, span)
            self.loads.load(number, indices(0)(first))
            turn = index.rem(number, stages)
            with loop(QUARTERS) as quarter:
                place = indices(quarter)
                mine = index.value(index.add(index.mul(quarter, stages), turn))
                tile = tc.SlotOp(self.ring, mine, kind).slot
                with loop(columns, STORE_COLUMNS) as inside:
                    column = index.value(index.add(first, inside))
                    sums = load_registers(d, quarter, column)
                    at = place(column)
                    self.loads.move(index.mul(quarter, QUARTER_LANES), inside)
                    tc.StoreSharedOp(epilogue(sums, at), tile, index.value(0), inside)
                coords = index.values(place(first)[::-1])
                tc.TmaStoreOp(self.map, coords, tile, i64(0))


def _tiles_before() -> Index:
    """How many output tiles the CTA has done: the iteration of the loop at the insertion point."""
    around = ir.InsertionPoint.current.block.owner.opview
    return iteration(around) if isinstance(around, scf.ForOp) else 0
