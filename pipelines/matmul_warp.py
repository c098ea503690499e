"""The pipeline matmul-warp."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.dialect.limits import COPY_BYTES
from tcir.passes.gemm.collapse_batch import CollapseBatch
from tcir.passes.gemm.repack_gemm import RepackGemm
from tcir.passes.nvvm.convert_tc_to_nvvm import ConvertTcToNvvm
from tcir.passes.warp.double_buffer_fragments import DoubleBufferFragments
from tcir.passes.warp.interleave_stores import InterleaveStores
from tcir.passes.warp.pipeline_cp_async import PipelineCpAsync
from tcir.passes.warp.pipeline_tma import PipelineTma
from tcir.passes.warp.plan_staging import PlanStaging
from tcir.passes.warp.tile_matmul_warp import TileMatmulWarp
from tcir.passes.warp.tiles import GROUP
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import threads_to_llvm
from tcir.pipelines.parts.front import launched, raised
from tcir.pipelines.parts.products import PRODUCT_FORMS
from tcir.target import TARGETS


@dataclass(frozen=True)
class MatmulWarpOptions:
    """Options of the pipeline.

    block_m, block_n, block_k: tile of a CTA, powers of two; 0 chooses
    warps_m, warps_n: warps that divide the tile along M and N; 0 chooses
    stages: slots of the ring in shared memory, at least 2; 0 chooses
    group_m: rows of tiles that CTAs go through as a group, for the L2 cache
    atom: the mma.sync instruction by its name in tcir.layout; "" takes the longest K
    ldmatrix: whether ldmatrix loads fragments from shared memory; false: plain loads are used
        everywhere
    copy: how tiles are copied to shared memory: "tma" or "cp.async"; "" takes TMA if target and
        operands allow it
    ctas: number of CTAs, each of which computes several tiles one after another; 0: if TMA loads
        and an SM has no room for two CTAs, the smallest number that needs no more rounds than one
        CTA per SM, else one CTA per tile
    tf32: whether f32 factors are truncated to tf32 for tensor cores; false: CUDA cores multiply
        them in f32
    """

    block_m: int = 0
    block_n: int = 0
    block_k: int = 0
    warps_m: int = 0
    warps_n: int = 0
    stages: int = 0
    group_m: int = GROUP
    atom: str = ""
    ldmatrix: bool = True
    copy: str = ""
    ctas: int = 0
    tf32: bool = True


def build(options: MatmulWarpOptions) -> Pipeline:
    """Returns the passes of the pipeline with these options."""
    return Pipeline(
        [
            *raised(options.tf32),
            CollapseBatch(),
            RepackGemm(row_bytes=COPY_BYTES[0]),
            *launched(),
            TileMatmulWarp(
                block_m=options.block_m,
                block_n=options.block_n,
                block_k=options.block_k,
                warps_m=options.warps_m,
                warps_n=options.warps_n,
                atom=options.atom,
                group_m=options.group_m,
                ldmatrix=options.ldmatrix,
                copy=options.copy,
                ctas=options.ctas,
            ),
            PipelineCpAsync(stages=options.stages),
            PipelineTma(stages=options.stages),
            DoubleBufferFragments(),
            PlanStaging(),
            ConvertTcToNvvm(),
            InterleaveStores(),
            *threads_to_llvm("loop-invariant-code-motion"),
        ]
    )


register_pipeline(
    NamedPipeline(
        name="matmul-warp",
        doc="matrix product of warps: TMA or cp.async, ldmatrix, mma.sync.",
        options=MatmulWarpOptions,
        accepted_forms=(
            "linalg.matmul (also with transposing indexing_maps), linalg.batch_matmul, or the same "
            "as linalg.generic",
            "f16, bf16, f32 (multiplied as tf32), f8E4M3FN or f8E5M2 (from sm_90) inputs, f32 "
            "accumulator; i8 inputs, i32 accumulator",
            "after it elementwise linalg, arith ops on tensors, broadcasts of other arguments: its "
            "epilogue; result f32, f16, bf16, i32 or (from sm_90) fp8",
            "static shapes; rows of no multiple of 4 bytes are repacked",
            *PRODUCT_FORMS,
        ),
        build=build,
        targets=tuple(TARGETS),
    )
)
