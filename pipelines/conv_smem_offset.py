"""The pipeline conv-smem-offset."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.conv.split_conv_k import SplitConvK
from tcir.passes.conv.tile_conv_smem_offset import TileConvSmemOffset
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import ONE_WARPGROUP
from tcir.pipelines.parts.convolution import FORMS, ScheduleOptions, convolutions, scheduled
from tcir.target import targets_with


@dataclass(frozen=True)
class ConvSmemOffsetOptions(ScheduleOptions):
    """Options of the pipeline.

    n_tile: output channels per CTA, a multiple of 16 up to 256; 0 chooses
    stages: slots of the ring in shared memory; 0 chooses
    programmatic: whether launches may start before the previous ones have ended (programmatic
        dependent launch)
    tf32: whether f32 factors are truncated to tf32 for tensor cores; false: CUDA cores multiply
        them in f32
    persistent: whether there are no more CTAs than SMs, so that a CTA computes several tiles one
        after another
    ctas: CTAs of a persistent kernel; 0: one per SM
    scheduler, acc_stages, epilogue_warps: as in conv-implicit-gemm
    store, store_stages, epilogue_tile: as in conv-implicit-gemm
    n_tiles: tiles of n_tile output channels that a CTA computes for its pixels; only sm_100a
    cta_group: 2: pairs of CTAs compute two tiles together, each with half of the filters
    cluster: Mx1: clusters of M CTAs, neighbours along pixels, load the filters together
    split_k: number of CTAs that divide the filter rows of an output tile equally among them; a
        second kernel sums up their results
    """


def build(options: ConvSmemOffsetOptions) -> Pipeline:
    """Returns the passes of the pipeline with these options."""
    front = convolutions(options, SplitConvK(splits=options.split_k, rows=True))
    return scheduled(options, front, TileConvSmemOffset, ONE_WARPGROUP)


register_pipeline(
    NamedPipeline(
        name="conv-smem-offset",
        doc="2-D convolution whose taps are one tile in shared memory, read from another row on.",
        options=ConvSmemOffsetOptions,
        accepted_forms=(
            *FORMS,
            "any strides and dilations whose tiles fit shared memory",
        ),
        build=build,
        targets=tuple(targets_with("tcgen05") + targets_with("wgmma")),
    )
)
