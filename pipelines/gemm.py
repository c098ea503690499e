"""Pipeline gemm."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.gemm.repack_gemm import RepackGemm
from tcir.passes.gemm.tile_gemm import TileGemm
from tcir.passes.raising.fuse_epilogue import FuseEpilogue
from tcir.passes.raising.raise_to_tc import RaiseToTc
from tcir.passes.raising.split_launches import SplitLaunches
from tcir.passes.simt.convert_repack_to_simt import ConvertRepackToSimt
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.tile_to_llvm import tile_to_llvm


@dataclass(frozen=True)
class GemmOptions:
    """Options of the pipeline.

    n_tile: output columns per CTA, a multiple of 16 up to 256; 0 chooses
    stages: slots of the ring in shared memory; 0 chooses
    persistent: no more CTAs than SMs, each of which computes several tiles one after another
    ctas: CTAs of a persistent kernel; 0: one per SM
    acc_stages: accumulators that the tiles of a CTA use in turn; 0 chooses
    """

    n_tile: int = 0
    stages: int = 0
    persistent: bool = False
    ctas: int = 0
    acc_stages: int = 0


def build(options: GemmOptions) -> Pipeline:
    """The passes."""
    return Pipeline(
        [
            FuseEpilogue(),
            RaiseToTc(),
            RepackGemm(),
            SplitLaunches(),
            ConvertRepackToSimt(),
            TileGemm(n_tile=options.n_tile, persistent=options.persistent, ctas=options.ctas),
            *tile_to_llvm(options.stages, options.acc_stages),
        ]
    )


register_pipeline(
    NamedPipeline(
        name="gemm",
        doc="matrix product, batched or not, operands transposed or not.",
        options=GemmOptions,
        accepted_forms=(
            "linalg.matmul (also with transposing indexing_maps), linalg.batch_matmul, or the same "
            "as linalg.generic",
            "f16, bf16, f32 (multiplied as tf32) or f8 inputs, f32 accumulator; i8 with an i32 one",
            "after it elementwise linalg, arith ops on tensors, broadcasts of other arguments: its "
            "epilogue, whose result may have another type",
            "static shapes; rows of no multiple of 16 bytes, and f32 without K innermost, are "
            "repacked",
        ),
        build=build,
        also=("matmul",),
    )
)
