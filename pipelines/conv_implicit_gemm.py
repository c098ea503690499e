"""The pipeline conv-implicit-gemm."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.conv.fold_filter_rows import FoldFilterRows
from tcir.passes.conv.split_conv_k import SplitConvK
from tcir.passes.conv.tile_conv_implicit_gemm import TileConvImplicitGemm
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import ONE_WARPGROUP
from tcir.pipelines.parts.convolution import FORMS, ScheduleOptions, convolutions, scheduled
from tcir.target import targets_with


@dataclass(frozen=True)
class ConvImplicitGemmOptions(ScheduleOptions):
    """Options of the pipeline.

    n_tile: output channels per CTA, a multiple of 16 (for a pair, 32) up to 256; 0 chooses
    stages: slots of the ring in shared memory; 0 chooses
    programmatic: whether launches may start before the previous ones have ended (programmatic
                  dependent launch)
    tf32: whether f32 factors are truncated to tf32 for tensor cores; false: CUDA cores multiply
          them in f32
    persistent: whether there are no more CTAs than SMs, so that a CTA computes several tiles one
                after another
    ctas: CTAs of a persistent kernel; 0: one per SM
    scheduler: how the tiles of a persistent kernel are distributed. static: CTA c computes the
               tiles c, c + ctas, …; clc: a CTA also computes the tiles of CTAs that have not been
               launched (cluster launch control)
    acc_stages: accumulators that the tiles of a CTA use in turn; 0 chooses
    store: how results are stored, direct: by each thread from its registers; tma: through swizzled
           shared memory, whole lines at a time
    store_stages: tiles that a warp stores by TMA in turn; 0 chooses
    epilogue_tile: MxN: sums that the epilogue loads, stages, stores at a time; auto as in gemm
    epilogue_warps: warps that store: 4, 8 or 12; 0 chooses
    n_tiles: tiles of n_tile output channels that a CTA computes for its pixels; only sm_100a
    cta_group: 2: pairs of CTAs compute tiles of 256 output pixels (M of the mma) together
    cluster: MxN: clusters of M by N CTAs, neighbours along pixels and output channels, load the
             filters and pixels that they share together, by multicast
    split_k: number of CTAs that divide the taps and channels of an output tile among them; a second
             kernel sums up their results; 0 takes the number that is fastest by the cost model,
             with tcgen05 always 1
    """

    split_k: int = 0


def build(options: ConvImplicitGemmOptions) -> Pipeline:
    """Returns the passes of the pipeline with these options."""
    parts = SplitConvK(splits=options.split_k, n_tile=options.n_tile, cluster=options.cluster)
    front = convolutions(options, FoldFilterRows(), parts)
    return scheduled(options, front, TileConvImplicitGemm, ONE_WARPGROUP)


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
