"""The pipeline layers."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.attention.split_kv import SplitKv
from tcir.passes.attention.tile_attention import TileAttention
from tcir.passes.attention.tile_attention_backward import TileAttentionBackward
from tcir.passes.attention.transpose_values import TransposeValues
from tcir.passes.conv.fold_filter_rows import FoldFilterRows
from tcir.passes.conv.split_conv_k import SplitConvK
from tcir.passes.conv.tile_conv import TileConv
from tcir.passes.gemm.fuse_operands import FuseOperands
from tcir.passes.gemm.split_k import SplitK
from tcir.passes.gemm.tile_gemm import TileGemm
from tcir.passes.module.join_gates import JoinGates
from tcir.passes.pipelining.overlap_products import OverlapProducts
from tcir.passes.simt.convert_to_simt import ConvertToSimt
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines import gemm
from tcir.pipelines.parts.back import ATTENTION, WARPGROUPS, tile_to_llvm
from tcir.pipelines.parts.front import launched, raised
from tcir.target import targets_with


@dataclass(frozen=True)
class LayersOptions:
    """Options of the pipeline.

    stages: slots of the rings in shared memory; 0 chooses
    programmatic: whether, in programs of several launches, a launch may start before the previous
        ones have ended (programmatic dependent launch)
    tf32: whether f32 factors are truncated to tf32 for tensor cores; false: CUDA cores multiply
        them in f32
    attention: whether two products and the softmax between them become one kernel, whose
        exponentials are rounded to the type of the values; false: each of the three is a kernel
    """

    stages: int = 0
    programmatic: bool = True
    tf32: bool = True
    attention: bool = True


def build(options: LayersOptions) -> Pipeline:
    """Returns the passes of the pipeline: rewrites and tilings of convolutions, and those of
    products."""
    return Pipeline(
        [
            *raised(options.tf32, options.attention, vectors=True, siblings=True),
            FoldFilterRows(wgmma=True),
            *gemm.rewrites(gemm.GemmOptions()),
            SplitK(splits=0),
            SplitConvK(shifted=True),
            *([SplitKv(), TransposeValues()] if options.attention else []),
            *launched(
                FuseOperands(alone=True),
                joining=[JoinGates()],
                simt=ConvertToSimt(options.programmatic, True, quantise_apart=False, streamed=True),
                quantise_apart=False,
            ),
            TileConv(others=True),
            TileAttention(),
            TileAttentionBackward(),
            TileGemm(),
            *tile_to_llvm(
                options.stages,
                programmatic=options.programmatic,
                several=True,
                warpgroups=(*ATTENTION, *WARPGROUPS, OverlapProducts()),
            ),
        ]
    )


register_pipeline(
    NamedPipeline(
        name="layers",
        doc="convolutions and matrix products in one function, each by a schedule of its own.",
        options=LayersOptions,
        accepted_forms=("what gemm accepts, and what conv accepts; several of both",),
        build=build,
        targets=tuple(targets_with("tcgen05") + targets_with("wgmma")),
    )
)
