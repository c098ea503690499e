"""The pipeline conv-shift-reuse."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.conv.compare_conv_schedules import CompareConvSchedules
from tcir.passes.conv.split_conv_k import SplitConvK
from tcir.passes.conv.tile_conv_shift_reuse import TileConvShiftReuse
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.convolution import (
    FORMS,
    ConvOptions,
    ScheduleOptions,
    convolutions,
    scheduled,
)


@dataclass(frozen=True)
class ShiftOptions(ConvOptions):
    """Options of the shift, and of the treatment of lanes without a new pixel
    (`ConvShiftReuseOptions` documents them)."""

    halo: str = "mask"
    tiling: str = "rows"
    shift: str = "ashift"
    shift_quarters: str = "one"
    halo_load: str = "boxes"


@dataclass(frozen=True)
class ConvShiftReuseOptions(ScheduleOptions, ShiftOptions):
    """Options of the pipeline.

    n_tile: output channels per CTA, a multiple of 16 up to 256; 0 chooses
    stages: slots of the ring in shared memory and tensor memory; 0 chooses
    programmatic: whether launches may start before the previous ones have ended (programmatic
                  dependent launch)
    tf32: whether f32 factors are truncated to tf32 for tensor cores; false: CUDA cores multiply
          them in f32
    halo:   treatment of lanes without a new pixel after a shift: ``mask`` (not stored), or
            ``refresh`` (the last lane of each sub-partition gets a new pixel from shared memory)
    tiling: how pixels are assigned to lanes: ``rows``, ``packed`` or ``linear``
    shift:  with halo=refresh, the instruction that shifts: ``ashift`` (the mma) or ``shift``
            (tcgen05.shift)
    shift_quarters: how many sub-partitions one tcgen05.shift is assumed to move: ``one`` or ``all``
    halo_load: with halo=refresh, how the halo is loaded: by a TMA load for each of its pixels
               (``boxes``), or by one load of mode im2col::w::128 for A tile and halo (``w128``,
               with tiling=packed)
    persistent, ctas, scheduler, acc_stages, epilogue_warps, cta_group, cluster, split_k: as in
            conv-smem-offset
    store, store_stages, epilogue_tile: as in conv-implicit-gemm; store=tma requires tiling=rows
    n_tiles: as in conv-smem-offset
    """


def build(options: ConvShiftReuseOptions) -> Pipeline:
    """Returns the passes of the pipeline with these options."""
    front = convolutions(options, SplitConvK(splits=options.split_k, rows=True))
    if options.halo == "mask":  # what the cost model knows
        front.append(CompareConvSchedules(options.n_tile, options.tiling))
    return scheduled(options, front, TileConvShiftReuse, ())


register_pipeline(
    NamedPipeline(
        name="conv-shift-reuse",
        doc="2-D convolution whose input goes to tensor memory once per filter row and is shifted "
        "there from tap to tap (.ashift).",
        options=ConvShiftReuseOptions,
        accepted_forms=(
            *FORMS,
            "any stride and dilation whose least common multiple along the width is at most 8",
            "filters up to 32 wide (stride 1; wider with strides)",
        ),
        build=build,
    )
)
