"""The pipeline conv."""

from __future__ import annotations

from tcir.passes.conv.fold_filter_rows import FoldFilterRows
from tcir.passes.conv.split_conv_k import SplitConvK
from tcir.passes.conv.tile_conv import TileConv
from tcir.passes.gemm.repack_gemm import RepackGemm
from tcir.passes.gemm.tile_gemm import TileGemm
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines.parts.back import ONE_WARPGROUP, tile_to_llvm
from tcir.pipelines.parts.convolution import ConvOptions, convolutions
from tcir.target import targets_with


def build(options: ConvOptions) -> Pipeline:
    """Returns the passes of the pipeline with these options."""
    return Pipeline(
        [
            *convolutions(
                options,
                FoldFilterRows(wgmma=True),
                SplitConvK(n_tile=options.n_tile, shifted=True),
                RepackGemm(),
            ),
            TileConv(n_tile=options.n_tile, others=True),
            TileGemm(n_tile=options.n_tile),
            *tile_to_llvm(
                options.stages, programmatic=options.programmatic, warpgroups=ONE_WARPGROUP
            ),
        ]
    )


register_pipeline(
    NamedPipeline(
        name="conv",
        doc="2-D convolution by the schedule that the cost model finds cheapest among the legal "
        "ones; a remark shows the table. For sm_90a conv-implicit-gemm or conv-smem-offset. With "
        "strides above 8 a matrix product, if windows are apart.",
        options=ConvOptions,
        accepted_forms=("what conv-shift-reuse, conv-smem-offset or conv-implicit-gemm accept",),
        build=build,
        targets=tuple(targets_with("tcgen05") + targets_with("wgmma")),
    )
)
