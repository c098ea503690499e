"""Pipeline gemv-padded-n."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.tile_gemv_padded_n import TileGemvPaddedN
from tcir.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.tile_to_llvm import tile_to_llvm


@dataclass(frozen=True)
class GemvPaddedNOptions:
    """Options of the pipeline.

    pad_n:    N of the mma: the columns of B are padded to it; 8, or a multiple of 16
    schedule: ``single``, ``split-k``, ``stream-k``, or ``auto``, see tile-gemv-padded-n
    splits:   CTAs per tile with ``split-k``; 0 chooses
    stages:   slots of the ring in shared memory; 0 chooses
    """

    pad_n: int = 16
    schedule: str = "auto"
    splits: int = 0
    stages: int = 0


def build(options: GemvPaddedNOptions) -> Pipeline:
    """The passes."""
    tile = TileGemvPaddedN(pad_n=options.pad_n, schedule=options.schedule, splits=options.splits)
    return Pipeline([tile, *tile_to_llvm(options.stages)])


GEMV_PADDED_N = register_pipeline(
    NamedPipeline(
        name="gemv-padded-n",
        doc="block-scaled product with few columns (NVFP4 and MX GEMV) on tensor cores.",
        options=GemvPaddedNOptions,
        accepted_forms=(
            "tc.block_scaled_matmul with the scales of A in the 128x4 layout",
            "those of B in it, too, or row-major",
        ),
        build=build,
    )
)
