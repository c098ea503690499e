"""Pipeline conv-implicit-gemm."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.conv.fold_filter_rows import FoldFilterRows
from tcir.passes.conv.split_conv_k import SplitConvK
from tcir.passes.conv.tile_conv_implicit_gemm import TileConvImplicitGemm
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import ONE_WARPGROUP, tile_to_llvm
from tcir.pipelines.parts.convolution import FORMS, ConvOptions, convolutions
from tcir.target import targets_with


@dataclass(frozen=True)
class ConvImplicitGemmOptions(ConvOptions):
    """Options of the pipeline.

    n_tile: output channels per CTA, a multiple of 16 up to 256, of a pair of 32; 0 chooses
    stages: slots of the ring in shared memory; 0 chooses
    programmatic: launches may start before the previous ones have ended (programmatic
                  dependent launch)
    tf32: f32 factors are cut to tf32 for tensor cores; false: CUDA cores multiply them in f32
    cta_group: 2: pairs of CTAs compute tiles of 256 output pixels together, M of the mma
    split_k: for sm_90a: CTAs that share the taps and channels of an output tile; a second kernel
             sums their results up; 0 takes the fastest by the model
    """

    cta_group: int = 1
    split_k: int = 0


def build(options: ConvImplicitGemmOptions) -> Pipeline:
    """The passes."""
    return Pipeline(
        [
            *convolutions(
                options,
                FoldFilterRows(),
                SplitConvK(splits=options.split_k, n_tile=options.n_tile),
            ),
            TileConvImplicitGemm(n_tile=options.n_tile, cta_group=options.cta_group),
            *tile_to_llvm(
                options.stages, programmatic=options.programmatic, warpgroups=ONE_WARPGROUP
            ),
        ]
    )


register_pipeline(
    NamedPipeline(
        name="conv-implicit-gemm",
        doc="2-D convolution as a matrix product; TMA gathers the input tap by tap (im2col mode).",
        options=ConvImplicitGemmOptions,
        accepted_forms=(
            *FORMS,
            "strides up to 8, any dilation",
        ),
        build=build,
        targets=tuple(targets_with("tcgen05") + targets_with("wgmma")),
    )
)
