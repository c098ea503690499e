"""The mma.sync main loop (core): warps load fragments from shared memory, and keep the sums in
registers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from tcir._mlir import ir
from tcir.dialect import tc
from tcir.dialect.fragments import accumulator_type
from tcir.passes.emit import index
from tcir.passes.emit.builders import i64s
from tcir.passes.emit.index import Index
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tile_kernel import Source, argument, kernel
from tcir.passes.kernels.cores.fragments import signed_as, sums_over
from tcir.passes.kernels.product import Load, OfMatrices, Tile, TilePlace
from tcir.passes.warp.operands import LoadedMatrix, WarpMatrix
from tcir.passes.warp.tiling import WarpTiling


@dataclass(frozen=True)
class StagedProduct(OfMatrices):
    """A ``tc.matmul`` in tiles that TMA or threads fill. steps: number of steps over K"""

    left: LoadedMatrix
    right: LoadedMatrix
    steps: int
    sums: ir.Type

    @staticmethod
    def create(
        matrices: Sequence[WarpMatrix],
        steps: int,
        by_tma: bool,
        batch: int | None,
        arguments: Sequence[ir.Value],
    ) -> StagedProduct:
        """Builds the tensor maps of a kernel with these `arguments`, if TMA fills its tiles."""
        filled = (
            partial(LoadedMatrix.by_tma, batch=batch or 0) if by_tma else LoadedMatrix.by_cp_async
        )
        left, right = (filled(each, argument(arguments, each.value)) for each in matrices)
        sums = ir.Type.parse(accumulator_type(str(left.matrix.element)))
        return StagedProduct(left, right, steps, sums)

    def loads(self, place: TilePlace) -> Load:
        """Returns the function that fills the tiles of a step at `place`."""
        batch = [] if place.batch is None else [index.value(place.batch)]

        def load(step: Index) -> tuple[ir.Value, list[ir.Value]]:
            k0 = index.mul(step, self.left.matrix.tile[1])
            a, b = tc.SmemTileOp(self.left.type).tile, tc.SmemTileOp(self.right.type).tile
            self.left.fill(a, batch, place.row, k0)
            self.right.fill(b, batch, place.column, k0)
            return a, [b]

        return load


@dataclass(frozen=True)
class MmaSync:
    """Kernels whose warps have no roles. tiling: their tiles, warps and instruction"""

    tiling: WarpTiling
    target: str

    @property
    def tile(self) -> Tile:
        """The tile of all warps of a CTA."""
        return Tile(self.tiling.m, self.tiling.n)

    def kernel(self, source: Source, tiles: OutputTiles) -> AbstractContextManager[list[ir.Value]]:
        """Builds a kernel with the warps of the tiling."""
        tiling = self.tiling
        source.function.attributes["tc.warps"] = i64s([tiling.warps_m, tiling.warps_n])
        return kernel(source, tiles.grid, warps=tiling.warps, target=self.target)

    def sums(self, product: StagedProduct, place: TilePlace) -> list[tuple[ir.Value, TilePlace]]:
        """Emits the sums of the tile at `place`, a fragment."""
        load, left, right, atom = (
            product.loads(place),
            product.left,
            product.right,
            self.tiling.atom,
        )
        kind = tc.FragmentType.build([self.tiling.m, self.tiling.n], product.sums, "C", atom.name)

        def step(number: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
            a, (b,) = load(number)
            (total,) = before
            for k in range(0, self.tiling.k, atom.shape[2]):
                made = tc.MmaSyncOp(left.load(a, k), right.load(b, k), total, kind)
                total = signed_as(left.matrix.op, made).d
            return [total]

        return [(sums_over([kind], product.steps, step)[0], place)]
