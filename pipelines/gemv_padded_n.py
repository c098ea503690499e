"""The pipeline gemv-padded-n."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.dialect.limits import TMEM_LANES
from tcir.passes.gemm.repack_gemm import RepackGemm
from tcir.passes.gemv.tile_gemv_padded_n import TileGemvPaddedN
from tcir.passes.kernels.scheduled import CLC
from tcir.passes.module.reorder_scales import ReorderScales
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import tile_to_llvm
from tcir.pipelines.parts.front import launched, raised_block_scaled, with_options


@dataclass(frozen=True)
class GemvPaddedNOptions:
    """Options of the pipeline.

    pad_n:    N of the mma: the columns of B are padded to it; 8, or a multiple of 16
    schedule: ``single``, ``split-k``, ``stream-k``, or ``auto``, see tile-gemv-padded-n
    splits:   CTAs per tile with ``split-k``; 0 chooses
    m_tile:   rows of a tile: 128, or 256 for a pair of CTAs
    k_tile:   elements of K of a stage; 0 chooses
    stages:   slots of the ring in shared memory; 0 chooses
    kind:     mxf4nvf4, mxf4 or mxf8f6f4, if several kinds multiply the types; left out, the kind
              whose operands take the fewest bytes in shared memory
    scheduler: with schedule=single, static (one CTA per tile) or clc (CTAs take over the tiles of
               CTAs that have not been launched, by cluster launch control)
    cluster:  Mx1: with schedule=single, M CTAs along rows load the columns of B together
    """

    pad_n: int = 16
    schedule: str = "auto"
    splits: int = 0
    m_tile: int = TMEM_LANES
    k_tile: int = 0
    stages: int = 0
    kind: str = ""
    scheduler: str = "static"
    cluster: str = "1x1"


def build(options: GemvPaddedNOptions) -> Pipeline:
    """Returns the passes of the pipeline with these options."""
    return Pipeline(
        [
            *raised_block_scaled(),
            ReorderScales(in_place="b"),
            RepackGemm(),
            *launched(sharing=()),
            with_options(TileGemvPaddedN, options),
            *tile_to_llvm(options.stages, takes_over=options.scheduler == CLC),
        ]
    )


register_pipeline(
    NamedPipeline(
        name="gemv-padded-n",
        doc="block-scaled product with few columns (NVFP4 and MX GEMV) on tensor cores.",
        options=GemvPaddedNOptions,
        accepted_forms=(
            "linalg.generic of elements times scales of two operands, summed over k (matrix or "
            "vector, batched or not), or tc.block_scaled_matmul",
            "elements f4E2M1FN, f6E2M3FN, f6E3M2FN, f8E4M3FN, f8E5M2; scales f8E8M0FNU or f8E4M3FN "
            "in blocks of 16 (fp4) or 32, as tcgen05.mma has them, row-major, or blocked in the op",
            "codes of fp4 and fp6 one to a byte (tensor of i8) by tc.pack_codes",
            "f32 accumulator, global scales tensor<f32>; after it elementwise linalg, arith ops on "
            "tensors, broadcasts of other arguments: its epilogue; result f32, f16, bf16 or fp8",
            "static shapes, up to 128 columns; K a multiple of the block; with a caller's blocked "
            "scales of 64 with fp4, of 128 with fp6 or mixed fp4",
        ),
        build=build,
    )
)
