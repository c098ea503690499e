"""Pipeline layers."""

from __future__ import annotations

from dataclasses import dataclass

from tcir.passes.conv.fold_filter_rows import FoldFilterRows
from tcir.passes.conv.split_conv_k import SplitConvK
from tcir.passes.conv.tile_conv import TileConv
from tcir.passes.pipelining.overlap_products import OverlapProducts
from tcir.passmanager.pipeline import NamedPipeline, Pipeline, register_pipeline
from tcir.pipelines import gemm
from tcir.target import targets_with


@dataclass(frozen=True)
class LayersOptions:
    """Options of the pipeline.

    stages: slots of the rings in shared memory; 0 chooses
    programmatic: launches that multiply may start before the previous ones have ended
                  (programmatic dependent launch)
    tf32: f32 factors are cut to tf32 for tensor cores; false: CUDA cores multiply them in f32
    """

    stages: int = 0
    programmatic: bool = False
    tf32: bool = True


def build(options: LayersOptions) -> Pipeline:
    """The passes of gemm, and before its tiling that of the convolutions."""
    chosen = gemm.GemmOptions(
        stages=options.stages, programmatic=options.programmatic, tf32=options.tf32
    )
    passes = gemm.build(chosen)
    passes = passes.insert(FoldFilterRows(wgmma=True), after="raise-to-tc")
    passes = passes.insert(SplitConvK(shifted=True), before="split-launches")
    passes = passes.insert(OverlapProducts(), after="unroll-rings")
    return passes.insert(TileConv(others=True), before="tile-gemm")


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
