"""Pipeline conv-implicit-gemm."""

from __future__ import annotations

from tcir.passes.conv.tile_conv_implicit_gemm import TileConvImplicitGemm
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.convolution import FORMS, ConvOptions, raise_convolution
from tcir.pipelines.parts.tile_to_llvm import tile_to_llvm


def build(options: ConvOptions) -> Pipeline:
    """The passes."""
    return Pipeline(
        [
            *raise_convolution(),
            TileConvImplicitGemm(n_tile=options.n_tile),
            *tile_to_llvm(options.stages),
        ]
    )


register_pipeline(
    NamedPipeline(
        name="conv-implicit-gemm",
        doc="2-D convolution as a matrix product; TMA gathers the input tap by tap (im2col mode).",
        options=ConvOptions,
        accepted_forms=(
            *FORMS,
            "strides up to 8, any dilation",
        ),
        build=build,
    )
)
