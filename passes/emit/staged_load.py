"""Matrices that an epilogue reads through TMA: TMA loads boxes of a tile's rows to shared
memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.limits import QUARTER_LANES, SWIZZLE_OF_SPAN, TMA_STRIDE, TMEM_LANES
from tcir.passes.emit import index
from tcir.passes.emit.builders import TmaBox, make_tensor_map, tma_load
from tcir.passes.emit.epilogue import Staged
from tcir.passes.emit.index import Index
from tcir.passmanager.remarks import remark

STAGES = 2
"""Tiles of a matrix: one is read while the next is loaded."""
MATRIX_RANK = 3
"""Most dimensions of a product's output: a batch, rows and columns."""
ELEMENTS = ("f16", "bf16", "f32", "i32")
"""Element types of epilogues that tensor maps support."""


def widest_swizzle(nbytes: int) -> str:
    """The swizzle with the widest span that divides rows of `nbytes` bytes."""
    return SWIZZLE_OF_SPAN[max(span for span in SWIZZLE_OF_SPAN if nbytes % span == 0)]


def staged_elements(op: tc.EpilogueOp | None) -> list[tc.ElementOp]:
    """The reads of `op` that TMA can load: reads of matrices whose dimensions are the output's rows
    and columns. A remark states the reason for every other matrix."""
    found = []
    for element in [] if op is None else op.elements:
        rank, kind = element.out_rank, element.tensor.type.element_type
        if rank > MATRIX_RANK:
            remark(
                element,
                "threads load their pixels of this tensor, as TMA loads only rows of a matrix",
            )
            continue
        if element.of_group or element.dims[-1:] != [rank - 1] or rank - 2 not in element.dims:
            continue
        pitch = element.tensor.type.shape[-1] * tc.element_bytes(kind)
        if str(kind) in ELEMENTS and pitch in TMA_STRIDE:
            found.append(element)
        else:
            remark(
                element,
                f"threads load their rows of this matrix: expected {', '.join(ELEMENTS)} and rows "
                f"of {TMA_STRIDE} bytes for TMA, got {kind} and {pitch}",
            )
    return found


@dataclass(frozen=True)
class StagedMatrix:
    """TMA loads of one matrix.

    map: tensor map of the matrix, in boxes of 128 rows and one swizzle span of columns
    ring: tiles of 128 rows and as many columns as the epilogue stores at a time
    dims: output dimension that indexes each dimension of the matrix; None: index 0
    """

    map: ir.Value
    ring: ir.Value
    dims: Sequence[int | None]

    @staticmethod
    def create(element: tc.ElementOp, matrix: ir.Value, columns: int) -> StagedMatrix:
        """Builds the tensor map and the tiles for `columns` columns of `matrix`, a memref of the
        kernel."""
        kind, shape = matrix.type.element_type, list(matrix.type.shape)
        swizzle = widest_swizzle(columns * tc.element_bytes(kind))
        wide = tc.SWIZZLE_BYTES[swizzle] // tc.element_bytes(kind)
        outer = [TMEM_LANES if d == element.out_rank - 2 else 1 for d in element.dims[-2::-1]]
        made = make_tensor_map(matrix, TmaBox([wide, *outer]), dims=shape[::-1], swizzle=swizzle)
        tile = tc.SmemType.build([TMEM_LANES, columns], kind, "K", swizzle)
        ring = tc.SmemTileOp(tc.RingType.build(STAGES, tile)).tile
        return StagedMatrix(made, ring, element.dims)

    def load(self, slot: ir.Value, at: Sequence[Index]) -> ir.Value:
        """Loads a tile into a slot of the ring. `at` is the position of the tile's first element in
        the output."""
        kind = self.ring.type.of
        rows, columns = kind.shape
        tile = tc.SlotOp(self.ring, slot, kind).slot
        *outer, column = [0 if d is None else at[d] for d in self.dims]
        wide = kind.span // tc.element_bytes(kind.element)
        for box in range(columns // wide):
            coords = [index.add(column, box * wide), *outer[::-1]]
            tma_load(self.map, index.values(coords), tile, box * rows, rows * kind.span)
        return tile


@dataclass
class StagedLoads:
    """The matrices of an epilogue that TMA loads, and the current reading position.

    tiles: the slots that were loaded last
    row, column: the position of the register tile that is read next
    """

    matrices: dict[tc.ElementOp, StagedMatrix]
    tiles: dict[tc.ElementOp, ir.Value] = field(default_factory=dict)
    row: Index = 0
    column: Index = 0

    def load(self, turn: Index, at: Sequence[Index]) -> None:
        """Loads a tile of each matrix, for the rows and columns of the output from `at` on."""
        if self.matrices:
            slot = index.value(index.rem(turn, STAGES))
            self.tiles = {each: m.load(slot, at) for each, m in self.matrices.items()}

    def move(self, row: Index, column: Index) -> None:
        """Sets the position at which the ops that are built next read register tiles."""
        self.row, self.column = row, column

    @property
    def readers(self) -> Staged:
        """Functions that load a register tile, one for each matrix."""
        return {element: partial(self._read, element) for element in self.matrices}

    def _read(self, element: tc.ElementOp, columns: int) -> ir.Value:
        tile = self.tiles[element]
        kind = ir.VectorType.get([QUARTER_LANES, columns], tile.type.element)
        return tc.LoadSharedOp(tile, index.value(self.row), index.value(self.column), kind).value
