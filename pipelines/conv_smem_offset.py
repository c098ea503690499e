"""Pipeline conv-smem-offset."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.tile_conv_smem_offset import TileConvSmemOffset
from tcir.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.raise_convolution import raise_convolution
from tcir.pipelines.tile_to_llvm import tile_to_llvm


@dataclass(frozen=True)
class ConvSmemOffsetOptions:
    """Options of the pipeline.

    n_tile: output channels per CTA, a multiple of 16 up to 256; 0 chooses
    stages: slots of the ring in shared memory; 0 chooses
    """

    n_tile: int = 0
    stages: int = 0


def build(options: ConvSmemOffsetOptions) -> Pipeline:
    """The passes."""
    return Pipeline(
        [
            *raise_convolution(),
            TileConvSmemOffset(n_tile=options.n_tile),
            *tile_to_llvm(options.stages),
        ]
    )


CONV_SMEM_OFFSET = register_pipeline(
    NamedPipeline(
        name="conv-smem-offset",
        doc="2-D convolution whose taps are one tile in shared memory, read from another row on.",
        options=ConvSmemOffsetOptions,
        accepted_forms=(
            "linalg.conv_2d_nhwc_hwcf, linalg.conv_2d_nhwc_fhwc, or the same as linalg.generic",
            "f16, bf16, f32 (multiplied as tf32) or f8 inputs, f32 accumulator filled with 0, "
            "result f32 or arith.truncf of it to f16 or bf16; i8 with an i32 accumulator",
            "tensor.pad with 0.0 on height and width of the input",
            "static shapes; rows of C (with hwcf: of K) of no multiple of 16 bytes are repacked",
            "any strides and dilations whose tiles fit shared memory",
        ),
        build=build,
    )
)
