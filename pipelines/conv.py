"""Pipeline conv."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.tile_conv import TileConv
from tcir.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.raise_convolution import raise_convolution
from tcir.pipelines.tile_to_llvm import tile_to_llvm


@dataclass(frozen=True)
class ConvOptions:
    """Options of the pipeline.

    n_tile: output channels per CTA, a multiple of 16 up to 256; 0 chooses
    stages: slots of the ring in shared memory; 0 chooses
    """

    n_tile: int = 0
    stages: int = 0


def build(options: ConvOptions) -> Pipeline:
    """The passes."""
    return Pipeline(
        [*raise_convolution(), TileConv(n_tile=options.n_tile), *tile_to_llvm(options.stages)]
    )


CONV = register_pipeline(
    NamedPipeline(
        name="conv",
        doc="2-D convolution by the schedule that the cost model finds cheapest among the legal "
        "ones; a remark shows the table.",
        options=ConvOptions,
        accepted_forms=("what conv-shift-reuse, conv-smem-offset or conv-implicit-gemm accept",),
        build=build,
    )
)
