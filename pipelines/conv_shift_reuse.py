"""Pipeline conv-shift-reuse."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.conv.compare_conv_schedules import CompareConvSchedules
from tcir.passes.conv.split_conv_k import SplitConvK
from tcir.passes.conv.tile_conv_shift_reuse import TileConvShiftReuse
from tcir.passes.kernels.scheduled import CLC
from tcir.passes.kernels.stores.epilogue_tile import AUTO
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import tile_to_llvm
from tcir.pipelines.parts.convolution import FORMS, ConvOptions, convolutions
from tcir.pipelines.parts.front import with_options


@dataclass(frozen=True)
class ConvShiftReuseOptions(ConvOptions):
    """Options of the pipeline.

    n_tile: output channels per CTA, a multiple of 16 up to 256; 0 chooses
    stages: slots of the ring in shared memory and tensor memory; 0 chooses
    programmatic: launches may start before the previous ones have ended (programmatic
                  dependent launch)
    tf32: f32 factors are cut to tf32 for tensor cores; false: CUDA cores multiply them in f32
    halo:   treatment of lanes without a new pixel after a shift: ``mask`` (not stored), or
            ``refresh`` (the last lane of each quarter gets one from shared memory)
    tiling: how pixels are assigned to lanes: ``rows``, ``packed`` or ``linear``
    shift:  with halo=refresh, what shifts: ``ashift`` (the mma) or ``shift`` (tcgen05.shift)
    shift_quarters: what tcgen05.shift is taken to move: ``one`` quarter or ``all``
    halo_load: with halo=refresh, a TMA load for each pixel of the halo (``boxes``), or one of mode
            im2col::w::128 for slab and halo (``w128``, with tiling=packed)
    persistent, ctas, scheduler, acc_stages, epilogue_warps, cta_group, cluster, split_k: as in
            conv-smem-offset
    store, store_stages, epilogue_tile: as in conv-implicit-gemm, store=tma with tiling=rows
    n_tiles: as in conv-smem-offset
    """

    halo: str = "mask"
    tiling: str = "rows"
    shift: str = "ashift"
    shift_quarters: str = "one"
    halo_load: str = "boxes"
    persistent: bool = False
    ctas: int = 0
    scheduler: str = "static"
    acc_stages: int = 0
    store: str = "direct"
    store_stages: int = 0
    epilogue_tile: str = AUTO
    epilogue_warps: int = 0
    n_tiles: int = 1
    cta_group: int = 1
    cluster: str = "1x1"
    split_k: int = 1


def build(options: ConvShiftReuseOptions) -> Pipeline:
    """The passes."""
    mask = options.halo == "mask"  # what the cost model knows
    return Pipeline(
        [
            *convolutions(options, SplitConvK(splits=options.split_k, rows=True)),
            *([CompareConvSchedules(options.n_tile, options.tiling)] if mask else []),
            with_options(TileConvShiftReuse, options),
            *tile_to_llvm(
                options.stages,
                options.acc_stages,
                takes_over=options.scheduler == CLC,
                programmatic=options.programmatic,
            ),
        ]
    )


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
