"""Pipeline conv-smem-offset."""

from __future__ import annotations

from tcir.passes.conv.tile_conv_smem_offset import TileConvSmemOffset
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import ONE_WARPGROUP, tile_to_llvm
from tcir.pipelines.parts.convolution import FORMS, ConvOptions, convolutions
from tcir.target import targets_with


def build(options: ConvOptions) -> Pipeline:
    """The passes."""
    return Pipeline(
        [
            *convolutions(options),
            TileConvSmemOffset(n_tile=options.n_tile),
            *tile_to_llvm(
                options.stages, programmatic=options.programmatic, warpgroups=ONE_WARPGROUP
            ),
        ]
    )


register_pipeline(
    NamedPipeline(
        name="conv-smem-offset",
        doc="2-D convolution whose taps are one tile in shared memory, read from another row on.",
        options=ConvOptions,
        accepted_forms=(
            *FORMS,
            "any strides and dilations whose tiles fit shared memory",
        ),
        build=build,
        targets=tuple(targets_with("tcgen05") + targets_with("wgmma")),
    )
)
