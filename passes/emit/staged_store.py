"""Results stored by TMA: register tiles are written to swizzled shared memory, and TMA stores them
from there in boxes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest

from tcir._mlir import arith, ir, scf
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES, QUARTERS, TMA_STRIDE
from tcir.passes.emit import index, simt
from tcir.passes.emit.builders import TmaBox, i64, make_tensor_map
from tcir.passes.emit.diagnostics import match_failure
from tcir.passes.emit.epilogue import Epilogue
from tcir.passes.emit.index import Index
from tcir.passes.emit.kernel_ops import iteration
from tcir.passes.emit.staged_load import StagedLoads, StagedMatrix, widest_swizzle
from tcir.passes.emit.tile_kernel import STORE_COLUMNS, Places, load_registers, loop


@dataclass(frozen=True)
class EpilogueTile:
    """The tile of `rows` by `columns` sums that an epilogue loads, stages and stores at a time.

    The warps that hold the rows process one tile after another. If threads store the results, a
    warp loads all columns of the tile from tensor memory at a time. If TMA stores them, the warps
    write 16 columns at a time to shared memory, from where they are stored in boxes of all rows.
    """

    rows: int
    columns: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.columns}"

    @property
    def warps(self) -> int:
        """Number of warps that write a tile together."""
        return self.rows // QUARTER_LANES


@dataclass(frozen=True)
class RowBoxes:
    """The rows of a tile that are outputs, in TMA boxes of `rows` rows.

    places: for each box its first row in the tile, and its coordinates in the output, innermost
        first, relative to the coordinates of the tile
    """

    rows: int
    places: Sequence[tuple[int, Sequence[int]]] = ((0, ()),)


@dataclass(frozen=True)
class StagedStore:
    """TMA stores of a tile's results to a row-major output.

    map: tensor map of the output, in boxes of one swizzle span of columns
    row_boxes: the boxes into which the rows of a tile are divided
    ring: tiles of the epilogue. The 1, 2 or 4 warps that share a tile have several tiles, and they
        write one tile while TMA reads the others
    loads: TMA loads of the matrices that the epilogue reads
    """

    map: ir.Value
    row_boxes: RowBoxes
    ring: ir.Value
    loads: StagedLoads

    @staticmethod
    def create(
        op: ir.OpView,
        out: ir.Value,
        tile: EpilogueTile,
        stages: int,
        read: Mapping[tc.ElementOp, ir.Value],
        rows: int = 1,
        row_boxes: RowBoxes | None = None,
    ) -> StagedStore:
        """Builds the tensor maps and the tiles for the result `out` of a product `op`.

        tile: the tile that is stored at a time
        stages: number of tiles that its warps use in turn
        read: matrices that the epilogue reads by TMA
        rows: the output dimension of a tile's rows, counted from the last dimension
        row_boxes: the rows that are stored; None: all rows
        """
        row_boxes = row_boxes or RowBoxes(tile.rows)
        shape, element = list(out.type.shape), out.type.element_type
        bytes_ = tc.element_bytes(element)
        check_pitch(op, out)
        swizzle = widest_swizzle(tile.columns * bytes_)
        box = [tc.SWIZZLE_BYTES[swizzle] // bytes_, *[1] * (len(shape) - 1)]
        box[rows] = row_boxes.rows
        made = make_tensor_map(out, TmaBox(box), dims=shape[::-1], swizzle=swizzle)
        kind = tc.SmemType.build([tile.rows, tile.columns], element, "K", swizzle)
        ring = tc.SmemTileOp(tc.RingType.build(QUARTERS // tile.warps * stages, kind)).tile
        matrices = {
            each: StagedMatrix.create(each, memref, tile.columns) for each, memref in read.items()
        }
        return StagedStore(made, row_boxes, ring, StagedLoads(matrices))

    def store(
        self,
        d: ir.Value,
        indices: Places,
        epilogue: Epilogue,
        reads: Places | None = None,
        boxes: Places | None = None,
    ) -> None:
        """Stores the result of `epilogue` on D, one tile of columns at a time. The other parameters
        are as in `store_tile`.

        TMA does not store elements outside the output. boxes: indices at which TMA stores, if they
        differ from `indices`
        """
        kind = self.ring.type.of
        columns = kind.shape[1]
        warps, stages = warps_of(kind), stages_of(self.ring.type)
        tiles = d.type.shape[1] // columns
        done = index.mul(_tiles_before(), tiles)
        with loop(tiles) as each:
            first = index.value(index.mul(each, columns))
            number = index.add(done, each)
            self.loads.load(number, indices(0)(first))
            turn = index.rem(number, stages)
            with loop(QUARTERS) as quarter:
                place, group = indices(quarter), index.div(quarter, warps)
                read = place if reads is None else reads(quarter)
                mine = index.value(index.add(index.mul(group, stages), turn))
                tile = tc.SlotOp(self.ring, mine, kind).slot
                row = index.value(index.mul(index.rem(quarter, warps), QUARTER_LANES))
                with loop(columns, STORE_COLUMNS) as inside:
                    column = index.value(index.add(first, inside))
                    sums = load_registers(d, quarter, column)
                    at = read(column)
                    self.loads.move(index.mul(quarter, QUARTER_LANES), inside)
                    tc.StoreSharedOp(epilogue(sums, at), tile, row, inside)
                with _last_of(quarter, warps):
                    whole = place
                    if warps > 1 or boxes is not None:
                        whole = (boxes or indices)(index.mul(group, warps))
                    self._store_boxes(tile, whole, first)

    def _store_boxes(
        self, tile: ir.Value, place: Callable[[Index], list[Index]], first: Index
    ) -> None:
        """Stores `tile`, whose first row is at ``place`` in the output, from column `first` on."""
        rows, columns = tile.type.shape
        wide = tile.type.span // tc.element_bytes(tile.type.element)
        for box in range(columns // wide):
            corner = place(index.value(index.add(first, box * wide)))[::-1]
            for row, offsets in self.row_boxes.places:
                coords = [index.add(*each) for each in zip_longest(corner, offsets, fillvalue=0)]
                tc.TmaStoreOp(self.map, index.values(coords), tile, i64(box * rows + row))


def check_pitch(op: ir.OpView, out: ir.Value) -> None:
    """Raises a match failure at the product `op` if no tensor map can describe its result `out`."""
    columns, bytes_ = out.type.shape[-1], tc.element_bytes(out.type.element_type)
    if (pitch := columns * bytes_) not in TMA_STRIDE:
        raise match_failure(
            op,
            f"expected rows of the output of {TMA_STRIDE} bytes with store=tma, got {columns} x "
            f"{bytes_} = {pitch} (they are strides of a tensor map, {TMA_STRIDE.source}); take "
            "store=direct, or pad N",
        )


def staged_tile(n_tile: int, element: ir.Type) -> EpilogueTile:
    """Default tile of one warp, for results of type `element` in tiles of `n_tile` columns. Its
    columns are the widest swizzle span that divides the bytes of a row."""
    bytes_ = tc.element_bytes(element)
    return EpilogueTile(QUARTER_LANES, tc.SWIZZLE_BYTES[widest_swizzle(n_tile * bytes_)] // bytes_)


def warps_of(kind: tc.SmemType) -> int:
    """Number of warps that write a tile together; each writes 32 rows."""
    return int(kind.shape[0]) // QUARTER_LANES


def stages_of(ring: tc.RingType) -> int:
    """Number of tiles that the warps of a tile use in turn; the groups of warps of a warpgroup
    divide the ring among them."""
    return max(1, int(ring.count) * warps_of(ring.of) // QUARTERS)


@contextmanager
def _last_of(quarter: ir.Value, warps: int) -> Iterator[None]:
    """Executes ops in the last of `warps` sub-partitions only, when all have written."""
    if warps == 1:
        yield
        return
    mine = index.value(index.rem(quarter, warps))
    last = arith.cmpi(arith.CmpIPredicate.eq, mine, index.value(warps - 1))
    with simt.only_if(last):
        yield


def _tiles_before() -> Index:
    """How many output tiles the CTA has done: the iteration of the loop at the insertion point."""
    around = ir.InsertionPoint.current.block.owner.opview
    return iteration(around) if isinstance(around, scf.ForOp) else 0
