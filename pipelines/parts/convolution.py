"""Parts that the convolution pipelines share: options, accepted forms of the input, and the front
end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcir.passes.kernels.scheduled import CLC
from tcir.passes.kernels.stores.epilogue_tile import AUTO
from tcir.passes.simt.convert_to_simt import ConvertToSimt
from tcir.passmanager.pipeline import Pass, Pipeline
from tcir.pipelines.parts.back import tile_to_llvm
from tcir.pipelines.parts.front import launched, raised, with_options

FORMS = (
    "linalg.conv_2d_nhwc_hwcf, linalg.conv_2d_nhwc_fhwc, or the same as linalg.generic",
    "linalg.conv_2d_nchw_fchw, or any other order of dimensions: kernels of their own repack what "
    "is not channels last",
    "linalg.conv_1d_nwc_wcf, conv_1d_ncw_fcw; grouped: linalg.conv_2d_nhwgc_gfhwc, "
    "conv_2d_ngchw_gfchw, with a multiple of 16 outputs a group",
    "on CUDA cores: depthwise, other groups, 3-D (linalg.conv_3d_ndhwc_dhwcf, conv_3d_ncdhw_fcdhw)",
    "f16, bf16, f32 (multiplied as tf32) or f8 inputs, f32 accumulator; i8 with an i32 one",
    "after it elementwise linalg, arith ops on tensors, broadcasts of other arguments: its "
    "epilogue, whose result may have another type, or be made of its even and odd channels",
    "several convolutions, and what simt-elementwise accepts around them: a launch each",
    "tensor.pad with 0.0 on height and width of the input",
    "static shapes; rows of C (with hwcf: of K) of no multiple of 16 bytes are repacked",
)
"""Forms that every convolution pipeline accepts."""


@dataclass(frozen=True)
class ConvOptions:
    """Options of the pipeline.

    n_tile: output channels per CTA, a multiple of 16 up to 256; 0 chooses
    stages: slots of the ring in shared memory; 0 chooses
    programmatic: whether launches may start before the previous ones have ended (programmatic
        dependent launch)
    tf32: whether f32 factors are truncated to tf32 for tensor cores; false: CUDA cores multiply
        them in f32
    """

    n_tile: int = 0
    stages: int = 0
    programmatic: bool = False
    tf32: bool = True


@dataclass(frozen=True)
class ScheduleOptions(ConvOptions):
    """Options that the pipelines of a single schedule share; each of these pipelines documents its
    own options."""

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


def scheduled(
    options: ScheduleOptions, front: Sequence[Pass], tile: type[Pass], warpgroups: Sequence[Pass]
) -> Pipeline:
    """Returns the passes of a pipeline with one schedule.

    front: passes before the tiling pass `tile`
    warpgroups: as in `tile_to_llvm`
    """
    return Pipeline(
        [
            *front,
            with_options(tile, options),
            *tile_to_llvm(
                options.stages,
                options.acc_stages,
                takes_over=options.scheduler == CLC,
                programmatic=options.programmatic,
                warpgroups=warpgroups,
            ),
        ]
    )


def convolutions(options: ConvOptions, *rewrites: Pass) -> list[Pass]:
    """The passes from linalg to launches, each of one ``tc.conv2d`` whose operands TMA can load,
    with its epilogue.

    rewrites: rewrites of the ``tc.conv2d``, one of which may leave its sums in parts
    """
    simt = ConvertToSimt(programmatic=options.programmatic)
    return [*raised(options.tf32), *rewrites, *launched(simt=simt)]
