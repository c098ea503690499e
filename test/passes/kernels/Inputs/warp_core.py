"""A plugin's core: warps that multiply fragments of the tiles that any product loads.

First what does not combine with it, then the core, and a pass for two products: that of matrices,
and the plugin's of `summed_batch`. Schedulers, the loop over K and the store are the package's.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from summed_batch import SummedBatch, SummedBatchOp

import tcir
from tcir.dialect import tc
from tcir.dialect.fragments import DEFAULT_ATOM
from tcir.dialect.limits import TMEM_LANES
from tcir.mlir import ir
from tcir.passes.emit.builders import i64, i64s
from tcir.passes.emit.gpu_module import target_of
from tcir.passes.emit.limits import ceil_div
from tcir.passes.emit.output_tiles import OutputTiles
from tcir.passes.emit.tensor_functions import tensor_ops
from tcir.passes.emit.tile_kernel import Source, find_sources, kernel
from tcir.passes.gemm.dense import DenseProduct
from tcir.passes.kernels import legal
from tcir.passes.kernels.cores.fragments import sums_over
from tcir.passes.kernels.product import Tile, TilePlace, TileProduct
from tcir.passes.kernels.scheduled import Scheduled
from tcir.passes.kernels.stores.fragment import tile_fragments
from tcir.passes.nvvm.convert_tc_to_nvvm import ConvertTcToNvvm
from tcir.passes.warp.pipeline_tma import PipelineTma
from tcir.passes.warp.plan_staging import PlanStaging
from tcir.pipelines.parts.back import threads_to_llvm

NAME, ONLY = "four-warps", {"core": "four-warps"}
CORE = legal.register(
    NAME,
    "with four warps",
    legal.Limit("store", ("direct",), ONLY, "sums are in registers"),
    legal.Limit("scheduler", ("static",), ONLY, "no warp has a role"),
    legal.Limit("cluster", ("1x1",), ONLY, "a CTA loads whole tiles"),
    legal.Limit("cta_group", (1,), ONLY, "pairs of CTAs are of tcgen05", "PTX ISA 9.7.16.5"),
    fact="core",
)
K = 16
"""Elements of K that an ``mma.sync`` of f16 multiplies."""


@dataclass(frozen=True)
class FourWarps:
    """Kernels of four warps, 32 rows each, without roles."""

    columns: int
    target: str

    @property
    def tile(self) -> Tile:
        """128 rows."""
        return Tile(TMEM_LANES, self.columns)

    def kernel(self, source: Source, tiles: OutputTiles) -> AbstractContextManager[list[ir.Value]]:
        """A kernel of these warps."""
        source.function.attributes["tc.warps"] = i64s([4, 1])
        return kernel(source, tiles.grid, warps=4, target=self.target)

    def sums(self, product: TileProduct, place: TilePlace) -> list[tuple[ir.Value, TilePlace]]:
        """One fragment."""
        load, sums = product.loads(place), self._fragment("C", self.columns, product.sums)

        def step(number: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
            a, (b,) = load(number)
            (total,) = before
            for k in range(0, a.type.shape[1], K):
                left, right = (
                    tc.LoadFragmentOp(
                        each,
                        i64(k),
                        ir.StringAttr.get("ldmatrix"),
                        self._fragment(name, K, each.type.element, each.type.shape[0]),
                    ).fragment
                    for name, each in (("A", a), ("B", b))
                )
                total = tc.MmaSyncOp(left, right, total, sums).d
            return [total]

        return [(sums_over([sums], product.steps, step)[0], place)]

    def _fragment(
        self, operand: str, columns: int, element: ir.Type, rows: int = TMEM_LANES
    ) -> tc.FragmentType:
        return tc.FragmentType.build([rows, columns], element, operand, DEFAULT_ATOM["f16"])


PRODUCTS = {
    tc.MatmulOp: (legal.DENSE, DenseProduct),
    SummedBatchOp: ("summed-batch", SummedBatch),
}


@tcir.register_pass
@dataclass(frozen=True)
class TileFourWarps(Scheduled):
    """Tiles products of f16, K innermost, for `FourWarps`, with the options of tile-gemm."""

    name: ClassVar[str] = "tile-four-warps"

    def run(self, module: ir.Module) -> None:
        """Builds the kernel as all cores do."""
        target = target_of(module)
        (kind,) = {kind for kind in PRODUCTS for op in tensor_ops(module) if isinstance(op, kind)}
        name, product = PRODUCTS[kind]
        for source in find_sources(module, kind, self.name, epilogues=True):
            op, (m, n) = source.op, source.op.out.type.shape
            facts = legal.facts_of(source, name, target) | {"core": CORE}
            legal.check(legal.options_of(self) | facts, op)
            core = FourWarps(self.n_tile or 64, target)
            tiles = self.output_tiles(source, m, ceil_div(n, core.columns), None)
            create = partial(product.create, op, n_tile=core.columns)
            tile_fragments(source, create, tiles, core, m, n)


def pipeline(**options: object) -> tcir.Pipeline:
    """From the op to PTX."""
    back = [PipelineTma(), PlanStaging(), ConvertTcToNvvm(), *threads_to_llvm()]
    return tcir.Pipeline([TileFourWarps(**options), *back])
